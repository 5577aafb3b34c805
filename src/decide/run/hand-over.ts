// The rules of the hand-over, which replaces the hold where it succeeds: when it begins, how long it may
// take, and what follows. Pure.

import { cut } from '../../base/text.ts';
import { findWatchEnd, type Policy, toSeconds } from '../model.ts';
import type { Facts, HandOverDecision, HandOverEvent, Holding, HoldState, WatchDecision } from '../state.ts';
import { awaitsHandOver, buildObserve } from './pace.ts';

/** A keeper answers within milliseconds; what is lost to one that hangs must be little beside a hold. */
const HAND_OVER_MAX_MS = 2_000;
/** The longest reason in the report; the log has it whole. */
const WHY_MAX_LENGTH = 160;

/** Whether the last numbers, which were read by now, are handed over next: there are some. */
export function isHandOverDue({ facts, phase }: HoldState, policy: Policy): boolean {
  const hasNumbers = policy.front === null ? facts.hasAnswered : facts.front.seen.answeredAtMs !== null;
  return hasNumbers && awaitsHandOver(phase, facts, policy);
}

/** Hands over at `nowMs`. */
export function beginHandOver(facts: Facts, phase: Holding, nowMs: number, { limits }: Policy): HandOverDecision {
  const next = { sinceMs: nowMs, untilMs: nowMs + HAND_OVER_MAX_MS, graceMs: findWatchEnd(0, limits) };
  return { kind: 'handingOver', state: { facts, phase }, log: [], next: { kind: 'handOver', ...next } };
}

/** Observes at once: the hold is over, or goes on as if nothing had been tried. */
export function decideHandedOver(
  { facts, phase }: HoldState,
  { atMs, sinceMs, result }: HandOverEvent,
  policy: Policy,
): WatchDecision {
  const to = String(policy.handOver?.to);
  const seconds = toSeconds(atMs - sinceMs, 1);
  const why = result.kind === 'failed' ? { why: cut(result.why, WHY_MAX_LENGTH) } : {};
  const isAccepted = result.kind === 'accepted';
  const state: HoldState = {
    facts,
    phase: {
      ...phase,
      handOver: { to, result: result.kind, seconds, ...why },
      scrapedAtMs: isAccepted ? atMs : phase.scrapedAtMs,
    },
  };
  const id = isAccepted ? 'handedOver' : 'handOverFailed';
  const fields = { to, seconds, ...(result.kind === 'failed' && { why: result.why }) };
  return { kind: 'watching', state, log: [{ id, fields }], next: buildObserve(state, atMs, atMs, policy) };
}
