// Clients that are slow, silent, too many, gone or mad: the front bounds them, counts none of them, and answers the next one.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { openRandom } from '../support/random.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { aborted, answerOf, type FrontServer, openFrontServer, scrapeHead } from './front-server.ts';
import type { RawClient } from './raw-client.ts';

const READY = 'GET /-/ready HTTP/1.1\r\nHost: x\r\n\r\n';
const POST = 'POST /-/snapshot HTTP/1.1\r\nHost: x\r\n';
const PIECE = Buffer.alloc(64 * 1024, 'a 1\n');

/** The ways of a socket to hang up. */
const HANG_UPS = ['destroy', 'end', 'resetAndDestroy'] as const;

/** A connection on which a request was answered. One that a standstill of this process closed is replaced. */
async function dialReady(server: FrontServer): Promise<RawClient> {
  const client = await server.dial(READY);
  const isReady = await client.readAnswer().then(
    ({ status }) => status === 200,
    () => false,
  );
  return isReady ? client : dialReady(server);
}

async function assertAnswers(server: FrontServer): Promise<void> {
  (await dialReady(server)).socket.destroy();
}

/** Resolves when only that many answers are in flight: what ends them needs a few turns of the event loop. */
async function inFlight(server: FrontServer, count: number): Promise<void> {
  while (server.inFlightCount() !== count) await new Promise((resolve) => setImmediate(resolve));
}

async function drip({ socket, closed }: RawClient, bytes: string): Promise<void> {
  const timer = setInterval(() => socket.write(bytes), 5);
  await closed;
  clearInterval(timer);
}

/** Short, so that a test has not to wait for it. */
const QUICK = { requestMs: 100, requestCheckMs: 10 };

for (const [what, request, byte, answer] of [
  ['is silent', '', '', /^HTTP\/1\.1 408 /],
  ['sends its headers byte by byte', 'GET /metrics HTTP/1.1\r\nHost: x\r\nX: ', 'x', /^HTTP\/1\.1 408 /],
  ['sends the body of its request byte by byte', `${POST}Content-Length: 1000000\r\n\r\n`, 'x', /^/],
] as const) {
  for (const isKept of [false, true]) {
    // Silence on a kept connection is allowed for longer.
    if (isKept && request === '') continue;
    test(`a client that ${what}${isKept ? ' on a kept connection' : ''} is closed`, async () => {
      await using server = await openFrontServer(() => answerOf([]), { limits: QUICK });
      const client = await (isKept ? dialReady(server) : server.dial());
      client.send(request);
      await (byte === '' ? client.closed : drip(client, byte));
      assert.match(client.received().toString(), answer);
      assert.equal(server.requests.length, 0);
      await assertAnswers(server);
    });
  }
}

test('a kept connection is closed when it is idle for long, whatever it sends that is no request', async () => {
  await using server = await openFrontServer(() => answerOf([]), { limits: { idleMs: 100 } });
  const client = await dialReady(server);
  await drip(client, '\r\n');
});

/** A scrape that waits for 1,001 s: what comes later than a scraper waits for is not served. */
const PATIENT = scrapeHead().replace('Seconds: 10', 'Seconds: 1001');

test('a kept connection lives through answers that take longer than it may be idle', async () => {
  const clock = new VirtualClock();
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  await using server = await openFrontServer(
    async (_, count) => {
      if (count > 0) await gate;
      return answerOf(['a 1\n']);
    },
    { clock },
  );
  const client = await server.dial(scrapeHead());
  await client.readAnswer();
  await server.servedCount(1);
  clock.advance(299_999);
  client.send(PATIENT);
  await server.requestedCount(2);
  clock.advance(1_000_000);
  open();
  assert.equal((await client.readAnswer()).status, 200);
  await server.servedCount(2);
  await new Promise((resolve) => setImmediate(resolve));
  clock.advance(299_999);
  client.send(READY);
  assert.equal((await client.readAnswer()).status, 200);
});

