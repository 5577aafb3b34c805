// One HTTP/1.1 request at a time over one keep-alive connection (undici's Client), the body streamed to the
// caller. Uses no proxy, sends nothing twice; the result is what happened to a request.
// And how an answer is kept: the start of its body, and what its Retry-After asks for.

import type { Socket } from 'node:net';
import { Client } from 'undici';
import { LOOPBACK } from '../parse.ts';
import { type Limits, onAbort, runWithin } from '../waits.ts';
import { HEAD_MAX_BYTES, openHeadReader } from './answer-head.ts';
import { type DialOptions, type DialResult, dial } from './dial.ts';

/** One request; its limits count from the start to the last byte. */
export type Request = Pick<Limits, 'timeoutMs' | 'signal'> & {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Streamed as the server takes it. Default: none. */
  readonly body?: Uint8Array | AsyncIterable<Uint8Array>;
  /** Follow redirects to the same server. Default: a redirect is an answer like any other. */
  readonly followsRedirects?: boolean;
  /** Over a new connection. Default: over the one that is open. */
  readonly isFresh?: boolean;
  /** Called when the answer begins; header names are in lower case. */
  readonly onAnswer?: (status: number, headers: Headers) => void;
  /**
   * Called for each piece of a 200's body, which changes afterwards; returning false ends the exchange as
   * `failed`.
   */
  readonly onBody?: (piece: Uint8Array) => boolean;
  /** The same of any other body. */
  readonly onOtherBody?: (piece: Uint8Array) => void;
};

/** How a request ended. */
export type ExchangeResult =
  /** The answer is whole, by HTTP's rules of where it ends. */
  | { readonly kind: 'answered'; readonly status: number; readonly contentType: string }
  | { readonly kind: 'refused' }
  /** The connection ended after the request was sent and before the answer began. */
  | { readonly kind: 'dropped' }
  /** Anything else; `wasSent`: the server may have seen it. `status`: null before the answer began. */
  | { readonly kind: 'failed'; readonly why: string; readonly wasSent: boolean; readonly status: number | null };

/** Requests to one server, one at a time. */
export type Exchange = {
  /** Sends one request. Never rejects. */
  readonly send: (request: Request) => Promise<ExchangeResult>;
  readonly close: () => Promise<void>;
};

/** How an exchange connects: `dial`, or `dialTls`. Never rejects. */
export type Dial = (hostname: string, port: number, options: DialOptions) => Promise<DialResult>;

/** Of an idle connection, as in Node's servers: one that closes may wait for it. */
const KEEP_ALIVE_MS = 5_000;

/** A body that is not a 200's is read to its end only so that the connection can be kept. */
const OTHER_BODY_MAX_BYTES = 1024 * 1024;

/** The peer closed or reset the connection (UND_ERR_SOCKET is undici's "other side closed"). */
const DROP_CODES: readonly string[] = ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'];

/** By which undici learns that nothing listens. */
const REFUSED = new Error('nothing listens there');

/**
 * Four times Node's: each piece costs its way through undici and to the readers, a third of the CPU time of
 * 3 MB. Pages that are never read into are not in memory.
 */
const READ_BYTES = 256 * 1024;

/** Opens an exchange with the server at `origin`; connects at the first request. `https:` takes `dialTls`. */
export function openExchange(origin: URL, connect: Dial = dial): Exchange {
  const port = Number(origin.port || (origin.protocol === 'https:' ? 443 : 80));
  const buffer = origin.protocol === 'http:' ? Buffer.allocUnsafeSlow(READ_BYTES) : undefined;
  let signal: AbortSignal | undefined;
  let connection: Dialled = { expectAnswer: () => {}, isBeside: false };
  const client = new Client(origin.origin, {
    allowH2: false,
    pipelining: 1,
    maxHeaderSize: 2 * HEAD_MAX_BYTES,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    // The caller's time limit covers the whole exchange.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (_, callback) => {
      connect(origin.hostname, port, { signal, buffer }).then((result) => {
        if (result.kind !== 'open') return callback(result.kind === 'refused' ? REFUSED : new Error(result.why), null);
        const { socket } = result;
        connection = { socket, expectAnswer: rewriteHeads(socket), isBeside: result.isBeside === true };
        callback(null, socket);
      });
    },
  });
  return {
    send: (request) =>
      runWithin(request, async (limit) => {
        signal = limit;
        if (request.isFresh === true) connection.socket?.destroy();
        let url = new URL(request.path, origin);
        for (let count = 1; ; count++) {
          const found: { next: URL | null } = { next: null };
          const isLast = request.followsRedirects !== true || count === REQUESTS_MAX_COUNT;
          const one: Request = {
            ...request,
            path: count === 1 ? request.path : url.pathname + url.search,
            onAnswer(status, headers) {
              found.next = isLast ? null : findRedirect(url, status, headers);
              if (found.next === null) request.onAnswer?.(status, headers);
            },
          };
          const result = await dispatch(client, one, limit, () => connection);
          if (found.next === null || limit.aborted) return result;
          url = found.next;
        }
      }),
    close: () => client.destroy(),
  };
}

/** Of one that is redirected: as many as Go's client sends. */
const REQUESTS_MAX_COUNT = 10;

