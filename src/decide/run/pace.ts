// When to observe again, and until when that may take: the pace, and the limits that are near. Pure.

import { findWatchEnd, hasHold, type Limits, type Observation, type Policy } from '../model.ts';
import type { Facts, Holding, ObserveEffect, Running, Series, WatchEvent, WatchState } from '../state.ts';

/** From the start of one observation to the next once "done" was seen; POLL where that is shorter. */
const DONE_PACE_MS = 500;
/** Longest wait for a scrape in flight once the count is reached: Prometheus's default scrape_timeout. */
export const IN_FLIGHT_WAIT_MS = 10_000;
/** The same once the grace is over, and no longer than the grace: SIGKILL should come 5 s after it. */
const GRACE_WAIT_MS = 4_000;
/** How long of that it waits for the source; then it gets the snapshot. */
export const LAST_WAIT_MS = 3_000;
/** How long the exporter may be read once a limit is over or a signal came: a hang must not delay either. */
export const SHORT_READ_MS = 1_000;

/**
 * How long the read may take that decides START_TIMEOUT, so that a slow exporter can show that main is up. A
 * scrape of the Locust exporter takes 5 s where Locust does not answer (measured with 0.5.0).
 */
const START_READ_MS = 5_000;
/** How long the read may take that shows the last numbers where nothing is held, within the grace. */
export const LAST_READ_MS = 5_000;

/** The next observation after an event; a late one is not made up. */
export function nextObserve(
  state: WatchState,
  event: Exclude<WatchEvent, { readonly planned: ObserveEffect }>,
  policy: Policy,
): ObserveEffect {
  if (event.kind === 'signalled') {
    const { atMs } = event;
    return { kind: 'observe', atMs, readByMs: findLastReadEnd(state, atMs, policy) ?? atMs, isFresh: true };
  }
  const { readAtMs, atMs } = event.observation;
  const limitMs = findNearestLimit(state, readAtMs, policy.limits) ?? Number.POSITIVE_INFINITY;
  const startEndMs = findStartEnd(state, policy.limits) ?? Number.POSITIVE_INFINITY;
  const paceMs = needsLastRead(state, policy) ? atMs : findNextMs(state, event.observation, policy);
  const nextMs = Math.min(paceMs, limitMs, startEndMs);
  return buildObserve(state, Math.max(atMs, nextMs), readAtMs, policy);
}

/** Observes at `atMs`. What begins before START_TIMEOUT is given up then; what begins later decides it. */
export function buildObserve(state: WatchState, atMs: number, seenAtMs: number, policy: Policy): ObserveEffect {
  const { facts, phase } = state;
  const startEndMs = findStartEnd(state, policy.limits);
  // START_TIMEOUT is decided by a page that was read after it.
  const isFresh = needsLastRead(state, policy) || (startEndMs !== null && atMs >= startEndMs);
  // While START_TIMEOUT may decide, no other limit can.
  const startReadMs = startEndMs === null || atMs < startEndMs ? startEndMs : atMs + START_READ_MS;
  // A hold that is over waits for answers in flight alone, not for what a slow source shows.
  const isOver = phase.kind === 'holding' && phase.scrapedAtMs !== null && facts.front.seen.answeredAtMs !== null;
  const lastReadMs = isOver ? atMs : isFresh ? findLastReadEnd(state, atMs, policy) : null;
  const readByMs = startReadMs ?? lastReadMs ?? findNearestLimit(state, seenAtMs, policy.limits);
  return { kind: 'observe', atMs, readByMs, isFresh };
}

/**
 * Whether the exporter must be read once more, whatever POLL says, since what main left behind may be newer
 * than the newest read: at the first signal, and at main's end where no hold would show it.
 */
export function needsLastRead({ facts, phase }: WatchState, policy: Policy): boolean {
  const { terminatedAtMs, freshAtMs, front } = facts;
  const isUnkept = policy.front !== null && front.seen.answeredAtMs === null;
  const isNotHeld =
    phase.kind === 'holding' && (!hasHold(policy.limits) || isUnkept || awaitsHandOver(phase, facts, policy));
  const sinceMs = isNotHeld ? Math.max(phase.mainEndedAtMs, terminatedAtMs ?? phase.mainEndedAtMs) : terminatedAtMs;
  return sinceMs !== null && (freshAtMs ?? Number.NEGATIVE_INFINITY) < sinceMs;
}

/**
 * Whether the hand-over is still to come, and nothing else has to come first. Main may live after
 * RUN_TIMEOUT: its numbers are not the last. A page that scrapers are owed is not handed over: the hold is
 * for that.
 */
export function awaitsHandOver({ because, handOver }: Holding, { front }: Facts, policy: Policy): boolean {
  const isWanted = policy.handOver !== undefined && handOver === undefined && because !== 'runTimeout';
  return isWanted && front.seen.hasOwedPage !== true;
}

/**
 * When the last read is waited for no longer; null: a hold follows, and reads again; at once if that can end
 * meanwhile. The one after a signal that came in the middle of it must be short: what hung may hang again.
 */
