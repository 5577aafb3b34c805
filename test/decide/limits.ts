// The limits that tests start from.

import type { Limits } from '../../src/decide/model.ts';

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
