// The law: from the state and one look to the next state, what to say, and when to look again. Pure.
// Decided anew from every look (level-triggered): an event missed between two looks changes nothing.
//
//   waiting ──▶ running ──▶ holding ──▶ quitting
//
// There is no way back from quitting; `quit.ts` decides what comes next there.

import {
  assertNever,
  type ConditionObservation,
  type ExitCodes,
  type HoldOutcome,
  type Limits,
  type LogEntry,
  type LogLevel,
  type Observation,
  type Totals,
} from './model.ts';
import {
  advanceCount,
  advanceHistory,
  beginCount,
  type Count,
  EMPTY_HISTORY,
  hasRestarted,
  isQuiet,
  type PollHistory,
} from './scrape-count.ts';

/** A refused exporter is gone after this long, while every other condition is proven: a container restart takes less. */
export const GONE_AFTER_MS = 15_000;
/** An unreadable metric is done without after this long, while every other condition is proven. */
export const WITHOUT_METRIC_AFTER_MS = 60_000;
/** Longest wait for a scrape in flight once the count is reached; Prometheus's default scrape_timeout is 10 s. */
export const IN_FLIGHT_WAIT_MS = 10_000;
/** A run in which nobody scraped for so long gets a warning: three of Prometheus's default intervals (1 m). */
export const NOBODY_AFTER_MS = 180_000;
/** A look that took longer cannot be the baseline: its counters are too much older than the end that it proved. */
export const BASELINE_MAX_MS = 1_000;
/** From the start of one look to the start of the next once "done" was seen; POLL where that is shorter. */
export const DONE_PACE_MS = 500;
/** While main runs, the pause after a look is at least so many times what the look took. */
export const PAUSE_FACTOR = 4;
/** The longest such pause. */
export const PAUSE_MAX_MS = 30_000;
/** Quitting gets at least this long after a signal, whatever the grace. */
export const QUIT_MIN_MS = 1_000;

/** An unbroken series of looks that each proved the same, unknown looks in between included. */
type Series = {
  /** When its first look ended: main ended then. */
  readonly sinceMs: number;
  /** Looks that proved it. */
  readonly provenCount: number;
  readonly count: Count;
  /** The exporter was restarted within the series: its numbers are gone. */
  readonly isExporterRestarted: boolean;
};

/** What is remembered in every phase. */
export type Facts = {
  /** When the first look began. */
  readonly startedAtMs: number;
  /** When main was first known to be or to have been alive; RUN_TIMEOUT counts from here. */
  readonly aliveSinceMs: number | null;
  /** A look proved that main was alive before this watch began. */
  readonly wasAliveBefore: boolean;
  readonly terminatedAtMs: number | null;
  /** The newest look at any condition told of something that keeps it from being seen: then START_TIMEOUT decides nothing. */
  readonly isBlind: boolean;
  /** What the newest look saw, for the log; blank before the first. */
  readonly seenText: string;
  readonly totals: Totals;
  /** Of each condition, the number of the newest answer that showed it done; null where answers have none. */
  readonly answerNumbers: readonly (number | null)[];
  /** Of main containers that ended for good, the newest look that knew; none once main is alive again. */
  readonly exitCodes: ExitCodes;
  readonly trail: PollHistory;
  /** The exporter answered at least once. */
  readonly hasAnswered: boolean;
  /** Scrapes by others since the first look; those before an exporter's restart apart. */
  readonly running: { readonly count: Count; readonly beforeRestartCount: number };
  /** When every metric condition became unreadable; null while one is readable. */
  readonly metricUnknownSinceMs: number | null;
  /** Warnings that were given; each is given once. */
  readonly warned: readonly string[];
};

/** Why main was taken for done, or was not waited for any longer. */
export type Reason =
  /** Every condition held, in two looks at least, for the settle time. */
  | 'settled'
  /** Every condition but the metric held for 60 s, and the metric was unreadable. */
  | 'settledWithoutMetric'
  /** The exporter refused for 15 s (after a signal: once) while every other condition held. */
  | 'exporterGone'
  | 'startTimeout'
  /** Every condition held for the settle time, and one of them proved that main was given up before it ran. */
  | 'neverRan'
  | 'runTimeout'
  /** The grace after a signal was used up. */
  | 'grace'
  /** A signal came before main was ever alive. */
  | 'signalBeforeStart';

