// Asks the API server for this pod: one GET at a time over one TLS connection, with the token of the service account.
// Says what the answer was; when to ask, and what a failure means, is decided elsewhere.

import { dialTls } from '../base/net/dial-tls.ts';
import { type Exchange, type ExchangeResult, openExchange } from '../base/net/exchange.ts';
import { readRetryAfter } from '../base/net/retry-after.ts';
import { USER_AGENT } from '../base/version.ts';
import { type PodAddress, readToken } from './pod-address.ts';
import type { PodRequestFailure } from './pod-request.ts';
import { type Pod, readPod, readStatusMessage } from './pod-status.ts';

/** 99 % of such requests are answered within 1 s, by Kubernetes's own objective (kubernetes/community, "API call latency"). */
export const REQUEST_TIMEOUT_MS = 3_000;
/** A pod has some ten KB, and some hundred with many containers and managers; etcd takes 1.5 MB at most. */
export const BODY_MAX_BYTES = 1024 * 1024;
/** No answer but a pod is read further. */
const OTHER_BODY_MAX_BYTES = 4_096;

/** What a request brought. */
export type PodResponse =
  | { readonly kind: 'pod'; readonly pod: Pod }
  /** Its signal ended it: it says nothing of the server. */
  | { readonly kind: 'aborted'; readonly why: string }
  /** `retryAfterMs`: from the header Retry-After; 0 without one. */
  | { readonly kind: 'failed'; readonly failure: PodRequestFailure; readonly retryAfterMs: number };

export type PodClient = {
  /** Asks once, and once more where the kept connection had ended or the token was renewed just now; never rejects. */
  readonly get: (address: PodAddress, signal?: AbortSignal) => Promise<PodResponse>;
  readonly close: () => Promise<void>;
};

type Answer = { readonly result: ExchangeResult; readonly body: string; readonly retryAfterMs: number };

/** Opens a client; connects at the first request, and anew where the address of the server changes. */
export function openPodClient(): PodClient {
  let connection: { readonly origin: string; readonly exchange: Exchange } | null = null;
  let ca = '';
  let distrust: string | null = null;

  async function connect(origin: string): Promise<Exchange> {
    if (connection?.origin === origin) return connection.exchange;
    await connection?.exchange.close();
    const dial = dialTls({
      readCa: () => ca,
      onDistrust: (code) => {
        distrust = code;
      },
    });
    connection = { origin, exchange: openExchange(new URL(origin), dial) };
    return connection.exchange;
  }

  return {
    async get(address, signal) {
      ca = address.ca;
      distrust = null;
      const exchange = await connect(address.origin);
      let answer = await send(exchange, address, address.token, signal);
      if (answer.result.kind === 'dropped') answer = await send(exchange, address, address.token, signal);
      else if (answer.result.kind === 'answered' && answer.result.status === 401) {
        const token = readToken(address.tokenPath);
        if (token !== '' && token !== address.token) answer = await send(exchange, address, token, signal);
      }
      if (answer.result.kind === 'failed' && signal?.aborted) return { kind: 'aborted', why: answer.result.why };
      const response = readAnswer(answer, distrust);
      if ('pod' in response) return { kind: 'pod', pod: response.pod };
      return { kind: 'failed', failure: response, retryAfterMs: answer.retryAfterMs };
    },
    async close() {
      await connection?.exchange.close();
      connection = null;
    },
  };
}

async function send(
  exchange: Exchange,
  { namespace, pod }: PodAddress,
  token: string,
  signal?: AbortSignal,
): Promise<Answer> {
  const pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  let retryAfterMs = 0;
  const keep = (piece: Uint8Array, maxBytes: number) => {
    sizeBytes += piece.length;
    if (sizeBytes <= maxBytes) pieces.push(Uint8Array.from(piece));
    return sizeBytes <= maxBytes;
  };
  const result = await exchange.send({
    method: 'GET',
    path: `/api/v1/namespaces/${namespace}/pods/${pod}`,
    headers: { accept: 'application/json', authorization: `Bearer ${token}`, 'user-agent': USER_AGENT },
    timeoutMs: REQUEST_TIMEOUT_MS,
    signal,
    onAnswer(_, headers) {
      retryAfterMs = readRetryAfter(headers, Date.now());
    },
    onBody: (piece) => keep(piece, BODY_MAX_BYTES),
    onOtherBody: (piece) => keep(piece, OTHER_BODY_MAX_BYTES),
  });
  return { result, body: Buffer.concat(pieces).toString('utf8'), retryAfterMs };
}

function readAnswer({ result, body }: Answer, distrust: string | null): { readonly pod: Pod } | PodRequestFailure {
  if (distrust !== null) return { kind: 'distrusted', code: distrust };
  if (result.kind !== 'answered') {
    return { kind: 'noAnswer', why: result.kind === 'failed' ? result.why : result.kind };
  }
  if (result.status !== 200) return { kind: 'status', status: result.status, message: readStatusMessage(body) };
  const read = readPod(body);
  return 'why' in read ? { kind: 'unreadable', why: read.why } : read;
}
