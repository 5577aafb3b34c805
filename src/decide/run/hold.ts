// The rules of the hold: until it was scraped, nothing is left to scrape, or a limit is over; and what they
// share with the rules of watching. Pure.

import type { LogEntry, MessageId } from '../messages.ts';
import { findLeastWanted, findWatchEnd, type HoldOutcome, hasHold, type Policy, toSeconds } from '../model.ts';
import { judgeEnd } from '../quit/exit-codes.ts';
import { addLog, beginQuitting } from '../quit/quitting.ts';
import { findInterval, findSilence, isLogged, judgeTurnout, nameScraper, type Scraper } from '../serve/scrapers.ts';
import type { Decision, Holding, Reason, Series, WatchDecision, WatchPhase, WatchState } from '../state.ts';
import { findAlwaysZero, type Verdict } from '../verdict.ts';
import { isOver, SIGNAL_SEEN, type Turn } from './evidence.ts';
import { beginHandOver, isHandOverDue } from './hand-over.ts';
import { findAnswersEnd, IN_FLIGHT_WAIT_MS, needsLastRead, nextObserve } from './pace.ts';
import { beginCount, type Count, isQuiet } from './scrape-count.ts';

/** Main has ended, with the series that proved it: the hold begins. */
export function hold(turn: Turn, series: Series, because: Reason): Decision {
  const { sinceMs, count } = series;
  const id = because === 'runTimeout' ? 'mainRanTooLong' : 'mainEnded';
  const end = describeEnd(turn.evidence.text, turn.observation.atMs - sinceMs, turn.policy);
  return holdOn(addLog(turn, id, end), { ...NEW_HOLD, mainEndedAtMs: sinceMs, because, count });
}

/** What is logged of main's end, which came `agoMs` ago. */
function describeEnd(seen: string, agoMs: number, { limits }: Policy): LogEntry['fields'] {
  const { scrapesWantedCount: scrapesWanted, ttlMs } = limits;
  return { seen, secondsAgo: toSeconds(agoMs), scrapesWanted, ttlSeconds: ttlMs / 1000 };
}

const NEW_HOLD = { kind: 'holding', goneSinceMs: null, scrapedAtMs: null } as const;

/** The first signal: main may end within the grace, so observe at once; or it is itself the end of main. */
export function decideSignalled({ facts, phase }: WatchState, atMs: number, policy: Policy): WatchDecision {
  const { limits, conditions } = policy;
  const isFirst = facts.terminatedAtMs === null;
  const isEnd = isFirst && conditions.length > 0 && conditions.every(({ isSignal }) => isSignal === true);
  const state: WatchState = {
    facts: {
      ...facts,
      terminatedAtMs: facts.terminatedAtMs ?? atMs,
      aliveSinceMs: isEnd ? (facts.aliveSinceMs ?? facts.startedAtMs) : facts.aliveSinceMs,
    },
    // An event needs no second observation, and no settle time.
    phase: isEnd ? { ...NEW_HOLD, mainEndedAtMs: atMs, because: 'signal', count: beginCount(atMs) } : phase,
  };
  const fields = { graceSeconds: limits.terminationGraceMs / 1000, while: phase.kind };
  const log: LogEntry[] = isFirst ? [{ id: 'terminating', fields }] : [];
  if (isEnd) log.push({ id: 'mainEnded', fields: describeEnd(SIGNAL_SEEN, 0, policy) });
  return { kind: 'watching', state, log, next: nextObserve(state, { kind: 'signalled', atMs }, policy) };
}

