// A clock that a test moves, by hand or from timer to timer: hours take milliseconds.

import type { Clock } from '../../src/base/waits.ts';

type Timer = { readonly atMs: number; readonly callback: () => void };

export class VirtualClock implements Clock {
  #nowMs: number;
  #timers: Timer[] = [];

  constructor(startMs = 0) {
    this.#nowMs = startMs;
  }

  readonly nowMs = () => this.#nowMs;

  readonly after = (ms: number, callback: () => void) => {
    const timer = { atMs: this.#nowMs + ms, callback };
    this.#timers.push(timer);
    return () => this.#remove(timer);
  };

  get timerCount(): number {
    return this.#timers.length;
  }

  /** Passes the time without running timers: they fire late, as after a frozen process. */
  standStill(ms: number): void {
    this.#nowMs += ms;
  }

  /** Passes the time and runs the timers due by then, in order. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (let next = this.#findNext(); next !== undefined && next.atMs <= endMs; next = this.#findNext())
      this.#fire(next);
    this.#nowMs = endMs;
  }

  /** Jumps from timer to timer until `done` settles. */
  async run<Value>(done: Promise<Value>): Promise<Value> {
    let isDone = false;
    const settled = done.finally(() => {
      isDone = true;
    });
    settled.catch(() => {});
    for (let turns = 0; !isDone; turns++) {
      if (turns > 100_000) throw new Error('Bug: the loop does not end');
      // What needs no time is over within a few turns of the event loop.
      await new Promise((resolve) => setImmediate(resolve));
      const next = this.#findNext();
      if (!isDone && next !== undefined) this.#fire(next);
    }
    return settled;
  }

  #findNext(): Timer | undefined {
    return this.#timers.toSorted((one, other) => one.atMs - other.atMs)[0];
  }

  #fire(timer: Timer): void {
    this.#remove(timer);
    this.#nowMs = Math.max(this.#nowMs, timer.atMs);
    timer.callback();
  }

  #remove(timer: Timer): void {
    this.#timers = this.#timers.filter((other) => other !== timer);
  }
}
