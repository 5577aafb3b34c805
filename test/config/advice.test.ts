import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countEdits, findNearestNames, isNearlySame } from '../../src/config/advice.ts';
import { listVariables } from '../../src/config/config.ts';
import { KINDS } from '../../src/main.ts';

const NAMES = listVariables(KINDS).map(({ name }) => name.replace('LASTSCRAPE_', ''));

/** What somebody writes, and the names that are near. */
const NEAREST: readonly (readonly [string, readonly string[]])[] = [
  ['URL', ['METRICS_URL']],
  ['METRIC_URL', ['METRICS_URL']],
  ['METRICSURL', ['METRICS_URL']],
  ['EXPORTER_URL', ['METRICS_URL']],
  ['METRICS', ['METRICS_URL']],
  ['TLL', ['TTL']],
  ['TTL_SECONDS', ['TTL']],
  ['POLLS', ['POLL']],
  ['POLL_INTERVAL', ['POLL']],
  ['SCRAPE', ['SCRAPES']],
  ['DONE', ['DONE_WHEN']],
  ['DONE_IF', ['DONE_WHEN']],
  ['WHEN_DONE', ['DONE_WHEN']],
  ['TIMEOUT', ['RUN_TIMEOUT', 'QUIT_TIMEOUT', 'START_TIMEOUT']],
  ['QUIT_TIMOUT', ['QUIT_TIMEOUT']],
  ['STARTUP_TIMEOUT', ['START_TIMEOUT']],
  ['GRACE', ['TERMINATION_GRACE']],
  ['LOGLEVEL', ['LOG_LEVEL']],
  ['LOG', ['LOG_LEVEL']],
  ['SIDECAR', ['SIDECARS']],
  ['EXITZERO', ['EXIT_ZERO']],
  ['DRY', ['DRY_RUN']],
  ['TOMBSTONE_PATH', ['TOMBSTONE']],
  ['MAXIMUM_HISTORY_LOG', []],
  ['INTERVAL', []],
  ['MODE', []],
  ['PORT', []],
  ['X', []],
  ['', []],
];
for (const [name, expected] of NEAREST) {
  test(`findNearestNames() finds ${expected.length === 0 ? 'nothing' : expected.join(', ')} near "${name}"`, () => {
    assert.deepEqual(findNearestNames(name, NAMES), expected);
  });
}

test('findNearestNames() finds each name itself', () => {
  for (const name of NAMES) assert.equal(findNearestNames(name, NAMES)[0], name);
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
