// Pushes with an encoder of the test's to a real server: the order, what is sent again, what ends it, and what is reported.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openDelivery } from '../../src/tell/deliver.ts';
import { type PushParts, sendPush } from '../../src/tell/push.ts';
import { otlp } from '../../src/tell/receivers/otlp.ts';
import { judgeStatus, type PushKind } from '../../src/tell/receivers/receiver.ts';
import { findFreePort } from '../support/listen.ts';
import { openPeer } from '../support/peer.ts';
import { openHttp } from '../support/receiver.ts';

const FAMILY_BY_FAMILY: PushKind = {
  name: 'pushgateway',
  findPath: (url) => url.pathname,
  async *encode({ families, labels }) {
    for await (const { name, samples } of families()) {
      const body = Buffer.from(JSON.stringify([labels, samples.map(({ value }) => value)]));
      yield { method: 'POST', path: `/${name}`, headers: { 'content-type': 'text/plain' }, body: () => body };
    }
  },
  judge: judgeStatus,
};
const NEVER = new AbortController().signal;

async function push(port: number, more: Partial<PushParts> = {}, text = 'a 1\nb 2\nc 3\n') {
  const url = new URL(`http://127.0.0.1:${port}/`);
  const delivery = openDelivery({ url, headersFile: null, caFile: null });
  const retries: string[] = [];
  const result = await sendPush({
    kind: FAMILY_BY_FAMILY,
    delivery,
    url,
    labels: [['job', 'checkout']],
    format: 'text',
    async *read() {
      yield Buffer.from(text);
    },
    nowMs: Date.now,
    signal: NEVER,
    onRetry: (why) => retries.push(why),
    pausesMs: [1],
    ...more,
  });
  await delivery.close();
  return { result, retries };
}

test('sendPush() sends every request once and in order', async () => {
  await using server = await openHttp();
  const { result } = await push(server.port);
  assert.deepEqual(result, { kind: 'accepted', requestsCount: 3 });
  const bodies = server.seen.map(({ url, body }) => [url, body]);
  assert.deepEqual(bodies, [
    ['/a', '[[["job","checkout"]],[1]]'],
    ['/b', '[[["job","checkout"]],[2]]'],
    ['/c', '[[["job","checkout"]],[3]]'],
  ]);
});

test('sendPush() sends again what the receiver had trouble with, and only that', async () => {
  await using server = await openHttp((response, _, count) => {
    response.writeHead(count === 1 || count === 2 ? 503 : 200).end('busy');
  });
  const { result, retries } = await push(server.port);
  assert.deepEqual(result, { kind: 'accepted', requestsCount: 3 });
  const paths = server.seen.map(({ url }) => url);
  assert.deepEqual(paths, ['/a', '/b', '/b', '/b', '/c']);
  assert.deepEqual(retries, ['HTTP 503: busy', 'HTTP 503: busy']);
});

test("sendPush() goes on after a refusal, and reports it in the receiver's own words", async () => {
  await using server = await openHttp((response, { url }) => {
    response.writeHead(url === '/a' ? 200 : 400).end(`no such label: ${url}`);
  });
  const { result } = await push(server.port);
  assert.deepEqual(result, { kind: 'failed', why: 'HTTP 400: no such label: /b (accepted requests: 1)' });
  const paths = server.seen.map(({ url }) => url);
  assert.deepEqual(paths, ['/a', '/b', '/c']);
});

test('sendPush() reads OpenMetrics as that', async () => {
  await using server = await openHttp();
  const page = 'a_total 42 # {trace_id="abc"} 1\n# EOF\n';
  await push(server.port, { format: 'openMetrics' }, page);
  const bodies = server.seen.map(({ url, body }) => [url, body]);
  assert.deepEqual(bodies, [['/a_total', '[[["job","checkout"]],[42]]']]);
});

/** With the time of the try. */
const TIMED: PushKind = {
  ...FAMILY_BY_FAMILY,
  async *encode(parts) {
    for await (const request of FAMILY_BY_FAMILY.encode(parts)) {
      yield { ...request, body: (nowMs) => Buffer.from(String(nowMs)) };
    }
  },
};

test('sendPush() gives each try its own time', async () => {
  await using server = await openHttp((response, _, count) => {
    response.writeHead(count === 1 ? 503 : 200).end();
  });
  let nowMs = 0;
  const { result } = await push(server.port, { kind: TIMED, nowMs: () => ++nowMs });
  assert.equal(result.kind, 'accepted');
  const times = server.seen.map(({ url, body }) => `${url} ${body}`);
  assert.deepEqual(times, ['/a 1', '/b 2', '/b 3', '/c 4']);
});

