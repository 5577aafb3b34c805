import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { VERSION } from '../../src/base/version.ts';
import { BODY_MAX_BYTES } from '../../src/pod/api-server.ts';
import { openPodReader, type PodReadResult } from '../../src/pod/pod-reader.ts';
import type { FailedPodRequest } from '../../src/pod/pod-request.ts';
import {
  type ApiAnswerer,
  type ApiServer,
  give,
  makePodEnvironment,
  makeToken,
  openApiServer,
  refuse,
} from '../stand-in/api-server.ts';
import { type Authority, gateOpenssl, makeAuthority } from '../stand-in/authority.ts';
import { findFreePort } from '../support/listen.ts';
import { readRecordedText } from '../support/recording.ts';

const skip = gateOpenssl('test/pod/pod-reader.test.ts');
const authority = makeAuthority();
const POD = readRecordedText('kubernetes-1.36.3/never.json');
const GET = 'GET /api/v1/namespaces/load-tests/pods/load-x7k2p';

type Setting = {
  readonly env?: Readonly<Record<string, string>>;
  readonly mountInfo?: string;
  readonly jitter?: number;
  readonly certificate?: ReturnType<Authority['sign']>;
};

async function open(answer: ApiAnswerer, { env = {}, mountInfo = '', jitter = 0, ...server }: Setting = {}) {
  const api = await openApiServer({ authority, answer, ...server });
  const { environment, ...clock } = makePodEnvironment(api.accountFolder, jitter);
  writeFileSync(environment.mountInfoPath, mountInfo);
  const pod = openPodReader({ ...api.env, ...env }, environment);
  return {
    ...{ server: api, pod, ...clock },
    async [Symbol.asyncDispose]() {
      await pod.close();
      await api[Symbol.asyncDispose]();
    },
  };
}

const givePod: ApiAnswerer = (_, response) => give(response, POD);

/** Main has just ended, as far as it is known. */
const NEWEST = { doneSinceMs: Number.POSITIVE_INFINITY, seenNumber: 0 };

function expectFailure(result: PodReadResult): FailedPodRequest {
  assert.ok(result.kind === 'failed', result.kind);
  return result;
}

test('read() reads this pod, with the mounted token and namespace, over one connection', { skip }, async () => {
  let headers: Readonly<Record<string, unknown>> = {};
  await using world = await open((request, response) => {
    headers = request.headers;
    give(response, POD);
  });
  const { server, pod, advance } = world;
  for (let count = 1; count <= 5; count++) {
    const result = await pod.read({ ...NEWEST, seenNumber: count - 1 });
    assert.ok(result.kind === 'read');
    assert.deepEqual([result.number, result.pod.containers[0]?.state.kind], [count, 'done']);
    advance(1_000);
  }
  assert.deepEqual(server.requests, Array(5).fill(`${GET} first`));
  assert.equal(server.connectionsCount(), 1);
  assert.deepEqual([headers['user-agent'], headers['accept']], [`lastscrape/${VERSION}`, 'application/json']);
});

test('read() takes POD_NAME and POD_NAMESPACE before the host name and the mount', { skip }, async () => {
  await using world = await open(givePod, { env: { POD_NAME: 'main-0', POD_NAMESPACE: 'other' } });
  await world.pod.read(NEWEST);
  assert.deepEqual(world.server.requests, ['GET /api/v1/namespaces/other/pods/main-0 first']);
});

test('read() serves an answer again while it is young, and shares it within a poll', { skip }, async () => {
  await using world = await open(givePod);
  const { server, pod, advance } = world;
  const readNumber = async (isDone: boolean, seenNumber: number) => {
    const result = await pod.read({ doneSinceMs: isDone ? NEWEST.doneSinceMs : null, seenNumber });
    return result.kind === 'read' ? result.number : null;
  };
  assert.equal(await readNumber(false, 0), 1);
  advance(4_999);
  assert.equal(await readNumber(false, 1), 1);
  advance(1);
  assert.equal(await readNumber(false, 1), 2);
  assert.equal(await readNumber(true, 1), 2, 'another condition of this poll');
  assert.equal(await readNumber(true, 2), 3, 'the newest is wanted');
  assert.equal(server.requests.length, 3);
});

const listTokens = ({ requests }: ApiServer) => requests.map((request) => request.split(' ').at(-1));