test('headers above 16 KiB get a 431', async () => {
  await using server = await openFrontServer(() => answerOf(['a 1\n']));
  for (const [headerBytes, status] of [
    [15 * 1024, 200],
    [17 * 1024, 431],
  ] as const) {
    const client = await server.dial(scrapeHead(`X: ${'x'.repeat(headerBytes)}`));
    assert.equal((await client.readAnswer()).status, status);
    client.socket.destroy();
  }
  await assertAnswers(server);
});

/** A body without an end. `onPiece`: called before each piece. */
function endless(onPiece: () => void = () => {}) {
  async function* read() {
    for (;;) {
      onPiece();
      yield PIECE;
    }
  }
  return { kind: 'body', body: { read, sizeBytes: null } } as const;
}

test('a client that takes nothing of its answer is reset, and is not served', async () => {
  await using server = await openFrontServer(() => endless(), { limits: { takeMs: 100 } });
  for (const encoding of ['identity', 'gzip']) {
    const client = await server.dial();
    client.socket.pause();
    client.send(scrapeHead(`Accept-Encoding: ${encoding}`));
    await server.requestedCount(server.requests.length + 1);
    await aborted(server.requests.at(-1)?.signal);
    assert.equal(server.requests.at(-1)?.signal.reason, 'the client was too slow');
    client.socket.resume();
    assert.equal(await client.closed, 'ECONNRESET');
  }
  assert.deepEqual(server.served, []);
  await assertAnswers(server);
});

test('a client that takes its answer drop by drop has 30 s in all', async () => {
  const clock = new VirtualClock();
  await using server = await openFrontServer(() => endless(), { clock });
  const client = await server.dial();
  client.socket.pause();
  client.send(scrapeHead());
  await server.requestedCount(1);
  const { signal } = server.requests[0] ?? assert.fail();
  let seconds = 0;
  for (; seconds < 1_000 && !signal.aborted; seconds++) {
    clock.advance(1_000);
    client.socket.read(64 * 1024);
    for (let pass = 0; pass < 10; pass++) await new Promise((resolve) => setImmediate(resolve));
  }
  client.socket.destroy();
  assert.ok(signal.aborted, 'each second a little is not quick enough');
  assert.ok(seconds >= 30, `it had ${seconds} s`);
});

test("a long answer that must arrive is served once the client's kernel has it, not ours", async () => {
  let { promise: isWritten, resolve: write } = Promise.withResolvers<void>();
  async function* read() {
    for (let count = 0; count < 12; count++) yield PIECE;
    write();
  }
  const body = { read, sizeBytes: null, mustArrive: true };
  await using server = await openFrontServer(() => ({ kind: 'body', body }));
  let takenCount = 0;
  for (const header of ['Accept-Encoding: identity', 'Connection: close']) {
    for (const then of ['resume', 'destroy', 'end'] as const) {
      ({ promise: isWritten, resolve: write } = Promise.withResolvers<void>());
      const client = await server.dial();
      client.socket.pause();
      client.send(scrapeHead(header));
      await isWritten;
      // Our kernel has the rest after a few turns of the event loop.
      for (let pass = 0; pass < 100; pass++) await server.settle();
      assert.equal(server.served.length, takenCount, `${header}: only our kernel has it`);
      client.socket[then]();
      await inFlight(server, 0);
      if (then === 'resume') takenCount++;
      else client.socket.destroy();
      assert.equal(server.served.length, takenCount, `${header}, ${then}`);
    }
  }
});

/** Takes 8 KiB into its kernel, and the rest once it is told to; only Python sets that buffer. */
const NARROW_CLIENT = `
import socket, sys
client = socket.socket()
client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
client.connect(('127.0.0.1', int(sys.argv[1])))
client.sendall(sys.argv[2].encode())
sys.stdin.readline()
while client.recv(65536): pass
`;

