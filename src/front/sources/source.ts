// What the front reads: the interface of a program's endpoint, of textfiles, of pushes, and of Locust's page.

import type { Clock } from '../../base/waits.ts';
import type { LogEntry } from '../../decide/messages.ts';
import type { PushCounts } from '../../decide/model.ts';
import type { Selector } from '../../exposition/exposition.ts';
import type { ExporterReading } from '../../observe/condition-kind.ts';
import type { Beginning as AnyBeginning, SourceRead as AnyRead, BegunRead } from '../../observe/exporter.ts';
import { makeFailedReading, REFUSED } from '../../observe/exporter.ts';
import type { Body } from '../../snapshot/body.ts';

/** What every source is opened with. */
export type SourceParts = {
  readonly url: URL;
  /** The metrics of the conditions. */
  readonly metricNames: readonly string[];
  /** What is judged. Default: nothing. */
  readonly selectors?: readonly Selector[];
  readonly clock: Clock;
  readonly log: (entry: LogEntry) => void;
};

/** Where the front reads. */
export type Source<SomeAnswer extends BegunAnswer = BegunAnswer> = {
  /**
   * Begins a read, the second at a time at most. Never rejects. The reason of `signal` is a string. `accept`:
   * the formats that are asked for; default: text 0.0.4.
   */
  readonly read: (signal: AbortSignal, accept?: string) => SourceRead<SomeAnswer>;
  /** It may answer in other formats. Absent: in text only. */
  readonly takesAccept?: boolean;
  readonly close: () => Promise<void>;
  /** Main is about to end: the next read must show the newest numbers. Absent: every read does. */
  readonly expectEnd?: () => void;
  /** Closes connections that no read uses. Absent: it keeps none. */
  readonly rest?: () => Promise<void>;
  /** Whether nothing listens there. Absent: it cannot tell. */
  readonly isGone?: () => Promise<boolean>;
  /** Absent: it takes no pushes. */
  readonly pushes?: () => PushCounts;
  /** Where the front serves it besides /metrics; null: nowhere. */
  readonly path: string | null;
};

/** An answer that has begun. */
export type BegunAnswer = BegunRead & { readonly body: Body };

export type Beginning<SomeAnswer extends BegunAnswer = BegunAnswer> = AnyBeginning<SomeAnswer>;
export type SourceRead<SomeAnswer extends BegunAnswer = BegunAnswer> = AnyRead<SomeAnswer>;

/** An answer that is whole when it begins, and what it shows. */
export type WholeAnswer = BegunAnswer & { readonly reading: ExporterReading };

/** The read of an answer that is whole when it begins. */
export function readWhole(answer: Promise<Beginning<WholeAnswer>>): SourceRead {
  return {
    begun: answer,
    ended: answer.then((found) => {
      if (found.kind === 'answered') return found.reading;
      return found.kind === 'refused' ? REFUSED : makeFailedReading(found.why, false);
    }),
  };
}

/** Makes the log of a source, which says each message once. */
export function openWarnings(log: (entry: LogEntry) => void): (entry: LogEntry) => void {
  const warned = new Set<string>();
  return (entry) => {
    if (!warned.has(entry.id)) log(entry);
    warned.add(entry.id);
  };
}
