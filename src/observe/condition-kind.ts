// What a kind of condition is: a row of the table in main.ts, and one file in this folder.

import type { ParseResult } from '../base/parse.ts';
import type { ConditionObservation, ExporterObservation } from '../decide/model.ts';
import type { Reading } from '../exposition/exposition.ts';
import type { PodReader } from '../pod/pod-reader.ts';

/** What one observation may use. `signal` ends it early; its reason is a string. */
export type ObserveContext = { readonly exporter: ExporterReading; readonly signal: AbortSignal };

/** What the exporter showed in this poll. */
export type ExporterReading = {
  readonly observation: ExporterObservation;
  /** The condition metric's one sample without labels, or why it is not known. */
  readonly metric: (name: string) => Reading;
  /** It has Locust's request rows: it once reached Locust. */
  readonly hasRequests: boolean;
  /** It ended with its connection, as it does when a program is killed. Default: false. */
  readonly mayBeCut?: boolean;
  /** It is of another format than the text that is read for its numbers. Default: false. */
  readonly isOther?: boolean;
};

/** What the conditions of a configuration share. */
export type ConditionContext = {
  /** Of lastscrape itself. */
  readonly pid: number;
  /** Opens the reader of this pod, the same one each time; its maker closes it. */
  readonly pod: { readonly open: () => Promise<PodReader> };
  /** What LASTSCRAPE_SIDECARS lists. */
  readonly sidecars: readonly string[];
};

/** One entry of DONE_WHEN. */
export type Condition = {
  /** The entry as the user wrote it. */
  readonly text: string;
  /** The metric it reads; null for any other kind. */
  readonly metricName: string | null;
  /** The first signal is main's end (`sigterm`). Default: false. */
  readonly isSignal?: boolean;
  /** The loopback port of main that must refuse (`port:`). */
  readonly port?: number;
  /** It waits for every other container of the pod, targets included. */
  readonly waitsForAll?: boolean;
  /** Never rejects: what cannot be seen is `unknown` or `blind`. */
  readonly observe: (context: ObserveContext) => Promise<ConditionObservation>;
  /** Why it cannot work in this pod, as `what is; what to do`; asked once before a run. Never rejects. */
  readonly check?: () => Promise<string | null>;
  /** What `--check` prints about it inside a pod, a line each. Never rejects. */
  readonly inspect?: () => Promise<readonly string[]>;
  /** What it needs in a pod, for `--check` outside of one. Default: it must be there. */
  readonly need?: string;
  /** It reads the pod's processes. Default: false. */
  readonly usesProcesses?: boolean;
};

/** A kind of condition, `NAME:ARGUMENT` in DONE_WHEN, or `NAME` alone. */
export type ConditionKind = {
  readonly name: string;
  /** How it is written, for messages: `port:[HOST:]PORT`. */
  readonly usage: string;
  /** What it means, for `--help` and docs/reference.md. */
  readonly meaning: string;
  /** It is written with an argument; else `read` gets an empty one. Default: true. */
  readonly takesArgument?: boolean;
  /** Misspellings of a kind without an argument, for advice. */
  readonly otherNames?: readonly string[];
  /** Reads the argument; a problem says what it must be. */
  readonly read: (argument: string, context: ConditionContext) => ParseResult<Condition>;
};