test("an answer of 48 KiB that must arrive is served once the client's kernel has it, not ours", async () => {
  const { promise: isWritten, resolve: write } = Promise.withResolvers<void>();
  async function* read() {
    yield Buffer.alloc(48 * 1024, '#\n');
    write();
  }
  const body = { read, sizeBytes: null, mustArrive: true };
  await using server = await openFrontServer(() => ({ kind: 'body', body }), { host: null });
  const client = spawn('python3', ['-c', NARROW_CLIENT, String(server.port), scrapeHead('Connection: close')]);
  await isWritten;
  for (let pass = 0; pass < 100; pass++) await server.settle();
  assert.deepEqual(server.served, [], 'only our kernel has it');
  client.stdin.end('\n');
  await server.servedCount(1);
});

test('a slow source costs the client nothing of its time', async () => {
  const clock = new VirtualClock();
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  async function* read() {
    yield Buffer.from('a 1\n');
    await gate;
    yield Buffer.from('b 2\n');
  }
  await using server = await openFrontServer(() => ({ kind: 'body', body: { read, sizeBytes: null } }), { clock });
  const client = await server.dial(PATIENT);
  await client.readBytes(200);
  clock.advance(1_000_000);
  open();
  assert.equal((await client.readAnswer()).body.toString(), 'a 1\nb 2\n');
  await server.servedCount(1);
});

test('a client that hangs up before its answer stops the read and is not served', async () => {
  for (const hangUp of HANG_UPS) {
    await using server = await openFrontServer(() => new Promise(() => {}));
    const client = await server.dial(scrapeHead());
    await server.requestedCount(1);
    client.socket[hangUp]();
    await aborted(server.requests[0]?.signal);
    assert.equal(server.requests[0]?.signal.reason, 'the client hung up', hangUp);
    await client.closed;
    await inFlight(server, 0);
    assert.deepEqual(server.served, []);
  }
});

function countSockets(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
}

test('a client that hangs up in the middle of its answer stops the read and is not served', async () => {
  for (const hangUp of HANG_UPS) {
    for (const encoding of ['identity', 'gzip']) {
      let isReturned = () => {};
      const returned = new Promise<void>((resolve) => {
        isReturned = resolve;
      });
      async function* read() {
        try {
          for (;;) {
            yield PIECE;
            await new Promise((resolve) => setImmediate(resolve));
          }
        } finally {
          isReturned();
        }
      }
      await using server = await openFrontServer(() => ({ kind: 'body', body: { read, sizeBytes: null } }));
      const client = await server.dial(scrapeHead(`Accept-Encoding: ${encoding}`));
      await client.readBytes(1_000);
      client.socket[hangUp]();
      await returned;
      await client.closed;
      await aborted(server.requests[0]?.signal);
      await inFlight(server, 0);
      await server.close();
      // A reset that libuv refuses leaves a connection behind that nothing names any more.
      while (countSockets() > 0) await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(server.served, []);
    }
  }
});

test('a client that hung up the moment its answer is there is not served', async () => {
  for (const sizeBytes of [null, 4]) {
    for (let count = 0; count < 20; count++) {
      const { promise: gate, resolve: open } = Promise.withResolvers<void>();
      await using server = await openFrontServer(async () => {
        await gate;
        return answerOf(['a 1\n'], sizeBytes);
      });
      const client = await server.dial(scrapeHead());
      await server.requestedCount(1);
      client.socket.destroy();
      // The kernel knows of it now, the server does not yet.
      await client.closed;
      open();
      await aborted(server.requests[0]?.signal);
      await inFlight(server, 0);
      assert.deepEqual(server.served, []);
    }
  }
});

test('a client that resets the connection as soon as the answer comes is not served', async () => {
  for (const sizeBytes of [null, 4]) {
    for (let count = 0; count < 20; count++) {
      await using server = await openFrontServer(() => answerOf(['a 1\n'], sizeBytes));
      const client = await server.dial();
      client.socket.once('data', () => client.socket.resetAndDestroy());
      client.send(scrapeHead());
      await client.closed;
      await aborted(server.requests[0]?.signal);
      await inFlight(server, 0);
      assert.deepEqual(server.served, []);
    }
  }
});

