// One HTTP/1.1 request at a time over one keep-alive connection (undici's Client), the body streamed to the
// caller. Follows no redirect, uses no proxy, sends nothing twice; the result is what happened to a request.
// And what an answer's Retry-After asks for.

import type { Socket } from 'node:net';
import { Client } from 'undici';
import { type Limits, onAbort, runWithin } from '../waits.ts';
import { type DialOptions, type DialResult, dial } from './dial.ts';

/** One request; its limits count from the start to the last byte. */
export type Request = Pick<Limits, 'timeoutMs' | 'signal'> & {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Streamed as the server takes it. Default: none. */
  readonly body?: Uint8Array | AsyncIterable<Uint8Array>;
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

export type Exchange = ReturnType<typeof openExchange>;

/** How an exchange connects: `dial`, or `dialTls`. Never rejects. */
export type Dial = (hostname: string, port: number, options: DialOptions) => Promise<DialResult>;

/** How long to keep an idle connection: longer than any pause between two polls. */
const KEEP_ALIVE_MS = 600_000;

/** A body that is not a 200's is read to its end only so that the connection can be kept. */
const OTHER_BODY_MAX_BYTES = 1024 * 1024;

/** The peer closed or reset the connection (UND_ERR_SOCKET is undici's "other side closed"). */
const DROP_CODES: readonly string[] = ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'];

/** By which undici learns that nothing listens. */
const REFUSED = new Error('nothing listens there');

/** Opens an exchange with the server at `origin`; connects at the first request. `https:` takes `dialTls`. */
export function openExchange(origin: URL, connect: Dial = dial) {
  const port = Number(origin.port || (origin.protocol === 'https:' ? 443 : 80));
  let signal: AbortSignal | undefined;
  let expectAnswer = () => {};
  const client = new Client(origin.origin, {
    allowH2: false,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    // The caller's time limit covers the whole exchange.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (_, callback) => {
      connect(origin.hostname, port, { signal, hasOneBuffer: origin.protocol === 'http:' }).then((result) => {
        if (result.kind !== 'open') return callback(result.kind === 'refused' ? REFUSED : new Error(result.why), null);
        expectAnswer = rewriteReads(result.socket);
        callback(null, result.socket);
      });
    },
  });
  return {
    /** Sends one request; never rejects. One at a time. */
    send: (request: Request): Promise<ExchangeResult> =>
      runWithin(request, (limit) => {
        signal = limit;
        return dispatch(client, request, limit, () => expectAnswer());
      }),
    close: () => client.destroy(),
  };
}

/** Rewrites what undici reads of the socket, by calling `read`. @returns what to call before a request */
function rewriteReads(socket: Socket): () => void {
  const { begin, rewrite } = rewriteInterimAnswers();
  const read = socket.read.bind(socket);
  socket.read = (size?: number) => {
    const piece = read(size);
    if (piece !== null) rewrite(piece);
    return piece;
  };
  return begin;
}

/** The reason of `signal` is a string; `onStart` is called before the request is sent. */
function dispatch(client: Client, request: Request, signal: AbortSignal, onStart: () => void): Promise<ExchangeResult> {
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
      },
      {
        onRequestStart(controller) {
          wasSent = true;
          onStart();
          onAbort(signal, () => controller.abort(new Error(String(signal.reason))));
        },
        onResponseStart(_, statusCode, headers) {
          // 1xx comes before the answer.
          if (statusCode < 200) return;
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

const [DIGIT_3, CR, LF] = [0x33, 0x0d, 0x0a];
/** Letters of `HTTP/1.1 100`. */
const STATUS_END = 12;
const END_OF_HEAD = '\r\n\r\n';

/**
 * Lets undici read past an unexpected `100 Continue`, which a client may ignore (RFC 9110, section 15.2):
 * undici's client (8.12.4, client-h1.js) destroys the connection at it, but skips other interim answers. So
 * each 100 becomes 103. For one connection.
 */
export function rewriteInterimAnswers() {
  // The status line of this head, a letter per byte; null: the final answer has begun, and is left alone.
  let head: string | null = '';
  // How many bytes of END_OF_HEAD came last.
  let endBytes = 0;
  return {
    /** The next byte is the first of an answer. */
    begin(): void {
      head = '';
      endBytes = 0;
    },
    /** Changes a piece of an answer in place; a byte costs little, since a server may send heads for ever. */
    rewrite(piece: Uint8Array): void {
      for (let index = 0; index < piece.length && head !== null; index++) {
        const byte = piece[index] as number;
        // undici skips empty lines before a status line (RFC 9112, section 2.2).
        if (head === '' && (byte === CR || byte === LF)) continue;
        endBytes = byte === END_OF_HEAD.charCodeAt(endBytes) ? endBytes + 1 : Number(byte === CR);
        if (head.length < STATUS_END) {
          head += String.fromCharCode(byte);
          if (/^.{9}100$/s.test(head)) piece[index] = DIGIT_3;
          if (/^.{9}[^1]$/s.test(head)) head = null;
        }
        if (endBytes === END_OF_HEAD.length) {
          head = '';
          endBytes = 0;
        }
      }
    },
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