export type Phase =
  | { readonly kind: 'waiting'; readonly done: Series | null }
  | {
      readonly kind: 'running';
      readonly done: Series | null;
      /** Every condition but the metric is proven. */
      readonly others: Series | null;
      readonly goneSinceMs: number | null;
    }
  | {
      readonly kind: 'holding';
      readonly mainEndedAtMs: number;
      /** After `runTimeout` main may live, and coming alive again changes nothing. */
      readonly because: Reason;
      readonly count: Count;
      readonly isExporterRestarted: boolean;
      readonly goneSinceMs: number | null;
      /** When the count was reached; null before. */
      readonly scrapedAtMs: number | null;
    }
  | {
      readonly kind: 'quitting';
      readonly sinceMs: number;
      readonly outcome: HoldOutcome;
      readonly because: Reason;
      readonly mainEndedAtMs: number | null;
      /** null where nothing was counted: no hold, or no counter. */
      readonly scrapesSeenCount: number | null;
    };

export type State = { readonly facts: Facts; readonly phase: Phase };

export type Next =
  /** Look again at `atMs`; give a look up at `deadlineMs` (null: no limit is near), and decide then. */
  | { readonly kind: 'look'; readonly atMs: number; readonly deadlineMs: number | null }
  /** Quit; `quitDeadlineMs` says by when. */
  | { readonly kind: 'quit' };

export type Decision = { readonly state: State; readonly notes: readonly LogEntry[]; readonly next: Next };

/** The state before the first look, which begins at `startedAtMs`. */
export function initialState(startedAtMs: number): State {
  return {
    facts: {
      startedAtMs,
      aliveSinceMs: null,
      wasAliveBefore: false,
      terminatedAtMs: null,
      isBlind: false,
      seenText: '',
      totals: { requests: null, failures: null, users: null },
      answerNumbers: [],
      exitCodes: {},
      trail: EMPTY_HISTORY,
      hasAnswered: false,
      running: { count: beginCount(startedAtMs), beforeRestartCount: 0 },
      metricUnknownSinceMs: null,
      warned: [],
    },
    phase: { kind: 'waiting', done: null },
  };
}

/** When quitting, which began at `sinceMs`, must end after a signal at `terminatedAtMs`; null without one. */
export function quitDeadlineMs(sinceMs: number, terminatedAtMs: number | null, limits: Limits): number | null {
  if (terminatedAtMs === null) return null;
  const beginsMs = Math.max(sinceMs, terminatedAtMs);
  return Math.max(terminatedAtMs + limits.terminationGraceMs, beginsMs + QUIT_MIN_MS);
}

/** Scrapes by others from the first look until main ended, a lower bound; null where the exporter shows no counter. */
export function scrapesWhileRunning({ facts, phase }: State): number | null {
  const { count, beforeRestartCount } = facts.running;
  if (count.baseline === null) return null;
  const sinceEndCount =
    phase.kind === 'holding' ? phase.count.seenCount : phase.kind === 'quitting' ? Number(phase.scrapesSeenCount) : 0;
  return Math.max(0, beforeRestartCount + count.seenCount - sinceEndCount);
}

/**
 * Decides what one look means.
 *
 * `state` is what the last decision returned, `look` is newer than every look before it.
 * @throws Error when called in `quitting`: nothing is watched there.
 */
