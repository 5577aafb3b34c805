// What is remembered between two events, and what may come next: the types of `step`; holds no rule.
// Times are monotonic milliseconds (`…AtMs`, `since…Ms`), spans are milliseconds (`…Ms`).

import type { LogEntry } from './messages.ts';
import type { ExitCodes, FrontObservation, HoldOutcome, Observation, SignalName, Totals } from './model.ts';
import type { QuitResult, TargetEvent, TargetMove, TargetState } from './quit/quit-target.ts';
import type { Count, PollHistory } from './run/scrape-count.ts';
import type { FrontFacts, ScraperRequest, ServedScrape } from './serve/scrapers.ts';
import type { JudgedNumbers } from './verdict.ts';

/** An unbroken series of observations that each proved the same, unknown ones in between included. */
export type Series = {
  /** When its first observation ended: main ended then. */
  readonly sinceMs: number;
  /** Observations that proved it. */
  readonly provenCount: number;
  /** Since then. */
  readonly count: Count;
};

/** What is remembered in every phase. */
export type Facts = {
  /** When the first observation began. */
  readonly startedAtMs: number;
  /** When main was first known to be or to have been alive; RUN_TIMEOUT counts from here. */
  readonly aliveSinceMs: number | null;
  /** An observation proved that main was alive before this watch began. */
  readonly wasAliveBefore: boolean;
  /** When the first SIGTERM or SIGINT came; null before. */
  readonly terminatedAtMs: number | null;
  /** Main was alive in an observation since then: the signal cut it short. */
  readonly wasAliveAtSignal: boolean;
  /** Some condition could not be asked in the newest observation: then START_TIMEOUT decides nothing. */
  readonly isBlind: boolean;
  /** This process stood still during the newest observation. */
  readonly isStalled: boolean;
  /** What the newest observation saw, for the log; blank before the first. */
  readonly seenText: string;
  /** When the newest observation began that read the exporter within it; null before. */
  readonly freshAtMs: number | null;
  readonly totals: Totals;
  readonly numbers: JudgedNumbers;
  /** Of each condition, the number of the newest answer that showed it done; null where answers have none. */
  readonly answerNumbers: readonly (number | null)[];
  /** Of main containers that ended for good, as last observed; empty once main is alive again. */
  readonly exitCodes: ExitCodes;
  readonly history: PollHistory;
  readonly hasAnswered: boolean;
  /** Scrapes by others since the first observation. */
  readonly running: {
    /** Since the exporter was restarted, or since the start. */
    readonly count: Count;
    /** When the exporter was restarted; null: it was not. */
    readonly restartedAtMs: number | null;
    /** Scrapes seen before that. */
    readonly beforeRestartCount: number;
    /** It may have been scraped before that. */
    readonly wasScrapedBefore: boolean;
  };
  /** When one of the metrics became unreadable, and none was alive; null otherwise. */
  readonly metricUnreadableSinceMs: number | null;
  readonly front: FrontFacts;
  /** Warnings that were given, each once: ids, and texts of problems. */
  readonly warned: readonly string[];
};

/** Why main was taken for done, or the wait for it ended. */
export type Reason =
  /** The signal came that is main's end. */
  | 'signal'
  /** Every condition held, in two observations at least, for the settle time. */
  | 'settled'
  /** Every condition but an unreadable metric held, for 60 s or until the hold would be over. */
  | 'settledWithoutMetric'
  /** The exporter refused while every other condition held: for 15 s, or after a signal or a scrape once. */
  | 'exporterGone'
  | 'startTimeout'
  /** Every condition held for the settle time, and one proved that main was given up before it ran. */
  | 'neverRan'
  | 'runTimeout'
  | 'grace'
  | 'signalBeforeStart';

export type Waiting = { readonly kind: 'waiting'; readonly done: Series | null };

export type Running = {
  readonly kind: 'running';
  /** Every condition is proven. */
  readonly done: Series | null;
  /** Every condition but the metrics is proven. */
  readonly others: Series | null;
  readonly goneSinceMs: number | null;
};

