// The exposition that is made of Locust's page and CSV, held against the real exporter's of the same Locust.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { listLines } from '../../../src/exposition/exposition-text.ts';
import { readLocustCsv } from '../../../src/front/locust/csv.ts';
import { type LocustMemory, openLocustMemory } from '../../../src/front/locust/memory.ts';
import { type LocustStats, readLocustStats } from '../../../src/front/locust/page.ts';
import { readRecordedBody, readRecordedText } from '../../support/recording.ts';

const RECORDINGS = join(import.meta.dirname, '../../../fixtures/recordings');
const BY_YEAR = 'locust-2.8-to-2.47';
const V050 = 'exporter-0.5.0-locust-2.47.0';

function readStats(text: string): LocustStats {
  return readLocustStats(text) ?? assert.fail('no page');
}

function writeLines(memory: LocustMemory, view: 'stats' | 'down'): string[] {
  const text = memory.listFamilies(view).flatMap((family) => [...listLines(family)]);
  return text.join('').split('\n').slice(0, -1);
}

/** What a new memory makes of these answers; null: Locust is gone. */
function expose(...answers: readonly (string | null)[]): string[] {
  const memory = openLocustMemory('locust');
  for (const answer of answers) if (answer !== null) memory.takeStats(readStats(answer));
  return writeLines(memory, answers.at(-1) === null ? 'down' : 'stats');
}

