// Holds the stand-in exporter against recordings of the real one.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, Server as HttpServer, request, type ServerResponse } from 'node:http';
import { connect, Server as NetServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { listen } from '../support/listen.ts';
import { type Exporter, openExporter } from './exporter.ts';

const RECORDINGS = join(import.meta.dirname, '../../fixtures/recordings/exporter-0.5.0-locust-2.47.0');

/** An exporter before what plays Locust's page here; both close with the test. */
async function open(t: TestContext, options: { readonly fetchTimeoutMs?: number } = {}) {
  const feed = await openFeed();
  const quit = Promise.withResolvers<void>();
  const exporter = await openExporter({ ...options, locustUrl: feed.url, onQuit: () => quit.resolve() });
  t.after(exporter.close);
  t.after(feed.exit);
  return { feed, exporter, hasQuit: quit.promise };
}

test('without Locust, answers, headers and counters are the recorded ones, other requests counted as recorded', async (t) => {
  const { feed, exporter } = await open(t);
  await feed.closeListener();
  // The order in which the recorder asked: the counters depend on it.
  const steps: readonly (readonly [file: string, method: string, path: string, headers?: Record<string, string>])[] = [
    ['01-before-master.1', 'GET', '/metrics'],
    ['01-before-master.2', 'GET', '/metrics'],
    ['01b-root', 'GET', '/'],
    ['01c-head', 'HEAD', '/metrics'],
    ['01d-openmetrics', 'GET', '/metrics', { Accept: 'application/openmetrics-text;version=1.0.0' }],
    ['01e-post', 'POST', '/metrics'],
    ['01f-after-other-requests.1', 'GET', '/metrics'],
  ];
  // One that the recorder asked and this test does not: 01-before-master.3.
  await ask(`${exporter.url}/metrics`);
  for (const [file, method, path, headers = {}] of steps) {
    const got = await ask(exporter.url + path, method, headers);
    const want = readRecording(file);
    assert.deepEqual(hideDate(got.head), hideDate(want.head), file);
    if (path === '/') assert.equal(got.body, want.body);
  }
  assert.deepEqual(readCounters((await ask(`${exporter.url}/metrics`)).body), [7, 1]);
});

test('a status outside 2xx is down, any body with 2xx is up', async (t) => {
  const { feed, exporter } = await open(t);
  for (const [status, body, up] of [
    [200, '{"user_count":3}', 1],
    [500, '{"user_count":3}', 0],
    [404, '', 0],
    [200, '<html>Please log in</html>', 1],
    [204, '', 1],
  ] as const) {
    feed.status = status;
    feed.body = body;
    assert.equal(await readValue(exporter, 'locust_up'), up, `${status} ${body}`);
  }
});

test('up stays 1 on the kept connection after the listener closed, and is 0 when the process is gone (Z1)', async (t) => {
  const { feed, exporter } = await open(t);
  feed.body = JSON.stringify({
    user_count: 3,
    stats: [{ method: '', name: 'Aggregated', num_requests: 7, 'response_time_percentile_0.95': 8 }],
  });
  assert.equal(await readValue(exporter, 'locust_users'), 3);
  const percentile = 'locust_requests_current_response_time_percentile_95';
  assert.deepEqual(
    [await readValue(exporter, percentile), await readValue(exporter, 'locust_requests_response_time_percentile')],
    [0, undefined],
  );
  await feed.closeListener();
  for (const up of [1, 1, 1]) assert.equal(await readValue(exporter, 'locust_up'), up);
  assert.equal(feed.connectionCount, 1);
  await feed.exit();
  assert.equal(await readValue(exporter, 'locust_up'), 0);
  assert.equal(await readValue(exporter, 'locust_requests_num_requests'), 7, 'rows stay');
  assert.equal(await readValue(exporter, 'locust_users'), undefined);
});

test('a fetch that Locust does not answer in time is down (05b)', async (t) => {
  const { feed, exporter } = await open(t, { fetchTimeoutMs: 200 });
  feed.hold();
  assert.equal(await readValue(exporter, 'locust_up'), 0);
});

test('scrapes queue behind one lock; counters are of the moment of the request, and count those given up', async (t) => {
  const { feed, exporter } = await open(t);
  feed.hold();
  const first = ask(`${exporter.url}/metrics`);
  await feed.waitForRequest();
  await askAndGiveUp(exporter);
  await askAndGiveUp(exporter);
  const behind = ask(`${exporter.url}/metrics`);
  await settle(exporter);
  assert.equal(feed.requestCount, 1);
  // As in exporter-0.5.0-aborted-scrapes.timeline: scrapes that were given up are counted like the others.
  feed.release();
  assert.deepEqual(readCounters((await first).body), [0, 1]);
  assert.deepEqual(readCounters((await behind).body), [0, 4]);
  assert.deepEqual(readCounters((await ask(`${exporter.url}/metrics`)).body), [4, 1]);
  assert.equal(feed.requestCount, 5);
});

test('gzip comes when asked for', async (t) => {
  const { exporter } = await open(t);
  const zipped = await ask(`${exporter.url}/metrics`, 'GET', { 'Accept-Encoding': 'gzip' });
  assert.ok(zipped.head.includes('Content-Encoding: gzip'));
  assert.match(gunzipSync(Buffer.from(zipped.body, 'latin1')).toString(), /^locust_up 1$/m);
});

for (const [file, method, path] of [
  ['11-quit-get', 'GET', '/quitquitquit'],
  ['11-quit-head', 'HEAD', '/quitquitquit'],
  ['11-quit-post', 'POST', '/quitquitquit'],
  ['12-quit-query', 'POST', '/quitquitquit?x=1'],
] as const) {
  test(`${method} ${path} ends it inside the handler: not one byte, the port refuses (${file})`, async (t) => {
    const { exporter, hasQuit } = await open(t);
    assert.equal(readFileSync(join(RECORDINGS, `${file}.txt`)).byteLength, 0);
    assert.equal((await askRaw(exporter, `${method} ${path}`)).byteLength, 0);
    await hasQuit;
    await assert.rejects(ask(`${exporter.url}/metrics`), { code: 'ECONNREFUSED' });
  });
}

test('a quit cuts a scrape in flight before its first byte', async (t) => {
  const { feed, exporter, hasQuit } = await open(t);
  feed.hold();
  const scrape = askRaw(exporter, 'GET /metrics');
  await feed.waitForRequest();
  await askRaw(exporter, 'POST /quitquitquit');
  assert.equal((await scrape).byteLength, 0);
  await hasQuit;
});

test('/quitquitquit/ is another path: 200, the page, and it lives on (12-quit-trailing-slash)', async (t) => {
  const { exporter } = await open(t);
  const got = await ask(`${exporter.url}/quitquitquit/`, 'POST');
  const want = readRecording('12-quit-trailing-slash');
  assert.deepEqual([hideDate(got.head), got.body], [hideDate(want.head), want.body]);
  assert.equal(await readValue(exporter, 'locust_up'), 1);
});

for (const [how, end] of [
  ['a quit ends the process with 0', async (url: string) => void (await askRaw({ url }, 'POST /quitquitquit'))],
  ['SIGTERM ends the process with that signal', async (_: string, pid: number) => void process.kill(pid, 'SIGTERM')],
] as const) {
  test(how, async (t) => {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'exporter-main.ts')], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { LOCUST_EXPORTER_WEB_LISTEN_ADDRESS: '127.0.0.1:0' },
    });
    t.after(() => child.kill('SIGKILL'));
    const [said] = await once(child.stderr, 'data');
    await end(/Listening on (\S+)/.exec(String(said))?.[1] ?? '', child.pid as number);
    assert.deepEqual(await once(child, 'exit'), how.startsWith('SIGTERM') ? [null, 'SIGTERM'] : [0, null]);
  });
}

