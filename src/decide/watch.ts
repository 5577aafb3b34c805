// The rules while main is watched and held for: from the state and one observation to the next state. Pure.
// Decided anew from every observation (level-triggered): what happened between two of them changes nothing.
// A limit decides only by what an observation showed once it was over: the clock alone has seen nothing.

import { advanceSeries, beginSeries, type Evidence, isSettled, judgeObservation } from './evidence.ts';
import { advanceFacts } from './facts.ts';
import type { LogEntry, MessageId } from './messages.ts';
import { type HoldOutcome, hasHold, type Observation, type Policy } from './model.ts';
import { findHoldEnd, findRunEnd, IN_FLIGHT_WAIT_MS, nextObserve } from './pace.ts';
import { beginQuitting } from './quit.ts';
import { advanceCount, hasRestarted, isQuiet } from './scrape-count.ts';
import type { Decision, Facts, Holding, Reason, Running, Series, Waiting, WatchPhase, WatchState } from './state.ts';

/** A refused exporter is gone after this long, while every other condition is proven: a container restart takes less. */
export const GONE_AFTER_MS = 15_000;
/** An unreadable metric is done without after this long, while every other condition is proven. */
export const WITHOUT_METRIC_AFTER_MS = 60_000;
/** A run in which nobody scraped for so long gets a warning: three of Prometheus's default intervals (1 m). */
export const NOBODY_AFTER_MS = 180_000;

/** One observation on its way through the rules. */
type Turn = {
  /** The facts from before it. */
  readonly before: Facts;
  facts: Facts;
  readonly observation: Observation;
  readonly evidence: Evidence;
  readonly policy: Policy;
  readonly log: LogEntry[];
};

/** Decides what an observation means; it is newer than every one before it. */
export function decideObserved(state: WatchState, observation: Observation, policy: Policy): Decision {
  const evidence = judgeObservation(observation, state.facts, policy);
  const facts = advanceFacts(state.facts, observation, evidence);
  const turn: Turn = { before: state.facts, facts, observation, evidence, policy, log: [] };
  logObservation(turn);
  warnOfProblems(turn);
  const { phase } = state;
  switch (phase.kind) {
    case 'waiting':
      return decideWaiting(turn, phase);
    case 'running':
      return decideRunning(turn, phase);
    case 'holding':
      return decideHolding(turn, phase);
  }
}

/** The first signal: main is being stopped, so observe at once, and watch within the grace. */
export function decideSignalled({ facts, phase }: WatchState, atMs: number, policy: Policy): Decision {
  const state: WatchState = { facts: { ...facts, terminatedAtMs: facts.terminatedAtMs ?? atMs }, phase };
  const fields = { graceSeconds: policy.limits.terminationGraceMs / 1000, while: phase.kind };
  return {
    kind: 'watching',
    state,
    log: facts.terminatedAtMs === null ? [{ id: 'terminating', fields }] : [],
    next: nextObserve(state, { kind: 'signalled', atMs }, policy),
  };
}

function decideWaiting(turn: Turn, phase: Waiting): Decision {
  const { observation, evidence, policy } = turn;
  const { settleMs, startTimeoutMs } = policy.limits;
  // What was seen before main is known to have run is from before it began.
  const isNewlyKnown = turn.facts.wasAliveBefore && !turn.before.wasAliveBefore;
  const begun = isNewlyKnown ? null : phase.done;
  const done = advance(begun, turn, evidence.isDone);
  if (evidence.isAlive) {
    log(turn, 'mainRunning', { seen: evidence.text });
    return runOn(turn, JUST_RUNNING);
  }
  if (turn.facts.wasAliveBefore) {
    if (done !== null && isSettled(done, observation, evidence.isDone, settleMs)) {
      log(turn, 'mainHadEnded', {});
      return hold(turn, done, 'settled');
    }
    if (isGraceOver(turn)) return endByGrace(turn, done);
    if (!evidence.isDone) {
      turn.facts = { ...turn.facts, aliveSinceMs: observation.atMs };
      log(turn, 'mainWasAlive', { seen: evidence.text });
      return decideRunning(turn, { ...JUST_RUNNING, done: begun, others: hasOthers(policy) ? begun : null });
    }
    return watch(turn, { kind: 'waiting', done });
  }
  if (evidence.provesNeverRan && done !== null && isSettled(done, observation, evidence.isDone, settleMs)) {
    return quit(turn, { outcome: 'neverStarted', because: 'neverRan' });
  }
  if (turn.facts.terminatedAtMs !== null) {
    // Only what is proven not to be alive was never started: anything else may end, and be scraped, within the grace.
    if (evidence.isNotAlive) return quit(turn, { outcome: 'neverStarted', because: 'signalBeforeStart' });
    if (isGraceOver(turn)) return endByGrace(turn, null);
  } else if (startTimeoutMs > 0 && !turn.facts.isBlind && !evidence.isStalled) {
    // No hard limit: an exporter that answers slowly has its whole time to say that main is up by now.
    const isOverSinceItsStart = observation.startedAtMs >= turn.facts.startedAtMs + startTimeoutMs;
    if (isOverSinceItsStart) return quit(turn, { outcome: 'neverStarted', because: 'startTimeout' });
  }
  return watch(turn, { kind: 'waiting', done });
}

