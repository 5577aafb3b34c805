// What the rules decide by, from a configuration. Pure.

import type { Config } from './config.ts';
import type { Policy } from './decide/model.ts';

/** What `step` decides by. */
export function buildPolicy(config: Config): Policy {
  const { limits, conditions, front, thresholds, targets, quitTimeoutMs, isDryRun } = config;
  return {
    limits,
    conditions: conditions.map(({ metricName, isSignal = false }) => ({ isMetric: metricName !== null, isSignal })),
    hasFront: front !== null,
    ...(thresholds.length === 0 ? {} : { thresholds }),
    targets: targets.map(({ name, request, needsMs = 0, force }) => ({
      name,
      request,
      needsMs,
      canForce: force !== undefined,
    })),
    quitTimeoutMs,
    isDryRun,
  };
}
