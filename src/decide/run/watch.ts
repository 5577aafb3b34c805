// The rules while main is watched and held for: from the state and one observation to the next state. Pure.
// Level-triggered: decided from each observation; what happened between two of them changes nothing.
// A limit decides only by what an observation showed once it was over: the clock alone has seen nothing.

import { cut } from '../../base/text.ts';
import type { LogEntry, MessageId } from '../messages.ts';
import { assertNever, findWatchEnd, hasHold, type Observation, type Policy, toSeconds } from '../model.ts';
import { addLog } from '../quit/quitting.ts';
import { addRequest, addScrape, findInterval, isLogged, judgeTurnout, nameScraper } from '../serve/scrapers.ts';
import type { Decision, Holding, Running, Series, Waiting, WatchDecision, WatchEvent, WatchState } from '../state.ts';
import { listUnread } from '../verdict.ts';
import { advanceSeries, beginSeries, describe, isOver, isSettled, judgeObservation, type Turn } from './evidence.ts';
import { advanceFacts, advanceNumbers } from './facts.ts';
import { withdrawFirst } from './hand-over.ts';
import { countTurnout, decideSignalled, hold, holdOn, isGone, isGraceOver, quit, warnOnce, watch } from './hold.ts';
import { findHoldEnd, findRunEnd } from './pace.ts';
import { advanceCount } from './scrape-count.ts';

/** After this long the other conditions are believed without an unreadable metric. */
export const WITHOUT_METRIC_AFTER_MS = 60_000;
/** A run without a scrape for this long gets a warning: three of Prometheus's default intervals (1 m). */
const NOBODY_AFTER_MS = 180_000;
/**
 * With a front: three intervals of the monitors in deploy/, so that it is said within main's first minute.
 */
const FRONT_NOBODY_AFTER_MS = 45_000;
/** A number that a program sets only with its first request has come by then, and its first page. */
const UNREAD_AFTER_MS = 30_000;
/** So few are warned of: the log has a bound. */
const UNREAD_MAX_COUNT = 5;

/** Decides what an event means while main is watched. */
export function decideWatchEvent(state: WatchState, event: WatchEvent, policy: Policy): Decision {
  switch (event.kind) {
    case 'observed':
      return decideObserved(state, event.observation, policy);
    case 'requested':
      return decideRequested(state, event);
    case 'scraped':
      return decideScraped(state, event, policy);
    case 'signalled':
      return decideSignalled(state, event.atMs, policy);
    default:
      return assertNever(event);
  }
}

function decideObserved(state: WatchState, observation: Observation, policy: Policy): Decision {
  const evidence = judgeObservation(observation, state.facts, policy);
  const { phase, facts: before } = state;
  const advanced = advanceFacts(before, observation, evidence);
  const facts = { ...advanced, numbers: advanceNumbers({ facts: advanced, phase }, observation, evidence) };
  const turn = logObservation({ before, facts, observation, evidence, policy, log: [] });
  switch (phase.kind) {
    case 'waiting':
      return decideWaiting(turn, phase);
    case 'running':
      return decideRunning(turn, phase);
    case 'holding':
      return decideHolding(turn, phase);
  }
}

/** A scraper lives, whatever it gets. */
function decideRequested(
  { facts, phase }: WatchState,
  { request, planned }: Extract<WatchEvent, { readonly kind: 'requested' }>,
): WatchDecision {
  const { front, scraper, isNew } = addRequest(facts.front, request);
  const fields = { scraper: nameScraper(scraper), while: phase.kind };
  const entries: LogEntry[] = isNew && isLogged(scraper) ? [{ id: 'scraperFound', fields }] : [];
  return { kind: 'watching', state: { facts: { ...facts, front }, phase }, log: entries, next: planned };
}

