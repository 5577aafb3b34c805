// Time as a parameter, so that tests can run it at will; and every way to wait: for work or an event, until a
// time limit or a signal comes first. Only the wait ends then, not the work.

/**
 * Time as a part is handed it.
 *
 *     const cancel = clock.after(500, () => retry(clock.nowMs()));
 */
export type Clock = {
  /** Monotonic. */
  readonly nowMs: () => number;
  /** Calls back once after `ms`, of a timer's span at most; returns how to cancel that. */
  readonly after: (ms: number, callback: () => void) => () => void;
};

/** The longest span of a timer of Node is 2^31 - 1 ms; `openClock` adds one. */
const TIMER_MAX_MS = 2_147_483_646;

/** Opens a clock on the timers of Node. */
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
  const { promise, resolve: end } = Promise.withResolvers<void>();
  const cancels = [callAfter(clock, timeoutMs, end), ...signals.map((signal) => onAbort(signal, end)), listen?.(end)];
  await promise;
  for (const cancel of cancels) cancel?.();
}
