// Locust's page as the source: what is asked of Locust and how often, and what is shown when it answers, hangs, ends or is no Locust.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { Server as NetServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import type { LogEntry } from '../../../src/decide/messages.ts';
import { type LocustSourceParts, openLocustSource } from '../../../src/front/locust/source.ts';
import { makeFolder } from '../../support/folder.ts';
import { listen } from '../../support/listen.ts';
import { readPieces } from '../../support/pieces.ts';
import { until } from '../../support/until.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const PAGE = '/stats/requests';
const CSV = '/stats/requests/csv';
const NEVER = new AbortController().signal;

function page(state: string, count: number): string {
  const row = { method: '', name: 'Aggregated', num_requests: count, num_failures: 0 };
  return JSON.stringify({ state, user_count: 1, stats: [row], errors: [], workers: [] });
}

function csv(count: number, failures = 0): string {
  return `Type,Name,Request Count,Failure Count,50%\r\n,Aggregated,${count},${failures},9\r\n`;
}

function untilCount(list: readonly unknown[], count: number): Promise<true> {
  return until(`${count} of them`, 60_000, async () => (list.length === count ? true : undefined));
}

/** A Locust that says what a test wants it to, and the source that reads it. */
async function openLocust(
  selectors: NonNullable<LocustSourceParts['selectors']> = [],
  headersFile: string | null = null,
) {
  const clock = new VirtualClock();
  const requests: string[] = [];
  const held: ServerResponse[] = [];
  const log: LogEntry[] = [];
  const seenHeaders: (string | undefined)[] = [];
  const locust = { page: page('running', 10), csv: csv(12), status: 200, holds: '', cuts: '' };
  const server = createServer({ keepAliveTimeout: 0 }, ({ url = '', headers }, response) => {
    requests.push(url);
    seenHeaders.push(headers.authorization);
    if (url === locust.holds) held.push(response);
    else if (url === locust.cuts)
      response.writeHead(200, { 'content-length': 100 }).end('{"state":"runn', () => response.destroy());
    else if (url.endsWith(CSV)) response.end(locust.csv);
    else response.writeHead(locust.status, locust.status === 302 ? { Location: '/login' } : {}).end(locust.page);
  });
  const port = await listen(server);
  const source = openLocustSource({
    url: new URL(`http://127.0.0.1:${port}`),
    namespace: 'locust',
    path: null,
    headersFile,
    metricNames: ['locust_up'],
    selectors,
    clock,
    log: (entry) => log.push(entry),
  });
  /** What a read shows; each is half a second after the one before it. */
  async function read(signal = NEVER) {
    const { begun, ended } = source.read(signal);
    const beginning = await begun;
    const reading = await ended;
    if (beginning.kind !== 'answered') return { beginning, reading, text: '', up: null, total: null };
    const text = String(await readPieces(beginning.body.read()));
    const { observation } = reading;
    const total = observation.kind === 'answered' ? observation.totals.requests : null;
    const up = reading.metric('locust_up');
    return { beginning, reading, text, up: up.kind === 'value' ? up.value : null, total };
  }
  return {
    ...{ clock, requests, seenHeaders, locust, source, read, log, server, held },
    async [Symbol.asyncDispose]() {
      await source.close();
      for (const response of held) response.destroy();
      server.closeAllConnections();
      server.close();
    },
  };
}

test('while nothing runs the CSV is read, every 250 ms without anybody asking, and no number goes back', async () => {
  await using opened = await openLocust();
  const { read, clock, requests, locust } = opened;
  locust.page = page('stopping', 10);
  const first = await read();
  assert.equal(first.total, 12);
  assert.match(
    first.text,
    /^locust_requests_response_time_percentile\{method="",name="Aggregated",quantile="0\.5"\} 9$/m,
  );
  assert.deepEqual(requests, [PAGE, CSV]);
  locust.csv = csv(15);
  clock.advance(249);
  assert.equal((await read()).total, 12);
  assert.deepEqual(requests, [PAGE, CSV], 'not sooner');
  clock.advance(1);
  await untilCount(requests, 3);
  assert.equal(await until('15', 60_000, async () => ((await read()).total === 15 ? 15 : undefined)), 15);
  // The page is older than the CSV, as Locust keeps it for 2 s.
  clock.advance(500);
  locust.csv = '';
  assert.equal((await read()).total, 15);
});

