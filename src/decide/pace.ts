// When to observe again, and until when that may take: the pace, and the limits that are near. Pure.

import { hasHold, type Limits, type Policy } from './model.ts';
import type { ObserveEffect, Series, WatchEvent, WatchState } from './state.ts';

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

/** The next observation after an event; a late one is not made up. */
export function nextObserve(state: WatchState, event: WatchEvent, policy: Policy): ObserveEffect {
  if (event.kind === 'signalled') {
    return { kind: 'observe', atMs: event.atMs, readByMs: event.atMs, readMinMs: SHORT_READ_MS };
  }
  const limitMs = findNearestLimit(state, event.observation.atMs, policy);
  const atMs = findNextMs(state, event, policy);
  return {
    kind: 'observe',
    atMs: limitMs === null ? atMs : Math.max(event.observation.atMs, Math.min(atMs, limitMs)),
    readByMs: limitMs,
    readMinMs: SHORT_READ_MS,
  };
}

function findNextMs(
  { facts, phase }: WatchState,
  { observation }: Extract<WatchEvent, { readonly kind: 'observed' }>,
  { limits }: Policy,
): number {
  const { startedAtMs, atMs } = observation;
  const tookMs = atMs - startedAtMs;
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
export function findTtlEnd({ sinceMs }: Series, { ttlMs, settleMs }: Limits): number {
  return sinceMs + Math.max(ttlMs, settleMs);
}

/** The nearest limit that may decide by the next observation, though it be over; null where there is none. */
function findNearestLimit({ facts, phase }: WatchState, atMs: number, { limits }: Policy): number | null {
  const ends: number[] = [];
  if (facts.terminatedAtMs !== null) ends.push(facts.terminatedAtMs + limits.terminationGraceMs);
  else if (phase.kind === 'waiting' && limits.startTimeoutMs > 0 && !facts.wasAliveBefore && !facts.isBlind) {
    ends.push(facts.startedAtMs + limits.startTimeoutMs);
  }
  if (phase.kind === 'running') {
    if (limits.runTimeoutMs > 0 && facts.aliveSinceMs !== null) ends.push(facts.aliveSinceMs + limits.runTimeoutMs);
    // Where the end was seen and the exporter hangs since, the TTL ends that, too; one that is past decided nothing.
    const ttlEndMs = phase.done === null || !hasHold(limits) ? 0 : findTtlEnd(phase.done, limits);
    if (ttlEndMs > atMs) ends.push(ttlEndMs);
  }
  if (phase.kind === 'holding') {
    ends.push(phase.mainEndedAtMs + limits.ttlMs);
    if (phase.scrapedAtMs !== null) ends.push(phase.scrapedAtMs + IN_FLIGHT_WAIT_MS);
  }
  return ends.length === 0 ? null : Math.min(...ends);
}
