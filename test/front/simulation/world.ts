// Virtual time for a whole process and what is around it. The process may stand still: its timers are late,
// and what its kernel has for it waits.

import type { Clock } from '../../../src/base/waits.ts';
import { openRandom as openIntegers } from '../../support/random.ts';

type Due = { readonly atMs: number; readonly isOwn: boolean; readonly callback: () => void };

const realImmediate = globalThis.setImmediate;
/** Runs all microtasks now, from a turn of its own: setImmediate takes thirty times as long. */
const { _tickCallback: runMicrotasks } = process as unknown as { readonly _tickCallback: () => void };

/** More turns than any run needs. */
const TURNS_MAX_COUNT = 20_000;

/** Of the wall clock, when a run begins, since 1970. */
export const START_SECONDS = 1_800_000_000;

export type Random = ReturnType<typeof openRandom>;

export function openRandom(seed: number) {
  const draw = openIntegers(Math.imul(seed + 1, 0x9e3779b1));
  const next = () => draw(2 ** 32) / 2 ** 32;
  return {
    chance: (probability: number) => next() < probability,
    /** A whole number from `low` to `high`. */
    between: (low: number, high: number) => low + Math.floor(next() * (high - low + 1)),
    pick: <Value>(values: readonly Value[]): Value => values[Math.floor(next() * values.length)] as Value,
  };
}

export class World implements Clock {
  #nowMs = 0;
  #wakesAtMs: number | null = null;
  #isNodeStill = false;
  #due: Due[] = [];
  #inbox: (() => void)[] = [];
  #immediates: (() => void)[] = [];
  /** What happened, for a person; null: not asked for. */
  readonly story: string[] | null;

  constructor(isTold: boolean) {
    this.story = isTold ? [] : null;
  }

  readonly nowMs = () => this.#nowMs;

  /** What is sent now is lost. */
  isCutOff(): boolean {
    return this.#wakesAtMs !== null && this.#isNodeStill;
  }

  /** A timer of the process; one of Node comes up to 1 ms late. */
  readonly after = (ms: number, callback: () => void) => this.#add(this.#nowMs + Math.ceil(ms) + 1, true, callback);

  /** `text` is asked for only where the story is told. */
  tell(text: () => string): void {
    this.story?.push(`${(this.#nowMs / 1000).toFixed(3).padStart(8)}s  ${text()}`);
  }

  /** What happens around the process, whether it runs or not. */
  outside(atMs: number, callback: () => void): () => void {
    return this.#add(Math.max(atMs, this.#nowMs), false, callback);
  }

  /** What the kernel has for the process. */
  deliver(callback: () => void): void {
    this.#inbox.push(callback);
  }

  /** Stops the process, or its whole node, for this long. */
  standStill(ms: number, isOfNode: boolean): void {
    this.tell(() => `${isOfNode ? 'its node ' : ''}stands still for ${ms} ms`);
    this.#isNodeStill = isOfNode;
    this.#wakesAtMs = Math.max(this.#wakesAtMs ?? 0, this.#nowMs + ms);
  }

  /** Jumps from event to event until `begin` settles. */
  run<Value>(begin: () => Promise<Value>): Promise<Value> {
    const { promise, resolve } = Promise.withResolvers<Value>();
    realImmediate(() => resolve(this.#runNow(begin)));
    return promise;
  }

  #runNow<Value>(begin: () => Promise<Value>): Promise<Value> {
    globalThis.setImmediate = ((callback: () => void) => {
      this.#immediates.push(callback);
    }) as unknown as typeof setImmediate;
    try {
      let isDone = false;
      const end = () => {
        isDone = true;
      };
      const done = begin();
      done.then(end, end);
      for (let turns = 0; !isDone; turns++) {
        if (turns > TURNS_MAX_COUNT) throw new Error('Bug: the run does not end');
        this.#settle();
        if (!isDone) this.#step();
      }
      return done;
    } finally {
      globalThis.setImmediate = realImmediate;
    }
  }

  /** All that needs no time: what the kernel has, then immediates, as a turn of libuv. */
  #settle(): void {
    runMicrotasks();
    while (this.#wakesAtMs === null) {
      const next = this.#inbox.shift();
      if (next !== undefined) {
        next();
        runMicrotasks();
        continue;
      }
      const immediates = this.#immediates;
      if (immediates.length === 0) return;
      this.#immediates = [];
      for (const immediate of immediates) {
        immediate();
        runMicrotasks();
      }
    }
  }

  #step(): void {
    const wakesAtMs = this.#wakesAtMs;
    const index = this.#due.findIndex(({ isOwn }) => wakesAtMs === null || !isOwn);
    const next = this.#due[index];
    if (wakesAtMs === null || (next !== undefined && next.atMs <= wakesAtMs)) {
      if (next === undefined) throw new Error('Bug: nothing will ever happen again');
      this.#due.splice(index, 1);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.callback();
      return;
    }
    this.#nowMs = wakesAtMs;
    this.#wakesAtMs = null;
    this.tell(() => 'goes on');
    // libuv runs the timers that are due before it looks what the kernel has.
    for (;;) {
      const late = this.#due.findIndex(({ isOwn, atMs }) => isOwn && atMs <= this.#nowMs);
      if (late < 0) return;
      const [timer] = this.#due.splice(late, 1);
      timer?.callback();
      runMicrotasks();
    }
  }

  #add(atMs: number, isOwn: boolean, callback: () => void): () => void {
    const due: Due = { atMs, isOwn, callback };
    let at = this.#due.length;
    while (at > 0 && (this.#due[at - 1] as Due).atMs > atMs) at--;
    this.#due.splice(at, 0, due);
    return () => {
      const index = this.#due.indexOf(due);
      if (index >= 0) this.#due.splice(index, 1);
    };
  }
}
