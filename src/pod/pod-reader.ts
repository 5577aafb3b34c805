// Reads this pod from the API server, or reuses an answer: pod-request.ts decides which, and what a failure
// means. Imported only if a condition needs it: TLS comes with it.

import { type Environment, readVariable } from '../base/parse.ts';
import { pause } from '../base/waits.ts';
import { ACCOUNT_FOLDER, type ApiAnswer, findApiServer, openApiClient, readText, toProblem } from './api-server.ts';
import {
  chooseCheckPauseMs,
  choosePodAnswer,
  explainPodFailure,
  type FailedPodRequest,
  failPodRequest,
  type PodRequestFailure,
  type WantedPodAnswer,
} from './pod-request.ts';
import { type OwnContainer, type Pod, readOwnContainer, readPod, readStatusMessage } from './pod-status.ts';

/** Where a container finds what Kubernetes mounts, and the rest of the outside world. */
const POD_ENVIRONMENT = {
  accountFolder: ACCOUNT_FOLDER,
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

/**
 * Reads this pod from the API server, one call at a time.
 *
 *     const { read, close } = openPodReader(process.env);
 *     const result = await read({ doneSinceMs: null, seenNumber: 0 });   // { kind: 'read', pod, … }
 */
export type PodReader = {
  /** This container; null if its termination message is not mounted. */
  readonly own: OwnContainer | null;
  /** Reads the pod, or reuses the newest answer. Never rejects. */
  readonly read: (wanted: WantedPod) => Promise<PodReadResult>;
  /** Reads it for the check at the start: asks again before a refusal is believed. */
  readonly readForCheck: () => Promise<PodReadResult>;
  readonly close: () => Promise<void>;
};

/** Opens this pod; connects at the first read. `environment`: for tests. */
export function openPodReader(env: Environment, environment = POD_ENVIRONMENT): PodReader {
  const { nowMs, pause, jitter, accountFolder, mountInfoPath } = environment;
  const own = readOwnContainer(readText(mountInfoPath) ?? '');
  const client = openApiClient();
  let newest: ReadPod | null = null;
  let failure: FailedPodRequest | null = null;
  let readCount = 0;

  async function read({ signal, ...wanted }: WantedPod): Promise<PodReadResult> {
    const reused = choosePodAnswer(newest, failure, wanted, nowMs());
    if (reused !== null) return reused;
    const failedCount = failure?.failedCount ?? 0;
    const notAsked = { kind: 'failed', retryAtMs: null, failedCount } as const;
    const address = findPodAddress(env, accountFolder);
    if ('problem' in address) return { ...notAsked, ...address, isLasting: true };
    const path = `/api/v1/namespaces/${address.namespace}/pods/${address.pod}`;
    const answer = await client.ask(address, { method: 'GET', path }, signal);
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
    own,
    close: client.close,
    read,
    async readForCheck() {
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
  { result, body, distrust }: ApiAnswer,
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

/** The names of objects (documentation, "Object Names and IDs"): nothing that could end a path. */
const OBJECT_NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** The pod, and where and how to ask for it; read for each request. */
function findPodAddress(env: Environment, accountFolder: string) {
  const server = findApiServer(env, accountFolder);
  if ('problem' in server) return server;
  const namespace = readVariable(env, 'POD_NAMESPACE') || (readText(`${accountFolder}/namespace`)?.trim() ?? '');
  if (!OBJECT_NAME.test(namespace)) return describeBadName('POD_NAMESPACE', namespace, 'namespace');
  const pod = readVariable(env, 'POD_NAME') || readVariable(env, 'HOSTNAME');
  if (!OBJECT_NAME.test(pod)) return describeBadName('POD_NAME', pod, 'name');
  return { ...server, namespace, pod, account: readAccount(server.token) };
}

function describeBadName(variable: string, text: string, field: string) {
  return toProblem(`${variable} is "${text}"`, `set it from metadata.${field} by fieldRef`);
}

/** `NAMESPACE:NAME` from the subject of a JWT, which is no secret; null if it cannot be read. */
function readAccount(token: string): string | null {
  const payload = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8');
  return /"sub"\s*:\s*"system:serviceaccount:([a-z0-9.-]+:[a-z0-9.-]+)"/.exec(payload)?.[1] ?? null;
}