export type Holding = {
  readonly kind: 'holding';
  readonly mainEndedAtMs: number;
  /** Since then. */
  readonly count: Count;
  /** After `runTimeout` main may live, and coming alive again changes nothing. */
  readonly because: Reason;
  readonly goneSinceMs: number | null;
  /** When the hold could end, but for answers in flight; null before. */
  readonly scrapedAtMs: number | null;
  /** What became of the hand-over; absent: there was none yet. */
  readonly handOver?: SendReport;
};

/** How one target ended; `skipped` in a dry run. */
export type TargetReport = {
  readonly target: string;
  readonly result: QuitResult | 'skipped';
  /** From the first request until it was known to be gone, or given up. */
  readonly seconds: number;
  readonly hint?: string;
};

export type PushResult =
  | { readonly kind: 'accepted'; readonly requestsCount: number }
  | { readonly kind: 'failed'; readonly why: string };

export type WebhookResult =
  | { readonly kind: 'accepted'; readonly status: number; readonly tries: number }
  | { readonly kind: 'failed'; readonly why: string; readonly tries: number };

/** What became of the push, or of the hand-over; `notNeeded`: of a push, since the scrapes came. */
export type SendReport = {
  /** The kind of the receiver, or the keeper. */
  readonly to: string;
  readonly result: 'accepted' | 'failed' | 'notNeeded';
  /** Retries included; absent where nothing was sent. */
  readonly seconds?: number;
  /** In the receiver's own words where it had any. */
  readonly why?: string;
};

/** `annotationsLeftOut`: how many of the pod's were too many for the keeper; absent for 0. */
export type HandOverResult =
  | { readonly kind: 'accepted'; readonly annotationsLeftOut?: number }
  | { readonly kind: 'failed'; readonly why: string };

/** What is done between the hold and the end; `target`: the next one is quit. */
export type QuitTask = 'closeFront' | 'declareDead' | 'push' | 'target' | 'webhook';

export type Quitting = {
  readonly kind: 'quitting';
  /** When the hold, or the watch, was over. */
  readonly sinceMs: number;
  /** What is left to do, in this order; the first is under way. */
  readonly tasks: readonly QuitTask[];
  /** When the last task that is not a target ended: targets have their whole time from then on. */
  readonly quitSinceMs: number;
  /** Absent without a push, and until it is over. */
  readonly push?: SendReport;
  readonly handOver?: SendReport | undefined;
  readonly outcome: HoldOutcome;
  readonly because: Reason;
  readonly mainEndedAtMs: number | null;
  /** null where nothing was counted: no hold, or no counter. */
  readonly scrapesSeenCount: number | null;
  /** The exporter answered since main ended. */
  readonly hasAnswered: boolean;
  /** Targets that are through, in their order. */
  readonly reports: readonly TargetReport[];
  /** The target that is being asked; null: none is left. */
  readonly target: TargetState | null;
};

export type WatchPhase = Waiting | Running | Holding;
export type Phase = WatchPhase | Quitting;

type StateIn<SomePhase extends Phase> = { readonly facts: Facts; readonly phase: SomePhase };
/** While main is watched, and held for. */
export type WatchState = StateIn<WatchPhase>;
/** While the pod is held, or handed over. */
export type HoldState = StateIn<Holding>;
/** From here there is no way back. */
export type QuitState = StateIn<Quitting>;
export type State = StateIn<Phase>;

/** What the front reports: a scraper's request has come, or an answer was handed over. */
export type FrontEvent =
  | { readonly kind: 'requested'; readonly request: ScraperRequest }
  | { readonly kind: 'scraped'; readonly scrape: ServedScrape; readonly front: FrontObservation };

/** What can happen while main is watched. `planned`: the observation that comes next, or is on its way. */
export type WatchEvent =
  | { readonly kind: 'observed'; readonly observation: Observation }
  /** The first signal. */
  | { readonly kind: 'signalled'; readonly atMs: number }
  | (FrontEvent & { readonly planned: ObserveEffect });

