// Reads this pod at the API server: GET of the one pod, by the service account that is mounted, over one TLS connection.
// Says what it saw, and what to do where it cannot; decides nothing. Kind to the server: it serves a recent answer again,
// and asks ever less often while requests fail. Imported only where a condition needs it.

import { readFileSync } from 'node:fs';
import { dialTls } from '../net/dial-tls.ts';
import { type Exchange, type ExchangeResult, openExchange } from '../net/exchange.ts';
import { type OwnContainer, readOwnContainer } from '../wire/mount-info.ts';
import { type Pod, readPod, readStatusMessage } from '../wire/pod-status.ts';

/** 99 % of such requests are answered within 1 s, by Kubernetes's own objective (kubernetes/community, "API call latency"). */
export const REQUEST_TIMEOUT_MS = 3_000;
/** A pod has some ten KB, and some hundred with many containers and managers; etcd takes 1.5 MB at most. */
export const BODY_MAX_BYTES = 1024 * 1024;
/** No answer but a pod is read further. */
const OTHER_BODY_MAX_BYTES = 4_096;
/** Pauses after requests that failed, one after the other; the last one repeats. Up to a quarter is added, by chance. */
export const RETRY_PAUSES_MS: readonly number[] = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000];
/** A longer Retry-After is cut to this: the run may end within the hour that a broken proxy asks for. */
const RETRY_AFTER_MAX_MS = 60_000;
/** Callers that want the newest answer share it within one look. */
const SAME_LOOK_MS = 250;
/** One lost request is nobody's concern; so many in a row, at least 7 s, are. */
const WORTH_A_WARNING_COUNT = 4;

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
  pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  jitter: Math.random,
};

/** What reading the pod came to. */
export type PodReadResult =
  /** `number` counts the answers: two looks with the same number are one reading. */
  | { readonly kind: 'read'; readonly pod: Pod; readonly number: number; readonly atMs: number }
  | {
      readonly kind: 'failed';
      /** Short, for a log line. */
      readonly why: string;
      /** `what is; what to do`, where a person must act or wonders by now; null: it may well pass. */
      readonly problem: string | null;
      /** When the next request is made; null: none was, because something is missing here, or nobody waits any more. */
      readonly retryAtMs: number | null;
      /** Requests that failed, one after the other. */
      readonly failedCount: number;
      /** Waiting hardly ever mends it. */
      readonly isLasting: boolean;
    };

type Failure = Extract<PodReadResult, { readonly kind: 'failed' }>;

/** What a caller has already. */
export type WantedPod = {
  /** An answer that is younger is served again. */
  readonly maxAgeMs: number;
  /** The number of the newest answer that the caller saw; another one of this very look is served, whatever `maxAgeMs`. */
  readonly seenNumber: number;
  /** Ends a request early; its reason is a string. */
  readonly signal?: AbortSignal;
};

export type PodReader = {
  /** Reads the pod, or serves the newest answer again; never rejects. One call at a time. */
  readonly read: (wanted: WantedPod) => Promise<PodReadResult>;
  /** This very container; null where its termination message is not mounted. */
  readonly own: OwnContainer | null;
  readonly nowMs: () => number;
  readonly pause: (ms: number) => Promise<void>;
  readonly close: () => Promise<void>;
};

type Environment = Readonly<Record<string, string | undefined>>;

