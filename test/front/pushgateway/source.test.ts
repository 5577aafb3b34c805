// lastscrape in the place of a Pushgateway, request by request: as 1.11.3 answered, and Debian's 1.5.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { after, before, describe, it, type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { SYSTEM_CLOCK } from '../../../src/base/waits.ts';
import type { LogEntry } from '../../../src/decide/messages.ts';
import { openPushSource, PUSH_MAX_BYTES } from '../../../src/front/pushgateway/source.ts';
import { gateFront } from '../../pods/front-programs.ts';
import { type Receiver, startPushgateway } from '../../pods/push-receivers.ts';
import { makeFolder } from '../../support/folder.ts';
import { findFreePort } from '../../support/listen.ts';
import { openRawClient, type RawClient } from '../raw-client.ts';
import { normalizePage, PUSH_CASES, type PushCaseRequest, type PushOutcome } from './push-cases.ts';

/** What a real Pushgateway 1.11.3 answered, built from its sources. */
const RECORDED: Readonly<Record<string, PushOutcome>> = JSON.parse(
  readFileSync('fixtures/recordings/pushgateway/1.11.3.json', 'utf8'),
);

type Answer = { readonly status: number; readonly text: string };

function send(port: number, [method, path, body = '', headers = {}]: PushCaseRequest): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const options = { host: '127.0.0.1', port, method, path, agent: false };
  const sent = request({ ...options, headers: { ...headers, 'Content-Length': Buffer.byteLength(body) } });
  sent.on('error', reject).on('response', async (response) => {
    let text = '';
    for await (const piece of response) text += piece;
    resolve({ status: response.statusCode ?? 0, text });
  });
  sent.end(body);
  return promise;
}

async function play(port: number, requests: readonly PushCaseRequest[]): Promise<PushOutcome> {
  const statuses: number[] = [];
  for (const each of requests) statuses.push((await send(port, each)).status);
  return { statuses, page: normalizePage((await send(port, ['GET', '/metrics'])).text) };
}

/** lastscrape, where every page was taken. */
async function openOurs(t: TestContext, takenAtMs = Number.POSITIVE_INFINITY) {
  const log: LogEntry[] = [];
  const port = await findFreePort();
  const source = await openPushSource({
    url: new URL(`pushgateway://127.0.0.1:${port}`),
    metricNames: ['rows_left'],
    selectors: [{ name: 'rows_left', labels: [['job', 'j']] }],
    clock: SYSTEM_CLOCK,
    toUnixSeconds: () => 1_600_000_000,
    log: (entry) => log.push(entry),
    findTakenAtMs: () => takenAtMs,
  });
  assert.ok(typeof source !== 'string');
  t.after(source.close);
  return { port, log, source };
}

for (const { name, requests, ours } of PUSH_CASES) {
  test(`lastscrape answers pushes over HTTP as Pushgateway 1.11.3: ${name}`, async (t) => {
    const { port, log, source } = await openOurs(t);
    const { statuses, page } = await play(port, requests);
    assert.deepEqual(statuses, ours ?? RECORDED[name]?.statuses);
    if (ours === undefined) assert.deepEqual(page, RECORDED[name]?.page);
    const pushed = statuses.filter((_, index) => requests[index]?.[0] !== 'GET');
    const refused = pushed.filter((status) => status >= 400);
    const { takenCount: taken, refusedCount, why } = source.pushes?.() ?? assert.fail();
    assert.deepEqual([taken, refusedCount], [pushed.filter((status) => status === 200).length, refused.length]);
    assert.ok(why.startsWith(String(refused.at(-1) ?? '')), why);
    const ids = [...(name === 'a native histogram' ? ['nativeHistogramPushed'] : []), ...(why && ['pushRefused'])];
    assert.deepEqual(log.map(({ id }) => id).join(), ids.join());
  });
}

const makeBody = (sizeBytes: number) => `${`a 1\n${'#\n'.repeat(sizeBytes)}`.slice(0, sizeBytes - 1)}\n`;
const GZIP = { 'Content-Encoding': 'gzip' };

