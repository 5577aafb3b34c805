// What our own reads may cost main: how long its page is left alone after a read. Pure.

import type { SourceKind } from './serve.ts';

/** How many times as long as a read took main is left alone: 100 is one percent of its time. */
export const REST_FACTORS = {
  usual: 100,
  /** Only a page shows main's end: less often, and the end would be known seconds late. */
  onlyEvidence: 20,
  /**
   * A hook or a push brings the last numbers: our reads (of pushes: of the page that is made of them) are for
   * a program that is killed.
   */
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

/** How many reads are remembered: two slow ones of five do not move the median. */
const COSTS_MAX_COUNT = 5;
/** From so many on, one slow read is told from a slow page. */
const COSTS_KNOWN_COUNT = 3;
/** The longest rest after one read, by itself: it may have been slow by chance, or at the program's start. */
const ONE_READ_REST_MAX_MS = 5_000;

/** What one whole read took of time, and of our own CPU, with all that we did since the one before. */
type ReadCost = { readonly tookMs: number; readonly cpuMs: number };

/** Of the last whole reads; the oldest first. */
export type ReadCosts = readonly ReadCost[];

/** The costs after one more whole read. A failed one is not among them; it has a rest of its own, below. */
export function addCost(costs: ReadCosts, cost: ReadCost): ReadCosts {
  return [...costs, cost].slice(-COSTS_MAX_COUNT);
}

/**
 * How long a read usually takes, by the median of the last ones, so that a slow one changes nothing; null:
 * unknown.
 */
export function findUsualMs(costs: ReadCosts): number | null {
  const all = costs.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b);
  return all[Math.floor((all.length - 1) / 2)] ?? null;
}

/** Scrapes cost us as well: what they do may make our own reads only so many times rarer. */
const OWN_COST_MAX_FACTOR = 8;

/** How long no own read begins after a read: main pays for it, and so do we, who pack and check its page. */
export function findRestMs(costs: ReadCosts, restFactor: number): number {
  const tookMs = findUsualMs(costs) ?? 0;
  const cpuMs = costs.reduce((sum, each) => sum + each.cpuMs / costs.length, 0);
  const restMs = restFactor * Math.max(tookMs, Math.min(cpuMs, OWN_COST_MAX_FACTOR * tookMs));
  return costs.length < COSTS_KNOWN_COUNT ? Math.min(restMs, ONE_READ_REST_MAX_MS) : restMs;
}

/**
 * The rest after the last own read by itself, whole or failed: an error page costs main too. Each further
 * failure in a row doubles its bound.
 */
export function findLastRestMs(tookMs: number, failedCount: number, restFactor: number): number {
  return Math.min(restFactor * tookMs, ONE_READ_REST_MAX_MS * 2 ** Math.max(0, failedCount - 1));
}
