import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ExchangeResult, openExchange, type Request, readRetryAfter } from '../../../src/base/net/exchange.ts';
import { findFreePort } from '../../support/listen.ts';
import { type Answerer, answerWith, openPeer } from '../../support/peer.ts';

const LIMIT_MS = 30_000;

/** Long ago given up where the test is right. */
const GET: Request = { method: 'GET', path: '/metrics', headers: { accept: 'text/plain' }, timeoutMs: LIMIT_MS };

type Delivery = { readonly result: ExchangeResult; readonly body: string; readonly requests: readonly string[] };

async function open(answer: Answerer) {
  const peer = await openPeer(answer);
  const { send, close } = openExchange(peer.url);
  return {
    peer,
    send: (request: Partial<Request> = {}) => send({ ...GET, ...request }),
    close,
    async [Symbol.asyncDispose]() {
      await close();
      await peer[Symbol.asyncDispose]();
    },
  };
}

async function sendTo(answer: Answerer, request: Partial<Request> = {}): Promise<Delivery> {
  await using opened = await open(answer);
  let body = '';
  const onBody = (piece: Uint8Array) => {
    body += Buffer.from(piece).toString('latin1');
    return true;
  };
  const result = await opened.send({ onBody, ...request });
  return { result, body, requests: [...opened.peer.requests] };
}

function answered(status: number, contentType = 'text/plain'): ExchangeResult {
  return { kind: 'answered', status, contentType };
}

const failed = (why: string, status: number | null): ExchangeResult => ({ kind: 'failed', why, wasSent: true, status });
// Which heads and bodies are taken is asked of Go's client (http-judge.test.ts).
const CASES: readonly (readonly [name: string, answer: Answerer, expected: ExchangeResult, body?: string])[] = [
  ['an answer', (s) => s.write(answerWith('a 1\n')), answered(200), 'a 1\n'],
  ['a 500, whose body is not read', (s) => s.write(answerWith('a 1\n', '500 No')), answered(500)],
  ['a 204', (s) => s.write('HTTP/1.1 204 No Content\r\n\r\n'), answered(204, '')],
  [
    'a 302 where it is not to be followed',
    (s) => s.write(answerWith('', '302 Found', 'Location: /elsewhere\r\n')),
    answered(302),
  ],
  [
    'gzip although not asked for, as it came',
    (s) => s.write(answerWith('\x1f\x0b', '200 OK', 'Content-Encoding: gzip\r\n')),
    answered(200),
    '\x1f\x0b',
  ],
  ['a 103 and then the end', (s) => s.end('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'), { kind: 'dropped' }],
  ['a connection that ends without an answer', (s) => s.end(), { kind: 'dropped' }],
  ['a reset without an answer', (s) => s.resetAndDestroy(), { kind: 'dropped' }],
  [
    'a body shorter than declared',
    (s) => s.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nlocust_users 6'),
    failed('other side closed (UND_ERR_SOCKET)', 200),
    'locust_users 6',
  ],
  [
    'a reset in the middle of the body',
    (s) => s.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na 1\n', () => s.resetAndDestroy()),
    failed('ECONNRESET', 200),
  ],
  [
    '100 KB of headers',
    (s) => s.write(answerWith('a 1\n', '200 OK', `X: ${'x'.repeat(100_000)}\r\n`)),
    answered(200),
    'a 1\n',
  ],
  [
    '2 MB of headers',
    (s) => s.write(answerWith('', '200 OK', `X: ${'x'.repeat(2_000_000)}\r\n`)),
    failed('the answer has a head of more than 1048576 bytes', null),
  ],
  [
    'an endless body of another status than 200',
    (s) => s.write(`HTTP/1.1 500 No\r\nContent-Length: 100000000\r\n\r\n${'x'.repeat(2 ** 21)}`),
    failed('the body is too long', 500),
  ],
  [
    'an answer that is not HTTP',
    (s) => s.end('SSH-2.0-OpenSSH_9.2\r\n'),
    failed('the answer is not HTTP: "SSH-2.0-OpenSSH_9.2', null),
  ],
];

for (const [name, answer, expected, body] of CASES) {
  test(`send() returns how a request ended: ${name}`, async () => {
    const sent = await sendTo(answer);
    if (expected.kind === 'failed') {
      assert.ok(sent.result.kind === 'failed');
      const { why, ...rest } = sent.result;
      assert.deepEqual(rest, { kind: 'failed', wasSent: true, status: expected.status });
      assert.ok(why.includes(expected.why) && !why.includes('undefined'), why);
    } else assert.deepEqual(sent.result, expected);
    if (body !== undefined) assert.equal(sent.body, body);
    if (expected.kind === 'answered' && expected.status !== 200) assert.equal(sent.body, '');
    assert.equal(sent.requests.length, 1, 'sent once');
  });
}

