import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  chooseCheckPauseMs,
  choosePodAnswer,
  DONE_URGENT_MS,
  explainPodFailure,
  type FailedPodRequest,
  failPodRequest,
  type PodRequest,
  type PodRequestFailure,
  RUNNING_AGE_MS,
} from '../../src/pod/pod-request.ts';

const REQUEST: PodRequest = {
  origin: 'https://10.96.0.1',
  namespace: 'load-tests',
  pod: 'load-x7k2p',
  tokenPath: '/account/token',
  account: 'load-tests:watcher',
};
const LONG = 'x'.repeat(150);

type Explained = readonly [failure: PodRequestFailure, why: string, problem: RegExp, isLasting: boolean];

const EXPLAINED: readonly Explained[] = [
  [
    { kind: 'distrusted', code: 'CERT_HAS_EXPIRED' },
    'the API server is not trusted: CERT_HAS_EXPIRED',
    /^the certificate of https:\/\/10\.96\.0\.1 is not trusted \(CERT_HAS_EXPIRED\); it must be for this address and signed by ca\.crt/,
    true,
  ],
  [
    { kind: 'noAnswer', why: 'timed out' },
    'the API server https://10.96.0.1 gives no answer: timed out',
    /^the API server https:\/\/10\.96\.0\.1 gives no answer: timed out; does a NetworkPolicy or a mesh keep it away\?$/,
    false,
  ],
  [
    { kind: 'unreadable', why: 'the answer is not JSON' },
    'the answer is not JSON',
    /^the answer is not JSON; is https:\/\/10\.96\.0\.1 the API server\?$/,
    false,
  ],
  [
    { kind: 'anotherPod' },
    'pod load-tests/load-x7k2p is another one than this',
    /^pod load-tests\/load-x7k2p is another one than this; the host name is not the pod's name where that has more than 63 characters, with hostNetwork, setHostnameAsFQDN or a hostname of its own, and in an Indexed Job: set POD_NAME from metadata\.name by fieldRef$/,
    true,
  ],
  [
    { kind: 'status', status: 401, message: 'Unauthorized' },
    'HTTP 401',
    /^the API server does not take the token in \/account\/token \(HTTP 401\), even when read again; was the service account deleted\?$/,
    true,
  ],
  [
    { kind: 'status', status: 403, message: 'forbidden' },
    'HTTP 403',
    /^the API server forbids system:serviceaccount:load-tests:watcher to get pod load-tests\/load-x7k2p \(HTTP 403\); create the Role: kubectl create role lastscrape --verb=get --resource=pods -n load-tests && kubectl create rolebinding lastscrape --role=lastscrape --serviceaccount=load-tests:watcher -n load-tests$/,
    true,
  ],
  [
    { kind: 'status', status: 404, message: 'not found' },
    'pod load-tests/load-x7k2p is not there (HTTP 404)',
    /^pod load-tests\/load-x7k2p is not there \(HTTP 404\); .*: set POD_NAME from metadata\.name by fieldRef$/,
    true,
  ],
  [
    { kind: 'status', status: 503, message: LONG },
    `the API server https://10.96.0.1 answers HTTP 503: ${LONG.slice(0, 100)}`,
    /^the API server https:\/\/10\.96\.0\.1 answers HTTP 503; it is asked again, ever less often$/,
    false,
  ],
  [
    { kind: 'status', status: 302, message: '' },
    'the API server https://10.96.0.1 answers HTTP 302',
    /^the API server https:\/\/10\.96\.0\.1 answers HTTP 302; it is asked again, ever less often$/,
    false,
  ],
];

for (const [failure, why, problem, isLasting] of EXPLAINED) {
  const name = failure.kind === 'status' ? `HTTP ${failure.status}` : failure.kind;
  test(`explainPodFailure() says what ${name} means`, () => {
    const meaning = explainPodFailure(failure, REQUEST);
    assert.deepEqual([meaning.why, meaning.isLasting], [why, isLasting]);
    assert.match(meaning.problem, problem);
  });
}

test('explainPodFailure() names the default account where the token does not name one', () => {
  const { problem } = explainPodFailure({ kind: 'status', status: 403, message: '' }, { ...REQUEST, account: null });
  assert.match(problem, /^the API server forbids this service account to get .*--serviceaccount=load-tests:default /);
});

/** So many failures in a row, each at 1,000 ms. */
function failTimes(count: number, isLasting: boolean, retryAfterMs = 0, jitter = 0): FailedPodRequest {
  const meaning = { why: 'why', problem: 'what is; what to do', isLasting };
  return failPodRequest(count - 1, { meaning, atMs: 1_000, retryAfterMs, jitter });
}