test('the failure ratio is of the same moment as the totals, also when Locust goes before anybody has read the CSV', async () => {
  await using opened = await openLocust([{ name: 'locust_requests_fail_ratio', labels: [] }]);
  const { read, clock, requests, locust, server } = opened;
  locust.page = page('stopping', 10);
  locust.csv = csv(12);
  const readRatio = async () => {
    const { text, up, reading } = await read();
    const thresholds = reading.observation.kind === 'answered' ? reading.observation.thresholds : undefined;
    return { up, thresholds, lines: text.match(/^locust_requests_fail_ratio .*$/m)?.[0] };
  };
  const ratio = (value: number) => ({
    thresholds: [{ kind: 'value', value }],
    lines: `locust_requests_fail_ratio ${value}`,
  });
  assert.deepEqual(await readRatio(), { up: 1, ...ratio(0) });
  locust.csv = csv(20, 4);
  clock.advance(250);
  await untilCount(requests, 3);
  server.closeAllConnections();
  server.close();
  clock.advance(500);
  assert.deepEqual(await readRatio(), { up: 0, ...ratio(0.2) });
});

test('a Locust that is gone is down and never refuses; its rows stay, its gauges do not', async () => {
  await using opened = await openLocust();
  const { read, clock, server } = opened;
  const before = await read();
  assert.match(before.text, /^locust_users 1$/m);
  server.closeAllConnections();
  server.close();
  clock.advance(500);
  const { up, total, text, reading, beginning } = await read();
  assert.deepEqual([up, total, reading.hasRequests, beginning.kind], [0, 10, true, 'answered']);
  assert.doesNotMatch(text, /locust_users|locust_running|fail_ratio/);
});

test('while nothing is new, the body is the same one', async () => {
  await using opened = await openLocust();
  const { source, clock, locust, server } = opened;
  const readBody = async () => {
    clock.advance(500);
    const beginning = await source.read(NEVER).begun;
    assert.ok(beginning.kind === 'answered');
    return beginning.body;
  };
  const running = await readBody();
  assert.equal(await readBody(), running);
  locust.page = page('stopping', 11);
  const stopping = await readBody();
  assert.notEqual(stopping, running);
  locust.csv = csv(13);
  assert.notEqual(await readBody(), stopping, 'the CSV is new');
  server.closeAllConnections();
  server.close();
  const down = await readBody();
  assert.notEqual(down, stopping);
  assert.equal(await readBody(), down);
});

