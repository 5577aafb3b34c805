// Defaults that depend on other variables, and what is read of a front.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROWS } from '../../src/config/variables.ts';
import { readProblems, readValid, toEnvironment } from './read-config.ts';

/** What is set, how many scrapes are wanted, what is asked to quit. */
const DEFAULTS: readonly (readonly [settings: string, scrapes: number | 'auto', quit: string])[] = [
  ['', 1, 'locust-exporter'],
  ['DONE_WHEN=port:80', 1, 'locust-exporter'],
  ['FRONT=none', 1, 'locust-exporter'],
  ['FRONT=9469', 'auto', 'locust-exporter'],
  ['FRONT=9469; SCRAPES=2', 2, 'locust-exporter'],
  ['FRONT=9469; SCRAPES=0', 0, 'locust-exporter'],
  ['FRONT=9469; DONE_WHEN=port:80,metric:locust_up', 'auto', 'locust-exporter'],
  ['FRONT=9469; DONE_WHEN=port:80', 'auto', ''],
  ['FRONT=9469; DONE_WHEN=metric:up', 'auto', ''],
  ['FRONT=9469; DONE_WHEN=port:80; QUIT=locust-exporter', 'auto', 'locust-exporter'],
  ['FRONT=9469; METRICS_URL=file:///shared/job.prom', 'auto', ''],
  ['FRONT=9469; METRICS_URL=file:///shared/job.prom; QUIT=locust-exporter:9646', 'auto', 'locust-exporter:9646'],
  ['DONE_WHEN=sigterm', 1, ''],
  ['DONE_WHEN=metric:locust_up,sigterm', 1, ''],
  ['DONE_WHEN=metric:locust_up,sigterm; FRONT=9469', 'auto', ''],
  ['DONE_WHEN=sigterm; QUIT=istio', 1, 'istio'],
  ['QUIT= none ', 1, ''],
];
for (const [settings, scrapes, quit] of DEFAULTS) {
  test(`readConfig() waits for ${scrapes} and stops ${quit || 'nothing'} with "${settings}"`, () => {
    const { limits, targets } = readValid(toEnvironment(settings));
    assert.equal(limits.scrapesWantedCount, scrapes);
    assert.equal(targets.map(({ name }) => name).join(), quit);
  });
}

test('readConfig() adds no problem of a default to one of the variable that it depends on', () => {
  for (const settings of ['FRONT=x', 'FRONT=9469; DONE_WHEN=x', 'FRONT=9469; METRICS_URL=x', 'METRICS_URL=file:///x']) {
    assert.equal(readProblems(toEnvironment(settings)).length, 1, settings);
  }
});

test('readConfig() reads a front', () => {
  assert.deepEqual(readValid(toEnvironment('FRONT= [::1]:9469 ')).front, {
    host: '::1',
    port: 9469,
    text: '[::1]:9469',
  });
  const { metricsUrl } = readValid(toEnvironment('FRONT=9469; METRICS_URL=file:///shared/job.prom'));
  assert.equal(metricsUrl.href, 'file:///shared/job.prom');
  for (const folder of ['/a/hooks', '/a/hooks/']) {
    assert.equal(readValid(toEnvironment(`FRONT=9469; HOOKS=${folder}`)).hooksPath, '/a/hooks');
  }
});

test('readConfig() says what values of a front must be', () => {
  assert.deepEqual(readProblems(toEnvironment('FRONT=9469; METRICS_URL=file:///x; QUIT=locust-exporter')), [
    'Cannot read LASTSCRAPE_QUIT: "locust-exporter" must be locust-exporter:PORT where LASTSCRAPE_METRICS_URL has no port of an exporter',
  ]);
});

test('a row says that its default depends on others where it does, and only there', () => {
  for (const row of Object.values(ROWS)) assert.equal('defaultOtherwise' in row, 'findDefault' in row, row.name);
});

test('a headers file that is no path is not shown, and "none" is not a file', () => {
  const [problem = ''] = readProblems({ LASTSCRAPE_METRICS_HEADERS_FILE: 'Authorization: Bearer s3cret-token' });
  assert.match(
    problem,
    /^Cannot read LASTSCRAPE_METRICS_HEADERS_FILE: it is "\*\*\*"; must be "none" or an absolute path/,
  );
  assert.deepEqual(readProblems(toEnvironment('PUSH_HEADERS_FILE=none; WEBHOOK_HEADERS_FILE=none; CA_FILE=none')), []);
});