/** What plays Locust's page here: it answers /stats/requests with the text that it is given. */
async function openFeed() {
  const server = new HttpServer({ keepAliveTimeout: 0 });
  const held: ServerResponse[] = [];
  let isHeld = false;
  const answer = (response: ServerResponse) => response.writeHead(feed.status).end(feed.body);
  server.on('connection', () => {
    feed.connectionCount++;
  });
  server.on('request', (_, response) => {
    feed.requestCount++;
    if (isHeld) held.push(response);
    else answer(response);
  });
  const feed = {
    url: `http://127.0.0.1:${await listen(server)}`,
    requestCount: 0,
    connectionCount: 0,
    body: '{}',
    status: 200,
    /** From now on nothing is answered, until `release`. */
    hold() {
      isHeld = true;
    },
    release() {
      isHeld = false;
      for (const response of held.splice(0)) answer(response);
    },
    async waitForRequest() {
      while (feed.requestCount === 0) await once(server, 'request');
    },
    /** No new connections; open ones live on, as in the real Locust from the closing of 8089 to its exit. */
    async closeListener() {
      NetServer.prototype.close.call(server);
      await turn();
    },
    async exit() {
      if (server.listening) NetServer.prototype.close.call(server);
      server.closeAllConnections();
      await turn();
    },
  };
  return feed;
}

