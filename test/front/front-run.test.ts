// The whole program as a child, in front of a source that can fail in every way, over real sockets.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { FLAGS } from '../../image/flags.ts';
import { makeFolder } from '../support/folder.ts';
import { findFreePort } from '../support/listen.ts';
import { openPeer } from '../support/peer.ts';
import { findPrograms, gate } from '../support/programs.ts';
import { openHttp } from '../support/receiver.ts';
import { readRecordedBody } from '../support/recording.ts';
import { until } from '../support/until.ts';
import { COMMAND, openPort, startWatcher, type Watcher } from '../support/watcher.ts';
import { scrapeHead } from './front-server.ts';
import { openRawClient } from './raw-client.ts';
import { hang, openSource, readValue, reply, scrape, scrapeToTheEnd } from './source.ts';

const OWN = /# HELP lastscrape_[\s\S]*$/;
const EXPOSITIONS = globSync('expositions/*.txt', {
  cwd: join(import.meta.dirname, '../../fixtures/recordings'),
}).toSorted();

type Run = {
  readonly watcher: Watcher;
  readonly port: number;
  readonly message: () => Record<string, unknown>;
};

/** Starts lastscrape with a front before the source, and waits until it is ready. */
async function start(t: TestContext, env: Record<string, string>, command = COMMAND): Promise<Run> {
  const folder = makeFolder();
  const port = await findFreePort();
  const messagePath = join(folder, 'message');
  const watcher = startWatcher(
    {
      LASTSCRAPE_DONE_WHEN: 'sigterm',
      LASTSCRAPE_FRONT: `127.0.0.1:${port}`,
      LASTSCRAPE_POLL: '100ms',
      LASTSCRAPE_TERMINATION_LOG: messagePath,
      ...env,
    },
    [],
    command,
  );
  t.after(async () => {
    watcher.child.kill('SIGKILL');
    await watcher.ended;
  });
  await until('the front', 60_000, async () =>
    (await scrape(port, { path: '/-/ready' })).status === 200 ? true : undefined,
  );
  return { watcher, port, message: () => JSON.parse(readFileSync(messagePath, 'utf8')) };
}

async function open(t: TestContext, body: string | Uint8Array, env: Record<string, string> = {}, command = COMMAND) {
  const source = await openSource(body);
  t.after(() => source[Symbol.asyncDispose]());
  return { source, ...(await start(t, { LASTSCRAPE_METRICS_URL: source.url.href, ...env }, command)) };
}

/** Scrapes until the answer is as it should be: a front learns of a change with its next observation. */
function scrapeUntil(port: number, what: string, isSo: (text: string, status: number) => boolean) {
  return until(what, 60_000, async () => {
    const { text, status } = await scrape(port, { isScraper: false });
    return isSo(text, status) ? text : undefined;
  });
}

test('the bytes of a live answer are those of the source, and ours after them, for every recorded exposition', async (t) => {
  const promtool = findPrograms().promtool;
  const { source, port } = await open(t, 'a 1\n');
  assert.ok(EXPOSITIONS.length >= 22);
  for (const path of EXPOSITIONS) {
    const recorded = readRecordedBody(path);
    source.answer = reply(recorded);
    const plain = await scrape(port);
    assert.ok(plain.isWhole);
    const end = recorded.at(-1) === 0x0a ? '' : '\n';
    assert.deepEqual(plain.bytes.subarray(0, recorded.length), recorded, path);
    assert.match(plain.bytes.subarray(recorded.length).toString(), new RegExp(`^${end}# HELP lastscrape_source_up `));
    const packed = await scrape(port, { headers: { 'accept-encoding': 'gzip' } });
    assert.equal(packed.headers['content-encoding'], 'gzip');
    assert.deepEqual(gunzipSync(packed.bytes).subarray(0, recorded.length), recorded);
    if (promtool !== undefined) assertChecked(promtool, recorded, plain.bytes, path);
  }
});