/** The front has handed over an answer: once enough were taken, the next observation may end the hold. */
function decideScraped(
  { facts, phase }: WatchState,
  { scrape, front: seen, planned }: Extract<WatchEvent, { readonly kind: 'scraped' }>,
  { limits }: Policy,
): WatchDecision {
  const front = addScrape({ ...facts.front, seen }, scrape);
  const isReached =
    phase.kind === 'holding' &&
    judgeTurnout(front, { endedAtMs: phase.mainEndedAtMs, nowMs: scrape.atMs, limits }).isReached;
  const next = isReached ? { ...planned, atMs: scrape.atMs, readByMs: scrape.atMs } : planned;
  return { kind: 'watching', state: { facts: { ...facts, front }, phase }, log: [], next };
}

function decideWaiting(turn: Turn, phase: Waiting): Decision {
  const { observation, evidence, policy } = turn;
  const { settleMs, startTimeoutMs } = policy.limits;
  // What was seen before main is known to have run is from before it began.
  const isNewlyKnown = turn.facts.wasAliveBefore && !turn.before.wasAliveBefore;
  const begun = isNewlyKnown ? null : phase.done;
  const done = advance(begun, turn, evidence.isDone);
  if (evidence.isAlive) {
    return runOn(addLog(turn, 'mainRunning', { seen: evidence.text }), JUST_RUNNING);
  }
  if (turn.facts.wasAliveBefore) {
    if (done !== null && isSettled(done, observation, evidence.isDone, settleMs)) {
      return hold(addLog(turn, 'mainHadEnded', {}), done, 'settled');
    }
    if (isGraceOver(turn)) return endByGrace(turn, done);
    if (!evidence.isDone) {
      const alive = { ...turn, facts: { ...turn.facts, aliveSinceMs: observation.atMs } };
      const logged = addLog(alive, 'mainWasAlive', { seen: evidence.text });
      return decideRunning(logged, { ...JUST_RUNNING, done: begun, others: hasOthers(policy) ? begun : null });
    }
    return watch(turn, { kind: 'waiting', done });
  }
  if (evidence.provesNeverRan && done !== null && isSettled(done, observation, evidence.isDone, settleMs)) {
    return quit(turn, 'neverStarted', 'neverRan');
  }
  if (turn.facts.terminatedAtMs !== null) {
    // Never started only if proven not alive: anything else may end, and be scraped, within the grace.
    if (evidence.isNotAlive) return quit(turn, 'neverStarted', 'signalBeforeStart');
    if (isGraceOver(turn)) return endByGrace(turn, null);
  } else if (startTimeoutMs > 0 && !turn.facts.isBlind && !evidence.isStalled) {
    // No hard limit: an exporter that answers slowly has its whole time to say that main is up by now.
    const isOverSinceItsStart = observation.startedAtMs >= turn.facts.startedAtMs + startTimeoutMs;
    if (isOverSinceItsStart) return quit(turn, 'neverStarted', 'startTimeout');
  }
  return watch(turn, { kind: 'waiting', done });
}

const JUST_RUNNING: Running = { kind: 'running', done: null, others: null, goneSinceMs: null };

function decideRunning(turn: Turn, phase: Running): Decision {
  const { observation, evidence, policy } = turn;
  const { limits, front } = policy;
  const done = advance(phase.done, turn, evidence.isDone);
  const others = advance(phase.others, turn, evidence.areOthersDone);
  const goneSinceMs = advanceGone(phase.goneSinceMs, turn);
  if (done !== null && isSettled(done, observation, evidence.isDone, limits.settleMs)) {
    return hold(turn, done, 'settled');
  }
  if (others !== null && evidence.isRefused) {
    const ended = done ?? others;
    // The scrapes were seen before the exporter went: there is nothing more to wait for.
    const isScraped = hasHold(limits) && countTurnout(turn, ended.sinceMs, ended.count).isReached;
    // A front's source may be main itself: that it refuses is then no second proof.
    const isProven =
      isScraped && isSettled(others, observation, evidence.areOthersDone, front === null ? 0 : limits.settleMs);
    if (isProven || isGone(goneSinceMs, turn)) return hold(turn, ended, 'exporterGone');
  }
  if (others !== null && evidence.isMetricUnreadable) {
    // Main was seen to end, its exporter hangs since, and the hold would be over by now.
    const isHoldOver = done !== null && isOver(turn, findHoldEnd(done, limits));
    const afterMs = isHoldOver ? 0 : WITHOUT_METRIC_AFTER_MS;
    if (isSettled(others, observation, evidence.areOthersDone, afterMs)) {
      const ended = isHoldOver ? done : others;
      const seconds = toSeconds(observation.atMs - ended.sinceMs);
      const logged = addLog(turn, 'metricGivenUp', { seconds, seen: evidence.text });
      return hold(logged, ended, 'settledWithoutMetric');
    }
  }
  return runOn(turn, { kind: 'running', done, others, goneSinceMs });
}

