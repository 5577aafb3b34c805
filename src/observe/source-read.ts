// How a read of a source begins and ends, whatever is read.

import type { ExporterReading } from './condition-kind.ts';

/** An answer that has begun; a front's sources have its body as well. */
export type BegunRead = { readonly kind: 'answered' };

/** How a read began: its answer has begun, nothing is there, or no answer will come. */
export type Beginning<SomeAnswer extends BegunRead> =
  | SomeAnswer
  | { readonly kind: 'refused' }
  | { readonly kind: 'failed'; readonly why: string };

/** A read that goes on. */
export type SourceRead<SomeAnswer extends BegunRead> = {
  /** Never rejects. */
  readonly begun: Promise<Beginning<SomeAnswer>>;
  /** What the answer shows, once it has ended. Never rejects. */
  readonly ended: Promise<ExporterReading>;
};
