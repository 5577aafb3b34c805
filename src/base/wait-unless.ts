// A wait that ends: for work, or for a signal or a time limit that comes first. The work itself goes on; nobody waits for it then.

/** The value of the work; null where `signal` or `timeoutMs` (default: none) came first. Rejects as the work does. */
export function waitUnless<Value>(
  work: Promise<Value>,
  signal: AbortSignal,
  timeoutMs?: number,
): Promise<Value | null> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
    };
    const giveUp = () => {
      end();
      resolve(null);
    };
    const timer = timeoutMs === undefined ? undefined : setTimeout(giveUp, timeoutMs);
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp);
    work.then(resolve, reject).finally(end);
  });
}
