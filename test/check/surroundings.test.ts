import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { findListenProblem, findSurroundings, readExporter } from '../../src/check/surroundings.ts';
import { readValid } from '../config/read-config.ts';
import { makeFolder } from '../support/folder.ts';
import { listen } from '../support/listen.ts';

const HOSTS = [null, 'localhost', '127.0.0.1', '0.0.0.0'] as const;

test('findListenProblem() finds a port that is taken, and takes none itself', async () => {
  const server = createServer();
  const port = await listen(server);
  for (const host of HOSTS) {
    const found = await findListenProblem({ host, port, text: '' });
    assert.equal(found?.isTaken, true, String(host));
  }
  server.close();
  await once(server, 'close');
  for (const host of [...HOSTS, ...HOSTS]) assert.equal(await findListenProblem({ host, port, text: '' }), null);
});

test('findListenProblem() says what is wrong with an address that is not its own', async () => {
  // 192.0.2.0/24 is for documentation (RFC 5737).
  const found = await findListenProblem({ host: '192.0.2.1', port: 9469, text: '' });
  assert.equal(found?.isTaken, false);
  assert.match(found?.problem ?? '', /^this pod has no address 192\.0\.2\.1; /);
});

const NEVER = new AbortController().signal;

/** Reads as a front would, with one metric. */
function readSource(url: URL, signal = NEVER) {
  const base = readValid({ LASTSCRAPE_FRONT: '9469', LASTSCRAPE_DONE_WHEN: 'metric:a' });
  return readExporter({ ...base, metricsUrl: url }, signal);
}

const TEXT = 'text/plain; version=0.0.4';
const OPEN_METRICS = 'application/openmetrics-text; version=1.0.0';
const PAGES: Readonly<Record<string, readonly [type: string, body: string]>> = {
  '/metrics': [TEXT, 'a 1\n'],
  '/page': [TEXT, '<html>\n'],
  '/json': ['application/json', '{}'],
  '/open': [OPEN_METRICS, 'a 1\n# EOF\n'],
  '/cut': [OPEN_METRICS, 'a 1\n'],
};

test('readExporter() reads what a front would serve, and says what it could not', async (context) => {
  const server = createHttpServer(({ url = '' }, response) => {
    const [type = TEXT, body] = PAGES[url] ?? [];
    response.writeHead(body === undefined ? 404 : 200, { 'Content-Type': type }).end(body);
  });
  context.after(() => server.close());
  const port = await listen(server);
  const read = async (path: string) => readSource(new URL(path, `http://127.0.0.1:${port}`));
  const answered = await read('/metrics');
  assert.equal(answered.observation.kind, 'answered');
  assert.deepEqual(answered.metric('a'), { kind: 'value', value: 1 });
  assert.equal((await read('/open')).observation.kind, 'answered', 'OpenMetrics passes');
  const config = readValid({ LASTSCRAPE_METRICS_URL: `http://127.0.0.1:${port}/json` });
  assert.equal((await readExporter(config, NEVER)).observation.kind, 'answered', 'without a front any 200 is read');
  for (const [path, why] of [
    ['/page', /a line that Prometheus refuses: "<html>"/],
    ['/json', /a line that Prometheus refuses: "{}"/],
    ['/cut', /no "# EOF" at its end/],
    ['/other', /^HTTP 404$/],
  ] as const) {
    const { observation } = await read(path);
    assert.ok(observation.kind === 'failed', path);
    assert.match(observation.why, why, path);
  }
});

test("readExporter() finds a program at the pod's own address", async (context) => {
  const server = createHttpServer((_, response) => response.end('a 1\n')).listen(0, '127.0.0.2');
  context.after(() => server.close());
  await once(server, 'listening');
  const config = readValid({ LASTSCRAPE_FRONT: '9469', LASTSCRAPE_DONE_WHEN: 'sigterm' });
  const metricsUrl = new URL(`http://localhost:${(server.address() as AddressInfo).port}`);
  for (const [POD_IP, kind] of [
    ['', 'refused'],
    ['127.0.0.2', 'answered'],
  ] as const) {
    const { observation } = await findSurroundings({ POD_IP }, 1).readExporter({ ...config, metricsUrl }, NEVER);
    assert.equal(observation.kind, kind);
  }
});

test('readExporter() reads files', async () => {
  const folder = makeFolder();
  const url = pathToFileURL(join(folder, 'job.prom'));
  const read = async () => (await readSource(url)).observation.kind;
  assert.equal(await read(), 'refused');
  writeFileSync(url, 'a 1');
  assert.equal(await read(), 'failed', 'without its final line feed');
  writeFileSync(url, 'a 1\n');
  assert.equal(await read(), 'answered');
});

test('readExporter() ends with its signal', async (context) => {
  const server = createServer(() => {});
  context.after(() => server.close());
  const port = await listen(server);
  const stop = new AbortController();
  const reading = readSource(new URL(`http://127.0.0.1:${port}/metrics`), stop.signal);
  stop.abort('stopped by a test');
  const { observation } = await reading;
  assert.deepEqual(observation.kind === 'failed' && observation.why, 'stopped by a test');
});