test('before Locust there is locust_up 0, and nothing else', async () => {
  await using opened = await openLocust();
  const { read, server } = opened;
  server.close();
  const { text, reading } = await read();
  assert.match(text, /^# HELP locust_up .*\n# TYPE locust_up gauge\nlocust_up 0\n$/);
  assert.equal(reading.hasRequests, false);
});

test('up stays 1 over the connection that is there, when no new connection succeeds', async () => {
  await using opened = await openLocust();
  const { read, clock, server, locust, requests } = opened;
  await read();
  // Node's own close of an HTTP server ends its idle connections as well.
  NetServer.prototype.close.call(server);
  locust.page = page('stopped', 10);
  clock.advance(500);
  assert.deepEqual((({ up, total }) => [up, total])(await read()), [1, 12]);
  assert.deepEqual(requests, [PAGE, PAGE, CSV]);
});

test('what answers and is no page of Locust is unknown, an error is down, each with a warning, once', async () => {
  for (const [status, body, up, warning] of [
    [200, '<html><form action="/login">', null, 'locustUnreadable'],
    [302, '', null, 'locustUnreadable'],
    [200, 'null', null, 'locustUnreadable'],
    [401, '', 0, 'locustError'],
    [404, page('running', 3), 0, 'locustError'],
    [503, 'upstream connect error', 0, 'locustError'],
  ] as const) {
    await using opened = await openLocust();
    const { read, clock, locust, log, requests } = opened;
    locust.status = status;
    locust.page = body;
    assert.equal((await read()).up, up, `${status} ${body}`);
    clock.advance(500);
    await read();
    const ids = log.map(({ id }) => id);
    assert.deepEqual(ids, [warning]);
    assert.deepEqual(requests, [PAGE, PAGE], 'no CSV of it is read');
  }
});

test("a page that was never Locust's proves nothing alive; one that was, and asks for a login now, does", async () => {
  for (const [wasLocust, expected] of [
    [false, { kind: 'unknown', why: "the page has never shown Locust's statistics" }],
    [true, { kind: 'value', value: 1 }],
  ] as const) {
    await using opened = await openLocust();
    const { read, clock, locust } = opened;
    if (wasLocust) await read();
    clock.advance(500);
    locust.page = '<html>an application';
    const { text, reading } = await read();
    assert.match(text, /^locust_up 1$/m, 'as the exporter shows it');
    assert.deepEqual(reading.metric('locust_up'), expected);
  }
});

test('who gives up is answered at once, and Locust is asked no more often for it', async () => {
  await using opened = await openLocust();
  const { read, requests, locust, held } = opened;
  locust.holds = PAGE;
  const limit = new AbortController();
  const first = read(limit.signal);
  await untilCount(held, 1);
  limit.abort('timed out');
  const { beginning, reading } = await first;
  assert.deepEqual(beginning, { kind: 'failed', why: 'timed out' });
  assert.deepEqual(reading.observation, { kind: 'failed', why: 'timed out', mayCount: false });
  const second = read();
  held[0]?.end(page('running', 11));
  assert.equal((await second).total, 11);
  assert.deepEqual(requests, [PAGE]);
});

test('a Locust that is busy for longer than 5 s is down, once more asked for nothing, and what it answers then counts', async () => {
  await using opened = await openLocust();
  const { read, clock, locust, requests, held, server, source } = opened;
  await read();
  locust.holds = PAGE;
  clock.advance(500);
  const late = read();
  await untilCount(held, 1);
  clock.advance(4_999);
  assert.equal(await Promise.race([late, new Promise((resolve) => setImmediate(resolve, 'waits'))]), 'waits');
  clock.advance(1);
  const { text, total, reading } = await late;
  assert.match(text, /^locust_up 0$/m);
  assert.equal(total, 10);
  assert.deepEqual(reading.metric('locust_up'), { kind: 'unknown', why: 'timed out' }, 'its end is not proven by that');
  clock.advance(10_000);
  source.expectEnd?.();
  assert.equal((await read()).total, 10, 'nothing waits for it again');
  assert.deepEqual(requests, [PAGE, PAGE]);
  // It has come to its end meanwhile: no connection is possible any more.
  server.close();
  locust.holds = '';
  held[0]?.end(page('stopped', 11));
  await until('the CSV', 60_000, async () => (requests.at(-1) === CSV ? true : undefined));
  const after = await until('its rows', 60_000, async () => {
    const found = await read();
    return found.total === 12 ? found : undefined;
  });
  assert.equal(after.up, 1);
});

test('after a page that was cut or late it is asked for again without anybody who reads, until Locust refuses', async () => {
  await using opened = await openLocust();
  const { read, clock, requests, locust, server } = opened;
  await read();
  locust.cuts = PAGE;
  clock.advance(500);
  const cut = await read();
  assert.match(cut.text, /^locust_up 0$/m);
  assert.deepEqual([cut.up, cut.total], [null, 10]);
  assert.deepEqual(requests, [PAGE, PAGE]);
  locust.cuts = '';
  locust.page = page('stopping', 11);
  clock.advance(2_020);
  await untilCount(requests, 4);
  assert.deepEqual(requests.slice(2), [PAGE, CSV]);
  assert.equal((await read()).total, 12);
  server.closeAllConnections();
  server.close();
  clock.advance(500);
  assert.equal((await read()).up, 0);
  assert.equal(clock.timerCount, 0, 'who refuses is gone');
});

test('expectEnd() has everything read again, even while the page says that it runs', async () => {
  await using opened = await openLocust();
  const { read, clock, requests, source, locust } = opened;
  await read();
  source.expectEnd?.();
  assert.equal((await read()).total, 12);
  assert.deepEqual(requests, [PAGE, PAGE, CSV]);
  locust.csv = csv(13);
  source.expectEnd?.();
  assert.equal((await read()).total, 13);
  locust.csv = csv(14);
  source.expectEnd?.();
  await untilCount(requests, 7);
  clock.advance(30_000);
  // A page that was asked for meanwhile came late by this clock.
  await until('the page', 60_000, async () => ((await read()).up === 1 ? true : undefined));
  const before = requests.length;
  clock.advance(500);
  await read();
  assert.deepEqual(requests.slice(before), [PAGE], 'not for ever');
});

test('an end announced while the page is on its way has the CSV read before the page: Locust may not answer both', async () => {
  await using opened = await openLocust();
  const { read, requests, source, locust, held } = opened;
  locust.holds = PAGE;
  const first = read();
  await untilCount(held, 1);
  source.expectEnd?.();
  held[0]?.end(page('stopping', 11));
  await untilCount(held, 2);
  assert.deepEqual(requests, [PAGE, CSV, PAGE]);
  locust.holds = '';
  held[1]?.end(page('stopped', 11));
  assert.equal((await first).total, 12);
});

test('the totals are read wherever the total row stands', async () => {
  await using opened = await openLocust();
  const { read, locust } = opened;
  const row = (name: string, count: number) => ({ method: '', name, num_requests: count, num_failures: 1 });
  locust.page = JSON.stringify({
    state: 'running',
    user_count: 3,
    stats: [row('A', 1), row('AB', 2), row('ABC', 3), row('Aggregated', 6)],
  });
  const { reading } = await read();
  assert.deepEqual(reading.observation, {
    kind: 'answered',
    scrapes: null,
    totals: { requests: 6, failures: 1, users: 3 },
  });
});

test('10,000 rows, and a page that is too long, break nothing', async () => {
  await using opened = await openLocust();
  const { read, clock, locust } = opened;
  const rows = Array.from({ length: 10_000 }, (_, index) => ({ method: 'GET', name: `/n/${index}`, num_requests: 1 }));
  locust.page = JSON.stringify({ state: 'running', stats: rows });
  const { text, beginning } = await read();
  assert.equal(text.match(/^locust_requests_num_requests\{/gm)?.length, 10_000);
  assert.ok(beginning.kind === 'answered');
  assert.deepEqual(await beginning.body.ended, { kind: 'whole' });
  locust.page = `{"x":"${'x'.repeat(17 * 1024 * 1024)}"}`;
  clock.advance(500);
  assert.match((await read()).text, /^locust_up 0$/m);
});

test('what is judged is found among all rows, and the total, which is read for the report as well, is one sample', async () => {
  const name = 'locust_requests_num_requests';
  await using pair = await openLocust([
    { name, labels: [['name', 'Aggregated']] },
    { name, labels: [['name', '/399']] },
    { name, labels: [['name', '/400']] },
    { name: 'locust_users', labels: [] },
  ]);
  const rows = Array.from({ length: 400 }, (_, i) => ({ method: 'GET', name: `/${i}`, num_requests: i }));
  const { stats, ...others } = JSON.parse(page('running', 10));
  pair.locust.page = JSON.stringify({ ...others, stats: [...rows, ...stats] });
  const { reading } = await pair.read();
  assert.deepEqual(reading.observation.kind === 'answered' ? reading.observation.thresholds : null, [
    { kind: 'value', value: 10 },
    { kind: 'value', value: 399 },
    { kind: 'unmatched', nearest: ['/100', '/140', '/0'].map((each) => `{method="GET",name="${each}"}`) },
    { kind: 'value', value: 1 },
  ]);
});

test('headers of a file go with each request, read again each time; without them Locust is still asked, with one warning', async () => {
  const directory = makeFolder();
  const file = join(directory, 'headers');
  await using pair = await openLocust([], file);
  await pair.read();
  pair.clock.advance(3_000);
  await pair.read();
  assert.deepEqual(pair.log, [{ id: 'headersUnreadable', fields: { file, why: 'cannot be read: ENOENT' } }]);
  assert.deepEqual(new Set(pair.seenHeaders), new Set([undefined]));
  for (const [text, seen] of [
    ['# of Locust\nAuthorization: Basic bG9jdXN0OnNlY3JldA==\n', 'Basic bG9jdXN0OnNlY3JldA=='],
    ['Authorization: Basic YW5vdGhlcg==', 'Basic YW5vdGhlcg=='],
    ['Authorization', undefined],
  ] as const) {
    writeFileSync(file, text);
    pair.clock.advance(3_000);
    await pair.read();
    assert.equal(pair.seenHeaders.at(-1), seen, text);
  }
  assert.equal(pair.log.length, 1, 'one warning is enough');
  assert.doesNotMatch(JSON.stringify(pair.log), /Basic/);
});