export function step(state: State, look: Observation, limits: Limits): Decision {
  const judged = judge(dropRepeated(look, state.facts.answerNumbers), limits);
  // A decision by the clock alone has seen nothing: what the last look saw still stands.
  const seen = { ...judged, text: judged.text === '' ? state.facts.seenText : judged.text };
  const facts = advanceFacts(state.facts, look, seen);
  const turn: Turn = { before: state.facts, facts, look, seen, limits, notes: [] };
  if (state.facts.terminatedAtMs === null && look.terminatedAtMs !== null) {
    say(turn, 'info', 'asked to terminate', {
      graceSeconds: limits.terminationGraceMs / 1000,
      while: state.phase.kind,
    });
  }
  warnOfProblems(turn);
  const { phase } = state;
  switch (phase.kind) {
    case 'waiting':
      return afterWaiting(turn, phase);
    case 'running':
      return afterRunning(turn, phase);
    case 'holding':
      return afterHolding(turn, phase);
    case 'quitting':
      throw new Error('Bug: step() was called while quitting');
    default:
      return assertNever(phase);
  }
}

/** What a look showed of main, all conditions together. */
type Seen = {
  readonly isAlive: boolean;
  readonly isDone: boolean;
  /** There are conditions that are no metric, and all of them are done. */
  readonly areOthersDone: boolean;
  /** There are metric conditions, and none could be read. */
  readonly isMetricUnknown: boolean;
  readonly provesWasAlive: boolean;
  readonly provesNeverRan: boolean;
  /** What was seen, for the log. */
  readonly text: string;
};

type Turn = {
  /** The facts before this look. */
  readonly before: Facts;
  facts: Facts;
  readonly look: Observation;
  readonly seen: Seen;
  readonly limits: Limits;
  readonly notes: LogEntry[];
};

type PhaseOf<Kind extends Phase['kind']> = Extract<Phase, { readonly kind: Kind }>;

function judge(look: Observation, limits: Limits): Seen {
  const metrics = look.conditions.filter((_, index) => limits.isMetric[index]);
  const others = look.conditions.filter((_, index) => !limits.isMetric[index]);
  const isDone = (condition: ConditionObservation) => condition.kind === 'done';
  return {
    isAlive: look.conditions.some((condition) => condition.kind === 'alive'),
    isDone: look.conditions.every(isDone),
    areOthersDone: others.length > 0 && others.every(isDone),
    isMetricUnknown: metrics.length > 0 && metrics.every(({ kind }) => kind === 'unknown' || kind === 'notObserved'),
    provesWasAlive: look.conditions.some((condition) => condition.kind === 'done' && condition.provesWasAlive),
    provesNeverRan: look.conditions.some((condition) => condition.kind === 'done' && condition.provesNeverRan === true),
    text: look.conditions
      .flatMap((condition) => ('seen' in condition ? [condition.seen] : 'why' in condition ? [condition.why] : []))
      .join(', '),
  };
}

/** One answer of a source, served again, proves no more than once: it leaves everything as it is. */
function dropRepeated(look: Observation, answerNumbers: Facts['answerNumbers']): Observation {
  const conditions = look.conditions.map((condition, index): ConditionObservation => {
    const isRepeated =
      condition.kind === 'done' &&
      condition.answerNumber !== undefined &&
      condition.answerNumber === answerNumbers[index];
    return isRepeated ? { kind: 'unknown', why: condition.seen, exitCodes: condition.exitCodes ?? {} } : condition;
  });
  return { ...look, conditions };
}

