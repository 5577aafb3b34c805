import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findNearest } from '../../src/base/text.ts';
import { countEdits, isNearlySame } from '../../src/config/advice.ts';
import { listVariables } from '../../src/config/config.ts';
import { KINDS } from '../../src/main.ts';

const NAMES = listVariables(KINDS).map(({ name }) => name.replace('LASTSCRAPE_', ''));

/** The names that are near, and what may be written instead. */
const NEAREST: readonly (readonly [nearest: string, ...names: string[]])[] = [
  ['METRICS_URL', 'URL', 'METRIC_URL', 'METRICSURL', 'EXPORTER_URL', 'METRICS'],
  ['TTL', 'TLL'],
  ['TTL SETTLE', 'TTL_SECONDS'],
  ['POLL', 'POLLS', 'POLL_INTERVAL', 'PORT'],
  ['SCRAPES', 'SCRAPE'],
  ['DONE_WHEN', 'DONE', 'DONE_IF', 'WHEN_DONE'],
  ['RUN_TIMEOUT QUIT_TIMEOUT START_TIMEOUT', 'TIMEOUT'],
  ['QUIT_TIMEOUT', 'QUIT_TIMOUT'],
  ['START_TIMEOUT', 'STARTUP_TIMEOUT'],
  ['TERMINATION_GRACE', 'GRACE'],
  ['LOG_LEVEL', 'LOGLEVEL', 'LOG'],
  ['SIDECARS', 'SIDECAR'],
  ['EXIT_ZERO', 'EXITZERO'],
  ['DRY_RUN', 'DRY'],
  ['TOMBSTONE', 'TOMBSTONE_PATH'],
  ['', 'MAXIMUM_HISTORY_LOG', 'INTERVAL', 'MODE', 'X', ''],
];
for (const [nearest, ...names] of NEAREST) {
  test(`findNearest() finds ${nearest || 'nothing'} near ${names.join(', ')}`, () => {
    for (const name of names) assert.deepEqual(findNearest(name, NAMES).join(' '), nearest, name);
  });
}

test('findNearest() finds each name itself', () => {
  for (const name of NAMES) assert.equal(findNearest(name, NAMES)[0], name);
});

test('countEdits() counts a swap of neighbours once', () => {
  assert.deepEqual(
    [countEdits('ttl', 'tlt'), countEdits('', 'abc'), countEdits('abc', ''), countEdits('kitten', 'sitting')],
    [1, 3, 3, 3],
  );
});

test('isNearlySame() goes by letters, and leaves short names alone', () => {
  assert.ok(isNearlySame('cloud_sql_proxy', 'Cloud-SQL-Proxy'));
  assert.ok(isNearlySame('istoi', 'istio'));
  assert.ok(!isNearlySame('ab', 'ac'));
  assert.ok(!isNearlySame('none', 'nginx'));
});
