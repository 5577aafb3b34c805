// Pushes the last exposition: the requests of an encoder in turn, each in as many tries as time allows.

import type { PushResult } from '../decide/state.ts';
import type { Format } from '../exposition/format.ts';
import type { Label } from '../exposition/lexer.ts';
import { readFamilies } from '../snapshot/body.ts';
import { type Sending, sendInTries } from './deliver.ts';
import type { PushKind } from './receivers/receiver.ts';

/** A first try that hangs is cut short; a later one may take long: a Pushgateway gets all in one request. */
const TIMEOUTS_MS: readonly number[] = [10_000, 30_000];
const PAUSES_MS: readonly number[] = [500, 1_000, 2_000, 4_000];
/** Prometheus: "out of order sample"; Mimir: "out-of-order samples are not allowed". */
const OUT_OF_ORDER = /out.of.order/i;

export type PushParts = Sending & {
  readonly kind: PushKind;
  readonly labels: readonly Label[];
  /** Of the exposition; protobuf is not read. */
  readonly format: Format;
  /** Reads the exposition from its start, with every call. */
  readonly read: () => AsyncIterable<Uint8Array>;
  /** Now, in milliseconds since the epoch: not earlier than what a scrape has stored meanwhile. */
  readonly nowMs: () => number;
};

/** Pushes the exposition; never rejects. A refused request does not stop the next ones. */
export async function sendPush(parts: PushParts): Promise<PushResult> {
  const { kind, url, labels, read, format, nowMs, ...sending } = parts;
  let acceptedCount = 0;
  let sentCount = 0;
  let why: string | null = null;
  let isSecondChance = false;
  try {
    const families = () => readFamilies(read(), format);
    for await (const request of kind.encode({ families, labels, url })) {
      sentCount++;
      const result = await sendInTries({
        makeRequest: () => ({ ...request, body: request.body(nowMs()) }),
        judge(...answer) {
          const judgement = kind.judge(...answer);
          // A scrape that failed during the try may have stored a later time. Where a new one does not help
          // either, the next requests get none.
          if (judgement !== 'refused' || isSecondChance || !OUT_OF_ORDER.test(answer[1])) return judgement;
          isSecondChance = true;
          return 'retry';
        },
        timeoutsMs: TIMEOUTS_MS,
        pausesMs: PAUSES_MS,
        maxCount: Number.POSITIVE_INFINITY,
        ...sending,
      });
      if (result.kind === 'accepted') {
        acceptedCount++;
        isSecondChance = false;
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
