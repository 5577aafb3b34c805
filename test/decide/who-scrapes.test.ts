import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isScraper, SCRAPER_AGENTS } from '../../src/decide/scrapers.ts';

/** Who counts; the first five are rows of the table. */
const REQUESTS: readonly (readonly [isCounted: boolean, agent: string, hasTimeoutHeader?: boolean])[] = [
  [true, 'Datadog Agent/7.53.0'],
  [true, 'Telegraf/1.30.0 Go/1.22.2'],
  [true, 'Netdata go.d.plugin/v2.1.0'],
  [true, 'Vector/0.39.0 (x86_64-unknown-linux-gnu)'],
  [true, 'Elastic-Metricbeat/8.14.0 (linux; amd64; abc; 2024-05-31)'],
  [true, '', true],
  [true, 'curl/8.5.0', true],
  [false, ''],
  [false, 'curl/8.5.0'],
  [false, 'kube-probe/1.36'],
  [false, 'Go-http-client/1.1'],
  [false, 'Mozilla/5.0'],
  [false, 'x Datadog Agent/7'],
  [false, 'lastscrape/0.1.0'],
];

test('isScraper() goes by the header of a scrape, or by the beginning of a User-Agent of the table', () => {
  for (const [isCounted, agent, hasTimeoutHeader = false] of REQUESTS) {
    assert.equal(isScraper({ hasTimeoutHeader, agent }), isCounted, agent);
  }
  assert.equal(SCRAPER_AGENTS.length, 5, 'every row has an example');
});
