// What the front reads from: a program that answers by HTTP, or files. A row of what a source is, and of what one read of it shows.

import type { ExporterReading } from '../../observe/condition.ts';
import type { Body } from '../../snapshot/body.ts';

export type Source<SomeAnswer extends BegunAnswer = BegunAnswer> = {
  /** Begins one read, and never rejects; the next one begins when this one has ended. The reason of `signal` is a string. */
  readonly read: (signal: AbortSignal) => SourceRead<SomeAnswer>;
  readonly close: () => Promise<void>;
  /** Main is about to end: the next read shows what is newest, whatever that costs. Absent: every read does. */
  readonly expectEnd?: () => void;
  /** The path of its own at which the front serves it as well; null: only /metrics. */
  readonly path: string | null;
};

/** An answer that has begun. */
export type BegunAnswer = { readonly kind: 'answered'; readonly body: Body };

/** How a read began: its body has begun, nobody is there, or it is known that none comes. */
export type Beginning<SomeAnswer extends BegunAnswer = BegunAnswer> =
  | SomeAnswer
  | { readonly kind: 'refused' }
  | { readonly kind: 'failed'; readonly why: string };

export type SourceRead<SomeAnswer extends BegunAnswer = BegunAnswer> = {
  /** Never rejects. */
  readonly begun: Promise<Beginning<SomeAnswer>>;
  /** What the conditions go by; the body has ended by then. Never rejects. */
  readonly ended: Promise<ExporterReading>;
};
