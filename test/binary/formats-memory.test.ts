// The built binary under the memory limit of the manifests, where scrapers ask for several formats: what does
// not fit is left out. Only the binary: from the sources Node alone takes more.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { openMemoryGroup } from '../bench/memory-limit.ts';
import { findFreePort } from '../support/listen.ts';
import { readTestVariable } from '../support/programs.ts';
import { COMMAND, startWatcher } from '../support/watcher.ts';

const binary = readTestVariable('LASTSCRAPE_TEST_BINARY');
const group = binary === undefined ? undefined : openMemoryGroup();
after(() => group?.[Symbol.dispose]());
const skip = group === undefined ? 'there is no LASTSCRAPE_TEST_BINARY, or no memory group can be made here' : false;
if (skip !== false) process.stderr.write(`SKIPPED test/binary/formats-memory.test.ts: ${skip}\n`);

const OPTIONS = { skip, timeout: 600_000 };
const TEXT = 'text/plain;version=0.0.4';
const OPEN = 'application/openmetrics-text;version=1.0.0';

/** A front of a source within 64 MiB, whose hold ends with that many scrapes, each of a page that is longer. */
async function open(t: TestContext, scrapes: number, pageBytes: number, answer: RequestListener) {
  const source = createServer(answer).listen(0, '127.0.0.1');
  await once(source, 'listening');
  const front = `127.0.0.1:${await findFreePort()}`;
  const url = `http://${front}/metrics`;
  group?.setLimit(64 * 1024 * 1024);
  const env = {
    LASTSCRAPE_METRICS_URL: `http://127.0.0.1:${(source.address() as AddressInfo).port}/metrics`,
    LASTSCRAPE_FRONT: front,
    LASTSCRAPE_DONE_WHEN: 'sigterm',
    LASTSCRAPE_SCRAPES: `${scrapes}`,
    LASTSCRAPE_TERMINATION_LOG: '/dev/null',
  };
  const { child, ended } = startWatcher(env, [], group?.wrap(COMMAND));
  t.after(async () => {
    child.kill('SIGKILL');
    source.close().closeAllConnections();
    await ended;
  });
  while ((await fetch(url).catch(() => null))?.status !== 200) await delay(100);
  return {
    ended,
    async ask(accept: string) {
      const headers = { accept, 'x-prometheus-scrape-timeout-seconds': '60' };
      const answer = await fetch(url, { headers }).catch(String);
      const [status, got] =
        typeof answer === 'string' ? [answer, 0] : [answer.status, (await answer.arrayBuffer()).byteLength];
      // Whether it is we or the machine.
      const state = `lastscrape ${child.exitCode ?? child.signalCode ?? 'runs'}, ${group?.peakBytes()} bytes at most`;
      assert.ok(status === 200 && got > pageBytes, `${status}: ${got} bytes, not more than ${pageBytes}; ${state}`);
      return (answer as Response).headers.get('content-type');
    },
    async end() {
      assert.equal((await fetch(new URL('/-/snapshot', url), { method: 'POST' })).status, 200);
      source.close().closeAllConnections();
      child.kill('SIGTERM');
    },
  };
}

test('30 MB in two formats within 64 MiB: the second is left out, with one warning', OPTIONS, async (t) => {
  const page = `rows_total{name="${'x'.repeat(78)}"} 1\n`.repeat(300_000);
  const { ask, end, ended } = await open(t, 2, page.length, ({ headers }, response) => {
    const isOpen = headers.accept?.includes('openmetrics') === true;
    response.writeHead(200, { 'content-type': isOpen ? OPEN : TEXT });
    response.end(isOpen ? `${page}# EOF\n` : page);
  });
  for (const accept of [TEXT, OPEN, TEXT, OPEN]) assert.equal(await ask(accept), accept);
  await end();
  for (const accept of [TEXT, OPEN]) assert.equal(await ask(accept), TEXT);
  const { code, stdout } = await ended;
  assert.deepEqual([code, stdout.match(/scrapers ask for several formats/g)?.length], [0, 1], stdout);
});

test(
  'ten Accepts of 8 KB, each with another page of 3 MB, within 64 MiB: the newest four are kept',
  OPTIONS,
  async (t) => {
    const accepts = Array.from({ length: 10 }, (_, by) => `${TEXT};by=${by},${'application/x;q=0.1,'.repeat(400)}*/*`);
    const { ask, end, ended } = await open(t, 10, 3_000_000, ({ headers }, response) => {
      const by = /by=\d/.exec(headers.accept ?? '') ?? 'by=none';
      response.writeHead(200, { 'content-type': `${TEXT};${by}` });
      // It shrinks to a half.
      response.end(randomBytes(1_200_000).toString('hex').replaceAll(/.{80}/g, 'rows_total{name="$&"} 1\n'));
    });
    for (let round = 0; round < 3; round++) {
      for (const [by, accept] of accepts.entries()) assert.equal(await ask(accept), `${TEXT};by=${by}`);
    }
    await end();
    const served = new Set(await Promise.all(accepts.map(ask)));
    assert.deepEqual(served, new Set([6, 7, 8, 9].map((by) => `${TEXT};by=${by}`)));
    assert.equal((await ended).code, 0);
  },
);