/** How an effect of quitting ended. `leaves`: what a signal leaves behind, for the log. */
export type QuitEnd =
  | { readonly kind: 'frontClosed' }
  | { readonly kind: 'pushed'; readonly result: PushResult }
  | { readonly kind: 'declaredDead' }
  | { readonly kind: 'webhookCalled'; readonly result: WebhookResult }
  | Extract<TargetEvent, { readonly kind: 'probed' }>
  | (Extract<TargetEvent, { readonly kind: 'asked' | 'forced' }> & { readonly leaves: LogEntry['fields'] });

/** That end, and when it was; or the first signal, while the effect `planned` is under way. */
export type QuitEvent =
  | (QuitEnd & { readonly atMs: number })
  | { readonly kind: 'signalled'; readonly atMs: number; readonly planned: QuitEffect };

/** The hand-over, or taking it back, has ended. */
export type HandOverEvent = {
  readonly kind: 'handedOver';
  /** When it began. */
  readonly sinceMs: number;
  readonly atMs: number;
  readonly result: HandOverResult;
};

/** What `step` decides on: a state, and what can happen in it. `interrupted`: the second signal came. */
export type StepInput =
  | { readonly kind: 'watching'; readonly state: WatchState; readonly event: WatchEvent }
  | { readonly kind: 'handingOver'; readonly state: WatchState; readonly event: HandOverEvent }
  | { readonly kind: 'quitting'; readonly state: QuitState; readonly event: QuitEvent }
  | { readonly kind: 'interrupted'; readonly state: State; readonly by: SignalName };

/**
 * Observe everything at `atMs`. The exporter may be read until `readByMs`, which is the nearest limit (null:
 * none is near), and for SHORT_READ_MS in any case; the conditions after it get as long again. `isFresh`:
 * it is read within the observation, whatever POLL says.
 */
export type ObserveEffect = {
  readonly kind: 'observe';
  readonly atMs: number;
  readonly readByMs: number | null;
  readonly isFresh: boolean;
};

/** How long sending may take. */
export type SendLimits = {
  /** When it is given up. */
  readonly untilMs: number;
  /** How long after the first signal it is given up, if that is sooner. */
  readonly graceMs: number;
};

/** Hand the last numbers over, which then need no hold; or take them back, since main runs again. */
export type HandOverEffect = { readonly kind: 'handOver' | 'withdraw'; readonly sinceMs: number } & SendLimits;

/** What to do next while quitting. `index`: of the target, counted from 0. */
export type QuitEffect =
  /** End every connection of the front, which serves nothing more. */
  | { readonly kind: 'closeFront' }
  /** Send the last exposition. */
  | ({ readonly kind: 'push' } & SendLimits)
  /** Send the report. */
  | ({ readonly kind: 'callWebhook' } & SendLimits)
  /** Write lastscrape's own tombstone. */
  | { readonly kind: 'declareDead' }
  | (Exclude<TargetMove, { readonly kind: 'ended' }> & { readonly index: number });

/** Nothing is left to do. `by`: the second signal, which ended the run; null: it came to its end. */
export type DoneEffect = { readonly kind: 'done'; readonly exitCode: number; readonly by: SignalName | null };

type DecisionIn<Kind extends string, SomeState extends State, Effect> = {
  readonly kind: Kind;
  readonly state: SomeState;
  readonly log: readonly LogEntry[];
  readonly next: Effect;
};
export type WatchDecision = DecisionIn<'watching', WatchState, ObserveEffect>;
export type QuitDecision = DecisionIn<'quitting', QuitState, QuitEffect>;
export type HandOverDecision = DecisionIn<'handingOver', WatchState, HandOverEffect>;
export type EndDecision = DecisionIn<'ended', State, DoneEffect>;
/** The new state, what to log, and the one effect that comes next; its end is the next event. */
export type Decision = WatchDecision | HandOverDecision | QuitDecision | EndDecision;
