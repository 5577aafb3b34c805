// Lets only so much work run at once, and only so much of one client: the rest waits in order.

/** How much at once: in all, and of one client. */
type TurnLimits = { readonly maxCount: number; readonly ofOneMaxCount: number };

type Waiting = { readonly client: string; readonly begin: () => void };

/** Opens it idle. */
export function openTurns({ maxCount, ofOneMaxCount }: TurnLimits) {
  const running = new Map<string, number>();
  const waiting: Waiting[] = [];
  let runningCount = 0;

  function change(client: string, by: 1 | -1): void {
    const count = (running.get(client) ?? 0) + by;
    runningCount += by;
    if (count === 0) running.delete(client);
    else running.set(client, count);
  }
  function beginNext(): void {
    if (runningCount >= maxCount) return;
    const index = waiting.findIndex(({ client }) => (running.get(client) ?? 0) < ofOneMaxCount);
    const [next] = index < 0 ? [] : waiting.splice(index, 1);
    if (next === undefined) return;
    change(next.client, 1);
    next.begin();
  }

  return {
    /** Runs work once it is its turn. Rejects as the work does. */
    async run<Value>(client: string, work: () => Promise<Value>): Promise<Value> {
      await new Promise<void>((begin) => {
        waiting.push({ client, begin });
        beginNext();
      });
      try {
        return await work();
      } finally {
        change(client, -1);
        beginNext();
      }
    },
  };
}