/** An answer as recorded: `head` is the status line and the headers in order; bytes as latin1. */
type Answer = { readonly head: readonly string[]; readonly body: string };

function ask(url: string, method = 'GET', headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  // As curl: it keeps the connection open for the answer, which Go's answer does not mention.
  const agent = new Agent({ keepAlive: true });
  return new Promise<Answer>((resolve, reject) => {
    const asking = request(url, { method, headers, agent }, (response) => {
      const chunks: Buffer[] = [];
      response.on('error', reject);
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const { rawHeaders, statusCode, statusMessage, httpVersion } = response;
        const head = [`HTTP/${httpVersion} ${statusCode} ${statusMessage}`];
        for (let i = 0; i < rawHeaders.length; i += 2) head.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
        resolve({ head, body: Buffer.concat(chunks).toString('latin1') });
      });
    });
    asking.on('error', reject);
    asking.end();
  }).finally(() => agent.destroy());
}

/** Sends a request and returns all that comes back until the other side ends, by whatever means. */
function askRaw({ url }: Pick<Exporter, 'url'>, line: string): Promise<Buffer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.write(`${line} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', () => {});
    socket.on('close', () => resolve(Buffer.concat(chunks)));
  });
}

/** Asks for a scrape, and closes the connection when the exporter has read the request. */
async function askAndGiveUp(exporter: Exporter): Promise<void> {
  const socket = connect(exporter.port, '127.0.0.1');
  socket.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await settle(exporter);
  socket.destroy();
}

/** Waits until the exporter has read what was sent before: its page takes no lock. */
async function settle({ url }: Exporter): Promise<void> {
  await sleep(50);
  await ask(`${url}/`);
}

async function readValue({ url }: Exporter, name: string): Promise<number | undefined> {
  const value = new RegExp(`^${name}(?:\\{.*\\})? (.*)$`, 'm').exec((await ask(`${url}/metrics`)).body)?.[1];
  return value === undefined ? undefined : Number(value);
}

/** The scrapes that were counted, and those in flight. */
function readCounters(body: string): readonly number[] {
  const [total, inFlight] = ['total\\{code="200"\\}', 'in_flight'].map(
    (end) => new RegExp(`^promhttp_metric_handler_requests_${end} (.*)$`, 'm').exec(body)?.[1],
  );
  return [Number(total), Number(inFlight)];
}

function readRecording(file: string): Answer {
  const text = readFileSync(join(RECORDINGS, `${file}.txt`), 'latin1');
  const end = text.indexOf('\r\n\r\n');
  return { head: text.slice(0, end).split('\r\n'), body: text.slice(end + 4) };
}

function hideDate(head: readonly string[]): string[] {
  return head.map((line) => line.replace(/^Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/, 'Date: DATE'));
}