/** Where on the same server a GET of `url` is to go on; null: it has its answer. */
function findRedirect(url: URL, status: number, headers: Headers): URL | null {
  const location = String(headers['location'] ?? '');
  if (![301, 302, 303, 307, 308].includes(status) || location === '' || !URL.canParse(location, url.href)) return null;
  const to = new URL(location, url);
  // FastAPI names the host of the request, others the address that they listen on.
  const isSameHost = to.hostname === url.hostname || (LOOPBACK.test(to.hostname) && LOOPBACK.test(url.hostname));
  return isSameHost && to.protocol === url.protocol && to.port === url.port ? to : null;
}

/** Has undici read heads as Go's client does. @returns what to call before a request */
function rewriteHeads(socket: Socket): () => void {
  const heads = openHeadReader();
  const read = socket.read.bind(socket);
  socket.read = (size?: number) => {
    try {
      for (let piece = read(size); piece !== null; piece = read(size)) {
        const taken = heads.take(piece);
        if (taken !== null) return taken;
      }
    } catch (error) {
      socket.destroy(error as Error);
    }
    return null;
  };
  return heads.begin;
}

type Dialled = { readonly socket?: Socket; readonly expectAnswer: () => void; readonly isBeside: boolean };

/** The reason of `signal` is a string. `find`: the connection, from before the request is sent on. */
function dispatch(client: Client, request: Request, signal: AbortSignal, find: () => Dialled): Promise<ExchangeResult> {
  return new Promise((resolve) => {
    let status: number | null = null;
    let contentType = '';
    let wasSent = false;
    let bodyBytes = 0;
    const fail = (why: string) => resolve({ kind: 'failed', why, wasSent, status });
    if (signal.aborted) return fail(String(signal.reason));
    client.dispatch(
      {
        method: request.method as 'GET',
        path: request.path,
        headers: request.headers,
        body: (request.body ?? null) as Uint8Array | null,
        idempotent: false,
        reset: find().isBeside,
      },
      {
        onRequestStart(controller) {
          wasSent = true;
          find().expectAnswer();
          onAbort(signal, () => controller.abort(new Error(String(signal.reason))));
        },
        onResponseStart(_, statusCode, headers) {
          status = statusCode;
          contentType = String(headers['content-type'] ?? '');
          request.onAnswer?.(statusCode, headers);
        },
        onResponseData(controller, piece) {
          bodyBytes += piece.length;
          if (status !== 200) request.onOtherBody?.(piece);
          const isTooLong = status === 200 ? request.onBody?.(piece) === false : bodyBytes > OTHER_BODY_MAX_BYTES;
          if (isTooLong) controller.abort(new Error('the body is too long'));
        },
        onResponseEnd() {
          resolve({ kind: 'answered', status: status ?? 0, contentType });
        },
        onResponseError(_, error) {
          if (error === REFUSED) resolve({ kind: 'refused' });
          else if (wasSent && status === null && DROP_CODES.includes(readCode(error))) resolve({ kind: 'dropped' });
          else fail(describeError(error));
        },
      },
    );
  });
}

function readCode(error: Error): string {
  return 'code' in error && error.code !== undefined ? String(error.code) : '';
}
function describeError(error: Error): string {
  const code = readCode(error);
  return code === '' || error.message.includes(code) ? error.message : `${error.message} (${code})`;
}

/** Keeps an answer as it comes, for a request: `keptBytes` of its body, which has `maxBytes` at most. */
export function openAnswer(keptBytes: number, maxBytes = keptBytes) {
  const pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  let retryAfterMs = 0;
  function take(piece: Uint8Array): boolean {
    if (sizeBytes < keptBytes) pieces.push(Uint8Array.from(piece.subarray(0, keptBytes - sizeBytes)));
    sizeBytes += piece.length;
    return sizeBytes <= maxBytes;
  }
  function onAnswer(_: number, headers: Headers): void {
    retryAfterMs = readRetryAfter(headers, Date.now());
  }
  return {
    callbacks: { onAnswer, onBody: take, onOtherBody: take },
    end: () => ({ text: Buffer.concat(pieces).toString('utf8'), retryAfterMs }),
  };
}

export type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** A day, well within the 24.8 days of a timer. */
const RETRY_AFTER_MAX_MS = 24 * 60 * 60 * 1000;

/**
 * How long Retry-After asks to wait (RFC 9110, 10.2.3), in ms, a day at most; 0 if absent, odd or past.
 * A date is compared with the server's own (`Date`), since its clock may differ; else with `nowMs` (epoch).
 */
export function readRetryAfter(headers: Headers, nowMs: number): number {
  const text = readFirst(headers['retry-after']);
  const isCount = /^\d+$/.test(text);
  const askedMs = isCount ? Number(text) * 1_000 : readDate(text) - (readDate(readFirst(headers['date'])) || nowMs);
  return Math.min(Math.max(0, askedMs || 0), RETRY_AFTER_MAX_MS);
}

function readFirst(header: string | string[] | undefined): string {
  return ((Array.isArray(header) ? header[0] : header) ?? '').trim();
}

/** A date in one of the three forms of RFC 9110, 5.6.7, all UTC; NaN for other forms of Date.parse. */
function readDate(text: string): number {
  const isDate = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text);
  return isDate ? Date.parse(text.endsWith('GMT') ? text : `${text} GMT`) : Number.NaN;
}
