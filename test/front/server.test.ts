// The routes of the front's server, what its answers look like, and which scrapes were served.
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type EventEmitter, once } from 'node:events';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { settleConnections } from '../../src/front/server.ts';
import { collectGarbage } from '../support/memory.ts';
import { aborted, answerOf, openFrontServer, scrapeHead } from './front-server.ts';
import { openRawClient, type RawAnswer } from './raw-client.ts';

const BODY = '# TYPE a counter\na 1\nb{c="d"} 2\n';

async function ask(
  port: number,
  request: string,
  options: { host?: string; localAddress?: string } = {},
): Promise<RawAnswer> {
  const client = await openRawClient(port, options);
  client.send(request);
  const answer = await client.readAnswer(!request.startsWith('HEAD'));
  client.socket.destroy();
  return answer;
}

test('a scrape gets the pieces of its answer as text of version 0.0.4', async () => {
  await using server = await openFrontServer(() => answerOf([BODY, 'e 3\n']));
  const { status, headers, body } = await ask(server.port, scrapeHead());
  assert.deepEqual([status, body.toString()], [200, `${BODY}e 3\n`]);
  assert.equal(headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  assert.deepEqual([headers.get('transfer-encoding'), headers.get('content-encoding')], ['chunked', undefined]);
});

test('a scrape gets the length of an answer where it is known', async () => {
  await using server = await openFrontServer(() => answerOf([BODY], BODY.length));
  const { headers, body } = await ask(server.port, scrapeHead());
  assert.equal(headers.get('content-length'), String(BODY.length));
  assert.equal(headers.get('transfer-encoding'), undefined);
  assert.equal(body.toString(), BODY);
});

test('a scrape gets gzip or zstd where it takes it, whether the length is known or not', async () => {
  await using server = await openFrontServer((_, count) =>
    answerOf([BODY, 'e 3\n'], count === 0 ? BODY.length + 4 : null),
  );
  for (const [accepted, encoding, unpack] of [
    ['deflate, gzip;q=0.9', 'gzip', gunzipSync],
    ['deflate, gzip;q=0.9', 'gzip', gunzipSync],
    ['gzip, zstd', 'zstd', zstdDecompressSync],
    ['gzip, zstd;q=0.9', 'gzip', gunzipSync],
  ] as const) {
    const { headers, body } = await ask(server.port, scrapeHead(`Accept-Encoding: ${accepted}`));
    assert.equal(headers.get('content-encoding'), encoding);
    assert.deepEqual([headers.get('content-length'), headers.get('vary')], [undefined, 'Accept, Accept-Encoding']);
    assert.equal(unpack(body).toString(), `${BODY}e 3\n`);
  }
  const { headers, body } = await ask(server.port, scrapeHead('Accept-Encoding: gzip;q=0'));
  assert.deepEqual([headers.get('content-encoding'), body.toString()], [undefined, `${BODY}e 3\n`]);
  await server.servedCount(5);
});

test('a piece of an answer may change once the next is asked for, long or short, packed or not', async () => {
  async function* read() {
    const piece = Buffer.alloc(1024 * 1024);
    for (const letter of 'abcdefghijkl') {
      piece.fill(letter);
      yield letter < 'g' ? piece : piece.subarray(0, 30_000);
    }
  }
  const expected = Buffer.concat([
    ...Array.from('abcdef', (letter) => Buffer.alloc(1024 * 1024, letter)),
    ...Array.from('ghijkl', (letter) => Buffer.alloc(30_000, letter)),
  ]);
  await using server = await openFrontServer(() => ({ kind: 'body', body: { read, sizeBytes: null } }));
  const unpackers = { identity: (bytes: Buffer) => bytes, gzip: gunzipSync, zstd: zstdDecompressSync };
  for (const [encoding, unpack] of Object.entries(unpackers)) {
    const client = await server.dial(scrapeHead(`Accept-Encoding: ${encoding}`));
    // The kernel takes no more meanwhile.
    client.socket.pause();
    await delay(50);
    client.socket.resume();
    assert.ok(unpack((await client.readAnswer()).body).equals(expected), encoding);
    client.socket.destroy();
  }
});

test('no piece of an answer is kept once it is sent', async () => {
  const pieceBytes = 64 * 1024;
  let mostBytes = 0;
  async function* read() {
    collectGarbage();
    const before = process.memoryUsage().arrayBuffers;
    for (let count = 0; count < 300; count++) {
      yield Buffer.alloc(pieceBytes, 0x23);
      if (count % 50 !== 0) continue;
      collectGarbage();
      mostBytes = Math.max(mostBytes, process.memoryUsage().arrayBuffers - before);
    }
  }
  await using server = await openFrontServer(() => ({ kind: 'body', body: { read, sizeBytes: null } }));
  const response = await fetch(`http://127.0.0.1:${server.port}/metrics`, {
    headers: { 'Accept-Encoding': 'identity' },
  });
  let receivedBytes = 0;
  for await (const piece of response.body ?? []) receivedBytes += piece.length;
  assert.equal(receivedBytes, 300 * pieceBytes);
  assert.ok(mostBytes < 100 * pieceBytes, `${mostBytes} bytes`);
});

test('a scrape that cannot be answered gets a 503 with the reason, and is reported, but not as served', async () => {
  await using server = await openFrontServer(() => ({ kind: 'unavailable', why: 'the source: timed out' }));
  const { status, headers, body } = await ask(server.port, scrapeHead('Accept-Encoding: gzip'));
  assert.deepEqual([status, body.toString()], [503, 'the source: timed out\n']);
  assert.equal(headers.get('content-type'), 'text/plain; charset=utf-8');
  assert.deepEqual(server.served, []);
  const scrapers = server.seen.map(({ address, agent, connection }) => [address, agent, connection]);
  assert.deepEqual(scrapers, [['127.0.0.1', 'Prometheus/3.0', 1]]);
});

test('HEAD gets the headers of GET, no byte of the body, and is not served', async () => {
  let readCount = 0;
  const read = () => {
    readCount++;
    return answerOf(['a 1\n\n']).body.read();
  };
  const body = { sizeBytes: 5, read };
  await using server = await openFrontServer(() => ({ kind: 'body', body }));
  const client = await server.dial(scrapeHead().replace('GET', 'HEAD'));
  const head = await client.readAnswer(false);
  assert.deepEqual([head.status, head.headers.get('content-length')], [200, '5']);
  assert.deepEqual(server.seen, []);
  client.send(scrapeHead());
  assert.equal((await client.readAnswer()).body.toString(), 'a 1\n\n');
  await server.servedCount(1);
  assert.equal(readCount, 1);
});

test('HTTP/1.0 gets no chunks, and the connection ends', async () => {
  await using server = await openFrontServer(() => answerOf([BODY, 'e 3\n']));
  const client = await server.dial(scrapeHead().replace('HTTP/1.1', 'HTTP/1.0'));
  const answer = client.received;
  assert.equal(await client.closed, '');
  assert.match(answer().toString(), /^HTTP\/1\.1 200 OK\r\n(?!.*Transfer-Encoding).*e 3\n$/s);
  await server.servedCount(1);
});

test('an answer to HTTP/1.0 that breaks off resets the connection', async () => {
  await using server = await openFrontServer(() => brokenAfter(BODY));
  const client = await server.dial(scrapeHead().replace('HTTP/1.1', 'HTTP/1.0'));
  assert.equal(await client.closed, 'ECONNRESET');
  assert.deepEqual([server.seen.length, server.served.length], [1, 0], 'it lives, and has taken nothing');
});

function brokenAfter(text: string, sizeBytes: number | null = null) {
  async function* read() {
    yield Buffer.from(text);
    throw new Error('the source broke off');
  }
  return { kind: 'body', body: { read, sizeBytes } } as const;
}

test('an answer that breaks off resets the connection, whatever was declared', async () => {
  const answers = [brokenAfter(BODY), brokenAfter(BODY, 1_000), answerOf([BODY], 1_000), answerOf([BODY], 10)];
  await using server = await openFrontServer((_, count) => answers[Math.floor(count / 2)] ?? answerOf([]));
  for (let count = 0; count < answers.length * 2; count++) {
    const client = await server.dial(scrapeHead(...(count % 2 === 0 ? [] : ['Accept-Encoding: gzip'])));
    // Compressed, the last two are whole: what was declared is not sent.
    if (count > 4 && count % 2 === 1) await client.readAnswer();
    else assert.equal(await client.closed, 'ECONNRESET', `answer ${count}`);
    client.socket.destroy();
  }
  await server.servedCount(2);
  await server.close();
  assert.deepEqual([server.served.length, server.inFlightCount()], [2, 0]);
});

test('the request carries when it came and how long it may take', async () => {
  await using server = await openFrontServer(() => answerOf([]));
  await ask(server.port, scrapeHead());
  await ask(server.port, 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n');
  const timeouts = server.requests.map(({ timeoutMs }) => timeoutMs);
  assert.deepEqual(timeouts, [9_500, null]);
  await server.servedCount(1);
  assert.equal(server.served[0]?.startedAtMs, server.requests[0]?.startedAtMs);
  assert.ok((server.served[0]?.atMs ?? 0) >= (server.requests[0]?.startedAtMs ?? Infinity));
});

test('only clients that send the header or are in the table count as served', async () => {
  await using server = await openFrontServer(() => answerOf([BODY]));
  const get = (...lines: string[]) => ['GET /metrics HTTP/1.1', 'Host: x', ...lines, '\r\n'].join('\r\n');
  await ask(server.port, get('User-Agent: curl/8.5.0'));
  await ask(server.port, get('User-Agent: kube-probe/1.36'));
  await ask(server.port, get());
  await ask(server.port, get('User-Agent: Telegraf/1.30.0 Go/1.22.2'));
  await ask(server.port, get('x-prometheus-scrape-timeout-seconds: nonsense', `User-Agent: ${'x'.repeat(200)}`));
  await ask(server.port, get('X-Prometheus-Scrape-Timeout-Seconds:'));
  await server.servedCount(3);
  const agents = server.served.map(({ agent }) => agent);
  assert.deepEqual(agents, ['Telegraf/1.30.0 Go/1.22.2', 'x'.repeat(100), '']);
  const addresses = server.served.map(({ address }) => address);
  assert.deepEqual(addresses, ['127.0.0.1', '127.0.0.1', '127.0.0.1']);
  const connections = server.served.map(({ connection }) => connection);
  assert.deepEqual(connections, [4, 5, 6]);
});

test('openConnections are the other open ones of the same address and agent that have taken a scrape', async () => {
  await using server = await openFrontServer(() => answerOf([BODY]));
  const scrape = async (client: Awaited<ReturnType<typeof openRawClient>>, agent: string) => {
    const count = server.served.length + 1;
    client.send(scrapeHead().replace('Prometheus/3.0', agent));
    await client.readAnswer();
    await server.servedCount(count);
    return server.served.at(-1)?.openConnections;
  };
  const one = await server.dial();
  const two = await server.dial();
  const elsewhere = await server.dial('', { localAddress: '127.0.0.2' });
  const silent = await server.dial();
  assert.deepEqual(await scrape(one, 'P'), []);
  assert.deepEqual(await scrape(elsewhere, 'P'), []);
  assert.deepEqual(await scrape(two, 'P'), [1]);
  assert.deepEqual(await scrape(one, 'P'), [2]);
  assert.deepEqual(await scrape(one, 'Q'), []);
  assert.deepEqual(await scrape(two, 'P'), []);
  assert.deepEqual(await scrape(one, 'P'), [2]);
  two.socket.destroy();
  silent.send(scrapeHead());
  await silent.readAnswer();
  assert.deepEqual(await scrape(one, 'P'), []);
});

test('scrapes are answered at /metrics and at the path of the source, and the query is ignored', async () => {
  await using server = await openFrontServer(() => answerOf([BODY]), { paths: ['/metrics', '/a b/%41;x'] });
  const paths = ['/metrics', '/metrics?collect[]=cpu', '/a%20b/A;x', '/%6Detrics', 'http://other:1/metrics'];
  for (const path of paths)
    assert.equal((await ask(server.port, scrapeHead().replace('/metrics', path))).status, 200, path);
  assert.equal(server.requests.length, paths.length);
});

test('everything else is not found, with a hint; nothing reaches the source', async () => {
  await using server = await openFrontServer(() => answerOf([BODY]));
  const requests = [
    ...['/', '/metrics/', '/quitquitquit', '/-/quit'].map((path) => `GET ${path}`),
    ...['POST', 'DELETE', 'OPTIONS', 'TRACE'].map((method) => `${method} /metrics`),
    'OPTIONS *',
    'GET /-/snapshot',
    'POST /-/healthy',
    'POST /quitquitquit',
  ];
  for (const request of requests) {
    const { status, body } = await ask(server.port, `${request} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`);
    assert.equal(status, 404, request);
    assert.equal(
      body.toString(),
      'not found; here are GET /metrics, GET /-/healthy, GET /-/ready, and POST /-/snapshot from within the pod\n',
    );
  }
  assert.equal(server.requests.length, 0);
});

test('the probes are answered as soon as it listens', async () => {
  await using server = await openFrontServer(() => answerOf([]));
  for (const path of ['/-/healthy', '/-/ready?x']) {
    const { status, body } = await ask(server.port, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    assert.deepEqual([status, body.toString()], [200, 'ok\n']);
    assert.equal((await ask(server.port, `HEAD ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)).status, 200);
  }
  assert.equal(server.requests.length, 0);
});

test('POST /-/snapshot says whether the snapshot was kept', async () => {
  let isKept = true;
  const snapshot = async () => (isKept ? ({ kind: 'kept' } as const) : ({ kind: 'failed', why: 'refused' } as const));
  await using server = await openFrontServer(() => answerOf([]), { snapshot, host: null });
  const post = 'POST /-/snapshot HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc';
  for (const host of ['127.0.0.1', '::1']) {
    const { status, body } = await ask(server.port, post, { host });
    assert.deepEqual([status, body.toString()], [200, 'kept\n'], host);
  }
  isKept = false;
  const { status, body } = await ask(server.port, post);
  assert.deepEqual([status, body.toString()], [503, 'refused\n']);
});

test('the path at which an exporter would end keeps a snapshot, by any method and from loopback only', async () => {
  let count = 0;
  const snapshot = async () => {
    count++;
    return { kind: 'kept' } as const;
  };
  const options = { snapshot, quitPath: '/quitquitquit', host: null };
  await using server = await openFrontServer(() => answerOf([]), options);
  for (const method of ['GET', 'POST', 'PUT']) {
    const request = `${method} /quitquitquit?now HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`;
    const { status, body } = await ask(server.port, request);
    assert.deepEqual([status, body.toString()], [200, 'kept\n']);
    assert.equal((await ask(server.port, request, { localAddress: '127.0.0.2' })).status, 403);
  }
  assert.equal(count, 3);
  assert.equal((await ask(server.port, 'POST /quitquitquit/ HTTP/1.1\r\nHost: x\r\n\r\n')).status, 404);
  await using other = await openFrontServer(() => answerOf([]), { snapshot });
  assert.equal((await ask(other.port, 'POST /quitquitquit HTTP/1.1\r\nHost: x\r\n\r\n')).status, 404);
});

test('a client that ends its side after its request gets the answer, as of printf … | nc', async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  await using server = await openFrontServer(() => gate.then(() => answerOf(['a 1\n'])), {
    snapshot: () => gate.then(() => ({ kind: 'kept' })),
  });
  const clients = [];
  for (const line of ['POST /-/snapshot', 'GET /metrics', 'GET /-/ready']) {
    const client = await server.dial(`${line} HTTP/1.1\r\nHost: x\r\n\r\n`);
    client.socket.end();
    clients.push(client);
  }
  await server.settle();
  open();
  for (const client of clients) {
    assert.equal((await client.readAnswer()).status, 200);
    assert.equal(await client.closed, '');
  }
  assert.deepEqual(server.served, []);
});

test('POST /-/snapshot notifies the reader that the client hung up', async () => {
  const { promise: began, resolve: begin } = Promise.withResolvers<AbortSignal>();
  await using server = await openFrontServer(() => answerOf([]), {
    snapshot: (signal) => {
      begin(signal);
      return new Promise(() => {});
    },
  });
  const client = await server.dial('POST /-/snapshot HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n');
  const signal = await began;
  client.socket.resetAndDestroy();
  await aborted(signal);
  assert.equal(signal.reason, 'the client hung up');
});

test('requests that come at once on one connection are answered one after the other, in order', async () => {
  let atOnceCount = 0;
  await using server = await openFrontServer(async (_, count) => {
    assert.equal(++atOnceCount, 1);
    await new Promise((resolve) => setImmediate(resolve));
    atOnceCount--;
    return answerOf([`a ${count}\n`], count % 2 === 0 ? null : 4);
  });
  const client = await server.dial();
  for (let count = 0; count < 6; count += 2) {
    client.send(`${scrapeHead()}GET /x HTTP/1.1\r\nHost: x\r\n\r\n${scrapeHead()}`);
    assert.equal((await client.readAnswer()).body.toString(), `a ${count}\n`);
    assert.equal((await client.readAnswer()).status, 404);
    assert.equal((await client.readAnswer()).body.toString(), `a ${count + 1}\n`);
    await server.servedCount(count + 2);
  }
  assert.deepEqual(new Set(server.served.map(({ connection }) => connection)), new Set([1]));
});

test('a connection on which too many requests wait is closed', async () => {
  await using server = await openFrontServer(() => new Promise(() => {}));
  const client = await server.dial(scrapeHead().repeat(3));
  await server.requestedCount(1);
  assert.equal(server.inFlightCount(), 3);
  client.send(scrapeHead());
  await client.closed;
  await aborted(server.requests[0]?.signal);
  const next = await server.dial('GET /-/ready HTTP/1.1\r\nHost: x\r\n\r\n');
  assert.equal((await next.readAnswer()).status, 200);
  assert.equal(server.requests.length, 1);
});

test('Expect: 100-continue is answered, anything else expected is refused', async () => {
  await using server = await openFrontServer(() => answerOf([BODY]));
  const client = await server.dial(
    'POST /-/snapshot HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n',
  );
  assert.equal((await client.readAnswer()).status, 100);
  client.send('x');
  assert.equal((await client.readAnswer()).status, 200);
  assert.equal((await ask(server.port, scrapeHead('Expect: more'))).status, 417);
});

test('an upgrade is left out of account, and CONNECT closes the connection', async () => {
  await using server = await openFrontServer(() => answerOf([BODY]));
  const upgrade = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'];
  assert.equal((await ask(server.port, scrapeHead(...upgrade))).body.toString(), BODY);
  const client = await server.dial('CONNECT localhost:9646 HTTP/1.1\r\nHost: x\r\n\r\n');
  await client.closed;
  assert.equal((await ask(server.port, scrapeHead())).status, 200);
});

test('Connection: close ends the connection after the answer, which is served', async () => {
  await using server = await openFrontServer(() => answerOf([BODY]));
  for (let count = 1; count <= 50; count++) {
    const client = await server.dial(scrapeHead('Connection: close'));
    await client.readAnswer();
    assert.equal(await client.closed, '');
    await server.servedCount(count);
  }
});

test('retire() ends every connection, and answers /-/healthy until close()', async () => {
  await using server = await openFrontServer(() => new Promise(() => {}));
  const waiting = await server.dial(scrapeHead());
  await server.requestedCount(1);
  server.retire();
  await waiting.closed;
  const get = async (method: string, path: string) =>
    (await ask(server.port, `${method} ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`)).status;
  assert.deepEqual([await get('GET', '/-/healthy?x'), await get('HEAD', '/-/healthy')], [200, 200]);
  for (const path of ['/metrics', '/-/ready', '/x']) assert.equal(await get('GET', path), 503);
  assert.equal(await get('POST', '/-/snapshot'), 503);
  assert.deepEqual([server.requests.length, server.inFlightCount()], [1, 0]);
  await server.close();
  assert.equal(await (await server.dial()).closed, 'ECONNREFUSED');
});

test('settleConnections() does not wait for the end of a flood', async () => {
  let callsCount = 0;
  await settleConnections({
    acceptedCount: () => {
      assert.ok(++callsCount < 5_000);
      return callsCount;
    },
  });
  assert.ok(callsCount > 500);
});

test('no error of the server, of a request or of an answer ends the process', async () => {
  await using server = await openFrontServer(() => answerOf(['a 1\n']));
  const take = (message: unknown) => started.push(message as (typeof started)[number]);
  const started: Record<'server' | 'request' | 'response', EventEmitter>[] = [];
  subscribe('http.server.request.start', take);
  await ask(server.port, scrapeHead());
  server.retire();
  await ask(server.port, scrapeHead());
  unsubscribe('http.server.request.start', take);
  assert.equal(started.length, 2);
  for (const { server: http, request, response } of started) {
    for (const emitter of [http, response]) emitter.emit('error', new Error('made up'));
    // Node emits it where there is a listener alone.
    assert.equal(request.listenerCount('error'), 0);
  }
});

test('close() ends every connection at once, the ones in the middle of an answer as well', async () => {
  async function* readUntil(signal: AbortSignal) {
    yield Buffer.from(BODY);
    await once(signal, 'abort');
    throw signal.reason;
  }
  await using server = await openFrontServer(({ signal }, count) =>
    count === 0 ? { kind: 'body', body: { read: () => readUntil(signal), sizeBytes: null } } : new Promise(() => {}),
  );
  const streaming = await server.dial(scrapeHead());
  await streaming.readBytes(200);
  const waiting = await server.dial(scrapeHead());
  await server.requestedCount(2);
  const silent = await server.dial();
  const kept = await server.dial('GET /-/ready HTTP/1.1\r\nHost: x\r\n\r\n');
  await kept.readAnswer();
  assert.equal(server.inFlightCount(), 2);
  await Promise.all([server.close(), server.close()]);
  await Promise.all([streaming.closed, waiting.closed, silent.closed, kept.closed]);
  const reasons = server.requests.map(({ signal }) => signal.reason);
  assert.deepEqual(reasons, ['the front closes', 'the front closes']);
  assert.equal(server.inFlightCount(), 0);
  assert.equal(await (await server.dial()).closed, 'ECONNREFUSED');
  await server.close();
  assert.deepEqual(server.served, []);
});

test('a page of 50 KB and what follows it leave in one write', async (t) => {
  const pieces = ['x'.repeat(50_000), 'y'.repeat(1_000)];
  await using server = await openFrontServer(() => answerOf(pieces));
  const { mock } = t.mock.method(Socket.prototype as Required<Socket>, '_writev');
  const { body } = await ask(server.port, scrapeHead());
  assert.equal(body.toString(), pieces.join(''));
  assert.equal(mock.callCount(), 1);
});
