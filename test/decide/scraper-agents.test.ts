import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isScraper, SCRAPER_AGENTS } from '../../src/decide/scraper-agents.ts';

test('isScraper() is whoever sends the header of a scrape', () => {
  assert.equal(isScraper({ hasTimeoutHeader: true, agent: '' }), true);
  assert.equal(isScraper({ hasTimeoutHeader: true, agent: 'curl/8.5.0' }), true);
});

test('isScraper() is one of the table by the beginning of its User-Agent', () => {
  const agents = [
    'Datadog Agent/7.53.0',
    'Telegraf/1.30.0 Go/1.22.2',
    'Netdata go.d.plugin/v2.1.0',
    'Vector/0.39.0 (x86_64-unknown-linux-gnu)',
    'Elastic-Metricbeat/8.14.0 (linux; amd64; abc; 2024-05-31)',
  ];
  for (const agent of agents) assert.equal(isScraper({ hasTimeoutHeader: false, agent }), true, agent);
  assert.equal(agents.length, SCRAPER_AGENTS.length, 'every row has an example');
});

test('isScraper() is no person, probe or kubelet', () => {
  const agents = [
    '',
    'curl/8.5.0',
    'kube-probe/1.36',
    'Go-http-client/1.1',
    'Mozilla/5.0',
    'x Datadog Agent/7',
    'lastscrape/0.1.0',
  ];
  for (const agent of agents) assert.equal(isScraper({ hasTimeoutHeader: false, agent }), false, agent);
});