/** The lines of the exporter's own families, in their order. */
function locustLines(body: string): string[] {
  return body.split('\n').filter((line) => /^(# (HELP|TYPE) )?(locust|load_test)_/.test(line));
}

function readValue(lines: readonly string[], name: string): string | undefined {
  return lines.find((line) => line.startsWith(`${name} `))?.slice(name.length + 1);
}

/** Without the family that is ours alone, and those of which the exporter has the names, and for 2.x the wrong values. */
function withoutOwn(lines: readonly string[]): string[] {
  return lines.filter((line) => !/\blocust_requests_(current_)?response_time_percentile/.test(line));
}

for (const version of ['2.8.6', '2.15.1', '2.24.1', '2.33.2', '2.47.0']) {
  for (const phase of ['running', 'stopped']) {
    test(`Locust ${version}, ${phase}: every line is the exporter's, but for the percentiles, which are right`, () => {
      const answer = readRecordedText(`${BY_YEAR}/${version}-${phase}.stats-requests.json`);
      const got = expose(answer);
      const want = locustLines(readRecordedText(`${BY_YEAR}/${version}-${phase}.exporter-0.5.2.txt`));
      // The states that the worker was in before are in the exporter's memory only.
      const before = new Set(want.filter((line) => line.startsWith('locust_worker_detail{') && !got.includes(line)));
      assert.ok(before.size < 3);
      assert.deepEqual(withoutOwn(got), withoutOwn(want.filter((line) => !before.has(line))));
      // 2.24 shows the median of the last seconds nowhere.
      const expected = version === '2.24.1' ? [undefined, '50'] : ['30', '50'];
      const names = ['50', '95'].map((percent) => `locust_requests_current_response_time_percentile_${percent}`);
      const shown = names.map((name) => readValue(got, name));
      assert.deepEqual(shown, expected);
      const wrong = version === '2.8.6' ? ['30', '50'] : ['0', '0'];
      const exported = names.map((name) => readValue(want, name));
      assert.deepEqual(exported, wrong);
    });
  }
}

test("odd names: every line is the exporter's, byte for byte, also when Locust is gone", () => {
  const answer = readRecordedText(`${V050}/13-odd-names.stats-requests.json`);
  const isWorker = (line: string) => line.startsWith('locust_worker_detail{');
  const compare = (got: readonly string[], file: string) => {
    const want = locustLines(readRecordedBody(`${V050}/${file}`).toString());
    // The exporter has a row of each state that a worker was in.
    const own = withoutOwn(got.filter((line) => !isWorker(line)));
    assert.deepEqual(own, withoutOwn(want.filter((line) => !isWorker(line))));
    const strange = got.filter((line) => isWorker(line) && !want.includes(line));
    assert.deepEqual(strange, []);
  };
  compare(expose(answer), '13-odd-names-stopped.txt');
  compare(expose(answer, null), '13-odd-names-after-exit.txt');
});

test('a NaN costs its own number, where it costs the exporter all of them', () => {
  const answer = readRecordedText(`${V050}/14-nan.stats-requests.json`);
  assert.throws(() => JSON.parse(answer));
  const got = expose(answer);
  const recorded = locustLines(readRecordedBody(`${V050}/14-nan-running.txt`).toString());
  assert.equal(readValue(recorded, 'locust_users'), '0');
  const parsed = JSON.parse(answer.replaceAll('NaN', '0'));
  assert.equal(readValue(got, 'locust_users'), String(parsed.user_count));
  assert.equal(got.filter((line) => line.endsWith(' NaN')).length, answer.match(/\bNaN\b/g)?.length);
  const names = (lines: readonly string[]) => withoutOwn(lines).filter((line) => line.startsWith('#'));
  assert.deepEqual(names(got), names(recorded));
});

test('every recorded answer of Locust 2.47 gives the values that the exporter showed at the same time', () => {
  const folder = 'locust-2.47.0';
  const files = readdirSync(join(RECORDINGS, folder)).filter((file) => file.endsWith('.json'));
  assert.ok(files.length > 50);
  for (const file of files) {
    const stats = readLocustStats(readRecordedText(`${folder}/${file}`));
    if (stats === null || stats.state === null) continue;
    const timeline = readRecordedText(`${folder}/${file.split('.')[0]}.timeline`);
    const memory = openLocustMemory('locust');
    memory.takeStats(stats);
    const lines = writeLines(memory, 'stats');
    const value = (name: string) => readValue(lines, `locust_${name}`);
    // The exporter knows no spawning.
    const running = stats.state === 'spawning' ? '0' : value('running');
    if (stats.state === 'spawning') assert.equal(value('running'), '1', file);
    const summary =
      `up=${value('up')} running=${running} users=${value('users')} workers=${value('workers_count')} ` +
      `missing=${value('workers_missing_count')} ` +
      `aggregated_requests=${value('requests_num_requests{method="",name="Aggregated"}')}`;
    assert.ok(timeline.includes(`exporter ${summary} `), `${file}: not in the timeline: ${summary}`);
  }
});

test('the percentiles of the last seconds are read as Locust 2.12 has them, which the exporter understood', () => {
  const lines = expose(readRecordedText('locust-2.12/B-autostart-autoquit5.stats.04.json'));
  assert.equal(readValue(lines, 'locust_requests_current_response_time_percentile_50'), '2');
  assert.equal(readValue(lines, 'locust_requests_current_response_time_percentile_95'), '6');
});

test('a state by the name that Locust had for it before 1.0 is shown as the exporter shows it', () => {
  const lines = expose('{"state":"hatching","stats":[],"workers":[{"id":"w","state":"hatching"}]}');
  assert.equal(readValue(lines, 'locust_running'), '1');
  for (const [state, count] of [
    ['hatching', 'hatching'],
    ['spawning', 'hatching'],
    ['running', 'running'],
  ] as const) {
    const counted = expose(`{"stats":[],"workers":[{"id":"w","state":"${state}"}]}`);
    assert.equal(readValue(counted, `locust_workers_${count}_count`), '1', state);
  }
});

test('a namespace is in front of every name, as in recording 01g', () => {
  const memory = openLocustMemory('load_test');
  assert.deepEqual(
    writeLines(memory, 'down'),
    locustLines(readRecordedBody('exporter-0.5.2-locust-2.47.0/01g-namespace-load_test.txt').toString()),
  );
});

function page(state: string, totals: Readonly<Record<string, readonly [requests: number, failures: number]>>) {
  const rows = Object.entries(totals).map(([name, [requests, failures]]) => ({
    method: 'GET',
    name,
    num_requests: requests,
    num_failures: failures,
    current_rps: requests / 10,
    avg_response_time: 0.5,
  }));
  return readStats(JSON.stringify({ state, user_count: 1, stats: rows, errors: [], workers: [] }));
}

function csv(totals: Readonly<Record<string, readonly [requests: number, failures: number]>>) {
  const rows = Object.entries(totals).map(
    ([name, [requests, failures]]) => `GET,${name},${requests},${failures},7\r\n`,
  );
  const text = `Type,Name,Request Count,Failure Count,50%\r\n${rows.join('')}`;
  return readCsv(text);
}

function readCsv(text: string) {
  return readLocustCsv(Buffer.from(text), () => true) ?? assert.fail('no CSV');
}

function totals(memory: LocustMemory): Record<string, string> {
  const lines = writeLines(memory, 'down');
  return Object.fromEntries(
    lines.flatMap((line) => {
      const [, field, name, value] = /^locust_requests_(num_\w+)\{method="GET",name="(.*)"\} (.*)$/.exec(line) ?? [];
      return field === undefined ? [] : [[`${name} ${field}`, value as string]];
    }),
  );
}

test('the newer of page and CSV counts: a page that Locust had kept takes no number back', () => {
  const memory = openLocustMemory('locust');
  memory.takeStats(page('running', { a: [10, 1], b: [5, 0] }));
  memory.takeCsv(csv({ a: [14, 1], b: [6, 1] }));
  memory.takeStats(page('stopping', { a: [12, 1], b: [6, 0] }));
  assert.deepEqual(totals(memory), {
    'a num_failures': '1',
    'b num_failures': '1',
    'a num_requests': '14',
    'b num_requests': '6',
  });
  const rps = writeLines(memory, 'down').filter((line) => line.startsWith('locust_requests_current_rps{'));
  assert.deepEqual(rps.slice(0, 1), ['locust_requests_current_rps{method="GET",name="a"} 1.2'], 'only the page has it');
  memory.takeStats(page('running', { a: [20, 2], b: [9, 1] }));
  assert.equal(totals(memory)['a num_requests'], '20');
});

test('the failure ratio is of the same moment as the totals: the CSV has none', () => {
  const memory = openLocustMemory('locust');
  const stats = readStats(
    '{"state":"stopping","fail_ratio":0.11,"stats":[{"method":"","name":"Aggregated","num_requests":10,"num_failures":1}]}',
  );
  const readRatio = () => readValue(writeLines(memory, 'stats'), 'locust_requests_fail_ratio');
  const takeCsv = (requests: number, failures: number) => {
    const text = `Type,Name,Request Count,Failure Count\r\n,Aggregated,${requests},${failures}\r\n`;
    memory.takeCsv(readCsv(text));
  };
  memory.takeStats(stats);
  assert.equal(readRatio(), '0.11');
  memory.takeCsv(readCsv('Type,Name,99%\r\n,Aggregated,5\r\n'));
  assert.equal(readRatio(), '0.11', 'nothing is known of the totals that the page has not said');
  takeCsv(20, 5);
  assert.equal(readRatio(), '0.25');
  memory.takeStats(stats);
  assert.equal(readRatio(), '0.25', 'that page is older');
  takeCsv(0, 0);
  assert.equal(readRatio(), '0');
  takeCsv(0, 1);
  assert.equal(readRatio(), '1', 'as Locust has it (stats.py)');
  const newer = readStats(
    '{"fail_ratio":0.12,"stats":[{"method":"","name":"Aggregated","num_requests":30,"num_failures":3}]}',
  );
  memory.takeStats(newer);
  assert.equal(readRatio(), '0.12');
});

test('the failure ratio is absent without a known total', () => {
  const readRatio = (csvText: string) => {
    const memory = openLocustMemory('locust');
    memory.takeStats(readStats('{"fail_ratio":0.4}'));
    memory.takeCsv(readCsv(csvText));
    return readValue(writeLines(memory, 'stats'), 'locust_requests_fail_ratio');
  };
  assert.equal(readRatio('Type,Name,Request Count\r\nGET,a,1\r\n'), '0.4', 'as the page has it');
  assert.equal(readRatio('Type,Name,Request Count\r\n,Aggregated,2\r\n'), '0');
  assert.equal(readRatio('Type,Name,Failure Count\r\n,Aggregated,2\r\n'), '1');
});

test('a number that falls on the page, or in the CSV, is a reset: what was before is gone', () => {
  for (const how of ['page', 'csv'] as const) {
    const memory = openLocustMemory('locust');
    const errors = [{ method: 'GET', name: 'gone', error: 'e', occurrences: 1 }];
    memory.takeStats({ ...page('running', { a: [10, 1], gone: [5, 0] }), errors });
    memory.takeCsv(csv({ a: [12, 1] }));
    if (how === 'page') memory.takeStats(page('spawning', { a: [1, 0] }));
    else memory.takeCsv(csv({ a: [1, 0] }));
    assert.deepEqual(totals(memory), { 'a num_failures': '0', 'a num_requests': '1' }, how);
    assert.ok(!writeLines(memory, 'down').some((line) => line.startsWith('locust_errors{')), how);
  }
});

test('a whole page without a row of an earlier page is a reset, though no total fell', () => {
  const memory = openLocustMemory('locust');
  memory.takeStats(page('stopped', { '/login': [5, 0] }));
  memory.takeCsv(csv({ '/login': [5, 0], '/new': [1, 0] }));
  memory.takeStats(page('stopped', { '/login': [5, 0] }));
  assert.equal(totals(memory)['/new num_requests'], '1', 'the cached page is older than the CSV');
  memory.takeStats(page('running', { '/buy': [7, 0] }));
  assert.deepEqual(totals(memory), { '/buy num_failures': '0', '/buy num_requests': '7' });
  const full = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`/${index}`, [7, 0] as const]));
  memory.takeStats(page('running', full));
  assert.equal(totals(memory)['/buy num_requests'], '7', 'a full page may have cut it');
});