test('a client that hangs up when it has the whole answer is served', async () => {
  await using server = await openFrontServer((_, count) => answerOf(['a 1\n', 'b 2\n'], count % 2 === 0 ? null : 8));
  for (let count = 1; count <= 100; count++) {
    const client = await server.dial(scrapeHead());
    await client.readAnswer();
    client.socket.destroy();
    await server.servedCount(count);
  }
});

test('a client whose own time is over when its answer has been handed over is not served, though it has not hung up', async () => {
  for (const [header, tookMs, isServed] of [
    ['X-Prometheus-Scrape-Timeout-Seconds: 5', 4_999, true],
    ['X-Prometheus-Scrape-Timeout-Seconds: 5', 5_000, false],
    ['User-Agent: Telegraf/1.30', 60_000, true],
  ] as const) {
    const clock = new VirtualClock(1_000);
    await using server = await openFrontServer(
      () => {
        clock.advance(tookMs);
        return answerOf(['a 1\n']);
      },
      { clock },
    );
    const client = await server.dial(`GET /metrics HTTP/1.1\r\nHost: x\r\n${header}\r\n\r\n`);
    assert.equal((await client.readAnswer()).status, 200);
    await inFlight(server, 0);
    assert.equal(server.served.length, isServed ? 1 : 0, `${header}, ${tookMs} ms`);
  }
});

test('no reader of a large answer loses a byte, and a slow reader does not hold up a quick one', async () => {
  const pieces = Array.from({ length: 256 }, (_, count) => Buffer.alloc(64 * 1024, `piece ${count}\n`));
  await using server = await openFrontServer(() => answerOf(pieces, pieces.length * 64 * 1024));
  const slow = await server.dial();
  slow.socket.pause();
  slow.send(scrapeHead());
  const quick = await server.dial(scrapeHead());
  const expected = Buffer.concat(pieces);
  assert.ok((await quick.readAnswer()).body.equals(expected));
  await server.servedCount(1);
  assert.equal(server.served[0]?.connection, 2);
  await inFlight(server, 1);
  slow.socket.resume();
  assert.ok((await slow.readAnswer()).body.equals(expected));
  await server.servedCount(2);
});

test('of 1,000 connections 64 stay open, those idle longest are closed, and a scrape is answered', async () => {
  await using server = await openFrontServer(() => answerOf(['a 1\n']));
  const clients: RawClient[] = [];
  for (let count = 0; count < 1_000; count++) clients.push(await server.dial());
  const scraper = await server.dial(scrapeHead());
  assert.equal((await scraper.readAnswer()).status, 200);
  await Promise.all(clients.slice(0, 1_001 - 64).map(({ closed }) => closed));
  const open = clients.slice(1_001 - 64);
  for (const client of open) client.send(READY);
  for (const client of open) assert.equal((await client.readAnswer()).status, 200);
});

test('where all 64 connections wait for answers, the new one is closed', async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  await using server = await openFrontServer(async () => {
    await gate;
    return answerOf(['a 1\n']);
  });
  const clients: RawClient[] = [];
  for (let count = 0; count < 64; count++) {
    const client = await server.dial(scrapeHead());
    clients.push(client);
  }
  await server.requestedCount(64);
  await (await server.dial()).closed;
  open();
  for (const client of clients) assert.equal((await client.readAnswer()).status, 200);
  await server.servedCount(64);
  await assertAnswers(server);
});

test('64 clients of one address that do not read cannot lock a scraper out', async () => {
  await using server = await openFrontServer((_, count) => (count < 64 ? endless() : answerOf(['a 1\n'])));
  const clients: RawClient[] = [];
  for (let count = 0; count < 64; count++) {
    const client = await server.dial('', { localAddress: '127.0.0.2' });
    client.socket.pause();
    client.send(scrapeHead().repeat(3));
    clients.push(client);
  }
  await server.requestedCount(64);
  const scraper = await server.dial(scrapeHead());
  assert.equal((await scraper.readAnswer()).status, 200);
  for (const { socket } of clients) socket.destroy();
});

