// A kind of receiver: how an exposition becomes requests, and what an answer means. Sends nothing.
// One file for each kind, and a row in kinds.ts.

import type { Label } from '../../exposition/lexer.ts';
import type { Family } from '../../exposition/samples.ts';

/** One HTTP request of a push. May be sent more than once, and does not depend on the other requests. */
export type PushRequest = {
  readonly method: 'POST' | 'PUT';
  /** Path and query. */
  readonly path: string;
  /** Headers of the encoding; the sender adds others. */
  readonly headers: Readonly<Record<string, string>>;
  /** Made again by each call; streamed if it may be long. */
  readonly body: () => AsyncIterable<Uint8Array> | Uint8Array;
};

/** What is pushed. */
export type PushParts = {
  /** Reads the exposition from its start, with every call (`readFamilies`). */
  readonly families: () => AsyncGenerator<Family>;
  /** Labels of every series, `job` and `instance` among them if known; each name once. */
  readonly labels: readonly Label[];
  /** As configured, without the kind. */
  readonly url: URL;
  /**
   * The time of samples without a timestamp, in milliseconds since the epoch. The time of the push, not of
   * the read: a whole request is refused ("out of order") if a scrape has stored anything later in one of its
   * series, even only that it went stale.
   */
  readonly nowMs: number;
  /** Of lastscrape. */
};

/**
 * `retry`: the same request may be accepted later. `refused`: it never will be, and the receiver says why.
 */
export type PushJudgement = 'accepted' | 'retry' | 'refused';

/**
 * How much of an answer was read: all of it, what came before it broke off, or only a part because it is too
 * long or compressed.
 */
export type AnswerEnd = 'whole' | 'brokenOff' | 'unreadable';

export type PushKind = {
  /** As it stands before the `+` of LASTSCRAPE_PUSH. */
  readonly name: 'pushgateway' | 'remote-write' | 'otlp';
  /** Path and query of the requests, for the labels of the push; also shown by `--check`. */
  readonly findPath: (url: URL, labels: readonly Label[]) => string;
  /** Yields the requests in the order to send them, each made when needed. @throws as `families` does. */
  readonly encode: (parts: PushParts) => AsyncGenerator<PushRequest>;
  /** Judges an answer; `text` is its body, as far as it was read. */
  readonly judge: (status: number, text: string, end: AnswerEnd) => PushJudgement;
};

/**
 * Judges an answer by its status alone: trouble of the receiver may pass, trouble of the request does not.
 */
export function judgeStatus(status: number): PushJudgement {
  if (status >= 200 && status < 300) return 'accepted';
  return status >= 500 || status === 408 || status === 429 ? 'retry' : 'refused';
}
