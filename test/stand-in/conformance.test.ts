// Holds the stand-in exporter against recordings of the real one. Where a real one is on the machine (a path
// in LASTSCRAPE_TEST_EXPORTER, or locust_exporter on the PATH), it is held against them as well.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { Agent, Server as HttpServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { connect, Server as NetServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { listen } from '../support/listen.ts';
import { openExporter } from './exporter.ts';
import { findFreePort } from './locust.ts';
import { type ExposedSample, readSamples } from './prometheus.ts';
import { rebuildStats } from './rebuild-stats.ts';

const RECORDINGS = join(import.meta.dirname, '../../fixtures/recordings');
const V050 = 'exporter-0.5.0-locust-2.47.0';
const V052 = 'exporter-0.5.2-locust-2.47.0';

type StartOptions = { readonly locustUrl: string; readonly fetchTimeoutMs?: number };

type Running = AsyncDisposable & {
  readonly url: string;
  /** Resolves with how it ended; the stand-in in this process says 0 when it has called its exit. */
  readonly exited: Promise<number | NodeJS.Signals | null>;
  readonly pid: number | undefined;
};

type Subject = {
  readonly name: string;
  /** The recordings that it must equal. */
  readonly folder: string;
  /** False for a real binary: its Go, and so its go_* families and build labels, may differ. */
  readonly hasRecordedRuntime: boolean;
  readonly isProcess: boolean;
  start(options: StartOptions): Promise<Running>;
};

const EMBEDDED: Subject = {
  name: 'stand-in',
  folder: V050,
  hasRecordedRuntime: true,
  isProcess: false,
  async start(options) {
    const { promise, resolve } = Promise.withResolvers<number>();
    const exporter = await openExporter({ ...options, onQuit: () => resolve(0) });
    return { url: exporter.url, exited: promise, pid: undefined, [Symbol.asyncDispose]: () => exporter.close() };
  },
};

const realExporter = findRealExporter();
const subjects: Subject[] = [
  EMBEDDED,
  spawned('stand-in as a process', process.execPath, [join(import.meta.dirname, 'exporter-main.ts')], true),
  ...(realExporter === undefined ? [] : [spawned(`real exporter ${realExporter}`, realExporter, [], false)]),
];
after((t) => {
  const what = realExporter === undefined ? 'the stand-in only; no real locust_exporter found' : realExporter;
  if ('diagnostic' in t) t.diagnostic(`conformance ran with ${what}`);
});