/** Whether the run goes on, with everything of this observation already in `phase`. */
function runOn(turn: Turn, phase: Running): Decision {
  const { observation, policy, facts } = turn;
  if (isOver(turn, findRunEnd(facts, phase, policy.limits))) {
    return hold(turn, phase.done ?? beginSeries(observation, turn.before.history), 'runTimeout');
  }
  if (isGraceOver(turn)) return endByGrace(turn, phase.done);
  return watch(warnWhileRunning(turn), phase);
}

/** The grace is used up: main has ended where that was seen twice, though it was not settled yet. */
function endByGrace(turn: Turn, done: Series | null): Decision {
  if (done !== null && done.provenCount >= 2) return hold(turn, done, 'grace');
  return quit(turn, 'terminated', 'grace');
}

function decideHolding(turn: Turn, before: Holding): Decision {
  const { observation, evidence } = turn;
  if (evidence.isAlive && before.because !== 'runTimeout') {
    const again = runOn(addLog(turn, 'mainRunningAgain', { seen: evidence.text }), JUST_RUNNING);
    return withdrawFirst(again, before, observation.atMs, turn.policy);
  }
  const count = advanceCount(before.count, observation, turn.before.history);
  return holdOn(turn, { ...before, count, goneSinceMs: advanceGone(before.goneSinceMs, turn) });
}

function advance(series: Series | null, { observation, before, evidence }: Turn, isProven: boolean): Series | null {
  return advanceSeries(series, observation, before.history, { isAlive: evidence.isAlive, isProven });
}

/** Since when the exporter has refused with the other conditions proven; unknown ones change nothing. */
function advanceGone(sinceMs: number | null, turn: Turn): number | null {
  const { observation, evidence } = turn;
  if (observation.exporter.kind === 'none') return sinceMs;
  if (!evidence.isRefused || evidence.isAlive) return null;
  return sinceMs ?? (evidence.areOthersDone ? observation.atMs : null);
}

/** Whether there are conditions besides metrics. */
function hasOthers({ conditions }: Policy): boolean {
  return conditions.some(({ isMetric }) => !isMetric);
}

/** Logs what was seen, and warns once of each problem of a condition that a person must fix. */
function logObservation(turn: Turn): Turn {
  const { startedAtMs, atMs, exporter, conditions } = turn.observation;
  const logged = addLog(turn, 'polled', {
    tookSeconds: toSeconds(atMs - startedAtMs),
    exporter,
    conditions: conditions.map((condition) => [condition.kind, ...describe(condition)].join(': ')),
  });
  return conditions.reduce((all, condition) => {
    if (condition.kind !== 'blind' || condition.problem === undefined) return all;
    const { problem } = condition;
    return warnOnce(all, 'conditionBlind', { problem }, problem);
  }, logged);
}

/** What is warned of, each once. `key`: instead of the message, which may come several times. */
type Warning = readonly [id: MessageId, fields: LogEntry['fields'], key?: string];