/** Opens this pod; connects at the first read. */
export function openPodReader(env: Environment, version: string, surroundings: PodEnvironment): PodReader {
  const { nowMs, accountFolder } = surroundings;
  const own = readOwnContainer(readText(surroundings.mountInfoPath) ?? '');
  let exchange: { readonly origin: string; readonly open: Exchange } | null = null;
  let distrust: string | null = null;
  let newest: Extract<PodReadResult, { readonly kind: 'read' }> | null = null;
  let failure: Failure | null = null;
  let failedCount = 0;
  let readCount = 0;

  function exchangeWith(origin: string): Exchange {
    if (exchange?.origin === origin) return exchange.open;
    const dial = dialTls({
      readCa: () => readFileSync(`${accountFolder}/ca.crt`, 'utf8'),
      onDistrust: (code) => {
        distrust = code;
      },
    });
    exchange = { origin, open: openExchange(new URL(origin), dial) };
    return exchange.open;
  }

  function isServedAgain(
    answer: NonNullable<typeof newest>,
    { maxAgeMs, seenNumber }: WantedPod,
    ageMs: number,
  ): boolean {
    return ageMs < maxAgeMs || (answer.number !== seenNumber && ageMs < SAME_LOOK_MS);
  }

  return {
    own,
    nowMs,
    pause: surroundings.pause,
    async close() {
      await exchange?.open.close();
      exchange = null;
    },
    async read(wanted) {
      const { signal } = wanted;
      const startedAtMs = nowMs();
      if (failure !== null && startedAtMs < (failure.retryAtMs ?? 0)) return failure;
      if (failure === null && newest !== null && isServedAgain(newest, wanted, startedAtMs - newest.atMs))
        return newest;
      const place = findPlace(env, accountFolder);
      if ('problem' in place) {
        const { problem } = place;
        const why = problem.split(';')[0] as string;
        return { kind: 'failed', why, problem, retryAtMs: null, failedCount, isLasting: true };
      }
      distrust = null;
      const answer = await get(exchangeWith(place.origin), place, version, signal);
      if (answer.exchanged.kind === 'failed' && signal?.aborted) {
        // Nobody waits for it any more: it says nothing of the server.
        const { why } = answer.exchanged;
        return { kind: 'failed', why, problem: null, retryAtMs: null, failedCount, isLasting: false };
      }
      const judged = judge(answer, place, own, distrust);
      if ('pod' in judged) {
        failure = null;
        failedCount = 0;
        readCount++;
        newest = { kind: 'read', pod: judged.pod, number: readCount, atMs: nowMs() };
        return newest;
      }
      failedCount++;
      const pauseMs = RETRY_PAUSES_MS[Math.min(failedCount, RETRY_PAUSES_MS.length) - 1] as number;
      const jitteredMs = pauseMs * (1 + surroundings.jitter() / 4);
      failure = {
        kind: 'failed',
        why: judged.why,
        problem: judged.isLasting || failedCount >= WORTH_A_WARNING_COUNT ? judged.problem : null,
        retryAtMs: nowMs() + Math.max(jitteredMs, answer.retryAfterMs),
        failedCount,
        isLasting: judged.isLasting,
      };
      return failure;
    },
  };
}

/** Where the pod is read, and as whom. */
type Place = {
  readonly origin: string;
  readonly namespace: string;
  readonly pod: string;
  readonly token: string;
  readonly tokenPath: string;
};

/** Read anew for each request: the kubelet renews the token long before it ends. */
function findPlace(env: Environment, accountFolder: string): Place | { readonly problem: string } {
  const host = variableOf(env, 'KUBERNETES_SERVICE_HOST');
  if (host === '') return { problem: 'KUBERNETES_SERVICE_HOST is not set; this must run in a pod of Kubernetes' };
  const port = variableOf(env, 'KUBERNETES_SERVICE_PORT') || '443';
  const url = URL.parse(`https://${host.includes(':') ? `[${host}]` : host}:${port}`);
  if (url === null) {
    return { problem: `KUBERNETES_SERVICE_HOST and _PORT are "${host}" and "${port}"; must be a host and a port` };
  }
  const tokenPath = `${accountFolder}/token`;
  const token = readText(tokenPath)?.trim() ?? '';
  if (token === '' || readText(`${accountFolder}/ca.crt`) === null) {
    return {
      problem: `no service account is mounted at ${accountFolder}; remove automountServiceAccountToken: false from the pod or its account`,
    };
  }
  const namespace = variableOf(env, 'POD_NAMESPACE') || (readText(`${accountFolder}/namespace`)?.trim() ?? '');
  const pod = variableOf(env, 'POD_NAME') || variableOf(env, 'HOSTNAME');
  // The names of objects (documentation, "Object Names and IDs"): nothing that could end a path.
  for (const [name, text] of [
    ['POD_NAMESPACE', namespace],
    ['POD_NAME', pod],
  ]) {
    if (!/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(text as string)) {
      return {
        problem: `${name} is "${text}"; set it from metadata.${name === 'POD_NAME' ? 'name' : 'namespace'} by fieldRef`,
      };
    }
  }
  return { origin: url.origin, namespace, pod, token, tokenPath };
}

type Answer = { readonly exchanged: ExchangeResult; readonly body: string; readonly retryAfterMs: number };

/** One request; once more where the kept connection had ended, or the token was renewed just now. */
async function get(exchange: Exchange, place: Place, version: string, signal?: AbortSignal): Promise<Answer> {
  const first = await send(exchange, place, place.token, version, signal);
  if (first.exchanged.kind === 'dropped') return send(exchange, place, place.token, version, signal);
  const token = readText(place.tokenPath)?.trim() ?? '';
  const isRenewed = token !== '' && token !== place.token;
  return statusOf(first) === 401 && isRenewed ? send(exchange, place, token, version, signal) : first;
}

