// Sends requests to a server that the user configured: headers from a file, TLS, no redirect followed; again
// while that may help and time is left. Describes each result in words for a person; never shows a secret.

import { type Headers, type HeadersFile, listSecrets, prepareHeadersFile } from '../base/mounted-file.ts';
import { type Exchange, type ExchangeResult, openAnswer, openExchange } from '../base/net/exchange.ts';
import { cut, UNPRINTABLE } from '../base/text.ts';
import { USER_AGENT } from '../base/version.ts';
import { pause } from '../base/waits.ts';
import type { PushJudgement, PushRequest } from './receivers/receiver.ts';
import { hideSecrets, listUrlSecrets } from './secrets.ts';
import type { Trust } from './trust.ts';

export type Destination = {
  readonly url: URL;
  readonly headersFile: string | null;
  /** null: the usual authorities only. */
  readonly caFile: string | null;
};

export type DeliveryRequest = Omit<PushRequest, 'body' | 'method'> & {
  readonly method: PushRequest['method'] | 'DELETE';
  readonly body: Uint8Array | AsyncIterable<Uint8Array>;
  readonly timeoutMs: number;
  /** Aborts the request; its reason is a string. */
  readonly signal: AbortSignal;
  /** Called with the raw answer, which may repeat secrets: to be judged, never shown. */
  readonly onBody?: (text: string) => void;
};

/** The result of a request; `text` is the start of the answer, for a person, without secrets. */
type DeliveryResult =
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly text: string;
      /** How long the receiver asks to wait; 0: it does not ask. */
      readonly retryAfterMs: number;
    }
  | { readonly kind: 'failed'; readonly why: string };

/**
 * Sends requests to one receiver, one at a time, with its headers file and trust. Never rejects.
 *
 *     const { send, close } = openDelivery({ url, headersFile: null, caFile: null });
 *     const result = await send({ method: 'PUT', path: '/metrics/job/a', … });
 */
export type Delivery = {
  /** Sends one request, once. */
  readonly send: (request: DeliveryRequest) => Promise<DeliveryResult>;
  /** Connects without sending anything; what is wrong, or an empty list. */
  readonly tryConnect: (timeoutMs: number, signal: AbortSignal) => Promise<readonly string[]>;
  /** Why the headers or CA file cannot be used now, or null. */
  readonly checkFiles: (signal: AbortSignal) => Promise<string | null>;
  readonly close: () => Promise<void>;
};

/** A file opens at once, or its mount hangs. */
const FILE_TIMEOUT_MS = 2_000;
const ANSWER_SHOWN_LENGTH = 200;
/** How much is judged and searched for secrets; the longest known answers have a few KB. */
const ANSWER_READ_BYTES = 64 * 1024;
const ANSWER_MAX_BYTES = 1024 * 1024;

/** Opens a delivery; connects when the first request is sent. */
export function openDelivery(destination: Destination): Delivery {
  const { url, headersFile, caFile } = destination;
  const readHeaders = headersFile === null ? null : prepareHeadersFile(headersFile);
  let trust: Trust | null = null;
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  const host = `${url.hostname}:${port}`;
  let exchange: Exchange | null = null;

  async function readOwnHeaders(signal: AbortSignal): Promise<HeadersFile> {
    const file = (await readHeaders?.({ timeoutMs: FILE_TIMEOUT_MS, signal })) ?? { headers: {} };
    return 'why' in file ? { why: `the headers file ${headersFile} ${file.why}` } : file;
  }

  async function renewTrust(signal: AbortSignal): Promise<string | null> {
    if (url.protocol !== 'https:') return null;
    const { openTrust } = await import('./trust.ts');
    trust ??= openTrust(caFile);
    return trust.renew({ timeoutMs: FILE_TIMEOUT_MS, signal });
  }

  async function prepare(signal: AbortSignal): Promise<HeadersFile> {
    const [file, untrusted] = await Promise.all([readOwnHeaders(signal), renewTrust(signal)]);
    return 'why' in file || untrusted === null ? file : { why: untrusted };
  }

  function describe(result: Exclude<ExchangeResult, { readonly kind: 'answered' }>): string {
    if (result.kind === 'refused') return `${host} refuses connections`;
    if (result.kind === 'dropped') return `${host} closed the connection without an answer`;
    return describeFailure(result.why, host, trust?.takeDistrust() ?? null);
  }

  return {
    async send({ method, path, headers, body, timeoutMs, signal, onBody }) {
      const untilMs = performance.now() + timeoutMs;
      const prepared = await prepare(signal);
      if ('why' in prepared) return { kind: 'failed', why: prepared.why };
      exchange ??= openExchange(new URL(url.origin), trust?.dial);
      const answer = openAnswer(ANSWER_READ_BYTES, ANSWER_MAX_BYTES);
      const result = await exchange.send({
        method,
        path,
        headers: mergeHeaders({ 'user-agent': USER_AGENT, 'accept-encoding': 'identity' }, headers, prepared.headers),
        body,
        timeoutMs: Math.max(1, untilMs - performance.now()),
        signal,
        ...answer.callbacks,
      });
      const { text, retryAfterMs } = answer.end();
      onBody?.(text);
      const hidden = [...listSecrets(prepared.headers), ...listUrlSecrets(url)];
      if (result.kind === 'answered') {
        return { kind: 'answered', status: result.status, text: shorten(text, hidden), retryAfterMs };
      }
      // The status came and only the rest of the answer did not: it counts. The text may end within a secret.
      if (result.kind === 'failed' && result.status !== null) {
        return { kind: 'answered', status: result.status, text: '', retryAfterMs };
      }
      return { kind: 'failed', why: hideSecrets(describe(result), hidden) ?? 'it failed' };
    },
    async tryConnect(timeoutMs, signal) {
      const problems: string[] = [];
      const prepared = await prepare(signal);
      if ('why' in prepared) problems.push(prepared.why);
      const { dial } = await import('../base/net/dial.ts');
      const result = await (trust?.dial ?? dial)(url.hostname, port, { timeoutMs, signal });
      if (result.kind === 'open') result.socket.destroy();
      else if (result.kind === 'refused') problems.push(describe({ kind: 'refused' }));
      else problems.push(describe({ kind: 'failed', why: result.why, wasSent: false, status: null }));
      return problems;
    },
    async checkFiles(signal) {
      const file = await readOwnHeaders(signal);
      if ('why' in file) return file.why;
      // Without a CA file there is nothing to check, and TLS is loaded only when needed.
      return caFile === null ? null : renewTrust(signal);
    },
    close: async () => exchange?.close(),
  };
}