test("what listens on the pod's own address alone is scraped, until something does on loopback, too", async (t) => {
  const at = await findFreePort();
  const open = async (page: string, host: string) => {
    const program = createHttpServer((_, response) => response.end(page)).listen(at, host);
    t.after(() => program.close());
    await once(program, 'listening');
    return program;
  };
  await open('a 1\n', '127.0.0.2');
  const { port } = await start(t, { LASTSCRAPE_METRICS_URL: `http://localhost:${at}/metrics`, POD_IP: '127.0.0.2' });
  const read = async (name = 'a') => readValue((await scrape(port)).text, name);
  assert.equal(await read(), 1);
  const program = await open('a 2\n', '127.0.0.1');
  await read();
  assert.equal(await read(), 2);
  program.close();
  program.closeAllConnections();
  assert.deepEqual([await read(), await read('lastscrape_source_up')], [2, 0]);
});

test('promtool is there', { skip: gate(findPrograms(), 'front-run.test.ts', ['promtool']) }, () => {});

/** Where promtool finds nothing wrong with the source's, it finds nothing wrong with ours; and never anything about our own. */
function assertChecked(promtool: readonly string[], before: Uint8Array, after: Uint8Array, path: string): void {
  const check = (input: Uint8Array) => {
    const [file = '', ...args] = promtool;
    const { status, stderr } = spawnSync(file, [...args, 'check', 'metrics'], { input });
    return { status, stderr: stderr.toString() };
  };
  const [source, ours] = [check(before), check(after)];
  assert.equal(ours.status, source.status, `${path}: ${ours.stderr}`);
  assert.doesNotMatch(ours.stderr, /lastscrape_/);
}

