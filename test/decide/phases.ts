// Limits, a policy, phases and observations to start from: a test spreads one and overrides what it is about.

import assert from 'node:assert/strict';
import type { ConditionObservation, ExporterObservation, Limits, Observation, Policy } from '../../src/decide/model.ts';
import { beginCount } from '../../src/decide/run/scrape-count.ts';
import type { ServedScrape } from '../../src/decide/serve/scrapers.ts';
import type { Holding, Quitting, Running, State } from '../../src/decide/state.ts';

/** What the configuration gives when no variable is set (README, "Configuration"); a test spreads it and overrides its own. */
export const DEFAULT_LIMITS: Limits = {
  scrapesWantedCount: 1,
  ttlMs: 90_000,
  settleMs: 3_000,
  startTimeoutMs: 600_000,
  runTimeoutMs: 0,
  terminationGraceMs: 25_000,
  pollMs: 1_000,
};

/** One condition that is no metric, and nothing to quit. */
export const POLICY: Policy = {
  front: null,
  limits: DEFAULT_LIMITS,
  conditions: [{ isMetric: false }],
  targets: [],
  quitTimeoutMs: 30_000,
  isDryRun: false,
};

export const RUNNING: Running = { kind: 'running', done: null, others: null, goneSinceMs: null };

export const HOLDING: Holding = {
  kind: 'holding',
  mainEndedAtMs: 100_000,
  because: 'settled',
  count: { ...beginCount(0), hasAnswered: true },
  goneSinceMs: null,
  scrapedAtMs: null,
};

/** Main ended at 100 s, and was scraped twice until 112 s. */
export const QUITTING: Quitting = {
  kind: 'quitting',
  sinceMs: 112_000,
  tasks: [],
  quitSinceMs: 112_000,
  outcome: 'scraped',
  because: 'settled',
  mainEndedAtMs: 100_000,
  scrapesSeenCount: 2,
  hasAnswered: true,
  reports: [],
  target: null,
};

export const ALIVE = { kind: 'alive', seen: 'alive' } as const;
export const DONE = { kind: 'done', seen: 'done', provesWasAlive: false } as const;
export const UNKNOWN = { kind: 'unknown', why: 'unknown' } as const;
export const NOT_ASKED: ExporterObservation = { kind: 'none' };
export const REFUSED: ExporterObservation = { kind: 'refused' };
export const NO_TOTALS = { requests: null, failures: null, users: null };
/** An exporter without promhttp's counters. */
export const ANSWERED = { kind: 'answered', scrapes: null, totals: NO_TOTALS } as const;

/** An exporter that counted this many scrapes. */
export function answer(finishedCount: number, inFlightCount = 1): ExporterObservation {
  return { ...ANSWERED, scrapes: { finishedCount, inFlightCount } };
}

/** An observation that began at 0, or when it ended. */
export function observe(
  conditions: readonly ConditionObservation[],
  rest: Partial<Omit<Observation, 'conditions'>> = {},
): Observation {
  return { startedAtMs: 0, readAtMs: 0, atMs: 0, allowedMs: 1_000, exporter: NOT_ASKED, ...rest, conditions };
}

/** The phase of a run that came to quitting. */
export function readQuitting({ phase }: State): Quitting {
  assert.ok(phase.kind === 'quitting', phase.kind);
  return phase;
}

/** A live answer of 20 ms to a scraper at this address. */
export function scrapeBy(address: string, startedAtMs: number, rest: Partial<ServedScrape> = {}): ServedScrape {
  return {
    startedAtMs,
    atMs: startedAtMs + 20,
    address,
    agent: 'Prometheus',
    connection: 1,
    openConnections: [],
    served: 'live',
    isByRefusal: false,
    readAtMs: startedAtMs,
    ...rest,
  };
}
