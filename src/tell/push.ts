// Pushes the last exposition: sends the requests of an encoder one after the other, each in as many tries as
// time allows.

import type { PushResult } from '../decide/state.ts';
import type { Label } from '../exposition/lexer.ts';
import type { Delivery } from './deliver.ts';
import { type PushKind, readFamilies } from './encode/push-kind.ts';
import { sendInTries } from './tries.ts';

/**
 * A first try that hangs is cut short; a later one may take long, as a Pushgateway gets a large exposition in
 * one request.
 */
const TIMEOUTS_MS: readonly number[] = [10_000, 30_000];
const PAUSES_MS: readonly number[] = [500, 1_000, 2_000, 4_000];

export type PushParts = {
  readonly kind: PushKind;
  readonly delivery: Delivery;
  readonly url: URL;
  readonly labels: readonly Label[];
  /** Reads the exposition from its start, with every call. */
  readonly read: () => AsyncIterable<Uint8Array>;
  /** Now, in milliseconds since the epoch: not earlier than what a scrape has stored meanwhile. */
  readonly nowMs: number;
  /** Aborts the push; its reason is a string. */
  readonly signal: AbortSignal;
  /** Ends the pause: the last try starts at once. */
  readonly lastCall: AbortSignal;
  readonly onRetry: (why: string) => void;
  /** Pauses between the tries of a request; tests set others. */
  readonly pausesMs?: readonly number[];
  /** Time limits of the tries of a request; tests set others. */
  readonly timeoutsMs?: readonly number[];
};

/** Pushes the exposition; never rejects. A refused request does not stop the next ones. */
export async function sendPush(parts: PushParts): Promise<PushResult> {
  const {
    kind,
    delivery,
    url,
    labels,
    read,
    nowMs,
    signal,
    lastCall,
    onRetry,
    pausesMs = PAUSES_MS,
    timeoutsMs = TIMEOUTS_MS,
  } = parts;
  let acceptedCount = 0;
  let sentCount = 0;
  let why: string | null = null;
  try {
    const families = () => readFamilies(read());
    for await (const request of kind.encode({ families, labels, url, nowMs })) {
      sentCount++;
      const { method, path, headers, body } = request;
      const result = await sendInTries(delivery, {
        makeRequest: () => ({ method, path, headers, body: body() }),
        judge: kind.judge,
        timeoutsMs,
        pausesMs,
        maxCount: Number.POSITIVE_INFINITY,
        signal,
        lastCall,
        onRetry,
      });
      if (result.kind === 'accepted') {
        acceptedCount++;
        continue;
      }
      why ??= result.why;
      if (!result.isRefused) break;
    }
  } catch (error) {
    why ??= `it cannot be encoded: ${error instanceof Error ? error.message : String(error)}`;
  }
  if (why === null && sentCount === 0) return { kind: 'failed', why: 'the exposition has no samples' };
  if (why === null) return { kind: 'accepted', requestsCount: acceptedCount };
  return { kind: 'failed', why: acceptedCount === 0 ? why : `${why} (accepted requests: ${acceptedCount})` };
}
