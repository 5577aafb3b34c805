// Reads this pod from the API server, or reuses an answer: pod-request.ts decides which, and what a failure
// means. Imported only if a condition needs it: TLS comes with it.

import { readFileSync } from 'node:fs';
import { dialTls, type Trust } from '../base/net/dial-tls.ts';
import { type Exchange, type ExchangeResult, openExchange, readRetryAfter } from '../base/net/exchange.ts';
import { type Environment, readVariable } from '../base/parse.ts';
import { USER_AGENT } from '../base/version.ts';
import { pause } from '../base/waits.ts';
import {
  chooseCheckPauseMs,
  choosePodAnswer,
  explainPodFailure,
  type FailedPodRequest,
  failPodRequest,
  type PodRequest,
  type PodRequestFailure,
  type WantedPodAnswer,
} from './pod-request.ts';
import { type OwnContainer, type Pod, readOwnContainer, readPod, readStatusMessage } from './pod-status.ts';

/** Kubernetes's objective is 99 % of such requests within 1 s (kubernetes/community, "API call latency"). */
const REQUEST_TIMEOUT_MS = 3_000;
/** A pod has about ten KB, with many containers and managers a hundred; etcd takes 1.5 MB at most. */
export const BODY_MAX_BYTES = 1024 * 1024;

/** Where a container finds what Kubernetes mounts, and the rest of the outside world. */
const POD_ENVIRONMENT = {
  /** Of token, ca.crt and namespace (documentation, "Accessing the Kubernetes API from a Pod"). */
  accountFolder: '/var/run/secrets/kubernetes.io/serviceaccount',
  mountInfoPath: '/proc/self/mountinfo',
  /** Monotonic. */
  nowMs: () => performance.now(),
  pause: (ms: number) => pause(ms),
  /** From 0 to 1: how much of the longest jitter to take. */
  jitter: Math.random,
};

export type PodEnvironment = typeof POD_ENVIRONMENT;

/** The pod as it was at `atMs`; `number` counts the answers, so the same number is the same answer. */
type ReadPod = { readonly kind: 'read'; readonly pod: Pod; readonly number: number; readonly atMs: number };

export type PodReadResult = ReadPod | FailedPodRequest;

/** What a caller has, and wants; the reason of `signal` is a string. */
type WantedPod = WantedPodAnswer & { readonly signal?: AbortSignal };

export type PodReader = ReturnType<typeof openPodReader>;

/** Opens this pod; connects at the first read. `environment`: for tests. */
export function openPodReader(env: Environment, environment = POD_ENVIRONMENT) {
  const { nowMs, pause, jitter, accountFolder, mountInfoPath } = environment;
  const own = readOwnContainer(readText(mountInfoPath) ?? '');
  const client = openClient();
  let newest: ReadPod | null = null;
  let failure: FailedPodRequest | null = null;
  let readCount = 0;

  /** Reads the pod, or reuses the newest answer; never rejects. One call at a time. */
  async function read({ signal, ...wanted }: WantedPod): Promise<PodReadResult> {
    const reused = choosePodAnswer(newest, failure, wanted, nowMs());
    if (reused !== null) return reused;
    const failedCount = failure?.failedCount ?? 0;
    const notAsked = { kind: 'failed', retryAtMs: null, failedCount } as const;
    const address = findPodAddress(env, accountFolder);
    if ('problem' in address) return { ...notAsked, ...address, isLasting: true };
    const answer = await client.get(address, signal);
    // Ended by the caller: it says nothing of the server.
    if (answer.result.kind === 'failed' && signal?.aborted) {
      return { ...notAsked, why: answer.result.why, problem: null, isLasting: false };
    }
    const found = readAnswer(answer, own);
    if ('pod' in found) {
      failure = null;
      readCount++;
      newest = { kind: 'read', pod: found.pod, number: readCount, atMs: nowMs() };
      return newest;
    }
    const meaning = explainPodFailure(found, address);
    failure = failPodRequest(failedCount, {
      meaning,
      atMs: nowMs(),
      retryAfterMs: answer.retryAfterMs,
      jitter: jitter(),
    });
    return failure;
  }

  return {
    /** This container; null if its termination message is not mounted. */
    own,
    close: client.close,
    read,
    /** Reads it for the check at the start: asks again before a refusal is believed. */
    async readForCheck(): Promise<PodReadResult> {
      for (;;) {
        const result = await read({ doneSinceMs: null, seenNumber: 0 });
        const pauseMs = result.kind === 'failed' ? chooseCheckPauseMs(result, nowMs()) : null;
        if (pauseMs === null) return result;
        await pause(pauseMs);
      }
    },
  };
}

function readAnswer(
  { result, body, distrust }: Answer,
  own: OwnContainer | null,
): { readonly pod: Pod } | PodRequestFailure {
  if (distrust !== null) return { kind: 'distrusted', code: distrust };
  if (result.kind !== 'answered') {
    return { kind: 'noAnswer', why: result.kind === 'failed' ? result.why : result.kind };
  }
  if (result.status !== 200) return { kind: 'status', status: result.status, message: readStatusMessage(body) };
  const read = readPod(body);
  if ('why' in read) return { kind: 'unreadable', why: read.why };
  return own !== null && read.pod.uid !== own.podUid ? { kind: 'anotherPod' } : read;
}