async function send(
  exchange: Exchange,
  { namespace, pod }: Place,
  token: string,
  version: string,
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
  const exchanged = await exchange.send({
    method: 'GET',
    path: `/api/v1/namespaces/${namespace}/pods/${pod}`,
    headers: { accept: 'application/json', authorization: `Bearer ${token}`, 'user-agent': `lastscrape/${version}` },
    timeoutMs: REQUEST_TIMEOUT_MS,
    signal,
    onAnswer(_, headers) {
      // Seconds; Kubernetes sends no date.
      const seconds = Number(headers['retry-after'] ?? 0);
      if (seconds > 0) retryAfterMs = Math.min(seconds * 1_000, RETRY_AFTER_MAX_MS);
    },
    onBody: (piece) => keep(piece, BODY_MAX_BYTES),
    onOtherBody: (piece) => keep(piece, OTHER_BODY_MAX_BYTES),
  });
  return { exchanged, body: Buffer.concat(pieces).toString('utf8'), retryAfterMs };
}

type Judged = { readonly pod: Pod } | { readonly why: string; readonly problem: string; readonly isLasting: boolean };

function judge(answer: Answer, place: Place, own: OwnContainer | null, distrust: string | null): Judged {
  const { exchanged, body } = answer;
  if (distrust !== null) {
    return {
      why: `the API server is not trusted: ${distrust}`,
      problem: `the certificate of ${place.origin} is not trusted (${distrust}); it must be for this address and signed by ca.crt of the service account`,
      isLasting: true,
    };
  }
  if (exchanged.kind !== 'answered') {
    const why = exchanged.kind === 'failed' ? exchanged.why : exchanged.kind;
    return passing(
      `the API server ${place.origin} gives no answer: ${why}`,
      'does a NetworkPolicy or a mesh keep it away?',
    );
  }
  if (exchanged.status !== 200) return judgeStatus(exchanged.status, body, place);
  const reading = readPod(body);
  if ('why' in reading) return passing(reading.why, `is ${place.origin} the API server?`);
  if (own !== null && reading.pod.uid !== own.podUid) return noSuchPod(place, 'is another one than this');
  return reading;
}

function judgeStatus(status: number, body: string, place: Place): Judged {
  const { namespace, pod, tokenPath } = place;
  switch (status) {
    case 401:
      return {
        why: 'HTTP 401',
        problem: `the API server does not take the token in ${tokenPath} (HTTP 401), also when read again; was the service account deleted?`,
        isLasting: true,
      };
    case 403: {
      const { subject, account } = subjectOf(place);
      return {
        why: 'HTTP 403',
        problem:
          `the API server forbids ${subject} to get pod ${namespace}/${pod} (HTTP 403); create the Role: ` +
          `kubectl create role lastscrape --verb=get --resource=pods -n ${namespace} && ` +
          `kubectl create rolebinding lastscrape --role=lastscrape --serviceaccount=${account} -n ${namespace}`,
        isLasting: true,
      };
    }
    case 404:
      return noSuchPod(place, 'is not there (HTTP 404)');
    default: {
      const message = readStatusMessage(body);
      const what = `the API server ${place.origin} answers HTTP ${status}`;
      const judged = passing(what, 'it is asked again, ever less often');
      // The server's own words may differ each time, and a warning is given once for each text of a problem.
      return message === '' ? judged : { ...judged, why: `${what}: ${message.slice(0, 100)}` };
    }
  }
}

function noSuchPod({ namespace, pod }: Place, what: string): Judged {
  return {
    why: `pod ${namespace}/${pod} ${what}`,
    problem:
      `pod ${namespace}/${pod} ${what}; the host name is not the pod's name with hostNetwork, with a hostname of its own, ` +
      'and in an Indexed Job: set POD_NAME from metadata.name by fieldRef',
    isLasting: true,
  };
}

function passing(what: string, advice: string): Judged {
  return { why: what, problem: `${what}; ${advice}`, isLasting: false };
}

/** Whose token it is: the subject of a JWT, which is no secret; the account `default` where it cannot be told. */
function subjectOf({ token, namespace }: Place): { readonly subject: string; readonly account: string } {
  const payload = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8');
  const [, account = ''] = /"sub"\s*:\s*"system:serviceaccount:([a-z0-9.-]+:[a-z0-9.-]+)"/.exec(payload) ?? [];
  if (account === '') return { subject: 'this service account', account: `${namespace}:default` };
  return { subject: `system:serviceaccount:${account}`, account };
}

function statusOf({ exchanged }: Answer): number | null {
  return exchanged.kind === 'answered' ? exchanged.status : null;
}

function variableOf(env: Environment, name: string): string {
  return env[name]?.trim() ?? '';
}

/** null where it cannot be read. */
function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
