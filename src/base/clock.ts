// Time as the loop and the observations see it: a parameter, so that tests can run it at will.

export type Clock = {
  /** Monotonic. */
  readonly nowMs: () => number;
  /** Calls back once after `ms`; returns how to cancel that. */
  readonly after: (ms: number, callback: () => void) => () => void;
};

/** Longest span that a timer of Node takes is 2^31 - 1 ms; `openClock` in run/host.ts adds one. */
const TIMER_MAX_MS = 2_147_483_646;

/** Like `clock.after`, for any span; a negative one is 0. */
export function callAfter(clock: Clock, ms: number, callback: () => void): () => void {
  let cancel = clock.after(Math.min(Math.max(0, ms), TIMER_MAX_MS), () => {
    if (ms <= TIMER_MAX_MS) callback();
    else cancel = callAfter(clock, ms - TIMER_MAX_MS, callback);
  });
  return () => cancel();
}

/** Further apart than this the two clocks do not drift by themselves: the wall clock was set. */
const SET_BY_MS = 100;

/**
 * Tells the time of day, in whole ms since 1970, of an instant of the monotonic clock. An instant keeps its time until somebody sets the
 * wall clock. Without that it would waver by a millisecond, since the two clocks are read one after the other.
 */
export function openWallTime({ nowMs, wallMs }: WallClock): (atMs: number) => number {
  let apartMs = wallMs() - nowMs();
  return (atMs) => {
    const foundMs = wallMs() - nowMs();
    if (Math.abs(foundMs - apartMs) > SET_BY_MS) apartMs = foundMs;
    return Math.round(apartMs + atMs);
  };
}

type WallClock = {
  /** Monotonic. */
  readonly nowMs: () => number;
  /** Since 1970, UTC. */
  readonly wallMs: () => number;
};
