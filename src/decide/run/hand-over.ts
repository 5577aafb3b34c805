// The rules of the hand-over, which replaces the hold where it succeeds: when it begins, how long it may
// take, and what follows. Pure.

import { findWatchEnd, type Policy } from '../model.ts';
import { reportSending } from '../quit/quitting.ts';
import type { Decision, Facts, HandOverEffect, HandOverEvent, Holding, HoldState, WatchState } from '../state.ts';
import { awaitsHandOver, buildObserve } from './pace.ts';

/** A keeper answers within milliseconds; what is lost to one that hangs must be little beside a hold. */
const HAND_OVER_MAX_MS = 2_000;

/** Whether the last numbers, which were read by now, are handed over next: there are some. */
export function isHandOverDue({ facts, phase }: HoldState, policy: Policy): boolean {
  const hasNumbers = policy.front === null ? facts.hasAnswered : facts.front.seen.answeredAtMs !== null;
  return hasNumbers && awaitsHandOver(phase, facts, policy);
}

/** Hands over at `nowMs`. */
export function beginHandOver(facts: Facts, phase: Holding, nowMs: number, policy: Policy): Decision {
  return { kind: 'handingOver', state: { facts, phase }, log: [], next: buildEffect('handOver', nowMs, policy) };
}

function buildEffect(kind: HandOverEffect['kind'], nowMs: number, { limits }: Policy): HandOverEffect {
  return { kind, sinceMs: nowMs, untilMs: nowMs + HAND_OVER_MAX_MS, graceMs: findWatchEnd(0, limits) };
}

/** Main runs again: what a keeper has, or may have, would be scraped beside the numbers of now. */
export function withdrawFirst(decision: Decision, { handOver }: Holding, nowMs: number, policy: Policy): Decision {
  const mayBeKept = handOver !== undefined && policy.handOver?.kind === 'keeper';
  if (!mayBeKept || decision.kind !== 'watching') return decision;
  const { state, log } = decision;
  return { kind: 'handingOver', state, log, next: buildEffect('withdraw', nowMs, policy) };
}

/** Observes at once: the hold is over, or goes on as if nothing had been tried; or main is watched on. */
export function decideHandedOver(
  { facts, phase }: WatchState,
  { atMs, sinceMs, result }: HandOverEvent,
  policy: Policy,
): Decision {
  const handOver = reportSending(String(policy.handOver?.to), result, atMs - sinceMs);
  const { to, seconds } = handOver;
  if (phase.kind !== 'holding') {
    const state: WatchState = { facts, phase };
    const stays = result.kind === 'failed' ? [{ id: 'handOverStays' as const, fields: { to, why: result.why } }] : [];
    return { kind: 'watching', state, log: stays, next: buildObserve(state, atMs, atMs, policy) };
  }
  const { kind, ...shown } = result;
  const isAccepted = kind === 'accepted';
  const state: HoldState = {
    facts,
    phase: { ...phase, handOver, scrapedAtMs: isAccepted ? atMs : phase.scrapedAtMs },
  };
  const id = isAccepted ? 'handedOver' : 'handOverFailed';
  const log = [{ id, fields: { to, seconds, ...shown } } as const];
  return { kind: 'watching', state, log, next: buildObserve(state, atMs, atMs, policy) };
}