test('sendPush() tries once more what is out of order, until that does not help', async () => {
  const refuse: readonly (readonly [text: string, refused: readonly number[], sent: readonly string[]])[] = [
    ['out of order sample', [0, 3], ['/a', '/a', '/b', '/c', '/c']],
    ['(err-mimir-sample-out-of-order)', [0, 1, 2], ['/a', '/a', '/b', '/c']],
  ];
  for (const [text, refused, sent] of refuse) {
    await using server = await openHttp((response, _, count) => {
      response.writeHead(refused.includes(count) ? 400 : 200).end(text);
    });
    const { result, retries } = await push(server.port);
    const paths = server.seen.map(({ url }) => url);
    assert.deepEqual([paths, retries[0]], [sent, `HTTP 400: ${text}`]);
    assert.equal(result.kind, refused.length === 2 ? 'accepted' : 'failed');
  }
});

test('sendPush() judges the whole answer, and not what is shown of it', async () => {
  const partialSuccess = { errorMessage: 'out of bounds, '.repeat(1_500), rejectedDataPoints: '3' };
  await using server = await openHttp((response) => response.end(JSON.stringify({ partialSuccess })));
  const { result } = await push(server.port, { kind: otlp });
  assert.match(result.kind === 'failed' ? result.why : '', /^HTTP 200: .*out of bounds/);
});

test('sendPush() judges half an answer of OTLP by what it says', async () => {
  const answer = (text: string) => `HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n${text}`;
  await using server = await openPeer((socket) => socket.end(answer('{"partialSuccess":{"rejectedDataPoints":"3"')));
  const { result: refused } = await push(server.port, { kind: otlp });
  assert.equal(refused.kind === 'failed' ? refused.why : '', 'HTTP 200');
  assert.equal(server.requests.length, 1);
});

test('sendPush() tries for ever until its signal comes: 503, refused, no answer', async () => {
  for (const open of [
    () => openHttp((response) => response.writeHead(503).end('busy')),
    async () => ({ port: await findFreePort(), async [Symbol.asyncDispose]() {} }),
  ]) {
    await using server = await open();
    const limit = new AbortController();
    let count = 0;
    const onRetry = () => {
      if (++count === 12) limit.abort('no time is left');
    };
    const { result } = await push(server.port, { signal: limit.signal, onRetry });
    assert.match(result.kind === 'failed' ? result.why : '', /^HTTP 503: busy$|refuses connections$/);
    assert.equal(count, 12);
  }
  await using silent = await openPeer(() => setTimeout(() => limit.abort('no time is left'), 20));
  const limit = new AbortController();
  const { result } = await push(silent.port, { signal: limit.signal });
  assert.match(result.kind === 'failed' ? result.why : '', /did not answer in the time that was left$/);
});

test('sendPush() ends at its signal in a pause, and before it began', async () => {
  const limit = new AbortController();
  await using busy = await openHttp((response) => response.writeHead(503).end('busy'));
  const onRetry = () => setImmediate(() => limit.abort('no time is left'));
  const { result: paused } = await push(busy.port, { signal: limit.signal, pausesMs: [600_000], onRetry });
  assert.deepEqual(paused, { kind: 'failed', why: 'HTTP 503: busy' });
  const { result: never } = await push(busy.port, { signal: limit.signal });
  assert.deepEqual([never, busy.seen.length], [{ kind: 'failed', why: 'no time was left' }, 1]);
});

test('sendPush() leaves a receiver alone for as long as it asks, and says so', async () => {
  const atMs: number[] = [];
  await using server = await openHttp((response, _, count) => {
    atMs.push(performance.now());
    if (count === 0) response.writeHead(429, { 'retry-after': '1' }).end('too fast');
    else response.end();
  });
  const { result, retries } = await push(server.port, {}, 'a 1\n');
  assert.deepEqual([result.kind, retries], ['accepted', ['HTTP 429 (not before 1 s): too fast']]);
  const [first = 0, second = 0] = atMs;
  assert.ok(second - first > 990, `again after ${second - first} ms`);
});

test('sendPush() gives a later try the time that the first one had too little of', async () => {
  await using server = await openHttp((response, _, count) => {
    // As one that takes a long request slowly.
    if (count === 0) return;
    setTimeout(() => response.end(), 1_500);
  });
  const { result, retries } = await push(server.port, { timeoutsMs: [1_000, 60_000] }, 'a 1\n');
  assert.deepEqual(result, { kind: 'accepted', requestsCount: 1 });
  assert.match(retries.join(), /^127.0.0.1:\d+ did not answer in time$/);
});

test('sendPush() reports nothing to send, and what cannot be read or encoded', async () => {
  await using server = await openHttp();
  assert.deepEqual((await push(server.port, {}, '# nothing\n')).result, {
    kind: 'failed',
    why: 'the exposition has no samples',
  });
  async function* breakOff() {
    yield Buffer.from('a 1\nb 2\n');
    throw new Error('it broke off');
  }
  const { result } = await push(server.port, { read: breakOff });
  assert.match(result.kind === 'failed' ? result.why : '', /^it cannot be encoded: it broke off/);
});
