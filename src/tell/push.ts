// Pushes the last exposition: asks an encoder for requests, and sends them one after the other, each again while there is time.

import type { PushResult } from '../decide/state.ts';
import type { Label } from '../exposition/lexer.ts';
import type { Delivery } from './deliver.ts';
import { readFamilies } from './encode/families.ts';
import type { PushKind } from './encode/push-kind.ts';
import { sendInTries } from './tries.ts';

/** What hangs is tried again; then the whole of a large exposition, which a Pushgateway gets in one request, has all the time. */
const TIMEOUTS_MS: readonly number[] = [10_000, 30_000];
const PAUSES_MS: readonly number[] = [500, 1_000, 2_000, 4_000];

export type PushParts = {
  readonly kind: PushKind;
  readonly delivery: Delivery;
  readonly url: URL;
  readonly labels: readonly Label[];
  /** The exposition, from its start by each call. */
  readonly read: () => AsyncIterable<Uint8Array>;
  /** The time of the push, in milliseconds since the epoch: what was stored meanwhile must not be later. */
  readonly nowMs: number;
  /** Gives it up; its reason is a string. */
  readonly signal: AbortSignal;
  /** The last try is made at once. */
  readonly lastCall: AbortSignal;
  readonly onRetry: (why: string) => void;
  /** Between the tries of a request; others for tests. */
  readonly pausesMs?: readonly number[];
  /** Of the tries of a request; the same. */
  readonly timeoutsMs?: readonly number[];
};

/** Pushes it; never rejects. What is refused keeps no other request from being sent. */
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
  if (why === null && sentCount === 0) return { kind: 'failed', why: 'there was no sample in it' };
  if (why === null) return { kind: 'accepted', requestsCount: acceptedCount };
  return { kind: 'failed', why: acceptedCount === 0 ? why : `${why} (but ${acceptedCount} of its parts arrived)` };
}