function advanceFacts(facts: Facts, look: Observation, seen: Seen): Facts {
  const { exporter } = look;
  const isRestarted = hasRestarted(facts.trail, look);
  const running = isRestarted
    ? {
        count: advanceCount(beginCount(look.startedAtMs), look, EMPTY_HISTORY),
        beforeRestartCount: facts.running.beforeRestartCount + facts.running.count.seenCount,
      }
    : { ...facts.running, count: advanceCount(facts.running.count, look, facts.trail) };
  const totals: Totals =
    exporter.kind === 'answered'
      ? {
          requests: exporter.totals.requests ?? facts.totals.requests,
          failures: exporter.totals.failures ?? facts.totals.failures,
          users: exporter.totals.users ?? facts.totals.users,
        }
      : facts.totals;
  return {
    ...facts,
    aliveSinceMs: facts.aliveSinceMs ?? (seen.isAlive ? look.atMs : null),
    wasAliveBefore: facts.wasAliveBefore || (facts.aliveSinceMs === null && !seen.isAlive && seen.provesWasAlive),
    terminatedAtMs: facts.terminatedAtMs ?? look.terminatedAtMs,
    isBlind: isBlind(look.conditions, facts),
    seenText: seen.text,
    totals,
    answerNumbers: look.conditions.map((condition, index) =>
      condition.kind === 'done' ? (condition.answerNumber ?? null) : (facts.answerNumbers[index] ?? null),
    ),
    // A restart makes a code that was seen before a thing of the past.
    exitCodes: Object.assign(
      {},
      seen.isAlive ? {} : facts.exitCodes,
      ...look.conditions.map((condition) => ('exitCodes' in condition ? condition.exitCodes : {})),
    ),
    trail: advanceHistory(facts.trail, look),
    hasAnswered: facts.hasAnswered || exporter.kind === 'answered',
    running,
    metricUnknownSinceMs: seen.isMetricUnknown ? (facts.metricUnknownSinceMs ?? look.atMs) : null,
  };
}

/** Whether something keeps a condition from being seen, in the newest look at any. */
function isBlind(conditions: readonly ConditionObservation[], before: Facts): boolean {
  const observed = conditions.filter(({ kind }) => kind !== 'notObserved');
  return observed.length === 0 ? before.isBlind : observed.some(({ kind }) => kind === 'blind');
}

function afterWaiting(turn: Turn, phase: PhaseOf<'waiting'>): Decision {
  const { look, seen, limits } = turn;
  const done = advanceSeries(phase.done, turn, seen.isDone);
  if (seen.isAlive) {
    say(turn, 'info', 'main is running', { seen: seen.text });
    return runOn(turn, JUST_RUNNING);
  }
  if (turn.facts.wasAliveBefore) {
    if (isSettled(done, turn, seen.isDone, limits.settleMs)) {
      say(turn, 'info', 'main had ended before this watch began', {});
      return hold(turn, done, 'settled');
    }
    if (isGraceOver(turn)) return quit(turn, 'terminated', 'grace', null, null);
    if (!seen.isDone) {
      turn.facts = { ...turn.facts, aliveSinceMs: look.atMs };
      say(turn, 'info', 'main was alive before this watch began', { seen: seen.text });
      return runOn(turn, { ...JUST_RUNNING, done });
    }
    return watch(turn, { kind: 'waiting', done });
  }
  if (seen.provesNeverRan && isSettled(done, turn, seen.isDone, limits.settleMs)) {
    return quit(turn, 'neverStarted', 'neverRan', null, null);
  }
  if (turn.facts.terminatedAtMs !== null) return quit(turn, 'neverStarted', 'signalBeforeStart', null, null);
  if (limits.startTimeoutMs > 0 && !turn.facts.isBlind && look.atMs - turn.facts.startedAtMs >= limits.startTimeoutMs) {
    return quit(turn, 'neverStarted', 'startTimeout', null, null);
  }
  return watch(turn, { kind: 'waiting', done });
}

const JUST_RUNNING: PhaseOf<'running'> = { kind: 'running', done: null, others: null, goneSinceMs: null };

function afterRunning(turn: Turn, phase: PhaseOf<'running'>): Decision {
  const { look, seen, limits } = turn;
  const done = advanceSeries(phase.done, turn, seen.isDone);
  const others = advanceSeries(phase.others, turn, seen.areOthersDone);
  const goneSinceMs = advanceGone(phase.goneSinceMs, turn);
  if (isSettled(done, turn, seen.isDone, limits.settleMs)) return hold(turn, done, 'settled');
  if (goneSinceMs !== null && others !== null && isGone(goneSinceMs, turn)) {
    return quit(turn, 'exporterGone', 'exporterGone', others.sinceMs, null);
  }
  if (isSettled(others, turn, seen.areOthersDone && seen.isMetricUnknown, WITHOUT_METRIC_AFTER_MS)) {
    say(turn, 'warn', 'the metric stayed unreadable: the other conditions are believed without it', {
      seconds: (look.atMs - others.sinceMs) / 1000,
      seen: seen.text,
    });
    return hold(turn, others, 'settledWithoutMetric');
  }
  return runOn(turn, { kind: 'running', done, others, goneSinceMs });
}

