import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { VERSION } from '../../src/base/version.ts';
import { BODY_MAX_BYTES } from '../../src/pod/api-server.ts';
import { openPodReader, type PodEnvironment, type PodReader, type PodReadResult } from '../../src/pod/pod-reader.ts';
import { type FailedPodRequest, RETRY_PAUSES_MS } from '../../src/pod/pod-request.ts';
import { type ApiAnswerer, type ApiServer, give, makeToken, openApiServer, refuse } from '../stand-in/api-server.ts';
import { type Authority, gateOpenssl, makeAuthority } from '../stand-in/authority.ts';
import { findFreePort } from '../support/listen.ts';
import { readRecordedText } from '../support/recording.ts';

const skip = gateOpenssl('test/pod/pod-reader.test.ts');
const authority = makeAuthority();
const POD = readRecordedText('kubernetes-1.36.3/never.json');
const GET = 'GET /api/v1/namespaces/load-tests/pods/load-x7k2p';

/** A clock that the test moves; no jitter, unless asked for. */
function makeEnvironment(accountFolder: string, jitter = 0) {
  let now = 1_000_000;
  const environment: PodEnvironment = {
    accountFolder,
    mountInfoPath: join(accountFolder, 'mountinfo'),
    nowMs: () => now,
    pause: async (ms) => {
      now += ms;
    },
    jitter: () => jitter,
  };
  return { environment, advance: (ms: number) => (now += ms), now: () => now };
}

type Scenario = {
  readonly server: ApiServer;
  readonly pod: PodReader;
  readonly advance: (ms: number) => number;
  readonly now: () => number;
};
type Setting = {
  readonly env?: Readonly<Record<string, string>>;
  readonly mountInfo?: string;
  readonly jitter?: number;
  readonly certificate?: ReturnType<Authority['sign']>;
};