test('send() sends the request as it is, without what a browser would add', async () => {
  const { requests } = await sendTo((socket) => socket.write(answerWith('')), { method: 'POST', path: '/quit?a=b' });
  const lines = requests[0]?.split('\r\n') ?? [];
  assert.equal(lines[0], 'POST /quit?a=b HTTP/1.1');
  assert.deepEqual(
    lines
      .slice(1)
      .map((line) => line.split(':')[0]?.toLowerCase())
      .sort(),
    ['accept', 'connection', 'content-length', 'host'],
  );
});

test('send() is refused where nothing listens', async () => {
  const exchange = openExchange(new URL(`http://localhost:${await findFreePort()}/`));
  assert.deepEqual(await exchange.send(GET), { kind: 'refused' });
  assert.deepEqual(await exchange.send(GET), { kind: 'refused' });
  await exchange.close();
});

test('send() keeps one connection over many requests', async () => {
  await using opened = await open((socket) => socket.write(answerWith('a 1\n')));
  for (let count = 0; count < 50; count++) assert.deepEqual(await opened.send(), answered(200));
  assert.equal(opened.peer.connectionsCount(), 1);
  await opened.close();
  await opened.peer.closed(1);
});

test('openExchange() closes a connection that is idle', async () => {
  await using peer = await openPeer((socket) => socket.write(answerWith('a 1\n')));
  const { send, close } = openExchange(peer.url);
  assert.deepEqual(await send(GET), answered(200));
  await peer.closed(1);
  await close();
});

test('send() reads past a 100 that comes before each answer, one byte at a time, over one connection', async () => {
  await using opened = await open(async (socket) => {
    for (const letter of `HTTP/1.1 100 Continue\r\n\r\n${answerWith('a 100\n')}`) {
      await new Promise((resolve) => socket.write(letter, resolve));
    }
  });
  let body = '';
  const onBody = (piece: Uint8Array) => {
    body += Buffer.from(piece).toString();
    return true;
  };
  for (let count = 1; count <= 3; count++) {
    assert.deepEqual(await opened.send({ onBody }), answered(200));
    assert.equal(body, 'a 100\n'.repeat(count));
  }
  assert.equal(opened.peer.connectionsCount(), 1);
});

test('send() opens a new connection after the last one was closed, and sends nothing twice', async () => {
  await using opened = await open((socket, _, count) => {
    if (count === 1) socket.end();
    else socket.end(answerWith('a 1\n', '200 OK', 'Connection: close\r\n'));
  });
  assert.deepEqual(await opened.send(), answered(200));
  assert.deepEqual(await opened.send(), { kind: 'dropped' });
  assert.deepEqual(await opened.send(), answered(200));
  assert.equal(opened.peer.requests.length, 3);
});

test('send() reads the next answer after one that was longer than declared', async () => {
  await using opened = await open((socket) =>
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nb 2\n'),
  );
  const bodies: string[] = [];
  const onBody = (piece: Uint8Array) => bodies.push(Buffer.from(piece).toString()) > 0;
  assert.deepEqual(await opened.send({ onBody }), answered(200, ''));
  await opened.send({ onBody });
  assert.ok(!bodies.includes('b 2\n'), 'an answer without a request is no answer');
});

