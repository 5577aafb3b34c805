// The vocabulary of the rules: what was observed, what is remembered, what is decided.
// Owns the types that `step` reads and writes; holds no rule, no clock and no I/O.
// Times are monotonic milliseconds (`…AtMs`), spans are milliseconds (`…Ms`).

/** Limits of a run, from the configuration. Read-only for the whole run. */
export type Limits = {
  /** Scrapes by others to wait for; 0: no hold; `auto` (front only): one by every living scraper. */
  readonly scrapesWantedCount: number | 'auto';
  /** Longest hold, from the moment main ended; 0 does not hold. */
  readonly ttlMs: number;
  /** How long "done" must hold without a break; 0 still asks for two observations. */
  readonly settleMs: number;
  /** How long main may stay unseen; 0 waits for ever. */
  readonly startTimeoutMs: number;
  /** How long main may run; 0 sets no limit. */
  readonly runTimeoutMs: number;
  /** How long to watch, hold and quit after the first signal. */
  readonly terminationGraceMs: number;
  /** From the start of one observation to the start of the next while main runs. */
  readonly pollMs: number;
  /** How much of the grace is kept for a push and a webhook. Default: 0. */
  readonly reserveMs?: number;
};

/** When the watch and the hold must end after a signal: quitting, and telling, come after it. */
export function findWatchEnd(terminatedAtMs: number, { terminationGraceMs, reserveMs = 0 }: Limits): number {
  return terminatedAtMs + Math.max(0, terminationGraceMs - reserveMs);
}

/** The terminationGracePeriodSeconds that leaves 5 s after our own grace. */
export function toPodGraceSeconds(graceMs: number): number {
  return Math.ceil(graceMs / 1_000) + 5;
}

/** Whether the pod is held at all once main has ended. */
export function hasHold({ scrapesWantedCount, ttlMs }: Limits): boolean {
  return scrapesWantedCount !== 0 && ttlMs > 0;
}

/** How many scrapes are waited for at least. */
export function findLeastWanted({ scrapesWantedCount }: Limits): number {
  return scrapesWantedCount === 'auto' ? 1 : scrapesWantedCount;
}

/** What `step` must know of a target. */
export type TargetPolicy = {
  /** How it is named in the log and the report; without secrets. */
  readonly name: string;
  /** What is sent, for a person; without secrets. */
  readonly request: string;
  /** How long it may take to go; once it took the request it is not asked again before that has passed. */
  readonly needsMs: number;
  /** There may be a way to end it without its consent. */
  readonly canForce: boolean;
  /** It is a mesh's proxy, which carries the webhook. Default: false. */
  readonly isMesh?: boolean;
};

/** How a sample is compared with the number of an entry, which fails where that holds. */
export const COMPARISONS = ['>=', '<=', '==', '!=', '>', '<'] as const;
export type Comparison = (typeof COMPARISONS)[number];

/** What the rules must know of an entry of LASTSCRAPE_FAIL_IF. */
export type ThresholdPolicy = {
  /** The entry as the user wrote it. */
  readonly text: string;
  readonly name: string;
  readonly comparison: Comparison;
  readonly limit: number;
};

/** What one exposition shows of an entry's metric. `nearest`: names or labels like those of the entry. */
export type ThresholdReading =
  /** Not one sample: none of the name or none that can be read, none with the labels, several. */
  | { readonly kind: 'none' | 'unmatched' | 'several'; readonly nearest?: readonly string[] }
  /** Exactly one: its number, which may be NaN or infinite. */
  | { readonly kind: 'value'; readonly value: number };

