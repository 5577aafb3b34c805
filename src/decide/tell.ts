// What is told elsewhere between the hold and the end: the last exposition that is pushed, the report that is sent. Whether, in
// which order, and for how long. Pure.

import { cut } from '../base/text.ts';
import { findLeastWanted, type Policy } from './model.ts';
import type { PushReport, PushResult, Quitting, SendEffect } from './state.ts';

/** The watch and the hold end so long before the grace where anything is told: a push, quitting and a webhook share it. */
export const RESERVE_MS = 5_000;
/** A push takes no longer, retries included; nothing is quit before. */
export const PUSH_MAX_MS = 30_000;
/** A webhook takes no longer: three tries of 5 s, and the pauses between them. */
export const WEBHOOK_MAX_MS = 20_000;
/** So long before it is given up nothing waits any longer: the last try is made. */
export const LAST_CALL_MS = 1_000;
/** Of the grace, what comes after the push or the webhook keeps so much: quitting, or the webhook. */
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

/** The push as the next effect. */
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

/** Before which target the webhook comes: the first that is a mesh's proxy, which would carry it; else after all. */
export function findWebhookIndex({ targets }: Policy): number {
  const index = targets.findIndex(({ isMesh }) => isMesh === true);
  return index < 0 ? targets.length : index;
}

/** The push as the report shows it. */
export function reportPush(to: string, result: PushResult, tookMs: number): PushReport {
  const seconds = Math.round(tookMs / 100) / 10;
  if (result.kind === 'accepted') return { to, result: 'accepted', seconds };
  return { to, result: 'failed', seconds, why: cut(result.why, WHY_MAX_LENGTH) };
}
