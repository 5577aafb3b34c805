// Pushes the last exposition: the requests of an encoder in turn, each in as many tries as time allows.

import type { PushResult } from '../decide/state.ts';
import type { Label } from '../exposition/lexer.ts';
import { type PushKind, readFamilies } from './receivers/receiver.ts';
import { type Sending, sendInTries } from './tries.ts';

/** A first try that hangs is cut short; a later one may take long: a Pushgateway gets all in one request. */
const TIMEOUTS_MS: readonly number[] = [10_000, 30_000];
const PAUSES_MS: readonly number[] = [500, 1_000, 2_000, 4_000];

export type PushParts = Sending & {
  readonly kind: PushKind;
  readonly labels: readonly Label[];
  /** Reads the exposition from its start, with every call. */
  readonly read: () => AsyncIterable<Uint8Array>;
  /** Now, in milliseconds since the epoch: not earlier than what a scrape has stored meanwhile. */
  readonly nowMs: number;
};

/** Pushes the exposition; never rejects. A refused request does not stop the next ones. */
export async function sendPush(parts: PushParts): Promise<PushResult> {
  const { kind, delivery, url, labels, read, nowMs, ...sending } = parts;
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
        timeoutsMs: TIMEOUTS_MS,
        pausesMs: PAUSES_MS,
        maxCount: Number.POSITIVE_INFINITY,
        ...sending,
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