test('read() goes on with a renewed token', { skip }, async () => {
  await using world = await open(givePod);
  const { server, pod, advance } = world;
  assert.equal((await pod.read(NEWEST)).kind, 'read');
  advance(1_000);
  server.rotate(makeToken('second'), true);
  assert.equal((await pod.read(NEWEST)).kind, 'read');
  advance(1_000);
  // The server takes the third one only, which the kubelet mounts while the request is under way.
  server.rotate(makeToken('third'), false);
  const { why, problem, isLasting } = expectFailure(await pod.read(NEWEST));
  assert.deepEqual([why, isLasting], ['HTTP 401', true]);
  const expected = /^the API server does not take the token in \S+\/token \(HTTP 401\), even when read again; /;
  assert.match(String(problem), expected);
  assert.deepEqual(listTokens(server), ['first', 'second', 'second']);
});

test('read() goes on with a renewed token where the old one is refused before that is seen', { skip }, async () => {
  await using world = await open((request, response) => {
    if (!(request.headers.authorization ?? '').endsWith('.first')) return give(response, POD);
    world.server.rotate(makeToken('second'), true);
    refuse(response, 401);
  });
  assert.equal((await world.pod.read(NEWEST)).kind, 'read');
  assert.deepEqual(listTokens(world.server), ['first', 'second']);
});

test('read() says on 403 for whom to create a Role: the subject of the token', { skip }, async () => {
  await using world = await open((_, response) => refuse(response, 403));
  const { problem, isLasting } = expectFailure(await world.pod.read(NEWEST));
  assert.match(String(problem), /^the API server forbids system:serviceaccount:load-tests:watcher to get pod /);
  assert.equal(isLasting, true);
});

test('read() compares the pod with the one that this container is in', { skip }, async () => {
  const mount = (uid: string) => ({
    mountInfo: `368 418 254:0 /k/pods/${uid}/containers/watcher/c7a353e0 /dev/termination-log rw - ext4 x rw\n`,
  });
  await using other = await open(givePod, mount('00000000-0000-0000-0000-000000000000'));
  const { problem } = expectFailure(await other.pod.read(NEWEST));
  assert.match(String(problem), /^pod load-tests\/load-x7k2p is another one than this; /);
  await using own = await open(givePod, mount(JSON.parse(POD).metadata.uid));
  assert.equal((await own.pod.read(NEWEST)).kind, 'read');
  assert.equal(own.pod.own?.name, 'watcher');
});

test('read() asks again after a pause while the server fails, and at once when it has recovered', {
  skip,
}, async () => {
  let isBroken = true;
  await using world = await open((_, response) => {
    if (isBroken) response.writeHead(503).end('{"kind":"Status","message":"etcd is down"}');
    else give(response, POD);
  });
  const { server, pod, advance } = world;
  for (const [index, pauseMs] of [1_000, 2_000].entries()) {
    const result = expectFailure(await pod.read(NEWEST));
    assert.match(result.why, /^the API server https:\/\/127\.0\.0\.1:\d+ answers HTTP 503: etcd is down$/);
    assert.equal(result.failedCount, index + 1);
    advance(pauseMs - 1);
    assert.equal(await pod.read(NEWEST), result, 'not asked again before');
    assert.equal(server.requests.length, index + 1);
    advance(1);
  }
  isBroken = false;
  assert.equal((await pod.read(NEWEST)).kind, 'read');
  isBroken = true;
  advance(1_000);
  assert.equal(expectFailure(await pod.read(NEWEST)).failedCount, 1);
});

test('read() waits as long as a 429 says with Retry-After, and its jitter', { skip }, async () => {
  for (const [retryAfter, jitter, pauseMs] of [
    ['7', 0, 7_000],
    ['0', 1, 1_250],
  ] as const) {
    const answer: ApiAnswerer = (_, response) => response.writeHead(429, { 'retry-after': retryAfter }).end('Too many');
    await using world = await open(answer, { jitter });
    const { retryAtMs } = expectFailure(await world.pod.read(NEWEST));
    assert.equal(Number(retryAtMs) - world.now(), pauseMs);
  }
});

const BROKEN: Readonly<Record<string, readonly [ApiAnswerer, RegExp]>> = {
  'an answer that is not JSON': [(_, response) => give(response, '<html>'), /^the answer is not JSON$/],
  'an answer that is another object': [
    (_, response) => give(response, '{"kind":"PodList"}'),
    /^the answer is not a Pod$/,
  ],
  'a cut body': [
    (_, response) => {
      response.writeHead(200, { 'content-length': POD.length });
      response.write(POD.slice(0, 1_000), () => response.destroy());
    },
    /gives no answer: .*(other side closed|ECONNRESET)/,
  ],
  'a body without an end': [
    (_, response) => response.writeHead(200).write('x'.repeat(BODY_MAX_BYTES + 1)),
    /gives no answer: the body is too long$/,
  ],
  'a long error page': [(_, response) => response.writeHead(500).end('x'.repeat(100_000)), /answers HTTP 500$/],
};

