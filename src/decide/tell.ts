// The push of the last exposition and the webhook: whether the push is due, where the webhook comes, and how
// long each may take. Pure.

import { cut } from '../base/text.ts';
import { findLeastWanted, type Policy, toSeconds } from './model.ts';
import type { PushReport, PushResult, Quitting, SendEffect } from './state.ts';

/** How much of the grace a push or a webhook reserves: the watch and the hold end earlier by this. */
export const RESERVE_MS = 5_000;
/** A push takes no longer, retries included; nothing is quit before. */
export const PUSH_MAX_MS = 30_000;
/** A webhook takes no longer: three tries of 5 s, and the pauses between them. */
const WEBHOOK_MAX_MS = 20_000;
/** How long before its limit the last try is made, without waiting any longer. */
export const LAST_CALL_MS = 1_000;
/** How much of the grace the push and the webhook leave for each thing that comes after them. */
export const KEPT_MS = 1_000;

/** The longest reason in the report; the log has it whole. */
const WHY_MAX_LENGTH = 160;

/** Whether the last exposition is to be pushed: the wanted scrapes did not come, or it is pushed always. */
export function isPushDue(
  { outcome, scrapesSeenCount }: Pick<Quitting, 'outcome' | 'scrapesSeenCount'>,
  { push, limits }: Policy,
): boolean {
  // Main never ran: what was seen is not of it.
  if (push === undefined || outcome === 'neverStarted') return false;
  if (push.when === 'always') return true;
  if (outcome === 'scraped' || limits.scrapesWantedCount === 0) return false;
  // With RUN_TIMEOUT the hold may have ended by the count.
  const isCounted = outcome === 'timedOut' && limits.scrapesWantedCount !== 'auto' && scrapesSeenCount !== null;
  return !isCounted || scrapesSeenCount < findLeastWanted(limits);
}

export function makePushEffect(nowMs: number, policy: Policy): SendEffect {
  const keptMs = (policy.targets.length > 0 ? KEPT_MS : 0) + (policy.hasWebhook === true ? KEPT_MS : 0);
  return { kind: 'push', untilMs: nowMs + PUSH_MAX_MS, graceMs: findSendGrace(policy, keptMs) };
}

/** The webhook as the next effect, when it is its turn. */
export function makeWebhookEffect(nowMs: number, { tasks }: Pick<Quitting, 'tasks'>, policy: Policy): SendEffect {
  const keptMs = tasks.includes('target') ? KEPT_MS : 0;
  return { kind: 'callWebhook', untilMs: nowMs + WEBHOOK_MAX_MS, graceMs: findSendGrace(policy, keptMs) };
}

/** How long after a signal it is given up: the grace, but for what comes after it. */
function findSendGrace({ limits }: Policy, keptMs: number): number {
  return Math.max(0, limits.terminationGraceMs - keptMs);
}

/** The webhook comes before the first mesh proxy, which would carry it; else after all targets. */
export function findWebhookIndex({ targets }: Policy): number {
  const index = targets.findIndex(({ isMesh }) => isMesh === true);
  return index < 0 ? targets.length : index;
}

/** The push as the report shows it. */
export function reportPush(to: string, result: PushResult, tookMs: number): PushReport {
  const seconds = toSeconds(tookMs, 1);
  if (result.kind === 'accepted') return { to, result: 'accepted', seconds };
  return { to, result: 'failed', seconds, why: cut(result.why, WHY_MAX_LENGTH) };
}
