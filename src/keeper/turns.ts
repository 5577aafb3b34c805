// Lets only so much work run at once, and only so much of one client: the rest waits, and who has least of it
// comes first.

import { onAbort } from '../base/waits.ts';

/** How much at once: in all, and of one client. */
type TurnLimits = { readonly maxCount: number; readonly ofOneMaxCount: number };

type Waiting = { readonly client: string; readonly begin: () => void };

/** Opens it idle. */
export function openTurns({ maxCount, ofOneMaxCount }: TurnLimits) {
  const running = new Map<string, number>();
  const waiting = new Set<Waiting>();
  let runningCount = 0;
  const count = (client: string) => running.get(client) ?? 0;

  function change(client: string, by: 1 | -1): void {
    runningCount += by;
    running.set(client, count(client) + by);
    if (count(client) === 0) running.delete(client);
  }
  function beginNext(): void {
    let next: Waiting | null = null;
    for (const each of waiting) if (next === null || count(each.client) < count(next.client)) next = each;
    if (next === null || runningCount >= maxCount || count(next.client) >= ofOneMaxCount) return;
    waiting.delete(next);
    change(next.client, 1);
    next.begin();
  }

  return {
    /** Runs work once it is its turn. Rejects as the work does, or if its client has gone before that. */
    async run<Value>(client: string, gone: AbortSignal, work: () => Promise<Value>): Promise<Value> {
      const { promise, resolve: begin, reject } = Promise.withResolvers<void>();
      const own: Waiting = { client, begin };
      waiting.add(own);
      const cancel = onAbort(gone, () => waiting.delete(own) && reject(gone.reason));
      beginNext();
      await promise.finally(cancel);
      try {
        return await work();
      } finally {
        change(client, -1);
        beginNext();
      }
    },
  };
}
