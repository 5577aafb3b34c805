// The built binary under the manifests' memory limit, and 30 MB in two formats: both pass, the first is kept.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { openMemoryGroup } from '../bench/memory-limit.ts';
import { closedPort } from '../support/peer.ts';
import { readTestVariable } from '../support/programs.ts';

const binary = readTestVariable('LASTSCRAPE_TEST_BINARY');
const group = binary === undefined ? undefined : openMemoryGroup();
const skip = group === undefined ? 'there is no LASTSCRAPE_TEST_BINARY, or no memory group can be made here' : false;
if (skip !== false) process.stderr.write(`SKIPPED test/binary/formats-memory.test.ts: ${skip}\n`);

const TEXT = 'text/plain;version=0.0.4';
const OPEN = 'application/openmetrics-text;version=1.0.0';
const LINE = `rows_total{name="${'x'.repeat(80)}"} 1\n`;
const PAGE = LINE.repeat(30_000_000 / LINE.length);

test('30 MB in two formats within 64 MiB: the second is left out, with one warning', {
  skip,
  timeout: 120_000,
}, async (t) => {
  const source = createServer((request, response) => {
    const isOpen = request.headers.accept?.includes('openmetrics') === true;
    response.writeHead(200, { 'content-type': isOpen ? OPEN : TEXT });
    response.end(isOpen ? `${PAGE}# EOF\n` : PAGE);
  }).listen(0, '127.0.0.1');
  await once(source, 'listening');
  const port = await closedPort();
  group?.setLimit(64 * 1024 * 1024);
  const [file = '', ...args] = group?.wrap([binary ?? '']) ?? [];
  const env = {
    LASTSCRAPE_METRICS_URL: `http://127.0.0.1:${(source.address() as AddressInfo).port}/metrics`,
    LASTSCRAPE_FRONT: `127.0.0.1:${port}`,
    LASTSCRAPE_DONE_WHEN: 'sigterm',
    LASTSCRAPE_SCRAPES: '2',
    LASTSCRAPE_TERMINATION_LOG: '/dev/null',
  };
  const watcher = spawn(file, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(watcher, 'exit');
  t.after(async () => {
    watcher.kill('SIGKILL');
    source.close().closeAllConnections();
    await exited;
    group?.[Symbol.dispose]();
  });
  let log = '';
  watcher.stdout.setEncoding('utf8').on('data', (text) => {
    log += text;
  });
  const url = `http://127.0.0.1:${port}/metrics`;
  const ask = async (accept: string) => {
    const answer = await fetch(url, { headers: { accept, 'x-prometheus-scrape-timeout-seconds': '60' } });
    const { byteLength } = await answer.arrayBuffer();
    return [answer.status, answer.headers.get('content-type'), byteLength > PAGE.length];
  };
  while ((await fetch(url).catch(() => null))?.status !== 200) await delay(100);
  for (const accept of [TEXT, OPEN, TEXT, OPEN]) assert.deepEqual(await ask(accept), [200, accept, true]);
  assert.equal((await fetch(`http://127.0.0.1:${port}/-/snapshot`, { method: 'POST' })).status, 200);
  source.close().closeAllConnections();
  watcher.kill('SIGTERM');
  for (const accept of [TEXT, OPEN]) assert.deepEqual(await ask(accept), [200, TEXT, true]);
  assert.deepEqual(await exited, [0, null]);
  assert.equal(log.match(/scrapers ask for several formats/g)?.length, 1, log);
});
