// When to observe again, and until when that may take: the pace, and the limits that are near. Pure.

import { hasHold, type Limits, type Policy } from './model.ts';
import type { Facts, ObserveEffect, Running, Series, WatchEvent, WatchState } from './state.ts';

/** From the start of one observation to the start of the next once "done" was seen; POLL where that is shorter. */
export const DONE_PACE_MS = 500;
/** While main runs, the pause after an observation is at least so many times what it took. */
export const PAUSE_FACTOR = 4;
/** The longest such pause. */
export const PAUSE_MAX_MS = 30_000;
/** Longest wait for a scrape in flight once the count is reached; Prometheus's default scrape_timeout is 10 s. */
export const IN_FLIGHT_WAIT_MS = 10_000;
/** How long the exporter may be read where a limit is over, or a signal has just come: what hangs must not keep either waiting. */
export const SHORT_READ_MS = 1_000;

/** The first observation of a run, which begins at `nowMs`. */
export function firstObserve(state: WatchState, nowMs: number, policy: Policy): ObserveEffect {
  return { kind: 'observe', atMs: nowMs, readByMs: findNearestLimit(state, nowMs, policy) };
}

/** The next observation after an event; a late one is not made up. */
export function nextObserve(state: WatchState, event: WatchEvent, policy: Policy): ObserveEffect {
  if (event.kind === 'signalled') return { kind: 'observe', atMs: event.atMs, readByMs: event.atMs };
  const { observation } = event;
  const limitMs = findNearestLimit(state, observation.readAtMs, policy);
  const nextMs = findNextMs(state, event, policy);
  const atMs = limitMs === null ? nextMs : Math.max(observation.atMs, Math.min(nextMs, limitMs));
  return { kind: 'observe', atMs, readByMs: limitMs };
}

function findNextMs(
  { facts, phase }: WatchState,
  { observation }: Extract<WatchEvent, { readonly kind: 'observed' }>,
  { limits }: Policy,
): number {
  const { startedAtMs, atMs } = observation;
  const tookMs = atMs - startedAtMs;
  const startEndMs = facts.startedAtMs + limits.startTimeoutMs;
  const isStartOver = isStartLimited({ facts, phase }, limits) && atMs >= startEndMs && startedAtMs < startEndMs;
  if (isStartOver) return atMs;
  const done = phase.kind === 'running' || (phase.kind === 'waiting' && facts.wasAliveBefore) ? phase.done : null;
  if (phase.kind === 'holding' || done !== null || facts.terminatedAtMs !== null) {
    const paceMs = Math.min(DONE_PACE_MS, limits.pollMs);
    const nextMs = tookMs < paceMs ? startedAtMs + paceMs : atMs + paceMs;
    // The observation that can end the settle time comes when that ends, not up to one pace later.
    const settledAtMs = done === null ? 0 : done.sinceMs + limits.settleMs;
    return settledAtMs > atMs ? Math.min(nextMs, settledAtMs) : nextMs;
  }
  // A struggling exporter queues everybody's scrapes behind one lock: leave most of its time to Prometheus.
  const pauseMs = Math.min(PAUSE_FACTOR * tookMs, PAUSE_MAX_MS);
  return Math.max(startedAtMs + limits.pollMs, atMs + pauseMs);
}

/** When the hold for an end that is not settled yet would be over, settled by then at least. */
export function findHoldEnd({ sinceMs }: Series, limits: Limits): number {
  return sinceMs + Math.max(hasHold(limits) ? limits.ttlMs : 0, limits.settleMs);
}

/** When main has run for too long; null: never. An end that is being settled by then is waited for. */
export function findRunEnd(
  { aliveSinceMs }: Facts,
  { done }: Running,
  { runTimeoutMs, settleMs }: Limits,
): number | null {
  if (runTimeoutMs === 0 || aliveSinceMs === null) return null;
  const runEndMs = aliveSinceMs + runTimeoutMs;
  return done === null || done.sinceMs >= runEndMs ? runEndMs : Math.max(runEndMs, done.sinceMs + settleMs);
}

/** Whether START_TIMEOUT may decide. */
function isStartLimited({ facts, phase }: WatchState, { startTimeoutMs }: Limits): boolean {
  const isWaiting = phase.kind === 'waiting' && !facts.wasAliveBefore;
  return isWaiting && startTimeoutMs > 0 && !facts.isBlind && facts.terminatedAtMs === null;
}

/** The nearest limit that may decide by the next observation; null where there is none. `atMs`: what was read last. */
function findNearestLimit(state: WatchState, atMs: number, { limits }: Policy): number | null {
  const { facts, phase } = state;
  const ends: number[] = [];
  if (facts.terminatedAtMs !== null) ends.push(facts.terminatedAtMs + limits.terminationGraceMs);
  // Once it is over, the observation that decides has its whole time: this is no hard limit.
  const startEndMs = facts.startedAtMs + limits.startTimeoutMs;
  if (isStartLimited(state, limits) && startEndMs > atMs) ends.push(startEndMs);
  if (phase.kind === 'running') {
    const runEndMs = findRunEnd(facts, phase, limits);
    if (runEndMs !== null) ends.push(runEndMs);
  }
  if (phase.kind !== 'holding' && phase.done !== null && (phase.kind === 'running' || facts.wasAliveBefore)) {
    // Where the end was seen and the exporter hangs since; a limit that is past decided nothing.
    const holdEndMs = findHoldEnd(phase.done, limits);
    if (holdEndMs > atMs) ends.push(holdEndMs);
  }
  if (phase.kind === 'holding') {
    ends.push(phase.mainEndedAtMs + limits.ttlMs);
    if (phase.scrapedAtMs !== null) ends.push(phase.scrapedAtMs + IN_FLIGHT_WAIT_MS);
  }
  return ends.length === 0 ? null : Math.min(...ends);
}