test('after the end, with families that have vanished: only headers without samples, and ours, differ', async (t) => {
  const promtool = findPrograms().promtool;
  const main = await openMain(t);
  const { source, port, watcher } = await open(t, readRecordedBody(EXPOSITIONS[0] ?? ''), {
    LASTSCRAPE_DONE_WHEN: `port:${main.port}`,
    LASTSCRAPE_SETTLE: '0',
    LASTSCRAPE_SCRAPES: '1000',
  });
  // Pages of OpenMetrics are no text.
  for (const path of EXPOSITIONS.filter((each) => !/openmetrics|prom3/.test(each))) {
    const recorded = readRecordedBody(path).toString('latin1');
    source.answer = reply(Buffer.from(recorded, 'latin1'));
    // A read of the last program's page that is still under way would be taken for one of this program's.
    await scrape(port);
    await main.start();
    await watcher.said('main is running');
    await scrapeUntil(port, 'main alive', (text) => readValue(text, 'lastscrape_main_ended') === 0);
    await scrape(port);
    // The second half of its families is gone, cut at the header of one.
    const heads = [...recorded.matchAll(/^# (?:HELP|TYPE) /gm)].map((found) => found.index);
    const cut = heads.find((at) => at > recorded.length / 2 && recorded.startsWith('# HELP', at)) ?? recorded.length;
    await main.stop();
    await scrapeUntil(port, 'the end', (text) => readValue(text, 'lastscrape_main_ended') === 1);
    source.answer = reply(Buffer.from(recorded.slice(0, cut), 'latin1'));
    const { bytes } = await scrape(port);
    const text = bytes.toString('latin1').replace(OWN, '');
    assert.deepEqual(listSamples(text), listSamples(recorded), path);
    assert.equal(text.slice(0, cut), recorded.slice(0, cut));
    if (promtool !== undefined) assertChecked(promtool, Buffer.from(recorded, 'latin1'), bytes, path);
  }
});

function listSamples(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .toSorted();
}

function post(port: number) {
  return scrape(port, { method: 'POST', path: '/-/snapshot' });
}

async function openMain(t: TestContext) {
  const main = await openPeer(() => {});
  await main.stop();
  t.after(main.stop);
  return main;
}

for (const [name, answer] of [
  ['never answers', hang],
  [
    'begins and hangs',
    (socket: Socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\na 1\n'),
  ],
  ['hangs in its header', (socket: Socket) => socket.write('HTTP/1.1 200 OK\r\nContent-')],
] as const) {
  test(`a source that ${name}: main's end is seen, the last number is served, and the process ends`, async (t) => {
    const main = await openMain(t);
    const run = await open(t, 'a 1\n', { LASTSCRAPE_DONE_WHEN: `port:${main.port}`, LASTSCRAPE_SETTLE: '0' });
    await main.start();
    await run.watcher.said('main is running');
    assert.equal((await post(run.port)).status, 200);
    run.source.answer = answer;
    await main.stop();
    await run.watcher.said('main ended');
    const { status, text, code, report } = await scrapeToTheEnd(run.port, run.watcher, '0.9');
    assert.deepEqual([status, text.replace(OWN, ''), readValue(text, 'lastscrape_source_up')], [200, 'a 1\n', 0]);
    assert.deepEqual([code, report?.['outcome']], [0, 'scraped']);
    assert.ok(Number(report?.['scrapesSeen']) >= 1);
  });

  test(`a source that ${name}: SIGTERM, and SIGINT after it, are obeyed`, async (t) => {
    const run = await open(t, 'a 1\n', { LASTSCRAPE_DONE_WHEN: 'sigterm,metric:a' });
    run.source.answer = answer;
    const waiting = [scrape(run.port), post(run.port)].map((each) => each.catch(() => null));
    run.watcher.child.kill('SIGTERM');
    await run.watcher.said('asked to terminate');
    run.watcher.child.kill('SIGINT');
    const { code, stderr } = await run.watcher.ended;
    assert.deepEqual([code, stderr], [130, '']);
    await Promise.all(waiting);
  });
}

test('a source of 30 MB, that changes its families, and vanishes: memory stays within its bound', async (t) => {
  const rows = (name: string) =>
    Array.from(
      { length: 500_000 },
      (_, row) => `${name}_${Math.floor(row / 100_000)}{row="${row}",some="label of a usual length"} ${row * 31}\n`,
    ).join('');
  const { source, port, watcher } = await open(
    t,
    rows('first'),
    { LASTSCRAPE_POLL: '1h', LASTSCRAPE_SCRAPES: '3', LASTSCRAPE_TTL: '10m', LASTSCRAPE_TERMINATION_GRACE: '10m' },
    COMMAND.length === 1 ? COMMAND : [COMMAND[0] ?? '', ...FLAGS, ...COMMAND.slice(1)],
  );
  const peakKb = () =>
    Number(/^Pss_Anon:\s+(\d+)/m.exec(readFileSync(`/proc/${watcher.child.pid}/smaps_rollup`, 'utf8'))?.[1]);
  const idleKb = peakKb();
  let highestKb = 0;
  const watching = setInterval(() => {
    highestKb = Math.max(highestKb, peakKb());
  }, 20);
  t.after(() => clearInterval(watching));
  // Read within the time of a scraper, on a busy machine as well: a call of /-/snapshot has 15 s.
  const patient = { 'x-prometheus-scrape-timeout-seconds': '120' };
  const size = (await scrape(port, { headers: patient })).bytes.length;
  assert.ok(size > 25_000_000);
  source.answer = reply(rows('second'));
  assert.ok((await scrape(port, { headers: patient })).bytes.length > 25_000_000);
  t.diagnostic(`living: ${highestKb} KiB`);
  watcher.child.kill('SIGTERM');
  source.answer = reply('third 1\n');
  await scrapeUntil(port, 'the end', (text) => readValue(text, 'lastscrape_main_ended') === 1);
  const joined = await scrape(port, { headers: { ...patient, 'accept-encoding': 'gzip' } });
  assert.ok(gunzipSync(joined.bytes).includes('second_4{row="499999"'));
  clearInterval(watching);
  t.diagnostic(`idle ${idleKb} KiB, highest ${highestKb} KiB`);
  // The sources in Node have a heap of their own as well, which the binary has not.
  const boundKb = COMMAND.length === 1 ? 64 * 1024 : idleKb + 64 * 1024;
  assert.ok(highestKb < boundKb, `${highestKb} KiB after ${idleKb} KiB`);
});

test('scrapes that wait in the backlog when TTL or grace is over, after a standstill, are answered and count', async (t) => {
  const play = async (limit: string) => {
    const { port, watcher } = await open(t, 'a 1\n', { LASTSCRAPE_SCRAPES: '8', [limit]: '10s' });
    watcher.child.kill('SIGTERM');
    await watcher.said('asked to terminate');
    watcher.child.kill('SIGSTOP');
    const clients = await Promise.all(Array.from({ length: 8 }, () => openRawClient(port)));
    for (const { send } of clients) send(scrapeHead());
    await delay(10_500);
    watcher.child.kill('SIGCONT');
    for (const { readAnswer } of clients) assert.equal((await readAnswer()).status, 200);
    const { report } = await watcher.ended;
    assert.deepEqual([report?.['outcome'], report?.['scrapesSeen']], ['scraped', 8], limit);
  };
  await Promise.all(['LASTSCRAPE_TTL', 'LASTSCRAPE_TERMINATION_GRACE'].map(play));
});

test('a livenessProbe of the front goes on while a target is quitting, and a scrape gets nothing', async (t) => {
  const target = await openSource();
  t.after(() => target[Symbol.asyncDispose]());
  target.answer = hang;
  const { port, watcher } = await open(t, 'a 1\n', {
    LASTSCRAPE_SCRAPES: '0',
    LASTSCRAPE_QUIT: `http://127.0.0.1:${target.port}/quit`,
  });
  watcher.child.kill('SIGTERM');
  await watcher.said('quitting');
  await target.requests(1);
  assert.equal((await scrape(port, { path: '/-/healthy', isScraper: false })).status, 200);
  assert.equal((await scrape(port)).status, 503);
  await target.stop();
  const { code, report } = await watcher.ended;
  assert.deepEqual([code, report?.['outcome'], report?.['scrapesSeen']], [0, 'released', 0]);
  await assert.rejects(scrape(port, { path: '/-/healthy' }), { code: 'ECONNREFUSED' });
});

test('a port that is taken: exit code 78, and what to do', async () => {
  const taken = await openPort();
  const { code, stderr, stdout } = await startWatcher({
    LASTSCRAPE_DONE_WHEN: 'port:1',
    LASTSCRAPE_FRONT: `127.0.0.1:${taken.port}`,
  }).ended;
  taken.close();
  assert.deepEqual([code, stdout], [78, '']);
  assert.equal(
    stderr,
    `Cannot use LASTSCRAPE_FRONT: port ${taken.port} is taken by something else in this pod; choose another one, here and for its clients\n`,
  );
});

test('sigterm, EXIT_ZERO and a wrong variable: says so, is ready, waits for the signal, exits 0', async (t) => {
  const run = await open(t, 'a 1\n', { LASTSCRAPE_EXIT_ZERO: 'true', LASTSCRAPE_TTL: 'soon' });
  assert.equal(run.message()['outcome'], 'misconfigured');
  assert.equal((await scrape(run.port)).text.replace(OWN, ''), 'a 1\n');
  assert.equal(run.watcher.child.exitCode, null);
  run.watcher.child.kill('SIGTERM');
  const { code, stderr } = await run.watcher.ended;
  assert.equal(code, 0);
  assert.match(stderr, /^Cannot read LASTSCRAPE_TTL: /);
});

test('EXIT_ZERO, a wrong variable and a port that is taken: main is watched by its exporter', async (t) => {
  const taken = await openPort();
  const source = await openSource('up 1\n');
  t.after(async () => {
    taken.close();
    await source[Symbol.asyncDispose]();
  });
  const watcher = startWatcher({
    LASTSCRAPE_DONE_WHEN: 'metric:up',
    LASTSCRAPE_METRICS_URL: source.url.href,
    LASTSCRAPE_FRONT: `127.0.0.1:${taken.port}`,
    LASTSCRAPE_EXIT_ZERO: 'true',
    LASTSCRAPE_TTL: 'soon',
    LASTSCRAPE_POLL: '100ms',
    LASTSCRAPE_SETTLE: '0',
  });
  t.after(() => watcher.child.kill('SIGKILL'));
  await source.requests(2);
  source.answer = reply('up 0\n');
  assert.equal((await watcher.ended).code, 0);
});

/** A textfile as the source, read at the start and never again by the clock, and a Pushgateway that takes it. */
async function openTextfile(t: TestContext, before: string | null, env: Record<string, string>) {
  const folder = makeFolder();
  const path = join(folder, 'job.prom');
  if (before !== null) writeFileSync(path, before);
  const receiver = await openHttp();
  t.after(() => receiver[Symbol.asyncDispose]());
  const run = await start(t, {
    LASTSCRAPE_METRICS_URL: `file://${path}`,
    LASTSCRAPE_POLL: '1h',
    LASTSCRAPE_PUSH: `pushgateway+http://127.0.0.1:${receiver.port}`,
    LASTSCRAPE_PUSH_WHEN: 'always',
    LASTSCRAPE_FAIL_IF: 'errors_total > 10',
    ...env,
  });
  await run.watcher.said('main is running');
  return {
    ...run,
    write: (text: string) => writeFileSync(path, text),
    pushed: () => receiver.seen.map(({ body }) => body).join(),
  };
}

for (const env of [{ LASTSCRAPE_TTL: '0' }, { LASTSCRAPE_SCRAPES: '0' }] as const) {
  for (const before of ['errors_total 0\n', null]) {
    const name = `${Object.entries(env).flat().join('=')}, a textfile ${before === null ? 'first written' : 'changed'}`;
    test(`${name} after the last poll is read once more at the signal, judged and pushed`, async (t) => {
      const run = await openTextfile(t, before, env);
      if (before !== null) await scrapeUntil(run.port, 'the first number', (text) => text.startsWith(before));
      run.write('errors_total 99\n');
      run.watcher.child.kill('SIGTERM');
      const { code, report } = await run.watcher.ended;
      const ended = [code, report?.['outcome'], report?.['failed']];
      assert.deepEqual(ended, [1, 'released', { entry: 'errors_total > 10', seen: 99 }]);
      assert.match(run.pushed(), /errors_total 99\n/);
    });
  }
}

test('a textfile first written after the last poll is read at the signal, and held for', async (t) => {
  const run = await openTextfile(t, null, {});
  run.write('errors_total 99\n');
  run.watcher.child.kill('SIGTERM');
  await run.watcher.said('main ended');
  const { text, report } = await scrapeToTheEnd(run.port, run.watcher);
  assert.deepEqual([text.replace(OWN, ''), report?.['outcome']], ['errors_total 99\n', 'scraped']);
});

test('a textfile that is never written: the report names the file, and no port', async (t) => {
  const run = await openTextfile(t, null, { LASTSCRAPE_FAIL_IF: '' });
  run.watcher.child.kill('SIGTERM');
  const { report } = await run.watcher.ended;
  assert.equal(report?.['outcome'], 'exporterGone');
  assert.match(String(report?.['summary']), /^Nothing could be read from \/\S+\/job\.prom at any time;/);
});

test('what never came is in the report: a push, one that was refused, a call of the hook', async (t) => {
  const end = async (run: Run, isHeld = false) => {
    run.watcher.child.kill('SIGTERM');
    if (isHeld) {
      await scrapeUntil(run.port, 'the end', (text) => readValue(text, 'lastscrape_main_ended') === 1);
      await scrapeToTheEnd(run.port, run.watcher);
    }
    const { report, log } = await run.watcher.ended;
    const warned = log.filter(({ level }) => level === 'warn').map(({ msg }) => String(msg).slice(0, 15));
    return [String(report?.['outcome']), String(report?.['hint']).slice(0, 15), ...warned];
  };
  const port = await findFreePort();
  const push = { LASTSCRAPE_METRICS_URL: `pushgateway://127.0.0.1:${port}` };
  assert.deepEqual(await end(await start(t, push)), ['exporterGone', 'nothing was pus', 'nothing was pus']);
  const refusing = await start(t, push);
  await fetch(`http://127.0.0.1:${port}/metrics/job/j`, { method: 'PUT', body: 'a\n' });
  assert.deepEqual(await end(refusing, true), ['scraped', '1 push was refu', 'a push was refu']);
  const cutting = await start(t, push);
  (await openRawClient(port)).send('PUT /metrics/job/j HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\na');
  assert.deepEqual(await end(cutting), ['exporterGone', 'nothing was pus', 'nothing was pus', 'a push was refu']);
  const hooked = { LASTSCRAPE_HOOKS: makeFolder() };
  assert.deepEqual(await end(await open(t, 'a 1\n', hooked), true), ['scraped', 'the hook did no', 'the hook did no']);
  const [plain, called] = [await open(t, 'a 1\n'), await open(t, 'a 1\n', hooked)];
  await post(called.port);
  assert.deepEqual(
    [...(await end(plain, true)), ...(await end(called, true))],
    ['scraped', 'undefined', 'scraped', 'undefined'],
  );
});