/** Whether the run goes on, with everything of this look already in `phase`. */
function runOn(turn: Turn, phase: PhaseOf<'running'>): Decision {
  const { look, limits, facts } = turn;
  if (limits.runTimeoutMs > 0 && facts.aliveSinceMs !== null && look.atMs - facts.aliveSinceMs >= limits.runTimeoutMs) {
    return hold(turn, beginSeries(turn), 'runTimeout');
  }
  if (isGraceOver(turn)) return quit(turn, 'terminated', 'grace', null, null);
  warnWhileRunning(turn);
  return watch(turn, phase);
}

function afterHolding(turn: Turn, before: PhaseOf<'holding'>): Decision {
  const { look, seen, limits, facts } = turn;
  if (seen.isAlive && before.because !== 'runTimeout') {
    say(turn, 'info', 'main is running again', { seen: seen.text });
    return runOn(turn, JUST_RUNNING);
  }
  const phase: PhaseOf<'holding'> = {
    ...before,
    count: advanceCount(before.count, look, turn.before.trail),
    isExporterRestarted: before.isExporterRestarted || hasRestarted(turn.before.trail, look),
    goneSinceMs: advanceGone(before.goneSinceMs, turn),
  };
  return holdOn(turn, phase, facts, limits);
}

/** Whether the hold goes on, with everything of this look already in `phase`. */
function holdOn(turn: Turn, before: PhaseOf<'holding'>, facts: Facts, limits: Limits): Decision {
  const { look } = turn;
  const end = (outcome: HoldOutcome) =>
    quit(turn, before.because === 'runTimeout' ? 'timedOut' : outcome, before.because, before.mainEndedAtMs, before);
  if (limits.scrapesWantedCount === 0 || limits.ttlMs === 0) return end('released');

  const isReached = before.count.seenCount >= limits.scrapesWantedCount;
  const scrapedAtMs = before.scrapedAtMs ?? (isReached ? look.atMs : null);
  const isTtlOver = look.atMs - before.mainEndedAtMs >= limits.ttlMs;
  const isGraceUsedUp = isGraceOver(turn);
  const isRefused = look.exporter.kind === 'refused';
  if (scrapedAtMs !== null) {
    // A quit cuts an answer off: let the scrape in flight end first.
    const isWaitOver = look.atMs - scrapedAtMs >= IN_FLIGHT_WAIT_MS;
    if (isQuiet(look) || isWaitOver || isTtlOver || isGraceUsedUp || isRefused || before.isExporterRestarted) {
      return end('scraped');
    }
  } else {
    const isGoneNow = before.isExporterRestarted || (isRefused && facts.hasAnswered);
    if (isGoneNow || (before.goneSinceMs !== null && isGone(before.goneSinceMs, turn))) return end('exporterGone');
    if (isTtlOver) return end('expired');
    if (isGraceUsedUp) return end('terminated');
  }
  if (look.exporter.kind === 'answered' && look.exporter.scrapes === null) {
    warnOnce(turn, 'the exporter shows no scrape counter: holding for the whole TTL', {
      ttlSeconds: limits.ttlMs / 1000,
    });
  }
  return watch(turn, { ...before, scrapedAtMs });
}

function hold(turn: Turn, series: Series, because: Reason): Decision {
  const { limits } = turn;
  say(turn, 'info', because === 'runTimeout' ? 'main ran for too long: treated as ended' : 'main ended', {
    seen: turn.seen.text,
    secondsAgo: (turn.look.atMs - series.sinceMs) / 1000,
    scrapesWanted: limits.scrapesWantedCount,
    ttlSeconds: limits.ttlMs / 1000,
  });
  const phase: PhaseOf<'holding'> = {
    kind: 'holding',
    mainEndedAtMs: series.sinceMs,
    because,
    count: series.count,
    isExporterRestarted: series.isExporterRestarted,
    goneSinceMs: null,
    scrapedAtMs: null,
  };
  return holdOn(turn, phase, turn.facts, limits);
}