/** Later headers win; names are compared without case. */
function mergeHeaders(...all: readonly Headers[]): Headers {
  return Object.fromEntries(
    all.flatMap((headers) => Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  );
}

/** The start of an answer, on one line. */
function shorten(read: string, hidden: readonly string[]): string {
  const text = (hideSecrets(read, hidden) ?? '').replace(UNPRINTABLE, ' ').replace(/\s+/g, ' ');
  return cut(text.trim(), ANSWER_SHOWN_LENGTH);
}

/** Describes a failure; `why` may be an error code of the system. */
function describeFailure(why: string, host: string, distrust: string | null): string {
  if (distrust !== null) return `${host} is not trusted: ${distrust}`;
  if (why === 'EAI_AGAIN') return `no name server answered for ${host} (EAI_AGAIN)`;
  const text = FAILURES[why];
  return text === undefined ? `${host}: ${why}` : `${host} ${text}`;
}

const FAILURES: Readonly<Record<string, string>> = {
  ENOTFOUND: 'cannot be resolved (ENOTFOUND)',
  'timed out': 'did not answer in time',
  'no time is left': 'did not answer in the time that was left',
  ERR_SSL_WRONG_VERSION_NUMBER: 'does not speak TLS (ERR_SSL_WRONG_VERSION_NUMBER): is it http:?',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'does not speak TLS (ERR_SSL_PACKET_LENGTH_TOO_LONG): is it http:?',
};

/** A request that is sent again and again. */
type Tries = {
  readonly delivery: Delivery;
  /** Makes the request of the next try: a stream can be sent only once. */
  readonly makeRequest: () => Omit<DeliveryRequest, 'timeoutMs' | 'signal' | 'onBody'>;
  /** `body` is the raw answer. */
  readonly judge: (status: number, body: string) => PushJudgement;
  /** Time limits of the first try, the second, and so on; the last one repeats. */
  readonly timeoutsMs: readonly number[];
  /** Pauses between tries, unless the answer asks for longer ones; the last one repeats. */
  readonly pausesMs: readonly number[];
  readonly maxCount: number;
  /** Aborts everything; its reason is a string. */
  readonly signal: AbortSignal;
  /** Called when a try failed and another one follows. */
  readonly onRetry: (why: string) => void;
};

/** What a push and a webhook are sent by; only tests set the times. */
export type Sending = Pick<Tries, 'delivery' | 'signal' | 'onRetry'> &
  Partial<Pick<Tries, 'timeoutsMs' | 'pausesMs'>> & { readonly url: URL };

type TriesResult =
  | { readonly kind: 'accepted'; readonly status: number; readonly tries: number }
  /** `why` is about the newest try that was not aborted. */
  | { readonly kind: 'failed'; readonly why: string; readonly tries: number; readonly isRefused: boolean };

/** Sends the request until it is accepted or refused, or until the signal; never rejects. */
export async function sendInTries(tries: Tries): Promise<TriesResult> {
  const { delivery, makeRequest, judge, timeoutsMs, pausesMs, maxCount, signal } = tries;
  let why = 'no time was left';
  for (let count = 1; ; count++) {
    if (signal.aborted) return { kind: 'failed', why, tries: count - 1, isRefused: false };
    let body = '';
    const onBody = (text: string) => {
      body = text;
    };
    const result = await delivery.send({ ...makeRequest(), timeoutMs: pick(timeoutsMs, count), signal, onBody });
    const judgement = result.kind === 'answered' ? judge(result.status, body) : 'retry';
    if (result.kind === 'answered' && judgement === 'accepted') {
      return { kind: 'accepted', status: result.status, tries: count };
    }
    // An aborted try says less than the one before it.
    if (!signal.aborted || count === 1) why = describeResult(result);
    const isRefused = judgement === 'refused';
    if (isRefused || count === maxCount || signal.aborted) return { kind: 'failed', why, tries: count, isRefused };
    tries.onRetry(why);
    const pauseMs = pick(pausesMs, count);
    const askedMs = result.kind === 'answered' ? result.retryAfterMs : 0;
    await pause(Math.max(pauseMs, askedMs), [signal]);
  }
}

/** The entry for this try; beyond the list, the last one. */
function pick(eachMs: readonly number[], count: number): number {
  return eachMs[Math.min(count, eachMs.length) - 1] ?? 0;
}

/** Describes a result that is not accepted. */
export function describeResult(result: DeliveryResult): string {
  if (result.kind === 'failed') return result.why;
  const { status, text, retryAfterMs } = result;
  if (status >= 300 && status < 400) return `HTTP ${status}: it redirects, and no redirect is followed`;
  const asked = retryAfterMs === 0 ? '' : ` (not before ${Math.ceil(retryAfterMs / 1_000)} s)`;
  const head = `HTTP ${status}${asked}`;
  return text === '' ? head : `${head}: ${text}`;
}
