// What values cannot be together, each message in full, and that nothing else is refused.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { KINDS } from '../../src/main.ts';
import { PROGRAM, readProblems, toEnvironment } from './read-config.ts';

/** What is set, and what is wrong; null: nothing. */
const TABLE: readonly (readonly [settings: string, problem: string | null])[] = [
  [
    'METRICS_URL=file:///shared/job.prom',
    'LASTSCRAPE_METRICS_URL: "file:///shared/job.prom" needs a front; set LASTSCRAPE_FRONT as well, such as "9469", or use an http: URL',
  ],
  ['METRICS_URL=file:///shared/job.prom; FRONT=9646', null],
  [
    'SCRAPES=auto',
    'LASTSCRAPE_SCRAPES: "auto" needs a front; set LASTSCRAPE_FRONT as well, such as "9469", or use a whole number',
  ],
  ['SCRAPES=auto; FRONT=9469', null],
  ...[
    'FRONT=9646',
    'FRONT=0.0.0.0:9646',
    'FRONT=[::]:9646',
    'FRONT=[::1]:9646',
    'FRONT=127.0.0.1:9646',
    'FRONT=localhost:9646',
    'FRONT=9646; METRICS_URL=http://127.0.0.5:9646/',
    'FRONT=9646; METRICS_URL=http://[::1]:9646/',
    'FRONT=9646; METRICS_URL=http://0.0.0.0:9646/',
    'FRONT=127.0.0.1:9646; METRICS_URL=http://[::]:9646/',
    'FRONT=10.0.0.5:9646; METRICS_URL=http://10.0.0.5:9646/',
    'FRONT=[fd00::5]:9646; METRICS_URL=http://[fd00::5]:9646/',
  ].map(
    (settings) =>
      [
        settings,
        'LASTSCRAPE_FRONT: port 9646 is that of LASTSCRAPE_METRICS_URL, which the front serves; must be another port',
      ] as const,
  ),
  [
    'FRONT=80; METRICS_URL=http://localhost/metrics',
    'LASTSCRAPE_FRONT: port 80 is that of LASTSCRAPE_METRICS_URL, which the front serves; must be another port',
  ],
  ['FRONT=10.0.0.5:9646', null],
  ['FRONT=9646; METRICS_URL=http://exporter:9646/', null],
  ['FRONT=[::1]:9646; METRICS_URL=http://10.0.0.5:9646/', null],
  ...['5557', '127.0.0.1:5557', '0.0.0.0:5557'].map(
    (front) =>
      [
        `FRONT=${front}`,
        'LASTSCRAPE_FRONT: port 5557 is that of port:5557 in LASTSCRAPE_DONE_WHEN, which would never be refused; must be another port',
      ] as const,
  ),
  [
    'FRONT=80; DONE_WHEN=file:/a,port:[::1]:80',
    'LASTSCRAPE_FRONT: port 80 is that of port:[::1]:80 in LASTSCRAPE_DONE_WHEN, which would never be refused; must be another port',
  ],
  ['FRONT=557', null],
  ['FRONT=10.0.0.5:5557', null],
  ['FRONT=80; DONE_WHEN=file:/a:80', null],
  [
    'DONE_WHEN=port:80,sigterm; RUN_TIMEOUT=1h',
    'LASTSCRAPE_RUN_TIMEOUT: with sigterm only the signal may end a run: the kubelet would restart lastscrape; must be unset, or 0',
  ],
  ['DONE_WHEN=sigterm; RUN_TIMEOUT=0', null],
  ['DONE_WHEN=sigterm', null],
  ['DONE_WHEN=port:80; RUN_TIMEOUT=1h', null],
  [
    'METRICS_HEADERS_FILE=/a',
    "LASTSCRAPE_METRICS_HEADERS_FILE: it is for Locust's page; set LASTSCRAPE_METRICS_URL to locust+http://HOST:PORT, or unset this",
  ],
  ['METRICS_URL=locust+http://localhost:8089; FRONT=9646; METRICS_HEADERS_FILE=/a', null],
  [
    'DONE_WHEN=tombstone:/g/main; TOMBSTONE=/g/main',
    'LASTSCRAPE_TOMBSTONE: LASTSCRAPE_DONE_WHEN waits for it as main\'s tombstone; must be another file, such as "/graveyard/lastscrape"',
  ],
  ['DONE_WHEN=tombstone:/g/main; TOMBSTONE=/g/lastscrape', null],
  ...['PUSH_WHEN=always', 'PUSH_WHEN=expired', 'PUSH_LABELS=a=b', 'PUSH_HEADERS_FILE=/a'].map(
    (setting) =>
      [setting, `LASTSCRAPE_${setting.replace(/=.*/, '')}: LASTSCRAPE_PUSH is not set; set it, or unset this`] as const,
  ),
  ['PUSH=otlp+http://a; PUSH_WHEN=always; PUSH_LABELS=a=b,b=c; PUSH_HEADERS_FILE=/a', null],
  ['PUSH=otlp+http://a; PUSH_LABELS=a=b,c=d,a=e', 'LASTSCRAPE_PUSH_LABELS: it has "a" twice; must have each name once'],
  [
    'PUSH=otlp+http://a; SCRAPES=0',
    'LASTSCRAPE_PUSH: with LASTSCRAPE_SCRAPES=0 no scrape can be missed, so nothing would be pushed; set LASTSCRAPE_PUSH_WHEN=always, or LASTSCRAPE_SCRAPES',
  ],
  ['PUSH=otlp+http://a; PUSH_WHEN=always; SCRAPES=0', null],
  ['PUSH=otlp+http://a; TTL=0', null],
  ['WEBHOOK_HEADERS_FILE=/a', 'LASTSCRAPE_WEBHOOK_HEADERS_FILE: LASTSCRAPE_WEBHOOK is not set; set it, or unset this'],
  ['WEBHOOK_HEADERS_FILE=/a; WEBHOOK=http://a', null],
  ...['CA_FILE=/a', 'CA_FILE=/a; PUSH=otlp+http://a; WEBHOOK=http://a'].map(
    (settings) =>
      [
        settings,
        'LASTSCRAPE_CA_FILE: neither LASTSCRAPE_PUSH nor LASTSCRAPE_WEBHOOK has https; use https: there, or unset this',
      ] as const,
  ),
  ['CA_FILE=/a; PUSH=otlp+https://a', null],
  ['CA_FILE=/a; WEBHOOK=https://a', null],
];
for (const [settings, problem] of TABLE) {
  test(`readConfig() finds ${problem === null ? 'nothing' : 'a conflict'} in "${settings}"`, () => {
    assert.deepEqual(readProblems(toEnvironment(settings)), problem === null ? [] : [`Cannot use ${problem}`]);
  });
}

test('readConfig() says nothing of CA_FILE where a URL cannot be read that may be https', () => {
  for (const settings of ['CA_FILE=/a; PUSH=a; WEBHOOK=http://a', 'CA_FILE=/a; PUSH=otlp+http://a; WEBHOOK=a']) {
    const [problem = '', ...others] = readProblems(toEnvironment(settings));
    assert.match(problem, /^Cannot read LASTSCRAPE_(PUSH|WEBHOOK): /);
    assert.deepEqual(others, []);
  }
});

test('readConfig() finds every conflict, and names the variables to do without', () => {
  const env = toEnvironment(
    'FRONT=5557; METRICS_URL=http://localhost:5557/; DONE_WHEN=port:5557,sigterm; RUN_TIMEOUT=1h',
  );
  const result = readConfig(env, KINDS, PROGRAM);
  assert.deepEqual('unreadable' in result && result.unreadable, [
    'LASTSCRAPE_FRONT',
    'LASTSCRAPE_FRONT',
    'LASTSCRAPE_RUN_TIMEOUT',
  ]);
});