function findLastReadEnd({ facts, phase }: WatchState, atMs: number, policy: Policy): number | null {
  const { limits } = policy;
  const { terminatedAtMs, freshAtMs, front } = facts;
  const isNotHeld = phase.kind === 'holding' && (!hasHold(limits) || awaitsHandOver(phase, facts, policy));
  if (!isNotHeld) return front.seen.answeredAtMs === null ? null : atMs;
  const isSecond = freshAtMs !== null && freshAtMs >= phase.mainEndedAtMs;
  return Math.min(
    atMs + (isSecond ? SHORT_READ_MS : LAST_READ_MS),
    terminatedAtMs === null ? Number.POSITIVE_INFINITY : findWatchEnd(terminatedAtMs, limits),
  );
}

function findNextMs({ facts, phase }: WatchState, { startedAtMs, atMs }: Observation, { limits }: Policy): number {
  const tookMs = atMs - startedAtMs;
  const done = phase.kind === 'running' || (phase.kind === 'waiting' && facts.wasAliveBefore) ? phase.done : null;
  const isNearEnd = phase.kind === 'holding' || done !== null || facts.terminatedAtMs !== null;
  const paceMs = isNearEnd ? Math.min(DONE_PACE_MS, limits.pollMs) : limits.pollMs;
  // What takes longer struggles. How often the page is read is decided by the law of reads.
  const nextMs = tookMs < paceMs ? startedAtMs + paceMs : atMs + paceMs;
  // The observation that can end the settle time comes when that ends, not up to one pace later.
  const settledAtMs = done === null ? 0 : done.sinceMs + limits.settleMs;
  return settledAtMs > atMs ? Math.min(nextMs, settledAtMs) : nextMs;
}

/** When the hold for an end that is not settled yet would be over, settled by then at least. */
export function findHoldEnd({ sinceMs }: Series, limits: Limits): number {
  return sinceMs + Math.max(hasHold(limits) ? limits.ttlMs : 0, limits.settleMs);
}

/** When answers in flight are cut off after a signal. */
export function findAnswersEnd(terminatedAtMs: number, limits: Limits): number {
  return findWatchEnd(terminatedAtMs, limits) + Math.min(GRACE_WAIT_MS, limits.terminationGraceMs);
}

/** When main has run for too long; Infinity: never. An end that is being settled by then is waited for. */
export function findRunEnd({ aliveSinceMs }: Facts, { done }: Running, { runTimeoutMs, settleMs }: Limits): number {
  if (runTimeoutMs === 0 || aliveSinceMs === null) return Number.POSITIVE_INFINITY;
  const runEndMs = aliveSinceMs + runTimeoutMs;
  return done === null || done.sinceMs >= runEndMs ? runEndMs : Math.max(runEndMs, done.sinceMs + settleMs);
}

/** When START_TIMEOUT may decide from; null: it may not. */
function findStartEnd({ facts, phase }: WatchState, { startTimeoutMs }: Limits): number | null {
  const isWaiting = phase.kind === 'waiting' && !facts.wasAliveBefore;
  const isLimited = isWaiting && startTimeoutMs > 0 && !facts.isBlind && facts.terminatedAtMs === null;
  return isLimited ? facts.startedAtMs + startTimeoutMs : null;
}

/** The nearest hard limit that may decide next; null: none. `atMs`: the last read. */
function findNearestLimit({ facts, phase }: WatchState, atMs: number, limits: Limits): number | null {
  const ends: number[] = [];
  const { terminatedAtMs } = facts;
  const isWaiting = phase.kind === 'holding' && phase.scrapedAtMs !== null;
  if (terminatedAtMs !== null) {
    const graceEndMs = findWatchEnd(terminatedAtMs, limits);
    if (!isWaiting || graceEndMs > atMs) ends.push(graceEndMs);
    if (isWaiting) ends.push(findAnswersEnd(terminatedAtMs, limits));
  }
  if (phase.kind === 'running') ends.push(findRunEnd(facts, phase, limits));
  if (phase.kind !== 'holding' && phase.done !== null && (phase.kind === 'running' || facts.wasAliveBefore)) {
    // Where the end was seen and the exporter hangs since; a limit that is past decided nothing.
    const holdEndMs = findHoldEnd(phase.done, limits);
    if (holdEndMs > atMs) ends.push(holdEndMs);
  }
  if (phase.kind === 'holding') {
    const ttlEndMs = phase.mainEndedAtMs + limits.ttlMs;
    // Once the hold could end, answers in flight are waited for, beyond its limits where there is a front.
    if (phase.scrapedAtMs === null || ttlEndMs > atMs) ends.push(ttlEndMs);
    if (phase.scrapedAtMs !== null) ends.push(phase.scrapedAtMs + IN_FLIGHT_WAIT_MS);
  }
  const nearestMs = Math.min(...ends);
  return Number.isFinite(nearestMs) ? nearestMs : null;
}