const JUST_RUNNING: Running = { kind: 'running', done: null, others: null, goneSinceMs: null };

function decideRunning(turn: Turn, phase: Running): Decision {
  const { observation, evidence, policy } = turn;
  const { limits } = policy;
  const done = advance(phase.done, turn, evidence.isDone);
  const others = advance(phase.others, turn, evidence.areOthersDone);
  const goneSinceMs = advanceGone(phase.goneSinceMs, turn);
  if (done !== null && isSettled(done, observation, evidence.isDone, limits.settleMs)) {
    return hold(turn, done, 'settled');
  }
  if (others !== null && evidence.isRefused) {
    const ended = done ?? others;
    // The scrapes were seen before the exporter went: there is nothing more to wait for.
    const isScraped = hasHold(limits) && ended.count.seenCount >= Number(limits.scrapesWantedCount);
    const isProven = isScraped && isSettled(others, observation, evidence.areOthersDone, 0);
    if (isProven || isGone(goneSinceMs, turn)) return hold(turn, ended, 'exporterGone');
  }
  if (others !== null && evidence.isMetricUnreadable) {
    // Main was seen to end, its exporter hangs since, and the hold would be over by now.
    const isHoldOver = done !== null && isOver(turn, findHoldEnd(done, limits));
    const afterMs = isHoldOver ? 0 : WITHOUT_METRIC_AFTER_MS;
    if (isSettled(others, observation, evidence.areOthersDone, afterMs)) {
      const ended = isHoldOver ? done : others;
      log(turn, 'metricGivenUp', { seconds: toSeconds(observation.atMs - ended.sinceMs), seen: evidence.text });
      return hold(turn, ended, 'settledWithoutMetric');
    }
  }
  return runOn(turn, { kind: 'running', done, others, goneSinceMs });
}

/** Whether the run goes on, with everything of this observation already in `phase`. */
function runOn(turn: Turn, phase: Running): Decision {
  const { observation, policy, facts } = turn;
  const runEndMs = findRunEnd(facts, phase, policy.limits);
  if (runEndMs !== null && isOver(turn, runEndMs)) {
    return hold(turn, phase.done ?? beginSeries(observation, turn.before.history), 'runTimeout');
  }
  if (isGraceOver(turn)) return endByGrace(turn, phase.done);
  warnWhileRunning(turn);
  return watch(turn, phase);
}

/** The grace is used up: main has ended where that was seen twice, though it was not settled yet. */
function endByGrace(turn: Turn, done: Series | null): Decision {
  if (done !== null && done.provenCount >= 2) return hold(turn, done, 'grace');
  return quit(turn, { outcome: 'terminated', because: 'grace' });
}

function hold(turn: Turn, series: Series, because: Reason): Decision {
  const { limits } = turn.policy;
  log(turn, because === 'runTimeout' ? 'mainRanTooLong' : 'mainEnded', {
    seen: turn.evidence.text,
    secondsAgo: toSeconds(turn.observation.atMs - series.sinceMs),
    scrapesWanted: limits.scrapesWantedCount,
    ttlSeconds: limits.ttlMs / 1000,
  });
  const { sinceMs, count, isExporterRestarted, hasAnswered } = series;
  return holdOn(turn, {
    kind: 'holding',
    mainEndedAtMs: sinceMs,
    because,
    count,
    isExporterRestarted,
    hasAnswered,
    goneSinceMs: null,
    scrapedAtMs: null,
  });
}