test('a fall of either total is a reset', () => {
  for (const fallen of [[9, 1] as const, [12, 0] as const]) {
    const memory = openLocustMemory('locust');
    memory.takeStats(page('running', { a: [10, 1] }));
    // Never on the page, which shows the reset by nothing else.
    memory.takeCsv(csv({ gone: [5, 0] }));
    memory.takeStats(page('running', { a: fallen }));
    assert.equal(totals(memory)['gone num_requests'], undefined, fallen.join());
  }
});

test('the totals are shown also after a reset that the CSV of more rows than the page has shows first', () => {
  const memory = openLocustMemory('locust');
  memory.takeStats(page('stopped', { n0: [2, 0] }));
  const rows = Array.from({ length: 600 }, (_, index) => `GET,n${index},1,0\r\n`);
  const text = `Type,Name,Request Count,Failure Count\r\n${rows.join('')},Aggregated,600,0\r\n`;
  memory.takeCsv(readLocustCsv(Buffer.from(text), memory.isShown) ?? []);
  assert.equal(Object.keys(totals(memory)).length, 2 * 500);
  assert.deepEqual(memory.readTotals(), { requests: 600, failures: 0 });
});

test('long texts of errors are cut, and equal ones are then counted together, on each page again', () => {
  const memory = openLocustMemory('locust');
  const errors = ['A', 'B'].map((end, index) => ({
    method: '',
    name: '',
    error: 'e'.repeat(1_024) + end,
    occurrences: 3 + index,
  }));
  const stats = readStats(JSON.stringify({ state: 'running', stats: [], errors }));
  for (let count = 0; count < 2; count++) {
    memory.takeStats(stats);
    const lines = writeLines(memory, 'down').filter((line) => line.startsWith('locust_errors{'));
    assert.deepEqual(lines, [`locust_errors{error="${'e'.repeat(1_024)}",method="",name=""} 7`]);
  }
});

