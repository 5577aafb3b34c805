// What our own reads may cost main: how long its page is left alone after a read, and when the next of our
// own may begin. Pure.

import type { SourceKind } from '../model.ts';

/** How many times as long as a read took main is left alone: 100 is one percent of its time. */
export const REST_FACTORS = {
  usual: 100,
  /** Only a page shows main's end: less often, and the end would be known seconds late. */
  onlyEvidence: 20,
  /**
   * Without a front or a push who is scraped last outlives main: an exporter beside it. It has only what it
   * last asked main for, and our reads make it ask.
   */
  beside: 20,
  /**
   * A hook or a push brings the last numbers: our reads (of pushes: of the page that is made of them) are for
   * a program that is killed.
   */
  spared: 333,
} as const;

/**
 * What an own read is for decides what it may cost. `isHooked`: a hook is to call for the last page.
 * `isBeside`: neither a front nor a push has the last page.
 */
export function findRestFactor(of: {
  readonly isOnlyEvidence: boolean;
  readonly isBeside?: boolean;
  readonly isHooked?: boolean;
  readonly kind?: SourceKind;
}): number {
  if (of.isOnlyEvidence) return REST_FACTORS.onlyEvidence;
  if (of.isBeside) return REST_FACTORS.beside;
  return of.isHooked || of.kind === 'pushes' ? REST_FACTORS.spared : REST_FACTORS.usual;
}

/** How many reads are remembered: two slow ones of five do not move the median. */
const COSTS_MAX_COUNT = 5;
/** From so many on, one slow read is told from a slow page. */
const COSTS_KNOWN_COUNT = 3;
/** The longest rest after one read, by itself: it may have been slow by chance, or at the program's start. */
const ONE_READ_REST_MAX_MS = 5_000;

/** What the last whole reads took, the oldest first. */
export type ReadCosts = {
  readonly tookMs: readonly number[];
  /** Our own CPU from one own read to the next: for that, and for scrapes between. */
  readonly cpuMs: readonly number[];
};

/** Before the first read. */
export const NO_COSTS: ReadCosts = { tookMs: [], cpuMs: [] };

/**
 * The costs after one more whole read; `cpuMs` null: of a scrape. A failed one is not among them; it has a
 * rest of its own, below.
 */
export function addCost(costs: ReadCosts, tookMs: number, cpuMs: number | null): ReadCosts {
  const add = (all: readonly number[], one: number) => [...all, one].slice(-COSTS_MAX_COUNT);
  return { tookMs: add(costs.tookMs, tookMs), cpuMs: cpuMs === null ? costs.cpuMs : add(costs.cpuMs, cpuMs) };
}

/**
 * How long a read usually takes, by the median of the last ones, so that a slow one changes nothing; null:
 * unknown.
 */
export function findUsualMs({ tookMs }: ReadCosts): number | null {
  const all = tookMs.toSorted((a, b) => a - b);
  return all[Math.floor((all.length - 1) / 2)] ?? null;
}

/** However much scrapes cost us, our own reads are only so many times rarer, or they would never come. */
const OWN_COST_MAX_FACTOR = 8;

/** How long no own read begins after a read: main pays for it, and so do we, who pack and check its page. */
export function findRestMs(costs: ReadCosts, restFactor: number): number {
  const tookMs = findUsualMs(costs) ?? 0;
  const cpuMs = costs.cpuMs.reduce((sum, each) => sum + each / costs.cpuMs.length, 0);
  const restMs = restFactor * Math.max(tookMs, Math.min(cpuMs, OWN_COST_MAX_FACTOR * tookMs));
  return costs.tookMs.length < COSTS_KNOWN_COUNT ? Math.min(restMs, ONE_READ_REST_MAX_MS) : restMs;
}

/**
 * The rest after the last own read by itself, whole or failed: an error page costs main too. Each further
 * failure in a row doubles its bound.
 */
export function findLastRestMs(tookMs: number, failedCount: number, restFactor: number): number {
  return Math.min(restFactor * tookMs, ONE_READ_REST_MAX_MS * 2 ** Math.max(0, failedCount - 1));
}