function warnWhileRunning(turn: Turn): Turn {
  const { observation, evidence, facts, policy } = turn;
  const seen = evidence.text;
  const warnings: Warning[] = [];
  // A front's source may be main itself, which has just ended.
  const isVanished = evidence.isRefused && evidence.isAlive && facts.hasAnswered && policy.front === null;
  if (isVanished) warnings.push(['exporterVanished', { seen }]);
  const unreadableMs = observation.atMs - (facts.metricUnreadableSinceMs ?? observation.atMs);
  if (evidence.isMetricUnreadable && unreadableMs >= WITHOUT_METRIC_AFTER_MS) {
    warnings.push([hasOthers(policy) ? 'metricUnreadable' : 'onlyMetricUnreadable', { seen }]);
  }
  const { running, aliveSinceMs } = facts;
  if (policy.front !== null) warnings.push(...listFrontWarnings(turn, policy.front.port));
  const sinceMs = running.restartedAtMs ?? aliveSinceMs;
  const isLong = sinceMs !== null && observation.atMs - sinceMs >= NOBODY_AFTER_MS;
  const isNobody = policy.front === null && running.count.isNobody && !running.wasScrapedBefore;
  if (isLong && isNobody && hasHold(policy.limits)) {
    warnings.push(['nobodyScraped', { seconds: NOBODY_AFTER_MS / 1000 }]);
  }
  const isUnread = aliveSinceMs !== null && observation.atMs - aliveSinceMs >= UNREAD_AFTER_MS && facts.hasAnswered;
  const unread = isUnread ? listUnread(policy.thresholds ?? [], facts.numbers) : [];
  for (const { entry, ...rest } of unread.slice(0, UNREAD_MAX_COUNT)) {
    warnings.push(['thresholdUnread', { entry: cut(entry, 300), ...rest }, `thresholdUnread ${entry}`]);
  }
  const all = [...warnings, ...listSlowScrapers(turn)];
  return all.reduce((warned, warning) => warnOnce(warned, ...warning), turn);
}

/**
 * Warns of a page that never could be read, and where nothing asks for it, while main can still be mended.
 */
function listFrontWarnings({ observation, facts, policy }: Turn, port: number): readonly Warning[] {
  const { scrapers, seen } = facts.front;
  const aliveMs = facts.aliveSinceMs === null ? 0 : observation.atMs - facts.aliveSinceMs;
  const isUnread = aliveMs >= UNREAD_AFTER_MS && seen.answeredAtMs === null && seen.unreadWhy !== undefined;
  const unread = { seconds: UNREAD_AFTER_MS / 1000, why: cut(seen.unreadWhy ?? '', 200) };
  const isScrapeWanted = hasHold(policy.limits) && policy.handOver === undefined;
  const isUnscraped = isScrapeWanted && aliveMs >= FRONT_NOBODY_AFTER_MS && scrapers.length === 0;
  return [
    ...(isUnread ? [['pageNeverRead', unread] as const] : []),
    ...(isUnscraped ? [['frontNotScraped', { seconds: FRONT_NOBODY_AFTER_MS / 1000, port }] as const] : []),
  ];
}

/** Each scraper whose interval is longer than the hold. */
function listSlowScrapers({ facts, policy: { limits, conditions } }: Turn): readonly Warning[] {
  if (!hasHold(limits)) return [];
  const isBySignal = conditions.some(({ isSignal }) => isSignal === true);
  const holdMs = isBySignal ? Math.min(limits.ttlMs, findWatchEnd(0, limits)) : limits.ttlMs;
  return facts.front.scrapers.flatMap((scraper): readonly Warning[] => {
    const intervalMs = findInterval(scraper);
    if (intervalMs === null || intervalMs <= holdMs || !isLogged(scraper)) return [];
    const fields = {
      scraper: nameScraper(scraper),
      intervalSeconds: toSeconds(intervalMs),
      holdSeconds: holdMs / 1000,
    };
    return [['scraperTooSlow', fields, `scraperTooSlow ${scraper.id}`]];
  });
}
