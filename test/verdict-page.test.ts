// docs/verdict.md against the program: each threshold on the page can be read, and judges what Locust shows.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { judgeNumbers, NO_NUMBERS } from '../src/decide/verdict.ts';
import { openExposition } from '../src/exposition/exposition.ts';
import { readValid } from './config/read-config.ts';
import { readRecordedBody } from './support/recording.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../docs/verdict.md'), 'utf8');
const [, TABLE = ''] = /<!-- thresholds[^>]*-->\n([\s\S]*?)<!-- \/thresholds -->/.exec(PAGE) ?? [];
const ENTRIES = TABLE.trim()
  .split('\n')
  .slice(2)
  .map((row) => /`(locust_[^`]*)`/.exec(row)?.[1] ?? '');

/** In the exporter's place: as src/front/locust/memory.ts names it. */
const PERCENTILES =
  'locust_requests_response_time_percentile{method="",name="Aggregated",quantile="0.95"} 499\n' +
  'locust_requests_response_time_percentile{method="POST",name="/pay",quantile="0.99"} 900\n';

test('the page has six thresholds, and each can be read and judged on what Locust shows', () => {
  assert.equal(ENTRIES.length, 6);
  const { thresholds } = readValid({ LASTSCRAPE_FAIL_IF: ENTRIES.join(',') });
  assert.equal(thresholds.length, 6);
  const exposition = openExposition([], thresholds);
  exposition.write(readRecordedBody('exporter-0.5.2-locust-2.47.0/07-stopped.4.txt'));
  exposition.write(Buffer.from(PERCENTILES));
  const verdict = judgeNumbers(thresholds, { ...NO_NUMBERS, readings: exposition.end().selected });
  // Of 207 requests 38 failed, and /pay is made up here.
  const seen = verdict?.kind === 'failed' && verdict.failed.map(({ seen }) => seen);
  assert.deepEqual(seen, [0.18357487922705315, 900, 207]);
});

test('every entry that the page shows can be read', () => {
  const lists = [...PAGE.matchAll(/FAIL_IF='([^']*)'|fail-if: (.*)/g)].map(([, one, two]) => one ?? two ?? '');
  const lengths = lists.map((list) => readValid({ LASTSCRAPE_FAIL_IF: list }).thresholds.length);
  assert.deepEqual(lengths, [2, 2, 1, 3]);
});

test("the annotations that judge Locust's own page next to the exporter are settings that go together", () => {
  const [, yaml = ''] = /<!-- read by test\/verdict-page.test.ts -->\n```yaml\n([\s\S]*?)```/.exec(PAGE) ?? [];
  const annotations: Readonly<Record<string, string>> = parse(yaml);
  const variables = Object.entries(annotations).map(([name, value]) => [
    name.replace('lastscrape.dev/', 'LASTSCRAPE_').toUpperCase().replaceAll('-', '_'),
    value,
  ]);
  const { metricsUrl, front, targets } = readValid(Object.fromEntries(variables));
  assert.deepEqual([metricsUrl.protocol, front?.port, targets.length], ['locust+http:', 9469, 1]);
});
