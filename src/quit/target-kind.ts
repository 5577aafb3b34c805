// What a kind of quit target is: a row of the table in main.ts, and one file in this folder.

import type { Environment, ParseResult } from '../base/parse.ts';
import type { TargetPolicy } from '../decide/model.ts';
import type { Answer, ForceResult, Probe } from '../decide/quit/quit-target.ts';

/** One entry of QUIT. `needsMs`: default 0. */
export type Target = Pick<TargetPolicy, 'name' | 'request' | 'isMesh'> &
  Partial<Pick<TargetPolicy, 'needsMs'>> & {
    /** Where the request goes; absent for a signal. */
    readonly url?: URL;
    /** The preset that it is of, or the processes that it signals, by name; absent: only a URL is known. */
    readonly stops?: { readonly preset: string } | { readonly processName: string };
    /** Asks it once to end; never rejects. */
    readonly ask: (timeoutMs: number, signal: AbortSignal) => Promise<Answer>;
    /** Probes whether it still listens, for `timeoutMs` at most; never rejects. */
    readonly probe: (timeoutMs: number, signal: AbortSignal) => Promise<Probe>;
    /** Forces it to end, after `count` earlier attempts; absent where that is impossible. Never rejects. */
    readonly force?: (count: number, answer: Answer | null) => Promise<ForceResult>;
    /** What a signal leaves behind in the pod, as fields of its log line. */
    readonly signalLeaves?: (signal: string) => Readonly<Record<string, unknown>>;
    /** What the newest answer usually means where the target still runs; null: none came. */
    readonly hint: (answer: Answer | null) => string;
    /** Checks at the start whether it can work in this pod: `what is; what to do`, or null. Never rejects. */
    readonly check?: () => Promise<string | null>;
    /** What it needs in a pod, for `--check` outside of one. Default: it must be there. */
    readonly need?: string;
    /** It watches the processes of the pod. Default: false. */
    readonly usesProcesses?: boolean;
    /** What `--check` prints of it in this pod, a line each; never asks it to end, never rejects. */
    readonly inspect?: () => Promise<readonly string[]>;
  };

/** What a target may take from the rest of the configuration and of the process. */
export type TargetContext = {
  readonly metricsUrl: URL;
  readonly env: Environment;
  /** Of lastscrape itself. */
  readonly pid: number;
  /** Sends a signal, or with 0 only tries whether it may. @throws with the code ESRCH or EPERM. */
  readonly kill: (pid: number, signal: string | 0) => void;
};

export type TargetKind = {
  /** How it is written, for messages: `locust-exporter`, `[METHOD ]URL`. */
  readonly usage: string;
  /** What people call the program that it is the preset of; absent: it is no preset. */
  readonly otherNames?: readonly string[];
  /** What it means, for `--help` and docs/reference.md. */
  readonly meaning: string;
  /** Reads an entry; null where it is not of this kind, a problem says what it must be. */
  readonly read: (entry: string, context: TargetContext) => ParseResult<Target> | null;
};
