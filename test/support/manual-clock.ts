// A clock that a test moves on by hand, beside real sockets: what has no time limit in reality has none here.

import type { Clock } from '../../src/base/clock.ts';

export type ManualClock = Clock & {
  /** Moves on, and calls back all that is due by then, in its order. */
  readonly advance: (ms: number) => void;
  readonly timerCount: number;
};

export function openManualClock(startMs = 1_000): ManualClock {
  let nowMs = startMs;
  let timers: { readonly atMs: number; readonly callback: () => void }[] = [];
  return {
    nowMs: () => nowMs,
    after(ms, callback) {
      const timer = { atMs: nowMs + ms, callback };
      timers.push(timer);
      return () => {
        timers = timers.filter((each) => each !== timer);
      };
    },
    advance(ms) {
      const endMs = nowMs + ms;
      for (;;) {
        const [next] = timers.filter(({ atMs }) => atMs <= endMs).toSorted((one, other) => one.atMs - other.atMs);
        if (next === undefined) break;
        timers = timers.filter((each) => each !== next);
        nowMs = Math.max(nowMs, next.atMs);
        next.callback();
      }
      nowMs = endMs;
    },
    get timerCount() {
      return timers.length;
    },
  };
}
