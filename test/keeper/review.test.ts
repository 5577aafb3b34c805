// Who a pod is: tokens that an API server over TLS checks, and what it may not say of itself.

import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { Refused } from '../../src/keeper/request.ts';
import { openReview } from '../../src/keeper/review.ts';
import { type ApiServer, give, openApiServer } from '../stand-in/api-server.ts';
import { gateOpenssl, makeAuthority } from '../stand-in/authority.ts';

const skip = gateOpenssl('test/keeper/review.test.ts');
const authority = makeAuthority();

/** A token that says for whom it is. */
function makePodToken(name: string, audience: unknown = ['lastscrape']): string {
  return `e30.${Buffer.from(JSON.stringify({ aud: audience, name })).toString('base64url')}.c2ln`;
}

/** What a real API server answers (Kubernetes 1.36, TokenReview), with other fields of its status. */
function writeReview(status: Record<string, unknown> = {}, extra: Record<string, readonly string[]> = {}): string {
  const user = {
    username: 'system:serviceaccount:shop:default',
    uid: 'c3a1',
    groups: ['system:serviceaccounts', 'system:authenticated'],
    extra: {
      'authentication.kubernetes.io/node-name': ['node-1'],
      'authentication.kubernetes.io/pod-name': ['import-x7k2p'],
      'authentication.kubernetes.io/pod-uid': ['46d35a29'],
      ...extra,
    },
  };
  return JSON.stringify({
    kind: 'TokenReview',
    status: { authenticated: true, user, audiences: ['lastscrape'], ...status },
  });
}

const POD = { namespace: 'shop', name: 'import-x7k2p', uid: '46d35a29', node: 'node-1' };

function answerCreated(response: ServerResponse, body: string): void {
  response.writeHead(201, { 'content-type': 'application/json' }).end(body);
}

async function withReview(
  answer: (body: string, response: ServerResponse, count: number) => void,
  work: (review: ReturnType<typeof openReview>, api: ApiServer, clock: { nowMs: number }) => Promise<void>,
): Promise<void> {
  await using api = await openApiServer({
    authority,
    answer(request, response, count) {
      let body = '';
      request.on('data', (piece) => {
        body += piece;
      });
      request.on('end', () => answer(body, response, count));
    },
  });
  const clock = { nowMs: 0 };
  const review = openReview(api.env, () => clock.nowMs, api.accountFolder);
  try {
    await work(review, api, clock);
  } finally {
    await review.close();
  }
}

function isRefusal(reason: string, message: RegExp) {
  return (error: unknown) => error instanceof Refused && error.reason === reason && message.test(error.message);
}

test('prove() has the API server say who the pod is, for the audience, and asks once for a while', {
  skip,
}, async () => {
  const bodies: string[] = [];
  const answer = (body: string, response: ServerResponse) => {
    bodies.push(body);
    answerCreated(response, writeReview());
  };
  await withReview(answer, async (review, api, clock) => {
    const token = makePodToken('a');
    assert.deepEqual(await Promise.all([review.prove(token), review.prove(token)]), [POD, POD]);
    clock.nowMs = 10_000;
    assert.deepEqual(await review.prove(token), POD);
    assert.equal(api.requests.length, 1);
    assert.match(api.requests[0] ?? '', /^POST \/apis\/authentication\.k8s\.io\/v1\/tokenreviews /);
    assert.deepEqual(JSON.parse(bodies[0] ?? '').spec, { token, audiences: ['lastscrape'] });
    clock.nowMs = 10_001;
    await review.prove(token);
    assert.equal(api.requests.length, 2, 'a token of a pod that is gone is not believed for long');
  });
});

test('prove() asks the API server nothing about what is no token for a keeper', { skip }, async () => {
  await withReview(
    (_, response) => answerCreated(response, writeReview()),
    async (review, api) => {
      const long = makePodToken('x'.repeat(9_000));
      for (const token of [
        '',
        'secret',
        'a.b',
        'e30.e30.x',
        makePodToken('a', 'https://kubernetes.default.svc'),
        long,
      ]) {
        await assert.rejects(review.prove(token), isRefusal('anonymous', /audience "lastscrape"/), token);
      }
      assert.deepEqual(await review.prove(makePodToken('a', 'lastscrape')), POD);
      assert.equal(api.requests.length, 1);
    },
  );
});

test('prove() asks about several pods at a time, and again over the same connections', { skip }, async () => {
  const waiting: (() => void)[] = [];
  const answer = (_: string, response: ServerResponse) => {
    waiting.push(() => answerCreated(response, writeReview()));
    if (waiting.length === 4) for (const each of waiting.splice(0)) each();
  };
  await withReview(answer, async (review, api) => {
    for (const round of ['a', 'b']) {
      const tokens = [0, 1, 2, 3].map((index) => makePodToken(`${round}${index}`));
      assert.deepEqual(await Promise.all(tokens.map(review.prove)), [POD, POD, POD, POD]);
    }
    assert.equal(api.connectionsCount(), 4);
  });
});

const UNPROVEN: readonly (readonly [name: string, body: string])[] = [
  ['a token that is not authentic', writeReview({ authenticated: false, error: 'invalid bearer token' })],
  ['a token for others', writeReview({ audiences: ['other'] })],
  ['an API server that does not know audiences', writeReview({ audiences: undefined })],
  ['a token of no pod', writeReview({}, { 'authentication.kubernetes.io/pod-name': [] })],
  ['a token without the UID', writeReview({}, { 'authentication.kubernetes.io/pod-uid': [] })],
  ['a person', writeReview({ user: { username: 'admin', extra: {} } })],
  ['no JSON', 'x'],
];
for (const [name, body] of UNPROVEN) {
  test(`prove() refuses ${name}`, { skip }, () =>
    withReview(
      (_, response) => answerCreated(response, body),
      (review) => assert.rejects(review.prove(makePodToken('a')), isRefusal('unproven', /./)),
    ),
  );
}

test('prove() says that it cannot check where the API server is gone or forbids it, and asks again', {
  skip,
}, async () => {
  await withReview(
    (_, response, count) =>
      count === 0 ? response.writeHead(403).end('{"kind":"Status","message":"forbidden"}') : give(response, ''),
    async (review) => {
      await assert.rejects(review.prove(makePodToken('a')), isRefusal('unchecked', /HTTP 403 forbidden/));
      await assert.rejects(review.prove(makePodToken('a')), isRefusal('unchecked', /HTTP 200/));
    },
  );
  const nowhere = openReview({}, () => 0, '/nowhere');
  await assert.rejects(nowhere.prove(makePodToken('a')), isRefusal('unchecked', /KUBERNETES_SERVICE_HOST is not set/));
  assert.match((await nowhere.findProblem()) ?? '', /KUBERNETES_SERVICE_HOST/);
});

test('findProblem() is null where the API server checks a token that is none', { skip }, () =>
  withReview(
    (_, response) => answerCreated(response, writeReview({ authenticated: false })),
    async (review) => assert.equal(await review.findProblem(), null),
  ),
);