function decideHolding(turn: Turn, before: Holding): Decision {
  const { observation, evidence } = turn;
  if (evidence.isAlive && before.because !== 'runTimeout') {
    log(turn, 'mainRunningAgain', { seen: evidence.text });
    return runOn(turn, JUST_RUNNING);
  }
  const { history } = turn.before;
  return holdOn(turn, {
    ...before,
    count: advanceCount(before.count, observation, history),
    isExporterRestarted: before.isExporterRestarted || hasRestarted(history, observation),
    hasAnswered: before.hasAnswered || observation.exporter.kind === 'answered',
    goneSinceMs: advanceGone(before.goneSinceMs, turn),
  });
}

/** Whether the hold goes on, with everything of this observation already in `phase`. */
function holdOn(turn: Turn, phase: Holding): Decision {
  const { observation, evidence, facts, policy } = turn;
  const { limits } = policy;
  const end = (outcome: HoldOutcome) =>
    quit(turn, {
      outcome: phase.because === 'runTimeout' ? 'timedOut' : outcome,
      because: phase.because,
      mainEndedAtMs: phase.mainEndedAtMs,
      held: phase,
    });
  if (!hasHold(limits)) return end('released');

  const isReached = phase.count.seenCount >= Number(limits.scrapesWantedCount);
  const scrapedAtMs = phase.scrapedAtMs ?? (isReached ? observation.atMs : null);
  const isTtlOver = isOver(turn, phase.mainEndedAtMs + limits.ttlMs);
  const isGoneNow =
    phase.isExporterRestarted || phase.because === 'exporterGone' || (evidence.isRefused && facts.hasAnswered);
  if (scrapedAtMs !== null) {
    // A quit cuts an answer off: let the scrape in flight end first.
    const isWaitOver = observation.atMs - scrapedAtMs >= IN_FLIGHT_WAIT_MS;
    const canCut = isQuiet(observation) || isWaitOver || isTtlOver || isGraceOver(turn);
    if (canCut || evidence.isRefused || phase.isExporterRestarted) return end('scraped');
  } else {
    if (isGoneNow || isGone(phase.goneSinceMs, turn)) return end('exporterGone');
    if (isTtlOver) return end('expired');
    if (isGraceOver(turn)) return end('terminated');
  }
  if (observation.exporter.kind === 'answered' && observation.exporter.scrapes === null) {
    warnOnce(turn, 'noCounter', { ttlSeconds: limits.ttlMs / 1000 });
  }
  return watch(turn, { ...phase, scrapedAtMs });
}

/** How the watch ends; `held`: the hold, where there was one. */
type Ending = {
  readonly outcome: HoldOutcome;
  readonly because: Reason;
  /** null where its end was not seen. */
  readonly mainEndedAtMs?: number | null;
  readonly held?: Holding;
};

function quit(turn: Turn, { outcome, because, mainEndedAtMs: endedAtMs = null, held }: Ending): Decision {
  const { observation, facts, policy } = turn;
  const scrapesSeenCount = held === undefined || held.count.baseline === null ? null : held.count.seenCount;
  log(turn, 'quitting', {
    outcome,
    because,
    heldSeconds: endedAtMs === null ? null : toSeconds(observation.atMs - endedAtMs),
    scrapesSeen: scrapesSeenCount,
    seen: turn.evidence.text,
  });
  return beginQuitting(
    {
      facts,
      phase: {
        kind: 'quitting',
        sinceMs: observation.atMs,
        outcome,
        because,
        mainEndedAtMs: endedAtMs,
        scrapesSeenCount,
        hasAnswered: held?.hasAnswered ?? false,
        reports: [],
        target: null,
      },
    },
    turn.log,
    policy,
  );
}