function quit(
  turn: Turn,
  outcome: HoldOutcome,
  because: Reason,
  mainEndedAtMs: number | null,
  held: PhaseOf<'holding'> | null,
): Decision {
  const { look, facts } = turn;
  const scrapesSeenCount = held === null || held.count.baseline === null ? null : held.count.seenCount;
  say(turn, 'info', 'quitting', {
    outcome,
    because,
    heldSeconds: mainEndedAtMs === null ? null : (look.atMs - mainEndedAtMs) / 1000,
    scrapesSeen: scrapesSeenCount,
    seen: turn.seen.text,
  });
  const phase: Phase = {
    kind: 'quitting',
    sinceMs: look.atMs,
    outcome,
    because,
    mainEndedAtMs,
    scrapesSeenCount,
  };
  return {
    state: { facts, phase },
    notes: turn.notes,
    next: { kind: 'quit' },
  };
}

function watch(turn: Turn, phase: Exclude<Phase, PhaseOf<'quitting'>>): Decision {
  return {
    state: { facts: turn.facts, phase },
    notes: turn.notes,
    next: { kind: 'look', atMs: nextLookMs(turn, phase), deadlineMs: deadlineMs(turn, phase) },
  };
}

/** When to look again; a late look is not made up. */
function nextLookMs({ look, facts, limits }: Turn, phase: Phase): number {
  const tookMs = look.atMs - look.startedAtMs;
  const done = phase.kind === 'running' || (phase.kind === 'waiting' && facts.wasAliveBefore) ? phase.done : null;
  if (phase.kind === 'holding' || done !== null || facts.terminatedAtMs !== null) {
    const paceMs = Math.min(DONE_PACE_MS, limits.pollMs);
    const nextMs = tookMs < paceMs ? look.startedAtMs + paceMs : look.atMs + paceMs;
    // The look that can end the settle time comes when that ends, not up to one pace later.
    const settledAtMs = done === null ? 0 : done.sinceMs + limits.settleMs;
    return settledAtMs > look.atMs ? Math.min(nextMs, settledAtMs) : nextMs;
  }
  // A struggling exporter queues everybody's scrapes behind one lock: leave most of its time to Prometheus.
  const pauseMs = Math.min(PAUSE_FACTOR * tookMs, PAUSE_MAX_MS);
  return Math.max(look.startedAtMs + limits.pollMs, look.atMs + pauseMs);
}

/** The nearest moment at which a limit decides, whatever a look would show; null where none can. */
function deadlineMs({ facts, limits }: Turn, phase: Phase): number | null {
  const ends: number[] = [];
  if (facts.terminatedAtMs !== null) ends.push(facts.terminatedAtMs + limits.terminationGraceMs);
  if (phase.kind === 'waiting' && limits.startTimeoutMs > 0 && !facts.wasAliveBefore && !facts.isBlind) {
    ends.push(facts.startedAtMs + limits.startTimeoutMs);
  }
  if (phase.kind === 'running' && limits.runTimeoutMs > 0 && facts.aliveSinceMs !== null) {
    ends.push(facts.aliveSinceMs + limits.runTimeoutMs);
  }
  if (phase.kind === 'holding') {
    ends.push(phase.mainEndedAtMs + limits.ttlMs);
    if (phase.scrapedAtMs !== null) ends.push(phase.scrapedAtMs + IN_FLIGHT_WAIT_MS);
  }
  return ends.length === 0 ? null : Math.min(...ends);
}

function beginSeries({ look, before }: Turn): Series {
  return {
    sinceMs: look.atMs,
    provenCount: 1,
    count: advanceCount(beginCount(look.atMs - BASELINE_MAX_MS), look, before.trail),
    isExporterRestarted: hasRestarted(before.trail, look),
  };
}