const METHODS = ['GET', 'HEAD', 'POST', 'OPTIONS', 'CONNECT', 'get', 'G', '', 'PRI', 'GET GET', '\u0000'];
const TARGETS = [
  '/metrics',
  '/-/snapshot',
  '/-/ready',
  '*',
  '//',
  'http://x/metrics',
  '/%',
  '/%00',
  '?',
  'x',
  '',
  `/${'a'.repeat(5_000)}`,
  '/ü',
];
const VERSIONS = ['HTTP/1.1', 'HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'HTTP/9', '', 'http/1.1'];
const HEADERS = [
  'Host: x',
  'Host: y',
  'Connection: close',
  'Connection: keep-alive, Upgrade',
  'Upgrade: websocket',
  'Content-Length: 3',
  'Content-Length: 99999999999999999999',
  'Content-Length: -1',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: gzip, chunked',
  'Expect: 100-continue',
  'Expect: x',
  'Accept-Encoding: gzip',
  'Accept-Encoding: ;;q=,=,gzip;q=0.0001',
  'X-Prometheus-Scrape-Timeout-Seconds: 1e999',
  'User-Agent: \u00ff\u00fe',
  ' folded',
  ': x',
  'x',
  `X: ${'x'.repeat(9_000)}`,
  'TE: trailers',
  'Range: bytes=0-1',
  'If-None-Match: *',
];
const BODIES = [
  '',
  'abc',
  '3\r\nabc\r\n0\r\n\r\n',
  'ffffffffffffffffff\r\n',
  '0\r\nx: y\r\n\r\n',
  '\r\n\r\n',
  '\u0016\u0003\u0001\u0002\u0000',
];

function makeRequest(next: (below: number) => number): Buffer {
  const pick = (list: readonly string[]) => list[next(list.length)] ?? '';
  const headers = Array.from({ length: next(4) }, () => pick(HEADERS));
  if (next(4) > 0) headers.unshift('Host: x', 'X-Prometheus-Scrape-Timeout-Seconds: 1');
  const lineEnd = next(10) === 0 ? '\n' : '\r\n';
  const text = [
    `${next(2) > 0 ? 'GET' : pick(METHODS)} ${next(2) > 0 ? '/metrics' : pick(TARGETS)} ${next(3) > 0 ? 'HTTP/1.1' : pick(VERSIONS)}`,
    ...headers,
    '',
    pick(BODIES),
  ].join(lineEnd);
  const bytes = Buffer.from(text, 'latin1');
  for (let count = next(4) === 0 ? next(5) : 0; count > 0; count--) bytes[next(bytes.length)] = next(256);
  return next(6) === 0 ? bytes.subarray(0, next(bytes.length)) : bytes;
}

test('no request brings it down or hangs it: fuzzed', async (context) => {
  const seed = Number(process.env['LASTSCRAPE_TEST_SEED'] ?? 20_261_122);
  context.diagnostic(`LASTSCRAPE_TEST_SEED=${seed}`);
  const next = openRandom(seed);
  await using server = await openFrontServer((_, count) =>
    count % 3 === 0 ? { kind: 'unavailable', why: 'x' } : answerOf(['a 1\n', 'b 2\n'], count % 3 === 1 ? 8 : null),
  );
  for (let round = 0; round < 1_000; round++) {
    const client = await server.dial();
    for (let count = 1 + next(3); count > 0; count--) {
      const bytes = makeRequest(next);
      const cut = next(bytes.length + 1);
      client.send(bytes.subarray(0, cut));
      if (next(2) === 0) await new Promise((resolve) => setImmediate(resolve));
      client.send(bytes.subarray(cut));
    }
    // Ends its side, by which every connection ends, whatever was sent.
    for (let turn = next(8); turn > 0; turn--) await new Promise((resolve) => setImmediate(resolve));
    client.socket[HANG_UPS[next(HANG_UPS.length)] ?? 'end']();
    await client.closed;
    if (round % 20 === 0) await assertAnswers(server);
  }
  await assertAnswers(server);
  await inFlight(server, 0);
  context.diagnostic(`${server.requests.length} scrapes, ${server.served.length} served`);
  assert.ok(server.requests.length > 20, 'some of them are scrapes');
});
