// Every way to wait: for work or an event, until a time limit or a signal comes first. Only the wait ends
// then, not the work.

import { type Clock, callAfter, SYSTEM_CLOCK } from './clock.ts';

/** What ends a wait early. */
export type Limits = {
  /** Absent: no time limit. */
  readonly timeoutMs?: number | undefined;
  /** Its reason is a string. */
  readonly signal?: AbortSignal | undefined;
  /** Default: the timers of Node. */
  readonly clock?: Clock;
};

/** What a wait for work showed. */
export type WaitResult<Value> =
  | { readonly kind: 'returned'; readonly value: Value }
  /** A limit came first; `why` is `timed out` or the signal's reason. */
  | { readonly kind: 'pending'; readonly why: string };

/** Calls back when the signal is aborted, at once if it already is. @returns how to cancel */
export function onAbort(signal: AbortSignal | null | undefined, callback: () => void): () => void {
  if (signal?.aborted) callback();
  else signal?.addEventListener('abort', callback);
  return () => signal?.removeEventListener('abort', callback);
}

/** Calls back at the first of the limits, at once if the signal was aborted before. @returns how to cancel */
export function onLimit(limits: Limits, callback: (why: string) => void): () => void {
  const { timeoutMs, signal, clock = SYSTEM_CLOCK } = limits;
  // Before a timer is started: the callback cannot cancel it yet.
  if (signal?.aborted) {
    callback(String(signal.reason));
    return () => {};
  }
  const cancelTimer = timeoutMs === undefined ? () => {} : callAfter(clock, timeoutMs, () => callback('timed out'));
  const cancelAbort = onAbort(signal, () => callback(String(signal?.reason)));
  return () => {
    cancelTimer();
    cancelAbort();
  };
}

/** Waits until `begin` calls `end` or `fail`; at the first of the limits the value is what `late` gives. */
export async function waitWithin<Value>(
  limits: Limits,
  late: (why: string) => Value,
  begin: (end: (value: Value) => void, fail: (error: unknown) => void) => void,
): Promise<Value> {
  const { promise, resolve, reject } = Promise.withResolvers<Value>();
  const cancel = onLimit(limits, (why) => resolve(late(why)));
  begin(resolve, reject);
  return promise.finally(cancel);
}

/** Waits for work, which the limits do not end. Rejects as the work does. */
export function waitFor<Value>(work: Promise<Value>, limits: Limits): Promise<WaitResult<Value>> {
  return waitWithin<WaitResult<Value>>(
    limits,
    (why) => ({ kind: 'pending', why }),
    (end, fail) => void work.then((value) => end({ kind: 'returned', value }), fail),
  );
}

/** The value of the work; null if a limit came first. Rejects as the work does. */
export async function waitUnless<Value>(work: Promise<Value>, limits: Limits): Promise<Value | null> {
  const result = await waitFor(work, limits);
  return result.kind === 'returned' ? result.value : null;
}

/** Runs work that watches `limit`, which is aborted at the first of the limits; its reason is a string. */
export async function runWithin<Value>(limits: Limits, work: (limit: AbortSignal) => Promise<Value>): Promise<Value> {
  const limit = new AbortController();
  const cancel = onLimit(limits, (why) => limit.abort(why));
  try {
    return await work(limit.signal);
  } finally {
    cancel();
  }
}

/** Waits for this long, until one of the signals, or until `listen` calls back. Never rejects. */
export async function pause(
  timeoutMs: number,
  signals: readonly AbortSignal[] = [],
  { clock = SYSTEM_CLOCK, listen }: Pick<Limits, 'clock'> & { listen?: (end: () => void) => () => void } = {},
): Promise<void> {
  const cancels: (() => void)[] = [];
  await waitWithin<void>(
    { timeoutMs, clock },
    () => {},
    (end) => {
      for (const signal of signals) cancels.push(onAbort(signal, end));
      if (listen !== undefined) cancels.push(listen(end));
    },
  );
  for (const cancel of cancels) cancel();
}
