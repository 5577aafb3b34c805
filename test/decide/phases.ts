// A policy and phases to start from: a test spreads one and overrides what it is about.

import assert from 'node:assert/strict';
import type { Policy } from '../../src/decide/model.ts';
import { beginCount } from '../../src/decide/run/scrape-count.ts';
import type { Holding, Quitting, Running, State } from '../../src/decide/state.ts';
import { DEFAULT_LIMITS } from './limits.ts';

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
  count: beginCount(0),
  isExporterRestarted: false,
  hasAnswered: true,
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

/** The phase of a run that came to quitting. */
export function readQuitting({ phase }: State): Quitting {
  assert.ok(phase.kind === 'quitting', phase.kind);
  return phase;
}