/** Everything that `step` decides by, from the configuration. Read-only for the whole run. */
export type Policy = {
  readonly limits: Limits;
  /** In the order of DONE_WHEN. `isMetric`: read from the exporter. `isSignal`: the signal is its end. */
  readonly conditions: readonly { readonly isMetric: boolean; readonly isSignal?: boolean }[];
  /** The port on which the exporter's numbers are served, and those who take them counted; null: none. */
  readonly front: { readonly port: number } | null;
  /** Where the last exposition is pushed to, and when; absent: nowhere. */
  readonly push?: { readonly to: string; readonly when: 'expired' | 'always' };
  /** What may replace the hold: a keeper, or the push; absent: nothing. `to`: its name, without secrets. */
  readonly handOver?: { readonly kind: 'keeper' | 'push'; readonly to: string };
  /** The report is sent to a webhook before the end. Default: false. */
  readonly hasWebhook?: boolean;
  /** Where lastscrape's own tombstone is written; absent: nowhere. */
  readonly tombstonePath?: string;
  /** What the last numbers are judged by; absent or empty: nothing is judged. */
  readonly thresholds?: readonly ThresholdPolicy[];
  /** In the order in which they are asked. */
  readonly targets: readonly TargetPolicy[];
  /** For each target: from the first request until it must be gone. */
  readonly quitTimeoutMs: number;
  /** No target is asked to quit, and no tombstone is written. */
  readonly isDryRun: boolean;
};

/** Exit codes of main containers by name; only of those that ended for good. */
export type ExitCodes = Readonly<Record<string, number>>;

/**
 * What one condition showed in one observation. `seen` and `why` are short and fit for a log line.
 * `problem`: `what is; what to do` where a person must act; each text is warned of once.
 * `exitCodes`: of main containers that ended for good, where the condition knows them.
 */
export type ConditionObservation =
  | { readonly kind: 'alive'; readonly seen: string; readonly exitCodes?: ExitCodes }
  | {
      readonly kind: 'done';
      readonly seen: string;
      /** What was seen can only be so if main was alive at some time before. */
      readonly provesWasAlive: boolean;
      /** It can only be so if main was given up before it ever ran. Default: false. */
      readonly provesNeverRan?: boolean;
      /** Numbers the source's answers: the same answer seen twice proves once. Absent: each is a new one. */
      readonly answerNumber?: number;
      readonly exitCodes?: ExitCodes;
    }
  /** Main has not begun: it is not alive, and may never have been. */
  | { readonly kind: 'notStarted'; readonly why: string; readonly exitCodes?: ExitCodes }
  /** The answer says nothing: it breaks no series and proves nothing. */
  | { readonly kind: 'unknown'; readonly why: string; readonly exitCodes?: ExitCodes }
  /** It could not be asked at all: main may be alive, so START_TIMEOUT decides nothing meanwhile. */
  | { readonly kind: 'blind'; readonly why: string; readonly problem?: string }
  /** It was not asked: another condition had shown that main is alive, or the time was up. */
  | { readonly kind: 'notObserved' };

/** promhttp's counter of finished scrapes (status 200 only) and its gauge, which includes this response. */
export type ScrapeCounters = { readonly finishedCount: number; readonly inFlightCount: number };

/** What is worth reporting of an exposition; null is "not in it". */
export type Totals = {
  readonly requests: number | null;
  readonly failures: number | null;
  /** Only there while Locust is up. */
  readonly users: number | null;
};

/** What the request to the exporter showed in one observation. */
export type ExporterObservation =
  /** No request was made: there was nothing to read it for, or no time. */
  | { readonly kind: 'none' }
  | {
      readonly kind: 'answered';
      readonly scrapes: ScrapeCounters | null;
      readonly totals: Totals;
      /** In the order of the policy's; absent where nothing is judged. */
      readonly thresholds?: readonly ThresholdReading[];
      /** Another lastscrape answered, whose front counts and holds. Default: false. */
      readonly isFront?: boolean;
    }
  | { readonly kind: 'refused' }
  /** `mayCount`: the exporter may count this request as a finished scrape, now or later. */
  | { readonly kind: 'failed'; readonly why: string; readonly mayCount: boolean };

