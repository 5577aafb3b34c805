// What a kind of condition is: a row of the table in main.ts, and one file in this folder.

import type { ConditionLook, ExporterLook } from '../decide/model.ts';
import type { Parsed } from '../parsed.ts';
import type { Reading } from '../wire/exposition.ts';

/** What one look may use. */
export type LookContext = {
  readonly exporter: ExporterReading;
  /** Ends the look early; its reason is a string. */
  readonly signal: AbortSignal;
};

/** What the exporter said in this look. */
export type ExporterReading = {
  readonly look: ExporterLook;
  /** The condition metric's one sample without labels, or why it is not known. */
  readonly metric: (name: string) => Reading;
  /** It serves requests of Locust: it once reached Locust. */
  readonly hasRequests: boolean;
};

/** One entry of DONE_WHEN. */
export type Condition = {
  /** The entry as the user wrote it. */
  readonly text: string;
  /** The metric it is read from; null for a condition that is no metric. */
  readonly metricName: string | null;
  /** Never rejects: what cannot be seen is `unknown`. */
  readonly look: (context: LookContext) => Promise<ConditionLook>;
};

/** A kind of condition, `NAME:ARGUMENT` in DONE_WHEN. */
export type ConditionKind = {
  readonly name: string;
  /** How it is written, for messages: `port:[HOST:]PORT`. */
  readonly usage: string;
  /** What it means, for `--help` and the README. */
  readonly meaning: string;
  /** Reads the argument; a problem says what it must be. */
  readonly read: (argument: string) => Parsed<Condition>;
};