for (const [name, [answer, why]] of Object.entries(BROKEN)) {
  test(`read() fails for now: ${name}`, { skip }, async () => {
    await using world = await open(answer);
    const result = expectFailure(await world.pod.read(NEWEST));
    assert.match(result.why, why);
    assert.deepEqual([result.isLasting, result.problem], [false, null]);
  });
}

test('read() ends a request that hangs when it is aborted, which is no fault of the server', { skip }, async () => {
  const controller = new AbortController();
  await using world = await open(() => controller.abort('the time is up'));
  const result = expectFailure(await world.pod.read({ ...NEWEST, signal: controller.signal }));
  assert.deepEqual([result.why, result.retryAtMs, result.failedCount], ['the time is up', null, 0]);
});

test('read() gives up on an answer that hangs, and is refused where nothing listens', { skip }, async () => {
  await using hanging = await open(() => {});
  assert.match(expectFailure(await hanging.pod.read(NEWEST)).why, /gives no answer: timed out$/);
  await using nowhere = await open(() => {}, { env: { KUBERNETES_SERVICE_PORT: `${await findFreePort()}` } });
  assert.match(expectFailure(await nowhere.pod.read(NEWEST)).why, /gives no answer: refused$/);
});

test('read() asks once more where the kept connection had ended', { skip }, async () => {
  await using world = await open((request, response, count) => {
    if (count === 1) request.socket.destroy();
    else give(response, POD);
  });
  const { server, pod, advance } = world;
  assert.equal((await pod.read(NEWEST)).kind, 'read');
  advance(1_000);
  assert.equal((await pod.read(NEWEST)).kind, 'read');
  assert.deepEqual([server.requests.length, server.connectionsCount()], [3, 2]);
});

test('read() trusts the mounted authority only, and the right address only', { skip }, async () => {
  const expected =
    /^the certificate of https:\S+ is not trusted \((UNABLE_TO_VERIFY_LEAF_SIGNATURE|ERR_TLS_CERT_ALTNAME_INVALID)\); /;
  for (const certificate of [makeAuthority().sign(['IP:127.0.0.1']), authority.sign(['IP:10.96.0.1'])]) {
    await using world = await open(() => assert.fail('the token must not be sent'), { certificate });
    const { problem, isLasting } = expectFailure(await world.pod.read(NEWEST));
    assert.match(String(problem), expected);
    assert.deepEqual([isLasting, world.server.requests], [true, []]);
  }
});

test('read() says what is missing, and asks no server', { skip }, async () => {
  const cases: readonly (readonly [Record<string, string>, RegExp])[] = [
    [{ KUBERNETES_SERVICE_HOST: '' }, /^KUBERNETES_SERVICE_HOST is not set; this must run in a pod of Kubernetes$/],
    [
      { KUBERNETES_SERVICE_PORT: 'x' },
      /^KUBERNETES_SERVICE_HOST and _PORT are "127.0.0.1" and "x"; must be a host and a port$/,
    ],
    [{ HOSTNAME: '' }, /^POD_NAME is ""; set it from metadata.name by fieldRef$/],
    [{ POD_NAME: '../secrets' }, /^POD_NAME is "..\/secrets"; set it from metadata.name by fieldRef$/],
    [{ POD_NAME: 'a;b' }, /^POD_NAME is "a;b"; set it from metadata.name by fieldRef$/],
    [{ POD_NAMESPACE: 'a/b' }, /^POD_NAMESPACE is "a\/b"; set it from metadata.namespace by fieldRef$/],
  ];
  for (const [env, problem] of cases) {
    await using world = await open(() => assert.fail('nothing is asked'), { env });
    const result = expectFailure(await world.pod.read(NEWEST));
    assert.match(String(result.problem), problem);
    assert.equal(result.why, String(result.problem).replace(/; (?:this must|must be|set it) .*$/, ''));
    assert.deepEqual([result.isLasting, result.retryAtMs, world.server.requests.length], [true, null, 0]);
  }
  const pod = openPodReader(
    { KUBERNETES_SERVICE_HOST: '::1', HOSTNAME: 'a' },
    makePodEnvironment('/nowhere').environment,
  );
  assert.match(
    String(expectFailure(await pod.read(NEWEST)).problem),
    /^no service account is mounted at \/nowhere; remove automountServiceAccountToken: false from the pod or its account$/,
  );
});