test('rows stay that are on the page no more, up to a bound; the CSV adds rows only where the page would show them', () => {
  const many = (from: number, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`n${from + index}`, [1, 0] as const]));
  const memory = openLocustMemory('locust');
  memory.takeStats(page('running', many(0, 499)));
  assert.equal(memory.isShown('GET', 'new'), true);
  memory.takeStats(page('running', many(499, 500)));
  assert.equal(memory.isShown('GET', 'new'), false);
  assert.equal(memory.isShown('GET', 'n3'), true);
  const others = [memory.isShown('', 'new'), memory.isShown('GET', 'Aggregated'), memory.isShown('', 'Aggregated')];
  assert.deepEqual(others, [false, false, true]);
  memory.takeCsv(csv({ n3: [4, 0], new: [9, 9] }));
  assert.equal(totals(memory)['n3 num_requests'], '4');
  assert.equal(totals(memory)['new num_requests'], undefined);
  for (let from = 1_000; from < 12_000; from += 500) memory.takeStats(page('running', many(from, 500)));
  const left = totals(memory);
  assert.equal(Object.keys(left).length, 2 * 10_000);
  assert.equal(left['n3 num_requests'], undefined, 'the oldest are forgotten');
  assert.equal(left['n11999 num_requests'], '1');
});

