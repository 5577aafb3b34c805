// Time as a parameter, so that tests can run it at will.

export type Clock = {
  /** Monotonic. */
  readonly nowMs: () => number;
  /** Calls back once after `ms`; returns how to cancel that. */
  readonly after: (ms: number, callback: () => void) => () => void;
};

/** The longest span of a timer of Node is 2^31 - 1 ms; `openClock` adds one. */
const TIMER_MAX_MS = 2_147_483_646;

/** Opens a clock on the timers of Node; `nowMs` is monotonic. */
export function openClock({ nowMs }: Pick<Clock, 'nowMs'>): Clock {
  return {
    nowMs,
    after(ms, callback) {
      // A timer of Node may come up to 1 ms early: never before the limit.
      const timer = setTimeout(callback, Math.ceil(ms) + 1);
      return () => clearTimeout(timer);
    },
  };
}

/** The clock where no test needs another one. */
export const SYSTEM_CLOCK: Clock = openClock({ nowMs: () => performance.now() });

/** Like `clock.after`, for any span; a negative one is 0. */
export function callAfter(clock: Clock, ms: number, callback: () => void): () => void {
  let cancel = clock.after(Math.min(Math.max(0, ms), TIMER_MAX_MS), () => {
    if (ms <= TIMER_MAX_MS) callback();
    else cancel = callAfter(clock, ms - TIMER_MAX_MS, callback);
  });
  return () => cancel();
}

/** Two clocks do not drift further apart than this: the wall clock was set. */
const SET_BY_MS = 100;

/**
 * Converts instants of the monotonic clock into wall time, in whole ms since 1970. The same instant has the
 * same time until the wall clock is set; read without this, it would waver by a millisecond.
 */
export function openWallTime({
  nowMs,
  wallMs,
}: Pick<Clock, 'nowMs'> & { readonly wallMs: () => number }): (atMs: number) => number {
  let apartMs = wallMs() - nowMs();
  return (atMs) => {
    const foundMs = wallMs() - nowMs();
    if (Math.abs(foundMs - apartMs) > SET_BY_MS) apartMs = foundMs;
    return Math.round(apartMs + atMs);
  };
}
