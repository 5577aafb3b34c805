// What is known before the first observation, and what each one adds to that, in every phase. Pure.

import type { FrontObservation, Observation, Totals } from '../model.ts';
import { addStandstill, NO_SCRAPERS } from '../serve/scrapers.ts';
import type { MainView } from '../serve/serve.ts';
import type { Facts, Phase, State, WatchState } from '../state.ts';
import { advanceContinuity, type JudgedNumbers, NO_NUMBERS, takeReadings } from '../verdict.ts';
import type { Evidence } from './evidence.ts';
import { advanceCount, advanceHistory, beginCount, EMPTY_HISTORY, hasRestarted } from './scrape-count.ts';

/** The state before the first observation, which begins at `startedAtMs`. */
export function initialState(startedAtMs: number): WatchState {
  return {
    facts: {
      startedAtMs,
      aliveSinceMs: null,
      wasAliveBefore: false,
      terminatedAtMs: null,
      wasAliveAtSignal: false,
      isBlind: false,
      isStalled: false,
      seenText: '',
      freshAtMs: null,
      totals: { requests: null, failures: null, users: null },
      numbers: NO_NUMBERS,
      answerNumbers: [],
      exitCodes: {},
      history: EMPTY_HISTORY,
      hasAnswered: false,
      running: {
        count: beginCount(startedAtMs),
        restartedAtMs: null,
        beforeRestartCount: 0,
        wasScrapedBefore: false,
      },
      metricUnreadableSinceMs: null,
      front: NO_SCRAPERS,
      warned: [],
    },
    phase: { kind: 'waiting', done: null },
  };
}

export function advanceFacts(facts: Facts, observation: Observation, evidence: Evidence): Facts {
  const { exporter, conditions, startedAtMs, atMs, isFresh = true } = observation;
  const isReadSinceSignal = isFresh && facts.terminatedAtMs !== null && startedAtMs >= facts.terminatedAtMs;
  const observed = conditions.filter(({ kind }) => kind !== 'notObserved');
  return {
    ...facts,
    aliveSinceMs: facts.aliveSinceMs ?? (evidence.isAlive ? atMs : null),
    wasAliveBefore:
      facts.wasAliveBefore || (facts.aliveSinceMs === null && !evidence.isAlive && evidence.provesWasAlive),
    wasAliveAtSignal: facts.wasAliveAtSignal || (evidence.isAlive && isReadSinceSignal),
    isBlind: observed.length === 0 ? facts.isBlind : observed.some(({ kind }) => kind === 'blind'),
    isStalled: evidence.isStalled,
    seenText: evidence.text,
    freshAtMs: isFresh ? startedAtMs : facts.freshAtMs,
    totals: exporter.kind === 'answered' ? mergeTotals(facts.totals, exporter.totals) : facts.totals,
    answerNumbers: conditions.map((condition, index) =>
      condition.kind === 'done' ? (condition.answerNumber ?? null) : (facts.answerNumbers[index] ?? null),
    ),
    // A restart invalidates exit codes seen earlier.
    exitCodes: Object.assign(
      {},
      evidence.isAlive ? {} : facts.exitCodes,
      ...conditions.map((condition) => ('exitCodes' in condition ? condition.exitCodes : {})),
    ),
    history: advanceHistory(facts.history, observation),
    hasAnswered: facts.hasAnswered || exporter.kind === 'answered',
    running: advanceRunning(facts, observation),
    front: observation.front === undefined ? facts.front : advanceFront(facts.front, observation, observation.front),
    metricUnreadableSinceMs: advanceUnreadable(facts.metricUnreadableSinceMs, evidence.isMetricUnreadable, atMs),
  };
}

/** An observation that did not read the page shows nothing of its metrics. */
function advanceUnreadable(sinceMs: number | null, isUnreadable: boolean | null, atMs: number): number | null {
  if (isUnreadable === null) return sinceMs;
  return isUnreadable ? (sinceMs ?? atMs) : null;
}

/** Timers are late by less, unless this process stood still (SIGSTOP, frozen node, suspended VM). */
export const LATE_MS = 500;

