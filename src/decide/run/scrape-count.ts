// Counts the scrapes that others finished, from the exporter's own counter and gauge. Pure.
// Always a lower bound: what may be our own request, or began before the count, is subtracted.
//
// promhttp (client_golang; measured on locust_exporter 0.5.0 and 0.5.2): the counter in an answer does not
// include that answer, the gauge does; both are of the moment when the request began; a scrape whose client
// gave up counts when it ends.

import type { Observation, ScrapeCounters } from '../model.ts';

/** What must be remembered of every look, so that a count can begin at any of them. */
export type PollHistory = {
  /** The newest counter; null before the first. A lower one means that the exporter was restarted. */
  readonly finishedCount: number | null;
  /** Own requests that were given up and may still be queued in the exporter. */
  readonly givenUpCount: number;
};

export const EMPTY_HISTORY: PollHistory = { finishedCount: null, givenUpCount: 0 };

/** One count of others' scrapes, from its baseline on, and what else was seen of the exporter meanwhile. */
export type Count = {
  /** It was restarted: its numbers are gone. */
  readonly isRestarted: boolean;
  readonly hasAnswered: boolean;
  /** Looks that began earlier cannot be the baseline: their counters are too old. */
  readonly notBeforeMs: number;
  /** null until a look with counters came. */
  readonly baseline: {
    readonly finishedCount: number;
    /** Requests in flight by then, counted later: others', and own ones that were given up. */
    readonly inFlightCount: number;
  } | null;
  /** Own requests since the baseline, itself included, that are or may be in the next look's counter. */
  readonly ownCount: number;
  /** Those of `ownCount` that may not be in it. */
  readonly ownDoubtfulCount: number;
  /** Scrapes that others finished since the baseline, a lower bound. */
  readonly seenCount: number;
  /** No scrape by others can have happened since the baseline. False while there is no baseline. */
  readonly isNobody: boolean;
};

/** A count that may take its baseline from a look that began at `notBeforeMs` or later. */
export function beginCount(notBeforeMs: number): Count {
  const unseen = { isRestarted: false, hasAnswered: false, isNobody: false, baseline: null };
  return { ...unseen, notBeforeMs, ownCount: 0, ownDoubtfulCount: 0, seenCount: 0 };
}

export function readCounters(look: Observation): ScrapeCounters | null {
  return look.exporter.kind === 'answered' ? look.exporter.scrapes : null;
}

/** Whether the counter fell: the exporter was restarted since the last look that showed it. */
export function hasRestarted(trail: PollHistory, look: Observation): boolean {
  const counters = readCounters(look);
  return counters !== null && trail.finishedCount !== null && counters.finishedCount < trail.finishedCount;
}

/** Whether no other request is in flight; own ones that were given up count as others'. */
export function isQuiet(look: Observation): boolean {
  return (readCounters(look)?.inFlightCount ?? Number.POSITIVE_INFINITY) <= 1;
}

/** The trail after one more look. */
export function advanceHistory(trail: PollHistory, look: Observation): PollHistory {
  const { exporter } = look;
  if (exporter.kind === 'refused') return { ...trail, givenUpCount: 0 };
  if (exporter.kind === 'failed' && exporter.mayCount) return { ...trail, givenUpCount: trail.givenUpCount + 1 };
  const counters = readCounters(look);
  if (counters === null) return trail;
  // What was given up is queued no longer than the gauge says: it ended, and is in the counter from here on.
  const stillQueuedCount = Math.min(trail.givenUpCount, Math.max(0, counters.inFlightCount - 1));
  return { finishedCount: counters.finishedCount, givenUpCount: hasRestarted(trail, look) ? 0 : stillQueuedCount };
}

/** The count after one more look; `trail` is the one before that look. */
export function advanceCount(before: Count, look: Observation, trail: PollHistory): Count {
  const { exporter } = look;
  const count = {
    ...before,
    isRestarted: before.isRestarted || hasRestarted(trail, look),
    hasAnswered: before.hasAnswered || exporter.kind === 'answered',
  };
  const counters = readCounters(look);
  if (counters === null) {
    const isDoubtful = exporter.kind === 'failed' && exporter.mayCount;
    if (count.baseline === null || (exporter.kind !== 'answered' && !isDoubtful)) return count;
    return { ...count, ownCount: count.ownCount + 1, ownDoubtfulCount: count.ownDoubtfulCount + Number(isDoubtful) };
  }
  if (count.baseline === null) {
    if (look.startedAtMs < count.notBeforeMs) return count;
    const inFlightCount = Math.max(counters.inFlightCount - 1, trail.givenUpCount);
    return {
      ...count,
      baseline: { finishedCount: counters.finishedCount, inFlightCount },
      ownCount: 1,
      isNobody: inFlightCount === 0,
    };
  }
  const finishedSinceCount = counters.finishedCount - count.baseline.finishedCount;
  return {
    ...count,
    seenCount: Math.max(count.seenCount, finishedSinceCount - count.baseline.inFlightCount - count.ownCount),
    ownCount: count.ownCount + 1,
    isNobody:
      count.isNobody && counters.inFlightCount <= 1 && finishedSinceCount <= count.ownCount - count.ownDoubtfulCount,
  };
}