type Answer = {
  readonly result: ExchangeResult;
  readonly body: string;
  /** From the header Retry-After; 0 without one. */
  readonly retryAfterMs: number;
  /** Node's code, if the server's certificate was rejected. */
  readonly distrust: string | null;
};

/** One GET at a time over one TLS connection. */
function openClient() {
  let exchange: Exchange | null = null;
  const trust: Trust = { authorities: '', distrust: null };
  const dial = dialTls(trust);

  async function send(address: PodAddress, token: string, signal?: AbortSignal): Promise<Answer> {
    trust.authorities = address.ca;
    trust.distrust = null;
    exchange ??= openExchange(new URL(address.origin), dial);
    const pieces: Uint8Array[] = [];
    let sizeBytes = 0;
    let retryAfterMs = 0;
    const keep = (piece: Uint8Array) => {
      sizeBytes += piece.length;
      pieces.push(Uint8Array.from(piece));
      return sizeBytes <= BODY_MAX_BYTES;
    };
    const result = await exchange.send({
      method: 'GET',
      path: `/api/v1/namespaces/${address.namespace}/pods/${address.pod}`,
      headers: { accept: 'application/json', authorization: `Bearer ${token}`, 'user-agent': USER_AGENT },
      timeoutMs: REQUEST_TIMEOUT_MS,
      signal,
      onAnswer(_, headers) {
        retryAfterMs = readRetryAfter(headers, Date.now());
      },
      onBody: keep,
      onOtherBody: keep,
    });
    return { result, body: Buffer.concat(pieces).toString('utf8'), retryAfterMs, distrust: trust.distrust };
  }

  return {
    /** Asks once, and again if the kept connection had ended or the token was just renewed; never rejects. */
    async get(address: PodAddress, signal?: AbortSignal): Promise<Answer> {
      const answer = await send(address, address.token, signal);
      if (answer.result.kind === 'dropped') return send(address, address.token, signal);
      if (answer.result.kind !== 'answered' || answer.result.status !== 401) return answer;
      const token = readToken(address.tokenPath);
      return token === '' || token === address.token ? answer : send(address, token, signal);
    },
    close: async () => exchange?.close(),
  };
}

/** The pod, where to ask for it, with which token, and whom to trust. */
type PodAddress = PodRequest & {
  readonly token: string;
  /** The certificate authorities of the API server, as PEM. */
  readonly ca: string;
};

/** The names of objects (documentation, "Object Names and IDs"): nothing that could end a path. */
const OBJECT_NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** `why`: what is; `problem`: what is; what to do. */
type AddressProblem = { readonly why: string; readonly problem: string };

/** Reads the address, for each request: the kubelet renews the token. */
function findPodAddress(env: Environment, accountFolder: string): PodAddress | AddressProblem {
  const host = readVariable(env, 'KUBERNETES_SERVICE_HOST');
  if (host === '') return toProblem('KUBERNETES_SERVICE_HOST is not set', 'this must run in a pod of Kubernetes');
  const port = readVariable(env, 'KUBERNETES_SERVICE_PORT') || '443';
  const url = URL.parse(`https://${host.includes(':') ? `[${host}]` : host}:${port}`);
  if (url === null) {
    return toProblem(`KUBERNETES_SERVICE_HOST and _PORT are "${host}" and "${port}"`, 'must be a host and a port');
  }
  const tokenPath = `${accountFolder}/token`;
  const token = readToken(tokenPath);
  const ca = readText(`${accountFolder}/ca.crt`);
  if (token === '' || ca === null) {
    const advice = 'remove automountServiceAccountToken: false from the pod or its account';
    return toProblem(`no service account is mounted at ${accountFolder}`, advice);
  }
  const namespace = readVariable(env, 'POD_NAMESPACE') || (readText(`${accountFolder}/namespace`)?.trim() ?? '');
  if (!OBJECT_NAME.test(namespace)) return describeBadName('POD_NAMESPACE', namespace, 'namespace');
  const pod = readVariable(env, 'POD_NAME') || readVariable(env, 'HOSTNAME');
  if (!OBJECT_NAME.test(pod)) return describeBadName('POD_NAME', pod, 'name');
  return { origin: url.origin, namespace, pod, token, tokenPath, ca, account: readAccount(token) };
}

/** The token as mounted now; blank if it cannot be read. */
function readToken(tokenPath: string): string {
  return readText(tokenPath)?.trim() ?? '';
}

/** The text of a file; null if it cannot be read. */
function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function describeBadName(variable: string, text: string, field: string): AddressProblem {
  return toProblem(`${variable} is "${text}"`, `set it from metadata.${field} by fieldRef`);
}

function toProblem(why: string, advice: string): AddressProblem {
  return { why, problem: `${why}; ${advice}` };
}

/** `NAMESPACE:NAME` from the subject of a JWT, which is no secret; null if it cannot be read. */
function readAccount(token: string): string | null {
  const payload = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8');
  return /"sub"\s*:\s*"system:serviceaccount:([a-z0-9.-]+:[a-z0-9.-]+)"/.exec(payload)?.[1] ?? null;
}