/** What became of pushes. `why`: the newest refusal. */
export type PushCounts = {
  /** When the newest was taken in; null: none was. */
  readonly changedAtMs: number | null;
  readonly takenCount: number;
  readonly refusedCount: number;
  /** Families that were deleted or replaced, and had no more room before every scraper had them. */
  readonly droppedCount: number;
  readonly why: string;
};

/** What the front has, and does. */
export type FrontObservation = {
  /** When the newest read began that was kept; null: there is no snapshot. */
  readonly answeredAtMs: number | null;
  /** When the page that main asked to keep was read; absent: it never asked, or another program answers. */
  readonly calledAtMs?: number;
  /** A scraper has not had the page that an earlier program asked to keep. Default: false. */
  readonly hasOwedPage?: boolean;
  /** Such pages of five programs and more that had no room until every scraper had them. Default: 0. */
  readonly lostCallsCount?: number;
  /** Why the newest read failed; absent: it did not, or there was none. */
  readonly unreadWhy?: string;
  /** Absent: the source takes no pushes. */
  readonly pushes?: PushCounts;
  /** Calls of /-/snapshot; absent: no hook of a program makes them. */
  readonly hookCallsCount?: number;
  /** Answers to scrapes that have begun, and not ended. */
  readonly inFlightCount: number;
  /** The newest readings since main was first alive, in the policy's order; absent if nothing is judged. */
  readonly thresholds?: readonly ThresholdReading[];
};

/** What one turn saw of everything. */
export type Observation = {
  /** When it was to begin; much later means that this process stood still. Default: when it began. */
  readonly dueAtMs?: number;
  /** When it began; the exporter's counters are of this moment. */
  readonly startedAtMs: number;
  /** The exporter was read within it, as it always is without a front. Default: true. */
  readonly isFresh?: boolean;
  /** When the request to the exporter had ended, and the other conditions were asked. */
  readonly readAtMs: number;
  /** When it ended. */
  readonly atMs: number;
  /** The longest it could take by its own limits; longer means that this process stood still. */
  readonly allowedMs: number;
  readonly exporter: ExporterObservation;
  /** One per condition, in the order of DONE_WHEN. */
  readonly conditions: readonly ConditionObservation[];
  readonly front?: FrontObservation;
};

/** What is read: main's own endpoint, an exporter beside it, textfiles, Locust's page, or what was pushed. */
export type SourceKind = 'program' | 'exporter' | 'files' | 'locust' | 'pushes';

const SOURCE_KINDS: Readonly<Record<string, SourceKind>> = {
  'file:': 'files',
  'locust+http:': 'locust',
  'pushgateway:': 'pushes',
};

/** What is read, by the scheme of its URL. */
export function findSourceKind({ protocol }: { readonly protocol: string }): SourceKind {
  return SOURCE_KINDS[protocol] ?? 'program';
}

/** The signals that are heard; the second one decides the exit code. */
export type SignalName = 'SIGTERM' | 'SIGINT';

/** How the run ended, for the report. */
export type Outcome =
  | 'scraped'
  | 'handedOver'
  | 'exporterGone'
  | 'released'
  | 'expired'
  | 'terminated'
  | 'neverStarted'
  | 'timedOut'
  | 'misconfigured'
  | 'bug'
  | 'unfinished';

/** The outcomes that `step` decides. */
export type HoldOutcome = Exclude<Outcome, 'misconfigured' | 'bug' | 'unfinished'>;

/** Milliseconds as seconds: three decimals in a log, fewer in a report. */
export function toSeconds(ms: number, decimals: 1 | 2 | 3 = 3): number {
  const scale = 10 ** decimals;
  return Math.round((ms * scale) / 1000) / scale;
}

/** Fails the type check where a union gained a member, and the run where a value is outside its type. */
export function assertNever(value: never): never {
  throw new Error(`Bug: unexpected value ${JSON.stringify(value)}`);
}
