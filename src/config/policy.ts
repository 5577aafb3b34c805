// What the rules decide by, from a configuration. Pure.

import type { Policy } from '../decide/model.ts';
import { addReserve } from '../decide/tell.ts';
import type { Config } from './config.ts';

/** What `step` decides by. */
export function buildPolicy(config: Config): Policy {
  const { limits, conditions, front, thresholds, targets, quitTimeoutMs, isDryRun, push, pushWhen, webhook } = config;
  return {
    limits: addReserve(limits, config),
    ...(push === null ? {} : { push: { to: push.to, when: pushWhen.when } }),
    hasWebhook: webhook !== null,
    conditions: conditions.map(({ metricName, isSignal = false }) => ({ isMetric: metricName !== null, isSignal })),
    hasFront: front !== null,
    ...(thresholds.length === 0 ? {} : { thresholds }),
    targets: targets.map(({ name, request, needsMs = 0, force, isMesh = false }) => ({
      name,
      request,
      needsMs,
      isMesh,
      canForce: force !== undefined,
    })),
    quitTimeoutMs,
    isDryRun,
  };
}