/** Whether the hold goes on, with everything of this observation already in `phase`. */
export function holdOn(turn: Turn, phase: Holding): Decision {
  const { observation, evidence, facts, policy } = turn;
  const { limits } = policy;
  const { because } = phase;
  const end = (outcome: HoldOutcome) => endHold(turn, phase, outcome);
  const isUnread = needsLastRead({ facts, phase }, policy);
  const isReached = hasHold(limits) && countTurnout(turn, phase.mainEndedAtMs, phase.count).isReached;
  if (!isUnread && !isReached && isHandOverDue({ facts, phase }, policy)) {
    return { ...beginHandOver(facts, phase, observation.atMs, policy), log: turn.log };
  }
  const isHandedOver = phase.handOver?.result === 'accepted';
  if (!hasHold(limits) && isUnread) return watch(turn, phase);
  if (!hasHold(limits) && policy.front === null) return end(isHandedOver ? 'handedOver' : 'released');
  if (!hasHold(limits) && !isHandedOver) return end('released');
  if (policy.front !== null) return holdWithFront(turn, phase);
  // Another one is in the exporter's place: one holds, and a second would keep the pod for its whole TTL.
  if (observation.exporter.kind === 'answered' && observation.exporter.isFront === true) return end('released');

  if (isHandedOver) return end('handedOver');
  const scrapedAtMs = phase.scrapedAtMs ?? (isReached ? observation.atMs : null);
  const isTtlOver = isOver(turn, phase.mainEndedAtMs + limits.ttlMs);
  const isGoneNow = phase.count.isRestarted || because === 'exporterGone' || (evidence.isRefused && facts.hasAnswered);
  if (scrapedAtMs !== null) {
    // A quit cuts an answer off: let the scrape in flight end first.
    const isWaitOver = observation.atMs - scrapedAtMs >= IN_FLIGHT_WAIT_MS;
    const canCut = isQuiet(observation) || isWaitOver || isTtlOver || isGraceOver(turn);
    if (canCut || evidence.isRefused || phase.count.isRestarted) return end('scraped');
  } else {
    if (isGoneNow || isGone(phase.goneSinceMs, turn)) return end('exporterGone');
    if (isTtlOver) return end('expired');
    if (isGraceOver(turn)) return end('terminated');
  }
  if (observation.exporter.kind === 'answered' && observation.exporter.scrapes === null) {
    const warned = warnOnce(turn, 'noCounter', { ttlSeconds: limits.ttlMs / 1000 });
    return watch(warned, { ...phase, scrapedAtMs });
  }
  return watch(turn, { ...phase, scrapedAtMs });
}

function endHold(turn: Turn, phase: Holding, outcome: HoldOutcome): Decision {
  const { because } = phase;
  return quit(turn, because === 'runTimeout' ? 'timedOut' : outcome, because, phase);
}

/**
 * With a front the source may go, or be restarted: what it showed is kept here. The hold ends by the count,
 * the TTL or the grace, and not while an answer is on its way, for a while.
 */
function holdWithFront(before: Turn, phase: Holding): Decision {
  const { observation, evidence, policy } = before;
  const { limits } = policy;
  const { front } = before.facts;
  const { isReached: isScraped, givenUp } = countTurnout(before, phase.mainEndedAtMs, phase.count);
  const isReached = isScraped && hasHold(limits);
  const isHandedOver = phase.handOver?.result === 'accepted';
  const turn = isHandedOver ? before : givenUp.reduce(giveUp, before);
  const end = (outcome: HoldOutcome) => endHold(turn, phase, outcome);
  const isUnread = needsLastRead({ facts: turn.facts, phase }, policy);
  // After the signal nobody is left to push.
  const isUnpushed = before.facts.terminatedAtMs !== null && hasNoPush(before);
  const isNothingLeft = !isUnread && (isUnpushed || (front.seen.answeredAtMs === null && evidence.isRefused));
  const isTtlOver = isOver(turn, phase.mainEndedAtMs + limits.ttlMs);
  const canEnd = isReached || isHandedOver || isNothingLeft || isTtlOver || isGraceOver(turn);
  // After the process stood still, an observation says nothing about a limit that was over before.
  if (!canEnd) return watch(turn, { ...phase, scrapedAtMs: evidence.isStalled ? phase.scrapedAtMs : null });
  const scrapedAtMs = phase.scrapedAtMs ?? observation.atMs;
  const { terminatedAtMs } = turn.facts;
  const isCut = terminatedAtMs !== null && isOver(turn, findAnswersEnd(terminatedAtMs, limits));
  const isWaitOver = isCut || observation.atMs - scrapedAtMs >= IN_FLIGHT_WAIT_MS;
  if (front.seen.inFlightCount > 0 && !isWaitOver) return watch(turn, { ...phase, scrapedAtMs });
  if (isReached) return end('scraped');
  if (isHandedOver) return end('handedOver');
  if (isNothingLeft) return end('exporterGone');
  return end(isTtlOver ? 'expired' : 'terminated');
}

/** Logs once that a scraper is given up. */
function giveUp(turn: Turn, scraper: Scraper): Turn {
  const { front } = turn.facts;
  if (front.givenUpIds.includes(scraper.id)) return turn;
  const givenUpIds = [...front.givenUpIds, scraper.id];
  const known = { ...turn, facts: { ...turn.facts, front: { ...front, givenUpIds } } };
  if (!isLogged(scraper)) return known;
  const intervalMs = findInterval(scraper);
  return addLog(known, 'scraperGivenUp', {
    scraper: nameScraper(scraper),
    intervalSeconds: intervalMs === null ? null : toSeconds(intervalMs),
    silentSeconds: toSeconds(findSilence(scraper, turn.observation.atMs)),
  });
}