/** An alive look breaks a series; one that proves begins it; any other leaves it as it is. */
function advanceSeries(series: Series | null, turn: Turn, isProven: boolean): Series | null {
  const { look, before, seen } = turn;
  if (seen.isAlive) return null;
  if (series === null) return isProven ? beginSeries(turn) : null;
  return {
    sinceMs: series.sinceMs,
    provenCount: series.provenCount + (isProven ? 1 : 0),
    count: advanceCount(series.count, look, before.trail),
    isExporterRestarted: series.isExporterRestarted || hasRestarted(before.trail, look),
  };
}

/** Whether this very look proves the series again, as the second one at least, and for long enough. */
function isSettled(series: Series | null, { look }: Turn, isProvenNow: boolean, afterMs: number): series is Series {
  return series !== null && isProvenNow && series.provenCount >= 2 && look.atMs - series.sinceMs >= afterMs;
}

/** Since when the exporter refused, in every look, while the other conditions were proven; unknown ones change nothing. */
function advanceGone(sinceMs: number | null, { look, seen }: Turn): number | null {
  if (look.exporter.kind === 'none') return sinceMs;
  if (look.exporter.kind !== 'refused' || seen.isAlive) return null;
  return sinceMs ?? (seen.areOthersDone ? look.atMs : null);
}

function isGone(sinceMs: number, { look, seen, facts }: Turn): boolean {
  if (look.exporter.kind !== 'refused' || !seen.areOthersDone) return false;
  return facts.terminatedAtMs !== null || look.atMs - sinceMs >= GONE_AFTER_MS;
}

function isGraceOver({ look, facts, limits }: Turn): boolean {
  return facts.terminatedAtMs !== null && look.atMs - facts.terminatedAtMs >= limits.terminationGraceMs;
}

/** Tells once of each thing that keeps a condition from being seen, and that a person must mend. */
function warnOfProblems(turn: Turn): void {
  for (const look of turn.look.conditions) {
    if (look.kind !== 'blind' || look.problem === undefined || turn.facts.warned.includes(look.problem)) continue;
    turn.facts = { ...turn.facts, warned: [...turn.facts.warned, look.problem] };
    say(turn, 'warn', 'a condition cannot be seen', { problem: look.problem });
  }
}

function warnWhileRunning(turn: Turn): void {
  const { look, seen, facts, limits } = turn;
  if (look.exporter.kind === 'refused' && seen.isAlive && facts.hasAnswered) {
    warnOnce(turn, 'the exporter vanished while main runs: somebody may have called its quit endpoint', {
      seen: seen.text,
    });
  }
  if (facts.metricUnknownSinceMs !== null && look.atMs - facts.metricUnknownSinceMs >= WITHOUT_METRIC_AFTER_MS) {
    const hasOthers = limits.isMetric.includes(false);
    warnOnce(
      turn,
      hasOthers
        ? 'the metric is unreadable: main is done when the other conditions hold for 60 s'
        : 'the metric is unreadable and the only condition: only LASTSCRAPE_RUN_TIMEOUT would end this',
      { seen: seen.text },
    );
  }
  const isLong = facts.aliveSinceMs !== null && look.atMs - facts.aliveSinceMs >= NOBODY_AFTER_MS;
  if (isLong && facts.running.count.isNobody && limits.scrapesWantedCount > 0 && limits.ttlMs > 0) {
    warnOnce(turn, 'nobody has scraped this exporter: NetworkPolicy, mesh mTLS, PodMonitor?', {
      seconds: NOBODY_AFTER_MS / 1000,
    });
  }
}

function say(turn: Turn, level: LogLevel, msg: string, fields: LogEntry['fields']): void {
  turn.notes.push({ level, msg, fields });
}

function warnOnce(turn: Turn, msg: string, fields: LogEntry['fields']): void {
  if (turn.facts.warned.includes(msg)) return;
  turn.facts = { ...turn.facts, warned: [...turn.facts.warned, msg] };
  say(turn, 'warn', msg, fields);
}
