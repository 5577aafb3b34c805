// A clock that jumps to its next timer whenever everything waits, so that a test of hours takes milliseconds.

import type { Clock } from '../../src/base/clock.ts';

export class VirtualClock implements Clock {
  #nowMs = 0;
  #timers: { atMs: number; callback: () => void }[] = [];
  readonly nowMs = () => this.#nowMs;
  readonly after = (ms: number, callback: () => void) => {
    const timer = { atMs: this.#nowMs + ms, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  };
  get timerCount() {
    return this.#timers.length;
  }
  /** The process stands still for so long: what is due meanwhile comes late. */
  standStill(ms: number): void {
    this.#nowMs += ms;
  }
  /** Runs until `done` settles. */
  async run<Value>(done: Promise<Value>): Promise<Value> {
    let isDone = false;
    const settled = done.finally(() => {
      isDone = true;
    });
    settled.catch(() => {});
    for (let turns = 0; !isDone; turns++) {
      if (turns > 100_000) throw new Error('the loop does not end');
      // Everything that can go on without time does so within a few turns of the event loop.
      await new Promise((resolve) => setImmediate(resolve));
      const next = this.#timers.toSorted((one, other) => one.atMs - other.atMs)[0];
      if (isDone || next === undefined) continue;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.callback();
    }
    return settled;
  }
}