test('a body has at most 8 MiB, as it comes and unpacked, and each that has more is logged', async (t) => {
  const { port, log } = await openOurs(t);
  const put = async (body: string | Buffer, headers = {}) =>
    (await send(port, ['PUT', '/metrics/job/j', body, headers])).status;
  assert.equal(await put(makeBody(PUSH_MAX_BYTES)), 200);
  assert.equal(await put(makeBody(PUSH_MAX_BYTES + 1)), 413);
  assert.equal(await put(gzipSync(makeBody(PUSH_MAX_BYTES)), GZIP), 200);
  assert.equal(await put(gzipSync(makeBody(PUSH_MAX_BYTES + 1)), GZIP), 413);
  assert.equal(log.map(({ id }) => id).join(), 'pushRefused,pushRefused');
  assert.deepEqual((await play(port, [])).page, (await play(port, [])).page);
});

test('a body that does not come whole changes nothing, and its connection ends', async (t) => {
  const { port } = await openOurs(t);
  const before = await play(port, [['PUT', '/metrics/job/j', 'a 1\n']]);
  const client = connect(port, '127.0.0.1');
  client.end('PUT /metrics/job/j HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\na 2\n');
  await new Promise((resolve) =>
    client
      .resume()
      .on('error', () => {})
      .once('close', resolve),
  );
  assert.deepEqual((await play(port, [])).page, before.page);
});

test('pipelined pushes are taken one after the other', async (t) => {
  const { port } = await openOurs(t);
  const client = await openRawClient(port);
  const packed = gzipSync(makeBody(PUSH_MAX_BYTES));
  const head = 'PUT /metrics/job/j HTTP/1.1\r\nHost: x\r\nContent-Length:';
  client.send(Buffer.concat([Buffer.from(`${head} ${packed.length}\r\nContent-Encoding: gzip\r\n\r\n`), packed]));
  client.send(`${head} 4\r\n\r\na 2\n`);
  for (const _ of [1, 2]) assert.equal((await client.readAnswer()).status, 200);
  assert.ok((await play(port, [])).page.includes('a{instance="",job="j"} 2'));
});

test('512 connections stay open at a time, and one more closes the one idle longest', async (t) => {
  const { port } = await openOurs(t);
  const clients: RawClient[] = [];
  for (let count = 0; count < 513; count++) clients.push(await openRawClient(port));
  await clients.shift()?.closed;
  for (const client of clients) client.send('GET /-/ready HTTP/1.1\r\nHost: x\r\n\r\n');
  for (const client of clients) assert.equal((await client.readAnswer()).status, 200);
});

test('conditions and thresholds read what was pushed', async (t) => {
  const { port, source } = await openOurs(t, 0);
  const read = async () => {
    const { metric, observation } = await source.read(new AbortController().signal).ended;
    return [metric('rows_left'), observation.kind === 'answered' && observation.thresholds];
  };
  assert.deepEqual(await read(), [{ kind: 'unknown', why: 'not in the exposition' }, [{ kind: 'none' }]]);
  await send(port, ['PUT', '/metrics/job/j/run/7', 'rows_left 0\n']);
  const value = { kind: 'value', value: 0 };
  assert.deepEqual(await read(), [value, [value]]);
  await send(port, ['PUT', '/metrics/job/k', 'rows_left 0\n']);
  assert.deepEqual(await read(), [{ kind: 'unknown', why: 'there more than once' }, [value]]);
  // What it replaces was not scraped, and is on the page next to it.
  await send(port, ['PUT', '/metrics/job/j/run/7', 'rows_left{step="2"} 7\n']);
  assert.deepEqual((await read())[1], [{ kind: 'value', value: 7 }]);
});

const skip = gateFront('test/front/pushgateway/source.test.ts', ['pushgateway']);

describe('the real Pushgateway 1.5 of Debian', { skip }, () => {
  const directory = makeFolder();
  let gateway: Receiver;
  before(async () => {
    gateway = await startPushgateway(directory, ['--web.enable-admin-api']);
  });
  after(async () => {
    await gateway?.[Symbol.asyncDispose]();
  });

  // What lastscrape answers otherwise is not asked: the table of docs/front.md has it.
  for (const { name, requests, ours, isNew = false } of PUSH_CASES.filter((each) => each.ours === undefined)) {
    it(`answers as 1.11.3 ${isNew ? 'no longer' : 'too'}: ${name}`, async () => {
      await send(gateway.port, ['PUT', '/api/v1/admin/wipe']);
      const outcome = await play(gateway.port, requests);
      assert.equal(
        JSON.stringify(outcome) === JSON.stringify(RECORDED[name]),
        !isNew,
        JSON.stringify({ outcome, ours }),
      );
    });
  }
});
