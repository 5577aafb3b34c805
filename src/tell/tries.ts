// One request, sent again while that may help and there is time.

import { pause } from '../base/waits.ts';
import type { Delivery, DeliveryRequest, DeliveryResult } from './deliver.ts';
import type { AnswerEnd, PushJudgement } from './encode/push-kind.ts';

/** How a request is tried. */
export type Tries = {
  /** `body` and headers anew for each try. */
  readonly makeRequest: () => Omit<DeliveryRequest, 'timeoutMs' | 'signal' | 'onBody'>;
  /** `body`: the answer as it came. */
  readonly judge: (status: number, body: string, end: AnswerEnd) => PushJudgement;
  /** Of each try; the last one again and again. */
  readonly timeoutsMs: readonly number[];
  /** Between a try and the next, unless the answer asks for more; the last one again and again, until `maxCount` is reached. */
  readonly pausesMs: readonly number[];
  readonly maxCount: number;
  /** Gives everything up; its reason is a string. */
  readonly signal: AbortSignal;
  /** Comes a little before that, and ends the pause: there is no time for a longer one. */
  readonly lastCall: AbortSignal;
  /** A try failed, and there is another one. */
  readonly onRetry: (why: string) => void;
};

export type TriesResult =
  | { readonly kind: 'accepted'; readonly status: number; readonly tries: number }
  /** `why`: of the newest try that was not given up. */
  | { readonly kind: 'failed'; readonly why: string; readonly tries: number; readonly isRefused: boolean };

/** Sends it until it is taken or refused, or until the signal; never rejects. */
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
    // What was given up for lack of time says less than what came before.
    if (!signal.aborted || count === 1) why = describe(result);
    const isRefused = judgement === 'refused';
    if (isRefused || count === maxCount || signal.aborted) return { kind: 'failed', why, tries: count, isRefused };
    tries.onRetry(why);
    const pauseMs = pick(pausesMs, count);
    const askedMs = result.kind === 'answered' ? result.retryAfterMs : 0;
    // Ends early at the signal, and before it for the last try.
    await pause(Math.max(pauseMs, askedMs), isLast ? [signal] : [signal, lastCall]);
  }
}

/** Of the first try, of the second, and so on. */
function pick(eachMs: readonly number[], count: number): number {
  return eachMs[Math.min(count, eachMs.length) - 1] ?? 0;
}

const DOUBTS = { brokenOff: 'the answer broke off', unreadable: 'the answer is too long, or packed' } as const;

/** The answer in its own words. */
function describe(result: DeliveryResult): string {
  if (result.kind === 'failed') return result.why;
  const { status, text, retryAfterMs, end } = result;
  if (status >= 300 && status < 400) return `HTTP ${status}: it redirects, and no redirect is followed`;
  const asked = retryAfterMs === 0 ? '' : ` (not before ${Math.ceil(retryAfterMs / 1_000)} s)`;
  // An acceptance that is none: it is not known what else it says.
  const doubt = status >= 300 || end === 'whole' ? '' : `, and it is not known what was accepted: ${DOUBTS[end]}`;
  const head = `HTTP ${status}${asked}${doubt}`;
  return text === '' ? head : `${head}: ${text}`;
}
