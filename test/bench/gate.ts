// Runs functions, at most `count` at a time.

export type Gate = <Result>(run: () => Promise<Result>) => Promise<Result>;

/** In the order of the calls; one that fails makes room as well. */
export function openGate(count: number): Gate {
  const waiting: (() => void)[] = [];
  let insideCount = 0;
  return async (run) => {
    if (insideCount >= count) await new Promise<void>((resolve) => waiting.push(resolve));
    else insideCount += 1;
    try {
      return await run();
    } finally {
      const next = waiting.shift();
      if (next === undefined) insideCount -= 1;
      else next();
    }
  };
}