test('failPodRequest() asks ever less often, and the longest pause repeats', () => {
  const pauses = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000];
  const seen = pauses.map((_, index) => Number(failTimes(index + 1, false).retryAtMs) - 1_000);
  assert.deepEqual(seen, pauses);
});

test('failPodRequest() reports lasting problems at once, others from the fourth time on', () => {
  const isReported = (isLasting: boolean) =>
    [1, 2, 3, 4, 5].map((count) => failTimes(count, isLasting).problem !== null);
  assert.deepEqual(isReported(true), [true, true, true, true, true]);
  assert.deepEqual(isReported(false), [false, false, false, true, true]);
});

const PAUSES: readonly (readonly [retryAfterMs: number, jitter: number, pauseMs: number])[] = [
  [0, 0, 1_000],
  [0, 0.5, 1_125],
  [0, 1, 1_250],
  [900, 0, 1_000],
  [7_000, 1, 7_000],
  [60_000, 0, 60_000],
  [60_001, 0, 60_000],
];
for (const [retryAfterMs, jitter, pauseMs] of PAUSES) {
  test(`failPodRequest() pauses ${pauseMs} ms with Retry-After ${retryAfterMs} ms and a jitter of ${jitter}`, () => {
    assert.equal(failTimes(1, false, retryAfterMs, jitter).retryAtMs, 1_000 + pauseMs);
  });
}

const FAILED = failTimes(1, false);
const UNPAUSED = { ...FAILED, retryAtMs: null };
const NEWEST = { number: 3, atMs: 1_000 };
const OLD = { number: 3, atMs: 1_001 + DONE_URGENT_MS - RUNNING_AGE_MS };

type Choice = readonly [name: string, parameters: Parameters<typeof choosePodAnswer>, expected: unknown];

const CHOICES: readonly Choice[] = [
  ['nothing before', [null, null, { doneSinceMs: null, seenNumber: 0 }, 1_000], null],
  ['a young answer', [NEWEST, null, { doneSinceMs: null, seenNumber: 3 }, 5_999], NEWEST],
  ['an answer of just that age', [NEWEST, null, { doneSinceMs: null, seenNumber: 3 }, 6_000], null],
  ['the newest wanted', [NEWEST, null, { doneSinceMs: 1_000, seenNumber: 3 }, 1_000], null],
  ['another answer of this poll', [NEWEST, null, { doneSinceMs: 1_000, seenNumber: 2 }, 1_249], NEWEST],
  ['another answer of an earlier poll', [NEWEST, null, { doneSinceMs: 1_000, seenNumber: 2 }, 1_250], null],
  [
    'an answer since the end, still wanted new',
    [OLD, null, { doneSinceMs: 1_000, seenNumber: 3 }, 1_000 + DONE_URGENT_MS - 1],
    null,
  ],
  ['an answer long since the end', [OLD, null, { doneSinceMs: 1_000, seenNumber: 3 }, 1_000 + DONE_URGENT_MS], OLD],
  ['a failure whose pause runs', [null, FAILED, { doneSinceMs: null, seenNumber: 0 }, 1_999], FAILED],
  ['a failure whose pause is over', [null, FAILED, { doneSinceMs: null, seenNumber: 0 }, 2_000], null],
  ['a failure after a young answer', [NEWEST, FAILED, { doneSinceMs: null, seenNumber: 3 }, 1_500], FAILED],
  ['a failure without a pause, at once', [null, UNPAUSED, { doneSinceMs: 1_000, seenNumber: 0 }, 0], null],
  ['a failure without a pause', [null, UNPAUSED, { doneSinceMs: 1_000, seenNumber: 0 }, 1_000], null],
];
for (const [name, parameters, expected] of CHOICES) {
  test(`choosePodAnswer() with ${name}: ${expected === null ? 'asks' : 'reuses it'}`, () =>
    assert.equal(choosePodAnswer(...parameters), expected));
}

test('chooseCheckPauseMs() asks three times for what lasts, and not again for what may pass', () => {
  const pauses = [1, 2, 3].map((count) => chooseCheckPauseMs(failTimes(count, true), 1_200));
  assert.deepEqual(pauses, [800, 1_800, null]);
  assert.equal(chooseCheckPauseMs(failTimes(1, false), 1_200), null);
  assert.equal(chooseCheckPauseMs({ ...failTimes(1, true), retryAtMs: null }, 1_200), null);
});
