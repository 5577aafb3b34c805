// When to ask the API server for this pod, when to reuse an answer, and what a failed request means to a
// person. Spares the server: the pauses grow while requests fail. Pure.

/**
 * How old an answer may be while main runs. A hundred pods then send the API server twenty requests a second;
 * the end is seen at most this much later, plus about a second until the kubelet reports it.
 */
export const RUNNING_AGE_MS = 5_000;
/** How long every poll asks after the first answer that showed the end: settle time and a little more. */
export const DONE_URGENT_MS = 10_000;
/** How long conditions of one poll share an answer. */
const SAME_POLL_MS = 250;
/** Pauses after failed requests in a row; the last one repeats. Up to a quarter is added at random. */
export const RETRY_PAUSES_MS: readonly number[] = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000];
/** A longer Retry-After is cut to this: a broken proxy may ask for an hour. */
const RETRY_AFTER_MAX_MS = 60_000;
/** A single lost request is not worth a warning; this many in a row, at least 7 s, are. */
const WORTH_A_WARNING_COUNT = 4;
/** Requests before the start until a refusal is believed: a new Role takes a moment to apply. */
const CHECK_COUNT = 3;

/** Which pod to ask for, where and as whom. */
export type PodRequest = {
  /** Of the API server, such as `https://10.96.0.1:443`. */
  readonly origin: string;
  readonly namespace: string;
  readonly pod: string;
  readonly tokenPath: string;
  /** `NAMESPACE:NAME` of the service account; null if its token does not name it. */
  readonly account: string | null;
};

/** Why a request did not return this pod. */
export type PodRequestFailure =
  /** The certificate of the server; `code` is Node's. */
  | { readonly kind: 'distrusted'; readonly code: string }
  | { readonly kind: 'noAnswer'; readonly why: string }
  /** Any status but 200; `message` is the server's, or blank. */
  | { readonly kind: 'status'; readonly status: number; readonly message: string }
  | { readonly kind: 'unreadable'; readonly why: string }
  /** The pod of that name has another UID than this container's pod. */
  | { readonly kind: 'anotherPod' };

type PodFailureMeaning = {
  /** Short, for a log line. */
  readonly why: string;
  /** `what is; what to do`. */
  readonly problem: string;
  /** Waiting hardly ever helps. */
  readonly isLasting: boolean;
};

const explainLasting = (why: string, problem: string): PodFailureMeaning => ({ why, problem, isLasting: true });
const explainForNow = (what: string, advice: string): PodFailureMeaning => {
  return { why: what, problem: `${what}; ${advice}`, isLasting: false };
};

export function explainPodFailure(failure: PodRequestFailure, request: PodRequest): PodFailureMeaning {
  const { origin, namespace, pod, tokenPath, account } = request;
  switch (failure.kind) {
    case 'distrusted':
      return explainLasting(
        `the API server is not trusted: ${failure.code}`,
        `the certificate of ${origin} is not trusted (${failure.code}); it must be for this address and signed by ca.crt of the service account`,
      );
    case 'noAnswer':
      return explainForNow(
        `the API server ${origin} gives no answer: ${failure.why}`,
        'does a NetworkPolicy or a mesh keep it away?',
      );
    case 'unreadable':
      return explainForNow(failure.why, `is ${origin} the API server?`);
    case 'anotherPod':
      return explainWrongPod('is another one than this', request);
    case 'status':
      break;
  }
  const { status, message } = failure;
  switch (status) {
    case 401:
      return explainLasting(
        'HTTP 401',
        `the API server does not take the token in ${tokenPath} (HTTP 401), even when read again; was the service account deleted?`,
      );
    case 403: {
      const subject = account === null ? 'this service account' : `system:serviceaccount:${account}`;
      return explainLasting(
        'HTTP 403',
        `the API server forbids ${subject} to get pod ${namespace}/${pod} (HTTP 403); create the Role: ` +
          `kubectl create role lastscrape --verb=get --resource=pods -n ${namespace} && ` +
          `kubectl create rolebinding lastscrape --role=lastscrape --serviceaccount=${account ?? `${namespace}:default`} -n ${namespace}`,
      );
    }
    case 404:
      return explainWrongPod('is not there (HTTP 404)', request);
    default: {
      const what = `the API server ${origin} answers HTTP ${status}`;
      const meaning = explainForNow(what, 'it is asked again, ever less often');
      // The server's words may differ each time, and a warning appears once for each text of a problem.
      return message === '' ? meaning : { ...meaning, why: `${what}: ${message.slice(0, 100)}` };
    }
  }
}

