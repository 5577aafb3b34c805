// What a kind of quit target is: a row of the table in main.ts, and one file in this folder.

import type { Answer, Probe } from '../decide/quit.ts';
import type { Parsed } from '../parsed.ts';

/** One entry of QUIT. */
export type Target = {
  /** How it is named in logs and the report; without secrets. */
  readonly name: string;
  /** What is sent, for a person; without secrets. */
  readonly request: string;
  /** Asks it once to end; never rejects. */
  readonly ask: (timeoutMs: number, signal: AbortSignal) => Promise<Answer>;
  /** Looks whether it still listens; never rejects. */
  readonly probe: (signal: AbortSignal) => Promise<Probe>;
  /** What the newest answer usually means where the target still runs; null: none came. */
  readonly hint: (answer: Answer | null) => string;
};

/** What a target may take from the rest of the configuration. */
export type TargetContext = { readonly metricsUrl: URL; readonly version: string };

/** A kind of target. */
export type TargetKind = {
  /** How it is written, for messages: `locust-exporter`, `[METHOD ]URL`. */
  readonly usage: string;
  /** What it means, for `--help` and the README. */
  readonly meaning: string;
  /** Reads an entry; null where it is not of this kind, a problem says what it must be. */
  readonly read: (entry: string, context: TargetContext) => Parsed<Target> | null;
};
