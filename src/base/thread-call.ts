// Calls that run on a thread of libuv, as those to file systems and name services do: nothing can end one that hangs. One at a
// time for each purpose, its late answer used where the next one hangs as well, and never so many that no thread is left.

/** libuv has four threads (its documentation, "Thread pool work scheduling"): one is left for what does not hang. */
export const PENDING_MAX_COUNT = 3;

/** What is known of a call when its caller has waited long enough. */
export type CallResult<Value> =
  | { readonly kind: 'returned'; readonly value: Value }
  /** It has not returned: out of time, ended by the signal, or not begun since too many others hang. */
  | { readonly kind: 'pending'; readonly why: string };

export type CallOptions = {
  readonly timeoutMs: number;
  /** Ends the wait; its reason is a string. */
  readonly signal?: AbortSignal | undefined;
};

/** Makes the call, or waits for the one that hangs since an earlier time. Never rejects. */
export type ThreadCall<Value> = (options: CallOptions) => Promise<CallResult<Value>>;

/** Calls of the whole process that nobody waits for any more, and that have not returned. */
let abandonedCount = 0;

/** Prepares a call that may hang; `begin` must not reject. */
export function prepareThreadCall<Value>(begin: () => Promise<Value>): ThreadCall<Value> {
  let begun: Promise<Value> | null = null;
  let waitingCount = 0;
  let isAbandoned = false;
  // What came while nobody waited is old by the time that somebody asks: it serves only where the call hangs again.
  let late: { readonly value: Value } | null = null;

  function beginCall(): Promise<Value> {
    const call = begin();
    call.then((value) => {
      if (waitingCount > 0) return;
      late = { value };
      begun = null;
    });
    return call;
  }
  function abandon(call: Promise<Value>): void {
    if (isAbandoned) return;
    isAbandoned = true;
    abandonedCount++;
    call.then(() => {
      isAbandoned = false;
      abandonedCount--;
    });
  }

  return async (options) => {
    if (begun === null && abandonedCount >= PENDING_MAX_COUNT) {
      return { kind: 'pending', why: `${abandonedCount} other calls hang` };
    }
    begun ??= beginCall();
    const call = begun;
    waitingCount++;
    const result = await waitFor(call, options);
    waitingCount--;
    if (result.kind === 'returned') {
      if (begun === call) begun = null;
      late = null;
      return result;
    }
    abandon(call);
    if (late === null) return result;
    const { value } = late;
    late = null;
    return { kind: 'returned', value };
  };
}

function waitFor<Value>(call: Promise<Value>, { timeoutMs, signal }: CallOptions): Promise<CallResult<Value>> {
  return new Promise((resolve) => {
    const end = (result: CallResult<Value>) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      resolve(result);
    };
    const onAbort = () => end({ kind: 'pending', why: String(signal?.reason) });
    const timer = setTimeout(() => end({ kind: 'pending', why: 'timed out' }), timeoutMs);
    signal?.addEventListener('abort', onAbort);
    call.then((value) => end({ kind: 'returned', value }));
    if (signal?.aborted) onAbort();
  });
}
