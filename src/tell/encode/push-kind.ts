// What a receiver of pushes is asked: requests that carry an exposition, and what an answer means.
// One file for each kind, and one row in kinds.ts; who sends the requests, and when, is not known here.

import type { Label } from '../../exposition/lexer.ts';
import type { Family } from '../../exposition/samples.ts';

/** One HTTP request of a push. It may be sent more than once: each carries its own part, whatever became of the others. */
export type PushRequest = {
  readonly method: 'POST' | 'PUT';
  /** Path and query. */
  readonly path: string;
  /** What the encoding needs; who sends it adds its own. */
  readonly headers: Readonly<Record<string, string>>;
  /** Made anew by each call; streamed where it may be long. */
  readonly body: () => AsyncIterable<Uint8Array> | Uint8Array;
};

/** What is pushed. */
export type PushParts = {
  /** The exposition, from its start by each call (`readFamilies`). */
  readonly families: () => AsyncGenerator<Family>;
  /** Of every series, `job` and `instance` among them where they are known; each name once. */
  readonly labels: readonly Label[];
  /** As it was given, without its kind. */
  readonly url: URL;
  /**
   * The time of samples that have none of their own, in milliseconds since the epoch. That of the push, not of the reading: a request is
   * refused as a whole where a scrape has stored something later of one of its series, be it only that it went stale ("out of order").
   */
  readonly nowMs: number;
  /** Of lastscrape. */
};

/** `retry`: the same request may be taken later. `refused`: it never will, and the receiver says why. */
export type PushJudgement = 'accepted' | 'retry' | 'refused';

/**
 * How much of an answer is there: all of it, what came before it broke off or was given up, or not all that came since it is too long
 * or packed.
 */
export type AnswerEnd = 'whole' | 'brokenOff' | 'unreadable';

export type PushKind = {
  /** As it stands before the `+` of LASTSCRAPE_PUSH. */
  readonly name: 'pushgateway' | 'remote-write' | 'otlp';
  /** The path and query that the requests go to, where `labels` are those of the push; what `--check` shows. */
  readonly findPath: (url: URL, labels: readonly Label[]) => string;
  /** The requests in the order in which they are to be sent, each made when it is asked for. @throws as `families` does. */
  readonly encode: (parts: PushParts) => AsyncGenerator<PushRequest>;
  /** What an answer means; `text` is its body, as far as it came. */
  readonly judge: (status: number, text: string, end: AnswerEnd) => PushJudgement;
};

/** What an answer means by its status alone: what is the receiver's trouble passes, what is the request's stays. */
export function judgeStatus(status: number): PushJudgement {
  if (status >= 200 && status < 300) return 'accepted';
  return status >= 500 || status === 408 || status === 429 ? 'retry' : 'refused';
}
