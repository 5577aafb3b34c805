// Lets only so much work run at once, and only so much of one client: the rest waits, and who has least of it
// comes first.

import { onAbort } from '../base/waits.ts';

type Waiting = { readonly client: string; readonly begin: () => void };

/** Opens it idle. How much runs at once: in all, and of one client. */
export function openTurns({ maxCount, ofOneMaxCount }: Readonly<Record<'maxCount' | 'ofOneMaxCount', number>>) {
  /** The client of each that runs. */
  const running: string[] = [];
  const waiting = new Set<Waiting>();
  const count = ({ client }: Waiting) => running.filter((each) => each === client).length;

  function beginNext(): void {
    // Not all are looked at: files of 10,000 pages may wait.
    if (running.length >= maxCount) return;
    let next: Waiting | undefined;
    for (let has = 0; has < ofOneMaxCount && !next; has++) next = waiting.values().find((each) => count(each) === has);
    if (next === undefined) return;
    waiting.delete(next);
    running.push(next.client);
    next.begin();
  }

  return {
    /** Runs work once it is its turn. Rejects as the work does, or if its client has gone before that. */
    async run<Value>(client: string, gone: AbortSignal | undefined, work: () => Promise<Value>): Promise<Value> {
      const { promise, resolve: begin, reject } = Promise.withResolvers<void>();
      const own: Waiting = { client, begin };
      waiting.add(own);
      const cancel = onAbort(gone, () => waiting.delete(own) && reject(gone?.reason));
      beginNext();
      await promise.finally(cancel);
      try {
        return await work();
      } finally {
        running.splice(running.indexOf(client), 1);
        // Not at once: of work that waits for nothing all would run before any other's next step.
        setImmediate(beginNext);
      }
    },
  };
}
