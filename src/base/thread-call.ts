// Calls to file systems and name services run on a thread of libuv, and nothing can end one that hangs. So
// each purpose has one at a time, whose late answer serves if the next one hangs as well, and the last thread
// is left to others.

import { type Limits, type WaitResult, waitFor } from './waits.ts';

/** libuv has four threads ("Thread pool work scheduling"): one is left for calls that do not hang. */
export const PENDING_MAX_COUNT = 3;

/** Makes the call, or waits for the earlier one that hangs. Never rejects; `pending` also if others hang. */
export type ThreadCall<Value> = (limits: Limits) => Promise<WaitResult<Value>>;

/** A healthy file system answers in milliseconds; a hung one must delay neither main's start nor the end. */
const WRITE_TIMEOUT_MS = 1_000;

/** Prepares work on a file to write. Returns why that cannot be written, or null; never rejects. */
export function prepareWriting(path: string, work: () => Promise<unknown>, timeoutMs = WRITE_TIMEOUT_MS) {
  const call = prepareThreadCall(() =>
    work().then(
      () => null,
      (error: NodeJS.ErrnoException) => `Cannot write ${path}: ${error.code}`,
    ),
  );
  return async (signal?: AbortSignal) => {
    const result = await call({ timeoutMs, signal });
    return result.kind === 'returned' ? result.value : `Cannot write ${path}: its file system does not answer`;
  };
}

/** Calls of the whole process whose wait has ended, and that have not returned. */
let abandonedCount = 0;

/** Prepares a call that may hang; `begin` must not reject. */
export function prepareThreadCall<Value>(begin: () => Promise<Value>): ThreadCall<Value> {
  let begun: { readonly call: Promise<Value>; isAbandoned: boolean } | null = null;
  let waitingCount = 0;
  // What came after the wait ended is old at the next call: it serves only where that one hangs as well.
  let late: { readonly value: Value } | null = null;

  function beginCall() {
    const own = { call: begin(), isAbandoned: false };
    own.call.then((value) => {
      begun = null;
      if (own.isAbandoned) abandonedCount--;
      if (waitingCount === 0) late = { value };
    });
    return own;
  }

  return async (limits) => {
    if (begun === null && abandonedCount >= PENDING_MAX_COUNT) {
      return { kind: 'pending', why: `${abandonedCount} other calls hang` };
    }
    begun ??= beginCall();
    const own = begun;
    waitingCount++;
    const result = await waitFor(own.call, limits);
    waitingCount--;
    const kept = late;
    late = null;
    if (result.kind === 'returned') return result;
    if (begun === own && !own.isAbandoned) {
      own.isAbandoned = true;
      abandonedCount++;
    }
    return kept === null ? result : { kind: 'returned', value: kept.value };
  };
}
