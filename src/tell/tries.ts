// Sends one request, again and again while that may help and time is left.

import { pause } from '../base/waits.ts';
import type { Delivery, DeliveryRequest, DeliveryResult } from './deliver.ts';
import type { AnswerEnd, PushJudgement } from './receivers/receiver.ts';

/** What a push and a webhook are sent by. */
export type Sending = Pick<Tries, 'signal' | 'lastCall' | 'onRetry'> & {
  readonly delivery: Delivery;
  readonly url: URL;
  /** Pauses between the tries and their time limits; only tests set them. */
  readonly pausesMs?: readonly number[];
  readonly timeoutsMs?: readonly number[];
};

export type Tries = {
  /** Makes the request of the next try: a stream can be sent only once. */
  readonly makeRequest: () => Omit<DeliveryRequest, 'timeoutMs' | 'signal' | 'onBody'>;
  /** `body` is the raw answer. */
  readonly judge: (status: number, body: string, end: AnswerEnd) => PushJudgement;
  /** Time limits of the first try, the second, and so on; the last one repeats. */
  readonly timeoutsMs: readonly number[];
  /** Pauses between tries, unless the answer asks for longer ones; the last one repeats. */
  readonly pausesMs: readonly number[];
  readonly maxCount: number;
  /** Aborts everything; its reason is a string. */
  readonly signal: AbortSignal;
  /** Comes a little earlier and ends the pause: only one more try fits in. */
  readonly lastCall: AbortSignal;
  /** Called when a try failed and another one follows. */
  readonly onRetry: (why: string) => void;
};

type TriesResult =
  | { readonly kind: 'accepted'; readonly status: number; readonly tries: number }
  /** `why` is about the newest try that was not aborted. */
  | { readonly kind: 'failed'; readonly why: string; readonly tries: number; readonly isRefused: boolean };

/** Sends the request until it is accepted or refused, or until the signal; never rejects. */
export async function sendInTries(delivery: Delivery, tries: Tries): Promise<TriesResult> {
  const { makeRequest, judge, timeoutsMs, pausesMs, maxCount, signal, lastCall } = tries;
  let why = 'no time was left';
  for (let count = 1; ; count++) {
    if (signal.aborted) return { kind: 'failed', why, tries: count - 1, isRefused: false };
    const isLast = lastCall.aborted;
    let body = '';
    const onBody = (text: string) => {
      body = text;
    };
    const result = await delivery.send({ ...makeRequest(), timeoutMs: pick(timeoutsMs, count), signal, onBody });
    const judgement = result.kind === 'answered' ? judge(result.status, body, result.end) : 'retry';
    if (result.kind === 'answered' && judgement === 'accepted') {
      return { kind: 'accepted', status: result.status, tries: count };
    }
    // An aborted try says less than the one before it.
    if (!signal.aborted || count === 1) why = describe(result);
    const isRefused = judgement === 'refused';
    if (isRefused || count === maxCount || signal.aborted) return { kind: 'failed', why, tries: count, isRefused };
    tries.onRetry(why);
    const pauseMs = pick(pausesMs, count);
    const askedMs = result.kind === 'answered' ? result.retryAfterMs : 0;
    // The last call ends one pause, the signal any.
    await pause(Math.max(pauseMs, askedMs), isLast ? [signal] : [signal, lastCall]);
  }
}

/** The entry for this try; beyond the list, the last one. */
function pick(eachMs: readonly number[], count: number): number {
  return eachMs[Math.min(count, eachMs.length) - 1] ?? 0;
}

const DOUBTS = { brokenOff: 'the answer broke off', unreadable: 'the answer is too long or compressed' } as const;

/** Describes a result that is not accepted. */
function describe(result: DeliveryResult): string {
  if (result.kind === 'failed') return result.why;
  const { status, text, retryAfterMs, end } = result;
  if (status >= 300 && status < 400) return `HTTP ${status}: it redirects, and no redirect is followed`;
  const asked = retryAfterMs === 0 ? '' : ` (not before ${Math.ceil(retryAfterMs / 1_000)} s)`;
  // A success whose answer is not known whole may still reject some of the points.
  const doubt = status >= 300 || end === 'whole' ? '' : `, but what was accepted is unknown: ${DOUBTS[end]}`;
  const head = `HTTP ${status}${asked}${doubt}`;
  return text === '' ? head : `${head}: ${text}`;
}
