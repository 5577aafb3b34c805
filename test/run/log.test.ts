import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LogLevel } from '../../src/decide/messages.ts';
import { DEBUG_MAX_BYTES, LOG_MAX_BYTES, openLog } from '../../src/run/log.ts';

function logAt(level: LogLevel) {
  const lines: string[] = [];
  const log = openLog({ level, print: (line) => lines.push(line), time: () => '2026-11-21T09:30:00.123Z' });
  return { log, lines, bytes: () => Buffer.byteLength(lines.join('')) };
}

test('write() writes one JSON object a line: time, level, msg, then the fields', () => {
  const { log, lines } = logAt('info');
  log.write({ id: 'noCounter', fields: { seen: 'a\nb\u009b', count: 1 } });
  assert.deepEqual(lines, [
    '{"time":"2026-11-21T09:30:00.123Z","level":"warn","msg":"the exporter shows no scrape counter: holding for the whole TTL","seen":"a\\nb\\u009b","count":1}\n',
  ]);
});

test('write() leaves out what is below the level; report() is written at every level', () => {
  for (const [level, count] of [
    ['debug', 4],
    ['info', 3],
    ['warn', 2],
    ['error', 1],
  ] as const) {
    const { log, lines } = logAt(level);
    for (const id of ['polled', 'mainEnded', 'noCounter', 'targetFailed'] as const) log.write({ id, fields: {} });
    assert.equal(lines.length, count, level);
    log.report({ outcome: 'scraped' });
    assert.match(lines.at(-1) ?? '', /"msg":"report","outcome":"scraped"/);
  }
});

test('write() sums up what repeats: four lines, then one at every power of two', () => {
  const { log, lines } = logAt('info');
  for (let count = 1; count <= 1_000; count++) log.write({ id: 'mainRunningAgain', fields: {} });
  const times = lines.map((line) => JSON.parse(line).times ?? 1);
  assert.deepEqual(times, [1, 1, 1, 1, 8, 16, 32, 64, 128, 256, 512]);
});

test('write() sums up each problem on its own: the fifth one is as new as the first', () => {
  const { log, lines } = logAt('info');
  const problems = ['refused', 'timed out', 'HTTP 503', 'HTTP 500', 'HTTP 403; create the Role'];
  for (const problem of problems) log.write({ id: 'conditionBlind', fields: { problem } });
  const logged = lines.map((line) => JSON.parse(line).problem);
  assert.deepEqual(logged, problems);
});

test('write() keeps a run under its bound whatever happens, and says where the log ends', () => {
  const { log, lines, bytes } = logAt('info');
  for (let count = 0; count < 10_000; count++)
    log.write({ id: 'mainEnded', fields: { problem: count, seen: 'ü'.repeat(9_999) } });
  for (let count = 0; count < 10_000; count++)
    log.write({ id: 'conditionBlind', fields: { problem: `HTTP ${count}` } });
  assert.ok(bytes() <= LOG_MAX_BYTES + 1_024, `${bytes()} bytes`);
  assert.match(lines.at(-1) ?? '', /only the report follows/);
  log.report({ outcome: 'expired' });
  assert.match(lines.at(-1) ?? '', /report/);
});

test('write() stops debug at a bound of its own, and goes on with the others', () => {
  const { log, lines, bytes } = logAt('debug');
  for (let count = 0; count < 10_000; count++) log.write({ id: 'polled', fields: { count } });
  assert.ok(bytes() <= DEBUG_MAX_BYTES + 1_024, `${bytes()} bytes`);
  assert.match(lines.at(-1) ?? '', /no more debug lines/);
  log.write({ id: 'mainEnded', fields: {} });
  assert.match(lines.at(-1) ?? '', /main ended/);
});

test('all lines of a run together fit into a pipe that is never read (64 KiB on Linux)', () => {
  assert.ok(LOG_MAX_BYTES + DEBUG_MAX_BYTES + 4 * 1_024 < 64 * 1_024);
  assert.ok(LOG_MAX_BYTES + 3 * 1_024 < 32 * 1_024, 'and under 32 KiB without debug');
});