/** Plays a scenario of one server that answers so, and one reader. */
async function play(
  answer: ApiAnswerer,
  scenario: (parts: Scenario) => Promise<void>,
  { env = {}, mountInfo = '', jitter = 0, ...server }: Setting = {},
): Promise<void> {
  await using api = await openApiServer({ authority, answer, ...server });
  const { environment, advance, now } = makeEnvironment(api.accountFolder, jitter);
  writeFileSync(environment.mountInfoPath, mountInfo);
  const pod = openPodReader({ ...api.env, ...env }, environment);
  await scenario({ server: api, pod, advance, now });
  await pod.close();
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
  const answer: ApiAnswerer = (request, response) => {
    headers = request.headers;
    give(response, POD);
  };
  await play(answer, async ({ server, pod, advance }) => {
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
});

test('read() takes POD_NAME and POD_NAMESPACE before the host name and the mount', { skip }, async () => {
  await play(
    givePod,
    async ({ server, pod }) => {
      await pod.read(NEWEST);
      assert.deepEqual(server.requests, ['GET /api/v1/namespaces/other/pods/main-0 first']);
    },
    { env: { POD_NAME: 'main-0', POD_NAMESPACE: 'other' } },
  );
});

test('read() serves an answer again while it is young, and shares it within a poll', { skip }, async () => {
  await play(givePod, async ({ server, pod, advance }) => {
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
});

test('read() goes on with a renewed token, also where the old one is refused before the new one is seen', {
  skip,
}, async () => {
  await play(givePod, async ({ server, pod, advance }) => {
    assert.equal((await pod.read(NEWEST)).kind, 'read');
    advance(1_000);
    server.rotate(makeToken('second'), true);
    assert.equal((await pod.read(NEWEST)).kind, 'read');
    advance(1_000);
    // The server takes the third one only, which the kubelet mounts while the request is under way.
    server.rotate(makeToken('third'), false);
    const refused = expectFailure(await pod.read(NEWEST));
    assert.equal(refused.why, 'HTTP 401');
    const problem = String(refused.problem);
    assert.match(problem, /^the API server does not take the token in \S+\/token \(HTTP 401\), even when read again; /);
    assert.equal(refused.isLasting, true);
    const tokens = server.requests.map((request) => request.split(' ').at(-1));
    assert.deepEqual(tokens, ['first', 'second', 'second']);
  });
  let rotated: ApiServer | null = null;
  const renew: ApiAnswerer = (request, response) => {
    if (!(request.headers.authorization ?? '').endsWith('.first')) return give(response, POD);
    rotated?.rotate(makeToken('second'), true);
    refuse(response, 401);
  };
  await play(renew, async ({ server, pod }) => {
    rotated = server;
    assert.equal((await pod.read(NEWEST)).kind, 'read');
    const tokens = server.requests.map((request) => request.split(' ').at(-1));
    assert.deepEqual(tokens, ['first', 'second']);
  });
});

test('read() says on 403 for whom to create a Role: the subject of the token', { skip }, async () => {
  await play(
    (_, response) => refuse(response, 403),
    async ({ pod }) => {
      const { problem, isLasting } = expectFailure(await pod.read(NEWEST));
      assert.match(String(problem), /^the API server forbids system:serviceaccount:load-tests:watcher to get pod /);
      assert.equal(isLasting, true);
    },
  );
});

test('read() compares the pod with the one that this container is in', { skip }, async () => {
  const mount = (uid: string) =>
    `368 418 254:0 /k/pods/${uid}/containers/watcher/c7a353e0 /dev/termination-log rw - ext4 x rw\n`;
  await play(
    givePod,
    async ({ pod }) => {
      const { problem } = expectFailure(await pod.read(NEWEST));
      assert.match(String(problem), /^pod load-tests\/load-x7k2p is another one than this; /);
    },
    { mountInfo: mount('00000000-0000-0000-0000-000000000000') },
  );
  await play(
    givePod,
    async ({ pod }) => {
      assert.equal((await pod.read(NEWEST)).kind, 'read');
      assert.equal(pod.own?.name, 'watcher');
    },
    { mountInfo: mount(JSON.parse(POD).metadata.uid) },
  );
});

test('read() asks ever less often while the server fails, and at once when it has recovered', { skip }, async () => {
  let isBroken = true;
  const answer: ApiAnswerer = (_, response) => {
    if (isBroken) response.writeHead(503).end('{"kind":"Status","message":"etcd is down"}');
    else give(response, POD);
  };
  await play(answer, async ({ server, pod, advance }) => {
    for (const [index, pauseMs] of [...RETRY_PAUSES_MS, 30_000].entries()) {
      const result = expectFailure(await pod.read(NEWEST));
      assert.match(result.why, /^the API server https:\/\/127\.0\.0\.1:\d+ answers HTTP 503: etcd is down$/);
      const what = result.why.replace(': etcd is down', '; it is asked again, ever less often');
      assert.equal(
        result.problem,
        index < 3 ? null : what,
        "a person hears of it when it lasts, without the server's words",
      );
      assert.deepEqual([result.isLasting, result.failedCount], [false, index + 1]);
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
});

for (const [retryAfter, jitter, pauseMs] of [
  ['7', 0, 7_000],
  ['0', 1, 1_250],
] as const) {
  test(`read() waits ${pauseMs} ms on 429 with Retry-After: ${retryAfter}, and jitter ${jitter}`, {
    skip,
  }, async () => {
    await play(
      (_, response) => response.writeHead(429, { 'retry-after': retryAfter }).end('Too many requests'),
      async ({ pod, now }) => {
        const { why, retryAtMs } = expectFailure(await pod.read(NEWEST));
        assert.match(why, /answers HTTP 429$/);
        assert.equal(Number(retryAtMs) - now(), pauseMs);
      },
      { jitter },
    );
  });
}

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
    await play(answer, async ({ pod }) => {
      const result = expectFailure(await pod.read(NEWEST));
      assert.match(result.why, why);
      assert.deepEqual([result.isLasting, result.problem], [false, null]);
    });
  });
}

test('read() ends a request that hangs when it is aborted, which is no fault of the server', { skip }, async () => {
  const controller = new AbortController();
  await play(
    () => controller.abort('the time is up'),
    async ({ pod }) => {
      const result = expectFailure(await pod.read({ ...NEWEST, signal: controller.signal }));
      assert.deepEqual([result.why, result.retryAtMs, result.failedCount], ['the time is up', null, 0]);
    },
  );
});

test('read() gives up on an answer that hangs', { skip }, async () => {
  await play(
    () => {},
    async ({ pod }) => assert.match(expectFailure(await pod.read(NEWEST)).why, /gives no answer: timed out$/),
  );
});

test('read() asks once more where the kept connection had ended', { skip }, async () => {
  const answer: ApiAnswerer = (request, response, count) => {
    if (count === 1) request.socket.destroy();
    else give(response, POD);
  };
  await play(answer, async ({ server, pod, advance }) => {
    assert.equal((await pod.read(NEWEST)).kind, 'read');
    advance(1_000);
    assert.equal((await pod.read(NEWEST)).kind, 'read');
    assert.deepEqual([server.requests.length, server.connectionsCount()], [3, 2]);
  });
});

test('read() trusts the mounted authority only, and the right address only', { skip }, async () => {
  for (const certificate of [makeAuthority().sign(['IP:127.0.0.1']), authority.sign(['IP:10.96.0.1'])]) {
    await play(
      () => assert.fail('the token must not be sent'),
      async ({ pod, server }) => {
        const { problem, isLasting } = expectFailure(await pod.read(NEWEST));
        assert.match(
          String(problem),
          /^the certificate of https:\S+ is not trusted \((UNABLE_TO_VERIFY_LEAF_SIGNATURE|ERR_TLS_CERT_ALTNAME_INVALID)\); /,
        );
        assert.equal(isLasting, true);
        assert.deepEqual(server.requests, []);
      },
      { certificate },
    );
  }
});

test('read() is refused where nothing listens', { skip }, async () => {
  await play(
    () => {},
    async ({ pod }) => assert.match(expectFailure(await pod.read(NEWEST)).why, /gives no answer: refused$/),
    { env: { KUBERNETES_SERVICE_PORT: `${await findFreePort()}` } },
  );
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
    await play(
      () => assert.fail('nothing is asked'),
      async ({ pod, server }) => {
        const result = expectFailure(await pod.read(NEWEST));
        assert.match(String(result.problem), problem);
        assert.equal(result.why, String(result.problem).replace(/; (?:this must|must be|set it) .*$/, ''));
        assert.deepEqual([result.isLasting, result.retryAtMs, server.requests.length], [true, null, 0]);
      },
      { env },
    );
  }
  const pod = openPodReader({ KUBERNETES_SERVICE_HOST: '::1', HOSTNAME: 'a' }, makeEnvironment('/nowhere').environment);
  assert.match(
    String(expectFailure(await pod.read(NEWEST)).problem),
    /^no service account is mounted at \/nowhere; remove automountServiceAccountToken: false from the pod or its account$/,
  );
});
