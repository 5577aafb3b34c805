// Waits for what sends no event (a port, an answer of Prometheus) by asking again.
import { setTimeout as delay } from 'node:timers/promises';

/** Between two questions; only costs CPU, no test depends on it. */
const PAUSE_MS = 100;

/** Asks until `ask` returns something. @throws after `withinMs`, with the error of the last question */
export async function until<Found>(
  what: string,
  withinMs: number,
  ask: () => Promise<Found | undefined>,
): Promise<Found> {
  const endAtMs = performance.now() + withinMs;
  for (;;) {
    let cause: unknown;
    try {
      const found = await ask();
      if (found !== undefined) return found;
    } catch (error) {
      cause = error;
    }
    if (performance.now() > endAtMs) throw new Error(`Cannot see ${what}: not so after ${withinMs} ms`, { cause });
    await delay(PAUSE_MS);
  }
}

/** What is read, once it is what is wanted, or after `withinMs`. */
export async function readSettled<Found>(wanted: Found, withinMs: number, read: () => Promise<Found>): Promise<Found> {
  await until(`${wanted}`, withinMs, async () => (await read()) === wanted || undefined).catch(() => {});
  return read();
}
