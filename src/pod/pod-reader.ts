// Reads this pod at the API server, or serves what was read before: decide/pod-request.ts says which, and what a failure means.
// Imported only where a condition needs it: TLS comes with it.

import { pause } from '../base/waits.ts';
import { type OwnContainer, readOwnContainer } from './mount-info.ts';
import { findPodAddress, readText, type Variables } from './pod-address.ts';
import { openPodClient } from './pod-client.ts';
import {
  choosePodAnswer,
  explainPodFailure,
  type FailedPodRequest,
  failPodRequest,
  type WantedPodAnswer,
} from './pod-request.ts';
import type { Pod } from './pod-status.ts';

/** Where a container finds what Kubernetes puts into it, and what else is outside. */
export type PodEnvironment = {
  /** The folder of token, ca.crt and namespace. */
  readonly accountFolder: string;
  readonly mountInfoPath: string;
  /** Monotonic. */
  readonly nowMs: () => number;
  readonly pause: (ms: number) => Promise<void>;
  /** From 0 to 1: how much of the longest jitter to take. */
  readonly jitter: () => number;
};

/** As Kubernetes does it (documentation, "Accessing the Kubernetes API from a Pod"). */
export const POD_ENVIRONMENT: PodEnvironment = {
  accountFolder: '/var/run/secrets/kubernetes.io/serviceaccount',
  mountInfoPath: '/proc/self/mountinfo',
  nowMs: () => performance.now(),
  pause,
  jitter: Math.random,
};

/** The pod as it was at `atMs`; `number` counts the answers: two observations with the same number are one reading. */
export type ReadPod = { readonly kind: 'read'; readonly pod: Pod; readonly number: number; readonly atMs: number };

/** The pod, or why it is not known. */
export type PodReadResult = ReadPod | FailedPodRequest;

/** What a caller has, and wants; `signal` ends a request early, and its reason is a string. */
export type WantedPod = WantedPodAnswer & { readonly signal?: AbortSignal };

export type PodReader = {
  /** Reads the pod, or serves the newest answer again; never rejects. One call at a time. */
  readonly read: (wanted: WantedPod) => Promise<PodReadResult>;
  /** This very container; null where its termination message is not mounted. */
  readonly own: OwnContainer | null;
  readonly nowMs: () => number;
  readonly pause: (ms: number) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Opens this pod; connects at the first read. */
export function openPodReader(env: Variables, environment: PodEnvironment): PodReader {
  const { nowMs, pause, jitter, accountFolder, mountInfoPath } = environment;
  const own = readOwnContainer(readText(mountInfoPath) ?? '');
  const client = openPodClient();
  let newest: ReadPod | null = null;
  let failure: FailedPodRequest | null = null;
  let readCount = 0;

  return {
    own,
    nowMs,
    pause,
    close: client.close,
    async read(wanted) {
      const choice = choosePodAnswer(newest, failure, wanted, nowMs());
      if (choice === 'failure' && failure !== null) return failure;
      if (choice === 'newest' && newest !== null) return newest;
      const failedCount = failure?.failedCount ?? 0;
      const address = findPodAddress(env, accountFolder);
      if ('problem' in address) {
        const { problem } = address;
        const why = problem.split(';')[0] as string;
        return { kind: 'failed', why, problem, retryAtMs: null, failedCount, isLasting: true };
      }
      const response = await client.get(address, wanted.signal);
      if (response.kind === 'aborted') {
        return { kind: 'failed', why: response.why, problem: null, retryAtMs: null, failedCount, isLasting: false };
      }
      const isAnother = response.kind === 'pod' && own !== null && response.pod.uid !== own.podUid;
      if (response.kind === 'pod' && !isAnother) {
        failure = null;
        readCount++;
        newest = { kind: 'read', pod: response.pod, number: readCount, atMs: nowMs() };
        return newest;
      }
      const { failure: cause, retryAfterMs } =
        response.kind === 'failed' ? response : { failure: { kind: 'anotherPod' } as const, retryAfterMs: 0 };
      const meaning = explainPodFailure(cause, address);
      failure = failPodRequest(failedCount, { meaning, atMs: nowMs(), retryAfterMs, jitter: jitter() });
      return failure;
    },
  };
}
