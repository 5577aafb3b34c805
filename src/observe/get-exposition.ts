// Fetches an exposition: one GET at a time over one kept connection, its body handed on as it comes. Never
// says what it means.

import { type ExchangeResult, openExchange, type Request } from '../base/net/exchange.ts';
import { USER_AGENT } from '../base/version.ts';
import type { Limits } from '../base/waits.ts';
import { BODY_MAX_BYTES, type Exposition, openExposition, type Selector } from '../exposition/exposition.ts';

/** What is fetched: for `metricNames` of the conditions, and `selectors` of what is judged. */
export type GetterParts = {
  readonly url: URL;
  readonly metricNames: readonly string[];
  readonly selectors?: readonly Selector[];
  /** Reject other types than the text format, and send a request again that was dropped. */
  readonly isForServing: boolean;
  /** How the program is asked. Default: over HTTP. */
  readonly open?: typeof openExchange;
};

/** Takes an answer as it comes. */
export type ExpositionSink = {
  /** The answer has begun; null: its body follows, else why it cannot be used. */
  readonly begin?: (problem: string | null) => void;
  readonly write?: (piece: Uint8Array) => void;
};

/**
 * How a fetch ended. `isCut`: within a line; `mayBeCut`: it ended with its connection; `mayCount`: the program
 * may have counted it as a scrape.
 */
export type ExpositionResult =
  | { readonly kind: 'answered'; readonly exposition: Exposition; readonly isCut: boolean; readonly mayBeCut: boolean }
  | { readonly kind: 'refused' }
  | { readonly kind: 'failed'; readonly why: string; readonly mayCount: boolean };

/** Fetches from one program. */
export type ExpositionGetter = {
  /** Never rejects. */
  readonly get: (limits: Limits, sink?: ExpositionSink) => Promise<ExpositionResult>;
  readonly close: () => Promise<void>;
};

const LINE_FEED = 0x0a;

/** Always the text format, and no Accept-Encoding. */
const HEADERS: Readonly<Record<string, string>> = { accept: 'text/plain;version=0.0.4', 'user-agent': USER_AGENT };

/** Opens a getter; connects at the first fetch. */
export function openExpositionGetter(parts: GetterParts): ExpositionGetter {
  const { url, metricNames, selectors, isForServing, open = openExchange } = parts;
  const exchange = open(url);
  return {
    close: exchange.close,
    async get(limits, sink) {
      const exposition = openExposition(metricNames, selectors);
      let problem: string | null = null;
      let hasEnd = true;
      let lastByte: number | undefined;
      let sizeBytes = 0;
      const request: Request = {
        ...limits,
        method: 'GET',
        path: url.pathname + url.search,
        headers: HEADERS,
        onAnswer(status, headers) {
          hasEnd = 'content-length' in headers || 'transfer-encoding' in headers;
          problem = status === 200 ? findProblem(headers, isForServing) : `HTTP ${status}`;
          sink?.begin?.(problem);
        },
        onBody(piece) {
          sizeBytes += piece.length;
          lastByte = piece.at(-1) ?? lastByte;
          if (sizeBytes > BODY_MAX_BYTES) return false;
          // An unusable body is read to its end, so that the connection can be kept.
          if (problem !== null) return true;
          exposition.write(piece);
          sink?.write?.(piece);
          return true;
        },
      };
      let result = await exchange.send(request);
      // A kept connection may end in the instant of its use (RFC 9112, 9.3.1): Go's client retries too.
      if (isForServing && result.kind === 'dropped') result = await exchange.send(request);
      if (result.kind !== 'answered' || problem !== null) return describeFailure(result, problem);
      // The end of the connection is also that of a program that was killed.
      const isCut = !hasEnd && lastByte !== LINE_FEED;
      return { kind: 'answered', exposition: exposition.end(), isCut, mayBeCut: !hasEnd };
    },
  };
}

/** A problem of the answer's head wins. Only a 200 counts as a scrape (promhttp's `code="200"`). */
function describeFailure(result: ExchangeResult, problem: string | null): ExpositionResult {
  switch (result.kind) {
    case 'refused':
      return { kind: 'refused' };
    case 'dropped':
      return { kind: 'failed', why: 'the connection was closed', mayCount: true };
    case 'failed':
      return { kind: 'failed', why: problem ?? result.why, mayCount: result.wasSent && (result.status ?? 200) === 200 };
    case 'answered':
      return { kind: 'failed', why: problem ?? 'no body', mayCount: result.status === 200 };
  }
}

/** Why the body of a 200 cannot be used; null: it can. A program that names no type is believed. */
function findProblem(headers: Parameters<NonNullable<Request['onAnswer']>>[1], isTextOnly: boolean): string | null {
  const type = String(headers['content-type'] ?? '').trim();
  const encoding = String(headers['content-encoding'] ?? '').trim();
  // None was asked for: it is a proxy's mistake, or another program's.
  if (!['', 'identity'].includes(encoding.toLowerCase())) return `Content-Encoding ${encoding.slice(0, 40)}`;
  if (!isTextOnly || type === '' || isTextFormat(type)) return null;
  return `Content-Type ${type.slice(0, 80)}`;
}

/** The text format is version 0.0.4, named or not (Prometheus documentation, "Exposition formats"). */
function isTextFormat(type: string): boolean {
  const [media = '', ...parameters] = type.split(';').map((part) => part.trim().toLowerCase());
  const version = parameters.find((parameter) => /^version\s*=/.test(parameter));
  return media === 'text/plain' && (version === undefined || /^version\s*=\s*"?0\.0\.4"?$/.test(version));
}
