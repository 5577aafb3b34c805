import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { type RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { listen } from '../support/listen.ts';
import { openPrometheus, readSamples, type ScrapeResult } from './prometheus.ts';

const RECORDINGS = join(import.meta.dirname, '../../fixtures/recordings');
const BODY = '# HELP a \n# TYPE a gauge\na{name="x"} 3\na{name="y"} 4\nb 1e+06\n';

describe('openPrometheus()', () => {
  test('asks as the recorded Prometheus, over one connection', async () => {
    const asked: string[][] = [];
    let connectionCount = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    await using target = await openTarget((request, response) => {
      asked.push(request.rawHeaders);
      response.end(BODY);
      if (asked.length === 3) resolve();
    });
    target.server.on('connection', () => {
      connectionCount += 1;
    });
    await using _ = openPrometheus({ url: target.url, intervalMs: 20, timeoutMs: 1_000 });
    await promise;
    assert.equal(connectionCount, 1);
    const recorded = readFileSync(join(RECORDINGS, 'exporter-0.5/15-prometheus-scrape-request.txt'), 'utf8');
    const want = recorded.trim().split(/\r?\n/).slice(1);
    const [first = []] = asked;
    const got = want.map((_line, i) => `${first[i * 2]}: ${first[i * 2 + 1]}`);
    assert.deepEqual(got, [`Host: ${new URL(target.url).host}`, ...want.slice(1)]);
    assert.equal(first.length, want.length * 2);
  });

  test('stores the samples of a good scrape, and keeps them when the next ones fail', async () => {
    const answers: RequestListener[] = [
      (_, response) => response.end(BODY),
      (_, response) => response.setHeader('Content-Encoding', 'gzip').end(gzipSync(BODY.replace(' 3', ' 5'))),
      (_, response) => response.writeHead(500).end(BODY.replace(' 3', ' 9')),
      (_, response) => response.end(BODY.replace(' 3', ' 9').trimEnd()),
      (_, response) => response.writeHead(200, { 'Content-Length': 10_000 }).write(BODY, () => response.destroy()),
      (request) => request.socket.destroy(),
    ];
    let turn = 0;
    await using target = await openTarget((request, response) => answers[turn++]?.(request, response));
    const results: ScrapeResult[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    await using prometheus = openPrometheus({
      url: target.url,
      intervalMs: 20,
      timeoutMs: 1_000,
      onScrape(result) {
        results.push(result);
        if (results.length === answers.length) resolve();
      },
    });
    await promise;
    const failures = results.slice(0, answers.length).map(({ failure }) => failure);
    assert.deepEqual(failures.slice(0, 5), [
      undefined,
      undefined,
      'server returned HTTP status 500 Internal Server Error',
      'unexpected EOF',
      'unexpected EOF',
    ]);
    assert.ok(failures[5] !== undefined);
    assert.equal(prometheus.lastSample('a', { name: 'x' })?.value, 5);
    assert.equal(prometheus.lastSample('b')?.value, 1_000_000);
    assert.equal(prometheus.lastSample('up')?.value, 0);
    assert.equal(prometheus.lastSample('a'), undefined);
    assert.equal(prometheus.storedCount, 2);
  });

  test('gives up at its time limit', async () => {
    await using target = await openTarget(() => {});
    const { promise, resolve } = Promise.withResolvers<ScrapeResult>();
    await using _ = openPrometheus({ url: target.url, intervalMs: 60_000, timeoutMs: 30, onScrape: resolve });
    assert.equal((await promise).failure, 'context deadline exceeded');
  });

  test('two replicas scrape and store apart', async () => {
    await using target = await openTarget((_, response) => response.end(BODY));
    const { promise, resolve } = Promise.withResolvers<void>();
    const replicas: number[] = [];
    await using prometheus = openPrometheus({
      url: target.url,
      intervalMs: 40,
      timeoutMs: 1_000,
      replicaCount: 2,
      readDelayMs: 5,
      onScrape({ replica }) {
        replicas.push(replica);
        if (replicas.length === 4) resolve();
      },
    });
    await promise;
    assert.deepEqual([...new Set(replicas)].toSorted(), [0, 1]);
    assert.ok(prometheus.lastSample('b', {}, 0) !== undefined && prometheus.lastSample('b', {}, 1) !== undefined);
    assert.equal(prometheus.lastSample('b', {}, 2), undefined);
  });
});

describe('readSamples()', () => {
  test('reads odd names as the recorded Prometheus did', () => {
    const folder = join(RECORDINGS, 'exporter-0.5.0-locust-2.47.0');
    const text = readFileSync(join(folder, '13-odd-names-stopped.txt'), 'utf8')
      .split('\r\n\r\n')
      .slice(1)
      .join('\r\n\r\n');
    const want = JSON.parse(readFileSync(join(folder, '13-odd-names.prometheus-label-values.json'), 'utf8'));
    const names = new Set(readSamples(text).flatMap(({ labels: { name } }) => (name === undefined ? [] : [name])));
    assert.deepEqual([...names].filter((name) => name !== '').toSorted(), want.data.toSorted());
  });

  test('refuses the whole body for one line that is no sample', () => {
    for (const text of ['a 1', 'a\n', 'a 1\nb{x=1} 1\n', 'a "1"\n', '{x="y"} 1\n', '<html>\n', 'a{x="y" 1\n']) {
      assert.throws(() => readSamples(text), text);
    }
  });
});

async function openTarget(listener: RequestListener): Promise<AsyncDisposable & { url: string; server: Server }> {
  const server = new Server({ keepAliveTimeout: 0 }, listener);
  await listen(server);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`,
    server,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}