test('a worker has the one state that it is in, and rows are in the order of the bytes of their names', () => {
  const worker = (state: string) => `{"stats":[],"workers":[{"id":"w","state":"${state}","user_count":3}]}`;
  const details = expose(worker('ready'), worker('running')).filter((line) => line.startsWith('locust_worker_detail{'));
  assert.deepEqual(details, ['locust_worker_detail{id="w",state="running"} 3']);
  const rows = ['\u{1f997}', '\ufffd', 'z'].map((name) => ({ method: 'GET', name, num_requests: 1 }));
  const lines = expose(JSON.stringify({ stats: rows })).filter((line) => /^locust_requests_num_requests\{/.test(line));
  const names = lines.map((line) => /name="(.*)"/.exec(line)?.[1]);
  assert.deepEqual(names, ['z', '\ufffd', '\u{1f997}']);
});

test('a CSV with more percentiles than there is room for costs those only', () => {
  const memory = openLocustMemory('locust');
  const titles = Array.from({ length: 40 }, (_, index) => `${index + 1}%`);
  const text = `Type,Name,Request Count,${titles}\r\nGET,a,7,${titles.map((_, index) => index)}\r\n`;
  memory.takeCsv(readCsv(text));
  assert.deepEqual(totals(memory), { 'a num_requests': '7' });
  const lines = writeLines(memory, 'down').filter((line) => line.includes('quantile='));
  assert.equal(lines.length, 20);
  assert.ok(lines.includes('locust_requests_response_time_percentile{method="GET",name="a",quantile="0.01"} 0'));
});

test('a total that nothing has said is not there', () => {
  for (const others of ['', 'GET,a,3\r\n']) {
    const memory = openLocustMemory('locust');
    assert.deepEqual(memory.readTotals(), { requests: null, failures: null }, 'before the first page');
    const text = `Type,Name,Request Count\r\n${others},Aggregated,3\r\n`;
    memory.takeCsv(readCsv(text));
    assert.deepEqual(memory.readTotals(), { requests: 3, failures: null });
  }
});

test('percentiles are in the order of their text, whatever the order of the page', () => {
  const row = ['0.99', '0.5', '0.95'].map((quantile) => [`response_time_percentile_${quantile}`, 7]);
  const lines = expose(JSON.stringify({ stats: [{ method: 'GET', name: 'a', ...Object.fromEntries(row) }] }));
  const quantiles = lines.flatMap((line) => /quantile="(.*)"/.exec(line)?.[1] ?? []);
  assert.deepEqual(quantiles, ['0.5', '0.95', '0.99']);
});

test('a page that Locust had kept takes no percentile back either, and has one of its own that the CSV has not', () => {
  const memory = openLocustMemory('locust');
  const answer = (requests: number, percentiles: object) =>
    readStats(
      JSON.stringify({
        state: 'stopping',
        stats: [{ method: 'GET', name: 'a', num_requests: requests, ...percentiles }],
      }),
    );
  memory.takeStats(answer(10, { 'response_time_percentile_0.5': 3 }));
  memory.takeCsv(csv({ a: [14, 1] }));
  memory.takeStats(answer(12, { 'response_time_percentile_0.5': 4, 'response_time_percentile_0.95': 9 }));
  const lines = writeLines(memory, 'down').filter((line) =>
    line.startsWith('locust_requests_response_time_percentile{'),
  );
  assert.deepEqual(lines, [
    'locust_requests_response_time_percentile{method="GET",name="a",quantile="0.5"} 7',
    'locust_requests_response_time_percentile{method="GET",name="a",quantile="0.95"} 9',
  ]);
});

test('of errors that are on the page no more 2,000 are kept at most, with those that are', () => {
  const memory = openLocustMemory('locust');
  const answer = (from: number, count: number) =>
    readStats(
      JSON.stringify({
        state: 'running',
        stats: [],
        errors: Array.from({ length: count }, (_, i) => ({
          method: 'GET',
          name: 'a',
          error: `e${from + i}`,
          occurrences: 1,
        })),
      }),
    );
  const count = () => writeLines(memory, 'down').filter((line) => line.startsWith('locust_errors{')).length;
  memory.takeStats(answer(0, 1_500));
  memory.takeStats(answer(1_500, 400));
  assert.equal(count(), 1_900);
  memory.takeStats(answer(1_900, 300));
  assert.equal(count(), 2_000);
  assert.ok(writeLines(memory, 'down').some((line) => line.includes('error="e2199"')));
});
