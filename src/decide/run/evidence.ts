// What one observation proves of main, and the series of observations that prove the same. Pure.

import type { LogEntry } from '../messages.ts';
import type { ConditionObservation, Observation, Policy } from '../model.ts';
import type { Facts, Series } from '../state.ts';
import { advanceCount, beginCount, type PollHistory } from './scrape-count.ts';

/** A longer observation cannot be the baseline: its counters are too much older than the end it proved. */
const BASELINE_MAX_MS = 1_000;
/** This much over its limit, the process stood still (SIGSTOP, frozen node, suspended VM). */
export const STALL_MS = 2_000;

/** What is said of a signal that is main's end. */
export const SIGNAL_SEEN = 'the signal came';

/** What an observation showed of main. */
export type Evidence = {
  readonly isAlive: boolean;
  /** The exporter refuses connections. */
  readonly isRefused: boolean;
  /** Every condition shows that main is not alive now. */
  readonly isNotAlive: boolean;
  readonly isDone: boolean;
  /** There are conditions that are no metric, and all of them are done. */
  readonly areOthersDone: boolean;
  /** One of the metrics could not be read, and none of them is alive; null: the page was not read. */
  readonly isMetricUnreadable: boolean | null;
  readonly provesWasAlive: boolean;
  readonly provesNeverRan: boolean;
  /** This process stood still meanwhile: what was seen may be long past. */
  readonly isStalled: boolean;
  /** What was seen, for the log; what the observation before saw where this one saw nothing. */
  readonly text: string;
};

/** One observation on its way through the rules. */
export type Turn = {
  /** The facts from before it. */
  readonly before: Facts;
  readonly facts: Facts;
  readonly observation: Observation;
  readonly evidence: Evidence;
  readonly policy: Policy;
  readonly log: readonly LogEntry[];
};

/** Whether a limit is over, and this observation saw what is there since. */
export function isOver({ observation, evidence }: Turn, limitMs: number): boolean {
  return observation.readAtMs >= limitMs && !evidence.isStalled;
}

/** Judges an observation; `facts` are those from before it. */
export function judgeObservation(observation: Observation, facts: Facts, { conditions: rows }: Policy): Evidence {
  const { startedAtMs, atMs, allowedMs, exporter } = observation;
  // Never twice in a row: a process that is always this slow must still keep its limits.
  const isStalled = atMs - startedAtMs > allowedMs + STALL_MS && !facts.isStalled;
  const conditions = observation.conditions.map((observed, index): ConditionObservation => {
    const condition = rows[index]?.isSignal === true ? judgeSignal(facts) : observed;
    const isRepeated =
      condition.kind === 'done' &&
      condition.answerNumber !== undefined &&
      condition.answerNumber === facts.answerNumbers[index];
    return condition.kind === 'done' && (isRepeated || isStalled)
      ? ({ kind: 'unknown', why: condition.seen } as const)
      : condition;
  });
  const metrics = conditions.filter(({ kind }, index) => rows[index]?.isMetric && kind !== 'notObserved');
  const others = conditions.filter((_, index) => !rows[index]?.isMetric);
  const isAlive = conditions.some(({ kind }) => kind === 'alive');
  const isMetricAlive = metrics.some(({ kind }) => kind === 'alive');
  const isRefused = exporter.kind === 'refused' && !isStalled;
  const isDone = (condition: ConditionObservation) => condition.kind === 'done';
  const text = conditions.flatMap(describe).join(', ');
  return {
    isAlive,
    // If the exporter refuses, nothing can be read or scraped there any more.
    isRefused,
    isNotAlive: conditions.every(
      (condition, index) =>
        isDone(condition) || condition.kind === 'notStarted' || (isRefused && rows[index]?.isMetric === true),
    ),
    isDone: conditions.every(isDone),
    areOthersDone: others.length > 0 && others.every(isDone),
    isMetricUnreadable: metrics.length === 0 ? null : !isMetricAlive && metrics.some(({ kind }) => kind === 'unknown'),
    provesWasAlive: conditions.some((condition) => condition.kind === 'done' && condition.provesWasAlive),
    provesNeverRan: conditions.some((condition) => condition.kind === 'done' && condition.provesNeverRan === true),
    isStalled,
    text: text === '' ? facts.seenText : text,
  };
}

/** What a condition showed, or why it showed nothing; empty where it was not asked. */
export function describe(condition: ConditionObservation): readonly string[] {
  return 'seen' in condition ? [condition.seen] : 'why' in condition ? [condition.why] : [];
}

function judgeSignal({ terminatedAtMs }: Facts): ConditionObservation {
  return terminatedAtMs === null
    ? { kind: 'alive', seen: 'no signal yet' }
    : { kind: 'done', seen: SIGNAL_SEEN, provesWasAlive: true };
}

/** The series that begins with this observation. */
export function beginSeries(observation: Observation, history: PollHistory): Series {
  const sinceMs = observation.atMs;
  return { sinceMs, provenCount: 1, count: advanceCount(beginCount(sinceMs - BASELINE_MAX_MS), observation, history) };
}

/** An alive observation breaks a series; one that proves begins it; any other leaves it as it is. */
export function advanceSeries(
  series: Series | null,
  observation: Observation,
  history: PollHistory,
  { isAlive, isProven }: { readonly isAlive: boolean; readonly isProven: boolean },
): Series | null {
  if (isAlive) return null;
  if (series === null) return isProven ? beginSeries(observation, history) : null;
  const provenCount = series.provenCount + (isProven ? 1 : 0);
  return { ...series, provenCount, count: advanceCount(series.count, observation, history) };
}

/** Whether this very observation proves the series again, as the second one at least, and for long enough. */
export function isSettled(series: Series, observation: Observation, isProvenNow: boolean, afterMs: number): boolean {
  return isProvenNow && series.provenCount >= 2 && observation.atMs - series.sinceMs >= afterMs;
}