const ENDLESS: Readonly<Record<string, Answerer>> = {
  'a server that says nothing': () => {},
  'a body that stops in the middle': (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na 1\n'),
  'an endless head': (socket) => socket.write('HTTP/1.1 200 OK\r\nX: '),
};

for (const [name, answer] of Object.entries(ENDLESS)) {
  test(`send() ends at once when it is aborted: ${name}`, async () => {
    const controller = new AbortController();
    await using opened = await open((socket, head, count) => {
      answer(socket, head, count);
      setImmediate(() => controller.abort('interrupted'));
    });
    const result = await opened.send({ signal: controller.signal });
    assert.ok(result.kind === 'failed' && result.wasSent, JSON.stringify(result));
    assert.equal(result.why, 'interrupted');
    await opened.peer.closed(1);
  });

  test(`send() ends at its time limit: ${name}`, async () => {
    await using opened = await open(answer);
    const result = await opened.send({ timeoutMs: 50 });
    assert.equal(result.kind === 'failed' && result.why, 'timed out', JSON.stringify(result));
  });
}

test('send() works again after it was aborted', async () => {
  const controller = new AbortController();
  await using opened = await open((socket, _, count) => {
    if (count === 0) controller.abort('interrupted');
    else socket.write(answerWith('a 1\n'));
  });
  assert.equal((await opened.send({ signal: controller.signal })).kind, 'failed');
  assert.deepEqual(await opened.send(), answered(200));
  assert.equal(opened.peer.connectionsCount(), 2);
});

test('send() sends nothing where it is aborted before', async () => {
  await using opened = await open((socket) => socket.write(answerWith('')));
  const result = await opened.send({ signal: AbortSignal.abort('interrupted') });
  assert.deepEqual(result, { kind: 'failed', why: 'interrupted', wasSent: false, status: null });
  assert.equal(opened.peer.connectionsCount(), 0);
});

test('send() returns the head of an answer, and separately the body of one that is not 200', async () => {
  const heads: unknown[] = [];
  let other = '';
  const { body } = await sendTo((s) => s.write(answerWith('busy', '429 Too Many Requests', 'Retry-After: 7\r\n')), {
    onAnswer: (status, headers) => heads.push([status, headers['retry-after']]),
    onOtherBody: (piece) => {
      other += Buffer.from(piece).toString();
    },
  });
  assert.deepEqual([heads, other, body], [[[429, '7']], 'busy', '']);
});

/** A Location, and the requests that are sent for it; none: it is the answer. More are asked of Go's client. */
const REDIRECTS: readonly (readonly [location: string, ...paths: readonly string[]])[] = [
  ['/metrics/', '/metrics/'],
  ['http://example.com:PORT/x'],
  ['http://['],
  [''],
];

for (const [location, ...paths] of REDIRECTS) {
  test(`send() follows a redirect to the same server only: ${JSON.stringify(location)}`, async () => {
    await using opened = await open((socket, request) => {
      const to = `Location: ${location.replace('PORT', String(socket.localPort))}\r\n`;
      socket.write(request.startsWith('GET /a/b ') ? answerWith('gone', '307 Away', to) : answerWith('a 1\n'));
    });
    const heads: number[] = [];
    const request = { path: '/a/b', followsRedirects: true, onAnswer: (status: number) => heads.push(status) };
    const status = paths.length === 0 ? 307 : 200;
    assert.deepEqual(await opened.send(request), answered(status));
    const asked = opened.peer.requests.map((head) => head.split(' ')[1]);
    assert.deepEqual([heads, asked, opened.peer.connectionsCount()], [[status], ['/a/b', ...paths], 1]);
  });
}

test('send() gives up after as many redirects as Go does', async () => {
  await using opened = await open((socket) => socket.write(answerWith('', '302 Found', 'Location: /x\r\n')));
  assert.deepEqual(await opened.send({ followsRedirects: true }), answered(302));
  assert.equal(opened.peer.requests.length, 10);
});

test("openExchange() connects to the URL's port, or to 443 where an https: URL names no port", async () => {
  const dialled: unknown[] = [];
  const exchange = openExchange(new URL('https://[::1]/'), async (hostname, port) => {
    dialled.push([hostname, port]);
    return { kind: 'refused' };
  });
  assert.deepEqual(await exchange.send(GET), { kind: 'refused' });
  assert.deepEqual(dialled, [['[::1]', 443]]);
  await exchange.close();
});

test('send() ends where onBody has enough', async () => {
  const { result } = await sendTo((socket) => socket.write(answerWith('a 1\n')), { onBody: () => false });
  assert.deepEqual(result, { kind: 'failed', why: 'the body is too long', wasSent: true, status: 200 });
});

const NOW_MS = Date.UTC(1994, 10, 6, 8, 49, 37);
const DAY_MS = 86_400_000;

const RETRY_AFTERS: readonly (readonly [header: string | string[], ms: number])[] = [
  ['0', 0],
  ['7', 7_000],
  [' 7 ', 7_000],
  ['9'.repeat(400), DAY_MS],
  [['3', '9'], 3_000],
  ['Sun, 06 Nov 1994 08:50:00 GMT', 23_000],
  ['Sunday, 06-Nov-94 08:50:00 GMT', 23_000],
  ['Sun Nov  6 08:50:00 1994', 23_000],
  ['Sun, 06 Nov 1994 08:00:00 GMT', 0],
  ['Thu, 06 Nov 2094 08:50:00 GMT', DAY_MS],
  ['1.5', 0],
  ['-5', 0],
  ['1e3', 0],
  ['soon', 0],
  ['Sunday', 0],
  ['', 0],
  [[], 0],
];
for (const [header, ms] of RETRY_AFTERS) {
  test(`readRetryAfter() reads ${JSON.stringify(header).slice(0, 40)} as ${ms} ms`, () => {
    assert.equal(readRetryAfter({ 'retry-after': header }, NOW_MS), ms);
  });
}

test('readRetryAfter() reads no header as 0', () => assert.equal(readRetryAfter({}, NOW_MS), 0));

test("readRetryAfter() uses the server's own clock where it is sent", () => {
  const headers = { 'retry-after': 'Sun, 06 Nov 1994 08:50:00 GMT' };
  const later = NOW_MS + DAY_MS;
  assert.equal(readRetryAfter({ ...headers, date: 'Sun, 06 Nov 1994 08:49:50 GMT' }, later), 10_000);
  assert.equal(readRetryAfter({ ...headers, date: 'today' }, NOW_MS), 23_000);
});