function advanceFront(
  front: Facts['front'],
  { startedAtMs, dueAtMs = startedAtMs, atMs, allowedMs }: Observation,
  seen: FrontObservation,
): Facts['front'] {
  const spans = [
    { knownFromMs: dueAtMs, toMs: startedAtMs },
    { knownFromMs: startedAtMs + allowedMs, toMs: atMs },
  ];
  const late = spans.filter(({ knownFromMs, toMs }) => toMs - knownFromMs > LATE_MS);
  return { ...late.reduce(addStandstill, front), seen, observedAtMs: atMs };
}

function mergeTotals(before: Totals, now: Totals): Totals {
  return {
    requests: now.requests ?? before.requests,
    failures: now.failures ?? before.failures,
    users: now.users ?? before.users,
  };
}

/** An exporter that was restarted counts from 0 again; what was seen before stays. */
function advanceRunning({ running, history }: Facts, observation: Observation): Facts['running'] {
  if (!hasRestarted(history, observation)) {
    return { ...running, count: advanceCount(running.count, observation, history) };
  }
  return {
    count: advanceCount(beginCount(observation.startedAtMs), observation, EMPTY_HISTORY),
    restartedAtMs: observation.atMs,
    beforeRestartCount: running.beforeRestartCount + running.count.seenCount,
    wasScrapedBefore: running.wasScrapedBefore || !running.count.isNobody,
  };
}

/** Main, as far as a state shows it. */
export function viewMain({ facts, phase }: State): MainView {
  const wasAlive = facts.aliveSinceMs !== null || facts.wasAliveBefore;
  if (phase.kind === 'holding' || phase.kind === 'quitting') {
    const holdOverAtMs = phase.kind === 'holding' ? phase.scrapedAtMs : null;
    return { main: 'ended', wasAlive, endedAtMs: phase.mainEndedAtMs, ...(holdOverAtMs !== null && { holdOverAtMs }) };
  }
  // Where a metric stays unreadable, the other conditions prove the end.
  const isRunning = phase.kind === 'running';
  const isEnding = (phase.done !== null && (isRunning || wasAlive)) || (isRunning && phase.others !== null);
  return { main: isEnding ? 'ending' : 'living', wasAlive, endedAtMs: null };
}

/** Scrapes by others until main ended, a lower bound; null if the exporter shows no counter. */
export function countScrapesWhileRunning({ facts, phase }: State): number | null {
  const { count, beforeRestartCount } = facts.running;
  if (count.baseline === null) return null;
  const sinceEndCount =
    phase.kind === 'holding' ? phase.count.seenCount : phase.kind === 'quitting' ? Number(phase.scrapesSeenCount) : 0;
  return Math.max(0, beforeRestartCount + count.seenCount - sinceEndCount);
}

/** The numbers after one more observation, which `facts` already include; `phase` is from before it. */
export function advanceNumbers(
  { facts, phase }: State,
  { exporter, front }: Observation,
  { isAlive, isDone, areOthersDone, isStalled }: Pick<Evidence, 'isAlive' | 'isDone' | 'areOthersDone' | 'isStalled'>,
): JudgedNumbers {
  const isKnownAlive = facts.aliveSinceMs !== null || facts.wasAliveBefore;
  // A front's are those that scrapes got, before the end was known that this observation shows.
  if (front !== undefined) return isKnownAlive ? takeReadings(facts.numbers, front.thresholds ?? []) : facts.numbers;
  const isEndSeen = isDone || areOthersDone || wasEndSeen(phase);
  // A process that stood still may have seen a refusal of long ago.
  const seen = exporter.kind === 'refused' && isStalled ? ({ kind: 'none' } as const) : exporter;
  const continuity = advanceContinuity(facts.numbers.continuity, seen, isAlive || !isEndSeen);
  const numbers = { ...facts.numbers, continuity };
  // What was shown before main was known to be alive is of another run.
  if (!isKnownAlive || continuity.isLost || exporter.kind !== 'answered') return numbers;
  return takeReadings(numbers, exporter.thresholds ?? []);
}

function wasEndSeen(phase: Phase): boolean {
  if (phase.kind === 'waiting') return phase.done !== null;
  return phase.kind !== 'running' || phase.done !== null || phase.others !== null;
}