/** A read that has ended. `isOwn`: no scrape shared it. */
export type PastRead = { readonly beganAtMs: number; readonly endedAtMs: number; readonly isOwn: boolean };

/** Asks for what every scraper takes. */
export const TEXT_ACCEPT = 'text/plain;version=0.0.4';

/** What is known as an Accept may have a second line: the Authorization of its request. */
export function splitAccept(accept: string): { readonly formats: string; readonly login?: string | undefined } {
  const [formats = '', login] = accept.split('\n');
  return { formats, login };
}

/** What own reads are to ask for. `isSpare`: nobody has asked for it, and another format is kept. */
export type Wanted = { readonly accept: string; readonly isSpare?: boolean };

/** What decides when an own read may begin. */
export type OwnReads = {
  readonly pollMs: number;
  /** How many times as long as a read took main is left alone. */
  readonly restFactor: number;
  /**
   * What an observation does with own reads: `takes` what they have brought; `waits` for one, since a
   * condition is a metric; `contains` them: without a front each begins and ends within an observation, since
   * the count of scrapes subtracts our own requests, one by one.
   */
  readonly observing: 'takes' | 'waits' | 'contains';
  /** Main lives, and pays for its page. */
  readonly isCharged: boolean;
  readonly costs: ReadCosts;
  /** The newest own read that ended, or failed, without giving way; null: none yet. */
  readonly lastOwn: PastRead | null;
  /** How many reads in a row have failed. */
  readonly failedCount: number;
  /** The newest whole read, or own one that failed, of each format that is wanted, and of all. */
  readonly newest: ReadonlyMap<string, PastRead>;
};

/** Once main pays no more, the time from a scrape's read to an own one; POLL where that is shorter. */
const DONE_PACE_MS = 500;
/** A spare format is read this many times less often. */
const SPARE_FACTOR = 10;
/**
 * Any read puts off own reads of all formats. A format is due this many rests after its own last read all the
 * same: without that, frequent scrapes in one format would leave the page of another one old for ever.
 */
const SERVED_FACTOR = 2;

/**
 * When an own read of these formats may begin. While main pays, the latest of three: POLL after an own read,
 * or a read of this format, began; a rest after an own read ended; a rest after a read of any format ended,
 * or two after one of this format, which may be sooner (spare: ten). Once it pays no more: at once, but
 * 500 ms after a scrape's read of this format began.
 */
export function findOwnMs(own: OwnReads, { accept, isSpare = false }: Wanted): number {
  const { pollMs, restFactor, observing, isCharged, costs, lastOwn, failedCount, newest } = own;
  const page = newest.get(accept) ?? NEVER;
  // The last observation of the settle time comes sooner than others, and shows a new page.
  if (!isCharged) return page.isOwn ? NEVER.endedAtMs : page.beganAtMs + Math.min(DONE_PACE_MS, pollMs);
  const restMs = findRestMs(costs, restFactor);
  const anyEndedAtMs = Math.max(...[...newest.values()].map(({ endedAtMs }) => endedAtMs));
  const servedMs = Math.min(anyEndedAtMs + restMs, page.endedAtMs + SERVED_FACTOR * restMs);
  const ofPageMs = isSpare ? page.endedAtMs + SPARE_FACTOR * restMs : servedMs;
  const { beganAtMs, endedAtMs } = lastOwn ?? NEVER;
  // Observations that contain reads keep POLL by themselves; a little early, they would miss theirs.
  const floorMs = observing === 'contains' ? NEVER.beganAtMs : Math.max(page.beganAtMs, beganAtMs) + pollMs;
  if (lastOwn === null) return Math.max(floorMs, ofPageMs);
  const ownRestMs = findLastRestMs(endedAtMs - beganAtMs, failedCount, restFactor);
  return Math.max(floorMs, ofPageMs, endedAtMs + Math.max(ownRestMs, restMs));
}

const NEVER: PastRead = {
  beganAtMs: Number.NEGATIVE_INFINITY,
  endedAtMs: Number.NEGATIVE_INFINITY,
  isOwn: true,
};