function watch(turn: Turn, phase: WatchPhase): Decision {
  const state: WatchState = { facts: turn.facts, phase };
  return {
    kind: 'watching',
    state,
    log: turn.log,
    next: nextObserve(state, { kind: 'observed', observation: turn.observation }, turn.policy),
  };
}

function advance(series: Series | null, { observation, before, evidence }: Turn, isProven: boolean): Series | null {
  return advanceSeries(series, observation, before.history, { isAlive: evidence.isAlive, isProven });
}

/** Since when the exporter refused, each time, while the other conditions were proven; unknown ones change nothing. */
function advanceGone(sinceMs: number | null, turn: Turn): number | null {
  const { observation, evidence } = turn;
  if (observation.exporter.kind === 'none') return sinceMs;
  if (!evidence.isRefused || evidence.isAlive) return null;
  return sinceMs ?? (evidence.areOthersDone ? observation.atMs : null);
}

function isGone(sinceMs: number | null, turn: Turn): boolean {
  if (sinceMs === null || !turn.evidence.isRefused || !turn.evidence.areOthersDone) return false;
  return turn.facts.terminatedAtMs !== null || turn.observation.atMs - sinceMs >= GONE_AFTER_MS;
}

/** Whether a limit is over, and this observation saw what is there since. */
function isOver({ observation, evidence }: Turn, limitMs: number): boolean {
  return observation.readAtMs >= limitMs && !evidence.isStalled;
}

function isGraceOver(turn: Turn): boolean {
  const { terminatedAtMs } = turn.facts;
  return terminatedAtMs !== null && isOver(turn, terminatedAtMs + turn.policy.limits.terminationGraceMs);
}

/** Whether main is told by more than metrics. */
function hasOthers({ conditions }: Policy): boolean {
  return conditions.some(({ isMetric }) => !isMetric);
}

function logObservation(turn: Turn): void {
  const { startedAtMs, atMs, exporter, conditions } = turn.observation;
  log(turn, 'polled', {
    tookSeconds: toSeconds(atMs - startedAtMs),
    exporter,
    conditions: conditions.map((condition) =>
      'seen' in condition
        ? `${condition.kind}: ${condition.seen}`
        : `${condition.kind}${'why' in condition ? `: ${condition.why}` : ''}`,
    ),
  });
}

/** Tells once of each thing that keeps a condition from being seen, and that a person must mend. */
function warnOfProblems(turn: Turn): void {
  for (const condition of turn.observation.conditions) {
    if (condition.kind !== 'blind' || condition.problem === undefined) continue;
    const { problem } = condition;
    warnOnce(turn, 'conditionBlind', { problem }, problem);
  }
}

function warnWhileRunning(turn: Turn): void {
  const { observation, evidence, facts, policy } = turn;
  const seen = evidence.text;
  if (evidence.isRefused && evidence.isAlive && facts.hasAnswered) warnOnce(turn, 'exporterVanished', { seen });
  const unreadableSinceMs = facts.metricUnreadableSinceMs;
  if (unreadableSinceMs !== null && observation.atMs - unreadableSinceMs >= WITHOUT_METRIC_AFTER_MS) {
    warnOnce(turn, hasOthers(policy) ? 'metricUnreadable' : 'onlyMetricUnreadable', { seen });
  }
  const { running, aliveSinceMs } = facts;
  const sinceMs = running.restartedAtMs ?? aliveSinceMs;
  const isLong = sinceMs !== null && observation.atMs - sinceMs >= NOBODY_AFTER_MS;
  if (isLong && running.count.isNobody && !running.wasScrapedBefore && hasHold(policy.limits)) {
    warnOnce(turn, 'nobodyScraped', { seconds: NOBODY_AFTER_MS / 1000 });
  }
}

/** Three decimals: a log line is for people. */
function toSeconds(ms: number): number {
  return Math.round(ms) / 1000;
}

function log(turn: Turn, id: MessageId, fields: LogEntry['fields']): void {
  turn.log.push({ id, fields });
}

/** `key`: what is warned of once; the message where it is left out. */
function warnOnce(turn: Turn, id: MessageId, fields: LogEntry['fields'], key: string = id): void {
  if (turn.facts.warned.includes(key)) return;
  turn.facts = { ...turn.facts, warned: [...turn.facts.warned, key] };
  log(turn, id, fields);
}