for (const subject of subjects) {
  describe(`locust_exporter conformance: ${subject.name}`, () => {
    test('without Locust, answers, headers and counters are the recorded ones, other requests counted as recorded', async () => {
      await using feed = await openFeed();
      await feed.closeListener();
      await using exporter = await subject.start({ locustUrl: feed.url });
      // The order in which the recorder asked: the counters depend on it.
      const steps: [file: string, method: string, path: string, headers?: Record<string, string>][] = [
        ['01-before-master.1', 'GET', '/metrics'],
        ['01-before-master.2', 'GET', '/metrics'],
        ['01-before-master.3', 'GET', '/metrics'],
        ['01b-root', 'GET', '/'],
        ['01c-head', 'HEAD', '/metrics'],
        ['01d-openmetrics', 'GET', '/metrics', { Accept: 'application/openmetrics-text;version=1.0.0' }],
        ['01e-post', 'POST', '/metrics'],
        ['01f-after-other-requests.1', 'GET', '/metrics'],
      ];
      for (const [file, method, path, headers] of steps) {
        const want = readRecording(V050, `${file}.txt`);
        const got = await ask(exporter.url + path, { method, headers: headers ?? {} });
        assert.deepEqual(hideDate(got.head), hideDate(want.head), file);
        assertSameLines(comparable(got.body, subject), comparable(want.body, subject), file);
      }
    });

    test('13-odd-names: every locust line equals the recorded one, byte by byte, also after the exit', async () => {
      await using feed = await openFeed();
      await using exporter = await subject.start({ locustUrl: feed.url });
      const stopped = readRecording(V050, '13-odd-names-stopped.txt').body;
      // The exporter remembers earlier states of the worker, which the recorded answer of Locust lacks.
      feed.body = rebuildStats(stopped).workers;
      await ask(`${exporter.url}/metrics`);
      feed.body = readBytes(V050, '13-odd-names.stats-requests.json');
      const running = await ask(`${exporter.url}/metrics`);
      assertSameLines(locustLines(running.body), locustLines(stopped));
      await feed.exit();
      const gone = await ask(`${exporter.url}/metrics`);
      assertSameLines(locustLines(gone.body), locustLines(readRecording(V050, '13-odd-names-after-exit.txt').body));
    });

    test('14-nan: a body with NaN leaves up 1, plain gauges 0 and the rows of before, byte by byte', async () => {
      await using feed = await openFeed();
      await using exporter = await subject.start({ locustUrl: feed.url });
      const nan = readRecording(V050, '14-nan-running.txt').body;
      feed.body = rebuildStats(nan).rows;
      await ask(`${exporter.url}/metrics`);
      feed.body = readBytes(V050, '14-nan.stats-requests.json');
      assert.ok(feed.body.includes('NaN'));
      const running = await ask(`${exporter.url}/metrics`);
      assertSameLines(locustLines(running.body), locustLines(nan));
      assertSameLines(locustLines(nan), locustLines(readRecording(V050, '14-nan-stopped.txt').body));
      await feed.exit();
      const gone = await ask(`${exporter.url}/metrics`);
      assertSameLines(locustLines(gone.body), locustLines(readRecording(V050, '14-nan-after-exit.txt').body));
    });

    test('every recorded exposition comes out again from the answer of Locust that it proves, all lines in order', async () => {
      const files = readdirSync(join(RECORDINGS, subject.folder)).filter(
        (file) => /^(0|1[034])/.test(file) && file.endsWith('.txt') && !/^01[b-g]/.test(file),
      );
      assert.ok(files.length >= 6);
      for (const file of files) {
        const want = readRecording(subject.folder, file).body;
        const stats = rebuildStats(want);
        await using feed = await openFeed();
        await using exporter = await subject.start({ locustUrl: feed.url });
        if (stats.hasRows) {
          feed.body = stats.rows;
          await ask(`${exporter.url}/metrics`);
        }
        feed.body = stats.last;
        if (!stats.isUp) await feed.exit();
        const got = await ask(`${exporter.url}/metrics`);
        assertSameLines(locustLines(got.body), locustLines(want), file);
        assertSameLines(withoutValues(got.body, subject), withoutValues(want, subject), file);
      }
    });

    test('every recorded answer of Locust gives the values recorded with it', async () => {
      await using feed = await openFeed();
      const folder = join(RECORDINGS, 'locust-2.47.0');
      const files = readdirSync(folder).filter((file) => file.endsWith('.json'));
      const scenarios = Map.groupBy(files, (file) => file.split('.')[0] ?? '');
      assert.ok(scenarios.size > 10);
      for (const [scenario, bodies] of scenarios) {
        await using exporter = await subject.start({ locustUrl: feed.url });
        const timeline = readFileSync(join(folder, `${scenario}.timeline`), 'utf8');
        for (const file of bodies.toSorted()) {
          feed.body = readBytes('locust-2.47.0', file);
          const summary = summarize((await ask(`${exporter.url}/metrics`)).body);
          assert.ok(timeline.includes(`exporter ${summary} `), `${file}: not in the timeline: ${summary}`);
        }
      }
    });

    test('a status outside 2xx is down, any body with 2xx is up with zeros', async () => {
      await using feed = await openFeed();
      await using exporter = await subject.start({ locustUrl: feed.url });
      const cases: [status: number, body: string, up: number][] = [
        [500, '{"user_count":3}', 0],
        [404, '', 0],
        [200, '<html>Please log in</html>', 1],
        [204, '', 1],
        [200, '{"user_count":"three","fail_ratio":1e999,"stats":7,"state":null}', 1],
      ];
      for (const [status, body, up] of cases) {
        feed.status = status;
        feed.body = Buffer.from(body);
        const samples = readSamples((await ask(`${exporter.url}/metrics`)).body);
        assert.equal(samples.find(({ name }) => name === 'locust_up')?.value, up, `${status} ${body}`);
        assert.equal(samples.find(({ name }) => name === 'locust_users')?.value, up === 1 ? 0 : undefined);
      }
    });

    test('up stays 1 on the kept connection after the listener closed, and is 0 when the process is gone (Z1)', async () => {
      await using feed = await openFeed();
      await using exporter = await subject.start({ locustUrl: feed.url });
      await ask(`${exporter.url}/metrics`);
      await feed.closeListener();
      for (const up of [1, 1, 1]) assert.equal(await readValue(exporter, 'locust_up'), up);
      assert.equal(feed.connectionCount, 1);
      await feed.exit();
      assert.equal(await readValue(exporter, 'locust_up'), 0);
    });

    test('a fetch that Locust does not answer in time is down, and keeps the rows (05b)', async () => {
      await using feed = await openFeed();
      await using exporter = await subject.start({ locustUrl: feed.url, fetchTimeoutMs: 200 });
      const want = readRecording(V050, '05b-master-stalled.1.txt').body;
      feed.body = rebuildStats(want).rows;
      await ask(`${exporter.url}/metrics`);
      feed.hold();
      const got = await ask(`${exporter.url}/metrics`);
      assertSameLines(locustLines(got.body), locustLines(want));
    });

    test('scrapes queue behind one lock; counters are of the moment of the request, and count those given up', async () => {
      await using feed = await openFeed();
      await using exporter = await subject.start({ locustUrl: feed.url });
      feed.hold();
      const first = ask(`${exporter.url}/metrics`);
      await feed.waitForRequests(1);
      const givenUp = [await askAndGiveUp(exporter), await askAndGiveUp(exporter)];
      const behind = ask(`${exporter.url}/metrics`);
      await settle(exporter);
      assert.equal(feed.requestCount, 1);
      // As in exporter-0.5.0-aborted-scrapes.timeline: scrapes that were given up are counted like the
      // others.
      feed.release();
      assert.deepEqual(readCounters((await first).body), { counted: 0, inFlight: 1 });
      assert.deepEqual(readCounters((await behind).body), { counted: 0, inFlight: 2 + givenUp.length });
      const last = await ask(`${exporter.url}/metrics`);
      assert.deepEqual(readCounters(last.body), { counted: 4, inFlight: 1 });
      assert.equal(feed.requestCount, 5);
    });

    test('gzip comes when asked for, with the same lines', async () => {
      await using feed = await openFeed();
      await using exporter = await subject.start({ locustUrl: feed.url });
      const plain = await ask(`${exporter.url}/metrics`);
      const zipped = await ask(`${exporter.url}/metrics`, { headers: { 'Accept-Encoding': 'gzip' } });
      assert.ok(zipped.head.includes('Content-Encoding: gzip'));
      assertSameLines(
        withoutValues(gunzipSync(Buffer.from(zipped.body, 'latin1')).toString('latin1'), subject),
        withoutValues(plain.body, subject),
      );
    });

    for (const [file, method, path] of [
      ['11-quit-get', 'GET', '/quitquitquit'],
      ['11-quit-head', 'HEAD', '/quitquitquit'],
      ['11-quit-post', 'POST', '/quitquitquit'],
      ['12-quit-query', 'POST', '/quitquitquit?x=1'],
    ] as const) {
      test(`${method} ${path} ends it inside the handler: not one byte, exit code 0, the port refuses (${file})`, async () => {
        await using feed = await openFeed();
        await using exporter = await subject.start({ locustUrl: feed.url });
        assert.equal(readBytes(subject.folder, `${file}.txt`).byteLength, 0);
        assert.equal(
          (await askRaw(exporter.url, `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)).byteLength,
          0,
        );
        assert.equal(await exporter.exited, 0);
        await assert.rejects(ask(`${exporter.url}/metrics`), { code: 'ECONNREFUSED' });
      });
    }

    test('a quit cuts a scrape in flight before its first byte', async () => {
      await using feed = await openFeed();
      await using exporter = await subject.start({ locustUrl: feed.url });
      feed.hold();
      const scrape = askRaw(exporter.url, 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n');
      await feed.waitForRequests(1);
      await askRaw(exporter.url, 'POST /quitquitquit HTTP/1.1\r\nHost: localhost\r\n\r\n');
      assert.equal((await scrape).byteLength, 0);
      assert.equal(await exporter.exited, 0);
    });

    test('/quitquitquit/ is another path: 200, the page, and it lives on (12-quit-trailing-slash)', async () => {
      await using feed = await openFeed();
      await using exporter = await subject.start({ locustUrl: feed.url });
      const got = await ask(`${exporter.url}/quitquitquit/`, { method: 'POST' });
      const want = readRecording(subject.folder, '12-quit-trailing-slash.txt');
      assert.deepEqual({ ...got, head: hideDate(got.head) }, { ...want, head: hideDate(want.head) });
      assert.equal(await readValue(exporter, 'locust_up'), 1);
    });

    if (!subject.isProcess) return;
    test('SIGTERM ends the process with that signal', async () => {
      await using feed = await openFeed();
      await using exporter = await subject.start({ locustUrl: feed.url });
      if (exporter.pid === undefined) throw new Error('Bug: a process without an id');
      process.kill(exporter.pid, 'SIGTERM');
      assert.equal(await exporter.exited, 'SIGTERM');
    });
  });
}

function findRealExporter(): string | undefined {
  const { LASTSCRAPE_TEST_EXPORTER, PATH = '' } = process.env;
  if (LASTSCRAPE_TEST_EXPORTER) return LASTSCRAPE_TEST_EXPORTER;
  return PATH.split(delimiter)
    .map((folder) => join(folder, 'locust_exporter'))
    .find((file) => existsSync(file));
}

function spawned(name: string, command: string, args: readonly string[], hasRecordedRuntime: boolean): Subject {
  return {
    name,
    folder: V052,
    hasRecordedRuntime,
    isProcess: true,
    async start({ locustUrl }) {
      const address = `127.0.0.1:${await findFreePort()}`;
      const child = spawn(command, args, {
        stdio: ['ignore', 'ignore', 'pipe'],
        env: {
          LOCUST_EXPORTER_URI: locustUrl,
          LOCUST_EXPORTER_WEB_LISTEN_ADDRESS: address,
        },
      });
      let said = '';
      child.stderr.on('data', (chunk) => {
        said += chunk;
      });
      const exited = new Promise<number | NodeJS.Signals | null>((resolve, reject) => {
        child.once('error', reject);
        child.once('exit', (code, signal) => resolve(signal ?? code));
      });
      const url = `http://${address}`;
      while (!(await isOpen(url))) {
        if (child.exitCode !== null)
          throw new Error(`Cannot start ${name}: exit code ${child.exitCode}; it said ${said}`);
        await sleep(10);
      }
      return {
        url,
        exited,
        pid: child.pid,
        async [Symbol.asyncDispose]() {
          child.kill('SIGKILL');
          await exited;
        },
      };
    },
  };
}

/** Looks with a bare connect, which an exporter does not count. */
function isOpen(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

type Feed = AsyncDisposable & {
  readonly url: string;
  readonly requestCount: number;
  readonly connectionCount: number;
  body: Buffer;
  status: number;
  /** From now on nothing is answered, until `release`. */
  hold(): void;
  release(): void;
  waitForRequests(count: number): Promise<void>;
  /** No new connections; open ones live on, as in the real Locust from the closing of 8089 to its exit. */
  closeListener(): Promise<void>;
  exit(): Promise<void>;
};

/** What plays Locust's page here: it answers /stats/requests with the bytes that it is given. */
async function openFeed(): Promise<Feed> {
  const server = new HttpServer({ keepAliveTimeout: 0 });
  let isHeld = false;
  let requestCount = 0;
  let connectionCount = 0;
  const held: ServerResponse[] = [];
  const waiting = new Set<() => void>();
  const answer = (response: ServerResponse) => response.writeHead(feed.status).end(feed.body);
  server.on('connection', () => {
    connectionCount += 1;
  });
  server.on('request', (incoming, response) => {
    assert.equal(incoming.url, '/stats/requests');
    requestCount += 1;
    for (const check of waiting) check();
    if (isHeld) held.push(response);
    else answer(response);
  });
  const port = await listen(server);
  const feed: Feed = {
    url: `http://127.0.0.1:${port}`,
    get requestCount() {
      return requestCount;
    },
    get connectionCount() {
      return connectionCount;
    },
    body: Buffer.from('{}'),
    status: 200,
    hold() {
      isHeld = true;
    },
    release() {
      isHeld = false;
      for (const response of held.splice(0)) answer(response);
    },
    waitForRequests(count) {
      return new Promise((resolve) => {
        const check = () => {
          if (requestCount >= count) resolve();
        };
        waiting.add(check);
        check();
      });
    },
    async closeListener() {
      NetServer.prototype.close.call(server);
      await turn();
    },
    async exit() {
      if (server.listening) NetServer.prototype.close.call(server);
      server.closeAllConnections();
      await turn();
    },
    [Symbol.asyncDispose]: () => feed.exit(),
  };
  return feed;
}

/** An answer as recorded: `head` is the status line and the headers in order; bytes as latin1. */
type Answer = { readonly status: number; readonly head: string[]; readonly body: string };

function ask(
  url: string,
  { method = 'GET', headers = {} }: { method?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  // As curl: it keeps the connection open for the answer, which Go's answer does not mention.
  const agent = new Agent({ keepAlive: true });
  return new Promise<Answer>((resolve, reject) => {
    const asking = request(url, { method, headers, agent }, (response: IncomingMessage) => {
      const chunks: Buffer[] = [];
      response.on('error', reject);
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const { rawHeaders, statusCode = 0, statusMessage = '', httpVersion } = response;
        const head = [`HTTP/${httpVersion} ${statusCode} ${statusMessage}`];
        for (let i = 0; i < rawHeaders.length; i += 2) head.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
        resolve({ status: statusCode, head, body: Buffer.concat(chunks).toString('latin1') });
      });
    });
    asking.on('error', reject);
    asking.end();
  }).finally(() => agent.destroy());
}

/** Sends bytes and returns all that comes back until the other side ends, by whatever means. */
function askRaw(url: string, text: string): Promise<Buffer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(Number(port), hostname, () => socket.write(text));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', () => {});
    socket.on('close', () => resolve(Buffer.concat(chunks)));
  });
}

/** Asks for a scrape, and closes the connection when the exporter has read the request. */
async function askAndGiveUp(exporter: Running): Promise<void> {
  const { hostname, port } = new URL(exporter.url);
  const socket = connect(Number(port), hostname);
  socket.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await settle(exporter);
  socket.destroy();
}

/** Waits until the exporter has read what was sent before: its page takes no lock. */
async function settle({ url }: Running): Promise<void> {
  await sleep(50);
  await ask(`${url}/`);
}

async function readValue({ url }: Running, name: string): Promise<number | undefined> {
  const samples = readSamples((await ask(`${url}/metrics`)).body);
  return samples.find((sample) => sample.name === name)?.value;
}

function readCounters(body: string): { counted: number | undefined; inFlight: number | undefined } {
  const samples = readSamples(body);
  const total = samples.find((sample) => isSample(sample, 'promhttp_metric_handler_requests_total', { code: '200' }));
  const gauge = samples.find(({ name }) => name === 'promhttp_metric_handler_requests_in_flight');
  return { counted: total?.value, inFlight: gauge?.value };
}

function isSample(sample: ExposedSample, name: string, labels: Record<string, string>): boolean {
  return sample.name === name && isDeepStrictEqual(sample.labels, labels);
}

function readBytes(folder: string, file: string): Buffer {
  return readFileSync(join(RECORDINGS, folder, file));
}

function readRecording(folder: string, file: string): Answer {
  const text = readBytes(folder, file).toString('latin1');
  const end = text.indexOf('\r\n\r\n');
  const head = text.slice(0, end).split('\r\n');
  return { status: Number(head[0]?.split(' ')[1]), head, body: text.slice(end + 4) };
}

function hideDate(head: readonly string[]): string[] {
  return head.map((line) => line.replace(/^Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/, 'Date: DATE'));
}

/** Names the first line that differs: a whole diff of an exposition is longer than a terminal. */
function assertSameLines(got: readonly string[], want: readonly string[], what = ''): void {
  const at = want.findIndex((line, index) => line !== got[index]);
  if (at >= 0) assert.equal(got[at], want[at], `${what} line ${at}: ${got[at]} must be ${want[at]}`);
  assert.equal(got.length, want.length, what);
}

function locustLines(body: string): string[] {
  return body.split('\n').filter((line) => /^(# (HELP|TYPE) )?locust_/.test(line));
}

/** All lines; the values of what depends on the machine and the moment are left out. */
function comparable(body: string, { hasRecordedRuntime }: Subject): string[] {
  const lines = body.split('\n').map((line) => line.replace(/^((?:go|process)_\S+) \S+$/, '$1 VALUE'));
  if (hasRecordedRuntime) return lines;
  return lines
    .filter((line) => !/^(# (HELP|TYPE) )?(go|process)_/.test(line))
    .map((line) => line.replace(/^locustexporter_build_info{.*}/, 'locustexporter_build_info{LABELS}'));
}

/** The same families, HELP, TYPE, names and labels in the same order, whatever the values. */
function withoutValues(body: string, subject: Subject): string[] {
  return comparable(body, subject).map((line) => (line.startsWith('#') ? line : line.replace(/ \S+$/, ' VALUE')));
}

/** In the words of the recorder's timeline. */
function summarize(body: string): string {
  const samples = readSamples(body);
  const value = (name: string) => samples.find((sample) => sample.name === name)?.value;
  const total = samples.find((sample) =>
    isSample(sample, 'locust_requests_num_requests', { method: '', name: 'Aggregated' }),
  );
  return (
    `up=${value('locust_up')} running=${value('locust_running')} users=${value('locust_users')} ` +
    `workers=${value('locust_workers_count')} missing=${value('locust_workers_missing_count')} ` +
    `aggregated_requests=${total?.value}`
  );
}
