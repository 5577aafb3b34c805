// What a configuration means to the rules. Pure.

import type { Limits, Policy } from '../decide/model.ts';
import { RESERVE_MS } from '../decide/tell.ts';
import type { Config } from './config.ts';

/** Whether a push or a webhook is configured. */
export function hasReceivers({ push, webhook }: Pick<Config, 'push' | 'webhook'>): boolean {
  return push !== null || webhook !== null;
}

/** The limits; with a receiver some of the grace is reserved for it. */
export function buildLimits(config: Pick<Config, 'limits' | 'push' | 'webhook'>): Limits {
  return hasReceivers(config) ? { ...config.limits, reserveMs: RESERVE_MS } : config.limits;
}

/** What `step` decides by. */
export function buildPolicy(config: Config): Policy {
  const { conditions, front, thresholds, targets, quitTimeoutMs, isDryRun, push, pushWhen, webhook, tombstonePath } =
    config;
  return {
    limits: buildLimits(config),
    ...(push === null ? {} : { push: { to: push.to, when: pushWhen.when } }),
    hasWebhook: webhook !== null,
    ...(tombstonePath === null ? {} : { tombstonePath }),
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