/** The watch is over: quitting begins. `held`: the hold; null where main's end was not seen. */
export function quit(turn: Turn, outcome: HoldOutcome, because: Reason, held: Holding | null = null): Decision {
  const { observation, policy } = turn;
  const mainEndedAtMs = held?.mainEndedAtMs ?? null;
  const scrapesSeenCount = held === null ? null : countTurnout(turn, held.mainEndedAtMs, held.count).seenCount;
  const quitting = addLog(turn, policy.targets.length === 0 ? 'releasing' : 'quitting', {
    outcome,
    because,
    heldSeconds: mainEndedAtMs === null ? null : toSeconds(observation.atMs - mainEndedAtMs),
    scrapesSeen: scrapesSeenCount,
    seen: turn.evidence.text,
  });
  const judged = logVerdict(quitting, judgeEnd(turn.facts, { because, mainEndedAtMs }, policy));
  const { facts, log } = held === null ? judged : warnOfLoss(judged);
  const sinceMs = observation.atMs;
  const hasAnswered = held?.count.hasAnswered ?? false;
  const { handOver } = held ?? {};
  const watchEnd = { sinceMs, outcome, because, mainEndedAtMs, scrapesSeenCount, hasAnswered, handOver };
  return beginQuitting(facts, watchEnd, log, policy);
}

/** At most this many entries are logged: the log has a bound; the report counts all. */
const FAILED_LOGGED_COUNT = 10;
const ENTRY_LOGGED_LENGTH = 300;

function logVerdict(turn: Turn, verdict: Verdict | null): Turn {
  const { thresholds = [] } = turn.policy;
  if (verdict === null) return turn;
  if (verdict.kind === 'notJudged') return addLog(turn, 'thresholdsNotJudged', { by: verdict.by });
  const list = (id: MessageId, all: readonly { readonly entry: string }[]): readonly LogEntry[] =>
    all.slice(0, FAILED_LOGGED_COUNT).map((each) => {
      return { id, fields: { ...each, entry: each.entry.slice(0, ENTRY_LOGGED_LENGTH) } };
    });
  const zero = findAlwaysZero(thresholds, turn.facts.numbers).map(({ text }) => ({ entry: text }));
  const logged = { ...turn, log: [...turn.log, ...list('thresholdAlwaysZero', zero)] };
  if (verdict.kind === 'passed') return addLog(logged, 'thresholdsPassed', { count: thresholds.length });
  return { ...logged, log: [...logged.log, ...list('thresholdFailed', verdict.failed)] };
}

/** Pushes are taken in, and none came. */
function hasNoPush({ facts }: Turn): boolean {
  const { pushes } = facts.front.seen;
  return pushes?.takenCount === 0 && pushes.refusedCount === 0;
}

/** Warns where main's last numbers, or all of them, never came. */
function warnOfLoss(turn: Turn): Turn {
  const { hookCallsCount } = turn.facts.front.seen;
  const warned = hasNoPush(turn) ? warnOnce(turn, 'nothingPushed', {}) : turn;
  return hookCallsCount === 0 && turn.facts.hasAnswered ? warnOnce(warned, 'hookNotCalled', {}) : warned;
}

/** Scrapes since that end: through the front, else by this count. `seenCount` null: nothing counts them. */
export function countTurnout({ observation, facts, policy }: Turn, endedAtMs: number, { baseline, seenCount }: Count) {
  const { limits, front } = policy;
  if (front !== null) return judgeTurnout(facts.front, { endedAtMs, nowMs: observation.atMs, limits });
  const isReached = seenCount >= findLeastWanted(limits);
  return { seenCount: baseline === null ? null : seenCount, isReached, givenUp: [] };
}

export function watch({ facts, observation, policy, log }: Turn, phase: WatchPhase): Decision {
  const state: WatchState = { facts, phase };
  return { kind: 'watching', state, log, next: nextObserve(state, { kind: 'observed', observation }, policy) };
}

/** A refusing exporter is gone after this long, all else proven: a container restart takes less. */
export const GONE_AFTER_MS = 15_000;

export function isGraceOver(turn: Turn): boolean {
  const { terminatedAtMs } = turn.facts;
  return terminatedAtMs !== null && isOver(turn, findWatchEnd(terminatedAtMs, turn.policy.limits));
}

export function isGone(sinceMs: number | null, turn: Turn): boolean {
  if (sinceMs === null || !turn.evidence.isRefused || !turn.evidence.areOthersDone) return false;
  return turn.facts.terminatedAtMs !== null || turn.observation.atMs - sinceMs >= GONE_AFTER_MS;
}

/** `key`: what is warned of once; the message where it is left out. */
export function warnOnce(turn: Turn, id: MessageId, fields: LogEntry['fields'], key: string = id): Turn {
  if (turn.facts.warned.includes(key)) return turn;
  return addLog({ ...turn, facts: { ...turn.facts, warned: [...turn.facts.warned, key] } }, id, fields);
}