function explainWrongPod(what: string, { namespace, pod }: PodRequest): PodFailureMeaning {
  const why = `pod ${namespace}/${pod} ${what}`;
  return explainLasting(
    why,
    `${why}; the host name is not the pod's name where that has more than 63 characters, with hostNetwork, ` +
      'setHostnameAsFQDN or a hostname of its own, and in an Indexed Job: set POD_NAME from metadata.name by fieldRef',
  );
}

/** A failed request, for its callers. */
export type FailedPodRequest = Pick<PodFailureMeaning, 'why' | 'isLasting'> & {
  readonly kind: 'failed';
  /** `what is; what to do`, once a person must act or may wonder; null: it may pass. */
  readonly problem: string | null;
  /** When to ask again; null: no request was made, or its caller ended it. */
  readonly retryAtMs: number | null;
  /** Failed requests in a row. */
  readonly failedCount: number;
};

type PodRequestEnd = {
  readonly meaning: PodFailureMeaning;
  readonly atMs: number;
  /** The server's Retry-After; 0 without one. */
  readonly retryAfterMs: number;
  /** From 0 to 1: how much of the longest random addition the pause gets. */
  readonly jitter: number;
};

/** The result of a request that failed after `failedBefore` others in a row. */
export function failPodRequest(
  failedBefore: number,
  { meaning, atMs, retryAfterMs, jitter }: PodRequestEnd,
): FailedPodRequest {
  const failedCount = failedBefore + 1;
  const pauseMs = RETRY_PAUSES_MS[Math.min(failedCount, RETRY_PAUSES_MS.length) - 1] as number;
  return {
    ...meaning,
    kind: 'failed',
    problem: meaning.isLasting || failedCount >= WORTH_A_WARNING_COUNT ? meaning.problem : null,
    retryAtMs: atMs + Math.max(pauseMs * (1 + jitter / 4), Math.min(retryAfterMs, RETRY_AFTER_MAX_MS)),
    failedCount,
  };
}

/** What a caller has, and wants. */
export type WantedPodAnswer = {
  /** Since when its condition has been done; null: it is not. */
  readonly doneSinceMs: number | null;
  /** The newest answer that the caller saw; any other one of this poll is reused. */
  readonly seenNumber: number;
};

/** The newest answer or failure, to be reused; null: ask the server now. */
export function choosePodAnswer<Answer extends { readonly number: number; readonly atMs: number }>(
  newest: Answer | null,
  failure: FailedPodRequest | null,
  { doneSinceMs, seenNumber }: WantedPodAnswer,
  nowMs: number,
): Answer | FailedPodRequest | null {
  if (failure !== null) return nowMs < (failure.retryAtMs ?? 0) ? failure : null;
  if (newest === null) return null;
  const ageMs = nowMs - newest.atMs;
  const maxAgeMs = doneSinceMs !== null && nowMs - doneSinceMs < DONE_URGENT_MS ? 0 : RUNNING_AGE_MS;
  return ageMs < maxAgeMs || (newest.number !== seenNumber && ageMs < SAME_POLL_MS) ? newest : null;
}

/** How long the check at the start waits until it asks again; null: believe the failure, or let it pass. */
export function chooseCheckPauseMs(failure: FailedPodRequest, nowMs: number): number | null {
  if (!failure.isLasting || failure.retryAtMs === null || failure.failedCount >= CHECK_COUNT) return null;
  return failure.retryAtMs - nowMs;
}
