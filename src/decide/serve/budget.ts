// What our own reads may cost main: how long its page is left alone after a read. Pure.

import type { SourceKind } from './serve.ts';

/** How many times as long as a read took main is left alone: 100 is one percent of its time. */
export const REST_FACTORS = {
  usual: 100,
  /** Only a page shows main's end: less often, and the end would be known seconds late. */
  onlyEvidence: 20,
  /** A hook or a push brings the last numbers: our reads are for a program that is killed. */
  spared: 333,
} as const;

/** What an own read is for decides what it may cost. `isHooked`: a hook is to call for the last page. */
export function findRestFactor(of: {
  readonly isOnlyEvidence: boolean;
  readonly isHooked?: boolean;
  readonly kind?: SourceKind;
}): number {
  if (of.isOnlyEvidence) return REST_FACTORS.onlyEvidence;
  return of.isHooked || of.kind === 'pushes' ? REST_FACTORS.spared : REST_FACTORS.usual;
}

/** How many reads are remembered: of five, two slow ones change nothing. */
const COSTS_MAX_COUNT = 5;
/** From so many on, one slow read is told from a slow page. */
const COSTS_KNOWN_COUNT = 3;
/** The longest rest until then: the first page of a program that is just starting may take a second. */
const UNKNOWN_REST_MAX_MS = 5_000;

/** How long the last whole reads took, our own work with them; the oldest first. */
export type ReadCosts = readonly number[];

/** The costs after one more whole read. One that failed shows what main lacks, not what its page costs. */
export function addCost(costs: ReadCosts, tookMs: number): ReadCosts {
  return [...costs, tookMs].slice(-COSTS_MAX_COUNT);
}

/**
 * How long a read usually takes, by the median of the last ones, so that a slow one changes nothing; null:
 * unknown.
 */
export function findUsualMs(costs: ReadCosts): number | null {
  return costs.toSorted((a, b) => a - b)[Math.floor((costs.length - 1) / 2)] ?? null;
}

/** How long no own read begins after a read. */
export function findRestMs(costs: ReadCosts, restFactor: number): number {
  const restMs = restFactor * (findUsualMs(costs) ?? 0);
  return costs.length < COSTS_KNOWN_COUNT ? Math.min(restMs, UNKNOWN_REST_MAX_MS) : restMs;
}

/** The same after this very read, which may have failed: an error page costs main too. */
export function findFailedRestMs(tookMs: number, restFactor: number): number {
  return Math.min(restFactor * tookMs, UNKNOWN_REST_MAX_MS);
}
