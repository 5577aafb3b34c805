// Fetches an exposition: one GET at a time over a connection kept for a while, its body handed on as it
// comes. Never says what it means.

import { type ExchangeResult, type Headers, openExchange, type Request } from '../base/net/exchange.ts';
import { USER_AGENT } from '../base/version.ts';
import { type Clock, type Limits, SYSTEM_CLOCK } from '../base/waits.ts';
import { splitAccept, TEXT_ACCEPT } from '../decide/serve/budget.ts';
import { BODY_MAX_BYTES } from '../exposition/exposition.ts';
import { type PageType, readPageType, TEXT_PAGE } from '../exposition/format.ts';

/** Where it is fetched. */
export type GetterParts = {
  readonly url: URL;
  /** Its Content-Type is kept (else all but OpenMetrics is text), and what was dropped is sent again. */
  readonly isForServing: boolean;
  /** How the program is asked. Default: over HTTP. */
  readonly open?: typeof openExchange;
  readonly clock?: Pick<Clock, 'nowMs'>;
};

/** Takes an answer as it comes. */
type ExpositionSink = {
  /** The answer has begun: its body of that type follows, or why it cannot be used. */
  readonly begin?: (head: PageType | string) => void;
  /** The piece changes afterwards. */
  readonly write: (piece: Uint8Array) => void;
};

/**
 * How a fetch ended. `isCut`: within a line; `mayBeCut`: it ended with its connection; `mayCount`: the
 * program may have counted it as a scrape.
 */
type ExpositionResult =
  | { readonly kind: 'answered'; readonly isCut: boolean; readonly mayBeCut: boolean }
  | { readonly kind: 'refused' }
  | { readonly kind: 'failed'; readonly why: string; readonly mayCount: boolean };

/**
 * Gets pages of one source, one at a time.
 *
 *     const { get, close } = openExpositionGetter({ url, isForServing: true });
 *     const result = await get({ timeoutMs: 10_000, signal }, sink);   // { kind: 'answered', … }
 */
export type ExpositionGetter = {
  /** `accept`: the formats that are asked for; default: text 0.0.4. Never rejects. */
  readonly get: (limits: Limits, sink: ExpositionSink, accept?: string) => Promise<ExpositionResult>;
  readonly close: () => Promise<void>;
};

const LINE_FEED = 0x0a;

/** A server that closes may wait for connections that are in use. */
export const CONNECTION_USED_MS = 5_000;

/** Opens a getter; connects at the first fetch. */
export function openExpositionGetter({ url, isForServing, ...parts }: GetterParts): ExpositionGetter {
  const { open = openExchange, clock = SYSTEM_CLOCK } = parts;
  const exchange = open(url);
  let untilMs = Number.NEGATIVE_INFINITY;
  return {
    close: exchange.close,
    async get(limits, sink, accept = TEXT_ACCEPT) {
      const { formats, login } = splitAccept(accept);
      const isFresh = clock.nowMs() >= untilMs;
      if (isFresh) untilMs = clock.nowMs() + CONNECTION_USED_MS;
      let problem: string | null = null;
      let hasEnd = true;
      let lastByte: number | undefined;
      let sizeBytes = 0;
      const request: Request = {
        ...limits,
        method: 'GET',
        isFresh,
        path: url.pathname + url.search,
        followsRedirects: true,
        // No Accept-Encoding.
        headers: { accept: formats, 'user-agent': USER_AGENT, ...(login !== undefined && { authorization: login }) },
        onAnswer(status, headers) {
          hasEnd = 'content-length' in headers || 'transfer-encoding' in headers;
          const head = status === 200 ? readHead(headers, isForServing) : describeStatus(status, headers);
          problem = typeof head === 'string' ? head : null;
          sink.begin?.(head);
        },
        onBody(piece) {
          sizeBytes += piece.length;
          lastByte = piece.at(-1) ?? lastByte;
          if (sizeBytes > BODY_MAX_BYTES) return false;
          // An unusable body is read to its end, so that the connection can be kept.
          if (problem === null) sink.write(piece);
          return true;
        },
      };
      let result = await exchange.send(request);
      // A kept connection may end in the instant of its use (RFC 9112, 9.3.1): Go's client retries too.
      if (isForServing && result.kind === 'dropped') result = await exchange.send(request);
      if (result.kind !== 'answered' || problem !== null) return describeFailure(result, problem);
      // The connection of a program that was killed ends in the same way.
      return { kind: 'answered', isCut: !hasEnd && lastByte !== LINE_FEED, mayBeCut: !hasEnd };
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

/** Of a redirect that is not followed also where to, without what may be a secret. */
function describeStatus(status: number, { location }: Headers): string {
  const to = String(location ?? '').replace(/[?#].*|(?<=\/\/)[^/]*@/gs, '');
  if (status < 300 || status > 399 || to === '') return `HTTP ${status}`;
  return `HTTP ${status} to ${to.slice(0, 80)}, and redirects are followed to the same server only`;
}

/** The type of a 200, or why its body cannot be used. */
function readHead(headers: Headers, isForServing: boolean): PageType | string {
  const encoding = String(headers['content-encoding'] ?? '').trim();
  // None was asked for: it is a proxy's mistake, or another program's.
  if (!['', 'identity'].includes(encoding.toLowerCase())) return `Content-Encoding ${encoding.slice(0, 40)}`;
  const type = readPageType(String(headers['content-type'] ?? ''));
  return isForServing || type.format === 'openMetrics' ? type : TEXT_PAGE;
}
