// What values cannot be together, each message in full, and that nothing else is refused.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { KINDS } from '../../src/main.ts';
import { PROGRAM, readProblems, toEnvironment } from './read-config.ts';

const SERVED = 'port … is taken by LASTSCRAPE_METRICS_URL, which the front serves; must be another port';
const NEEDS_FRONT = 'it needs a front; set LASTSCRAPE_FRONT as well, such as "9469", or change this';
const NEEDS_PUSH = 'it needs LASTSCRAPE_PUSH; set that as well, or change this';
const NEEDS_WEBHOOK = 'it needs LASTSCRAPE_WEBHOOK; set that as well, or unset this';
const FRONTS = ['', '0.0.0.0:', '[::]:', '[::1]:', '127.0.0.1:', 'localhost:'].map((host) => `FRONT=${host}9646`);

/** A variable, what is wrong with it, what is set then, and what may be set. */
type Row = readonly [name: string, problem: string, wrong: readonly string[], right: readonly string[]];
const TABLE: readonly Row[] = [
  ['METRICS_URL', NEEDS_FRONT, ['METRICS_URL=file:///a.prom'], ['METRICS_URL=file:///a.prom; FRONT=9646']],
  ['HOOKS', NEEDS_FRONT, ['HOOKS=/lastscrape'], ['HOOKS=/lastscrape; FRONT=9469']],
  ['HAND_OVER', NEEDS_PUSH, ['HAND_OVER=push'], ['HAND_OVER=push; PUSH=pushgateway+http://p']],
  ['HAND_OVER', NEEDS_FRONT, ['HAND_OVER=http://keeper:9470'], ['HAND_OVER=http://keeper:9470; FRONT=9469']],
  ['SCRAPES', NEEDS_FRONT, ['SCRAPES=auto'], ['SCRAPES=auto; FRONT=9469']],
  [
    'FRONT',
    SERVED.replace('…', '9646'),
    [
      ...FRONTS,
      ...['127.0.0.5', '[::1]', '0.0.0.0'].map((host) => `FRONT=9646; METRICS_URL=http://${host}:9646/`),
      'FRONT=127.0.0.1:9646; METRICS_URL=http://[::]:9646/',
      ...['10.0.0.5', '[fd00::5]'].map((host) => `FRONT=${host}:9646; METRICS_URL=http://${host}:9646/`),
    ],
    [
      'FRONT=10.0.0.5:9646',
      'FRONT=9646; METRICS_URL=http://exporter:9646/',
      'FRONT=[::1]:9646; METRICS_URL=http://10.0.0.5:9646/',
    ],
  ],
  ['FRONT', SERVED.replace('…', '80'), ['FRONT=80; METRICS_URL=http://localhost/metrics'], []],
  [
    'FRONT',
    'port 5557 is also the one of port:5557 in LASTSCRAPE_DONE_WHEN, which would then never be refused; must be another port',
    ['FRONT=5557', 'FRONT=127.0.0.1:5557', 'FRONT=0.0.0.0:5557'],
    ['FRONT=557', 'FRONT=10.0.0.5:5557', 'FRONT=80; DONE_WHEN=file:/a:80'],
  ],
  [
    'FRONT',
    'port 80 is also the one of port:[::1]:80 in LASTSCRAPE_DONE_WHEN, which would then never be refused; must be another port',
    ['FRONT=80; DONE_WHEN=file:/a,port:[::1]:80'],
    [],
  ],
  [
    'METRICS_URL',
    'port 9091 is also the one of port:9091 in LASTSCRAPE_DONE_WHEN, which would then never be refused; must be another port',
    ['METRICS_URL=pushgateway://127.0.0.1:9091; FRONT=9469; DONE_WHEN=port:9091'],
    [
      'METRICS_URL=pushgateway://127.0.0.1:9091; FRONT=9469; DONE_WHEN=port:9092',
      'METRICS_URL=http://127.0.0.1:9091/metrics; FRONT=9469; DONE_WHEN=port:9091',
    ],
  ],
  [
    'RUN_TIMEOUT',
    'with sigterm only the signal may end a run, or the kubelet would restart lastscrape; must be unset, or 0',
    ['DONE_WHEN=port:80,sigterm; RUN_TIMEOUT=1h'],
    ['DONE_WHEN=sigterm; RUN_TIMEOUT=0', 'DONE_WHEN=sigterm', 'DONE_WHEN=port:80; RUN_TIMEOUT=1h'],
  ],
  [
    'METRICS_HEADERS_FILE',
    "only Locust's page uses it; set LASTSCRAPE_METRICS_URL to locust+http://HOST:PORT, or unset this",
    ['METRICS_HEADERS_FILE=/a'],
    ['METRICS_URL=locust+http://localhost:8089; FRONT=9646; METRICS_HEADERS_FILE=/a'],
  ],
  [
    'TOMBSTONE',
    'LASTSCRAPE_DONE_WHEN waits for it as main\'s tombstone; must be another file, such as "/graveyard/lastscrape"',
    ['DONE_WHEN=tombstone:/g/main; TOMBSTONE=/g/main'],
    ['DONE_WHEN=tombstone:/g/main; TOMBSTONE=/g/lastscrape'],
  ],
  ['PUSH_WHEN', NEEDS_PUSH, ['PUSH_WHEN=always'], []],
  ['PUSH_LABELS', NEEDS_PUSH, ['PUSH_LABELS=a=b'], ['PUSH=otlp+http://a; PUSH_LABELS=a=b,b=c']],
  ['PUSH_LABELS', 'it has "a" twice; must have each name once', ['PUSH=otlp+http://a; PUSH_LABELS=a=b,c=d,a=e'], []],
  ['PUSH_HEADERS_FILE', NEEDS_PUSH, ['PUSH_HEADERS_FILE=/a'], ['PUSH=otlp+http://a; PUSH_HEADERS_FILE=/a']],
  [
    'PUSH',
    'with LASTSCRAPE_SCRAPES=0 no scrape can be missed, so nothing would be pushed; set LASTSCRAPE_PUSH_WHEN=always, or LASTSCRAPE_SCRAPES',
    ['PUSH=otlp+http://a; SCRAPES=0'],
    ['PUSH=otlp+http://a; PUSH_WHEN=always; SCRAPES=0', 'PUSH=otlp+http://a; TTL=0'],
  ],
  [
    'PUSH',
    'lastscrape itself takes pushes there, as LASTSCRAPE_METRICS_URL says; must be another address',
    ['localhost', '127.0.0.1', '[::1]'].map(
      (host) => `FRONT=1; METRICS_URL=pushgateway://127.0.0.1:9091; PUSH=pushgateway+http://${host}:9091`,
    ),
    [
      'FRONT=1; METRICS_URL=pushgateway://127.0.0.1:9091; PUSH=pushgateway+http://pushgateway:9091',
      'FRONT=1; METRICS_URL=pushgateway://127.0.0.1:9091; PUSH=pushgateway+http://localhost:9092',
      'FRONT=1; METRICS_URL=http://127.0.0.1:9091; PUSH=pushgateway+http://127.0.0.1:9091',
    ],
  ],
  ['WEBHOOK_HEADERS_FILE', NEEDS_WEBHOOK, ['WEBHOOK_HEADERS_FILE=/a'], ['WEBHOOK_HEADERS_FILE=/a; WEBHOOK=http://a']],
  [
    'CA_FILE',
    'neither LASTSCRAPE_PUSH nor LASTSCRAPE_WEBHOOK has https; use https: there, or unset this',
    ['CA_FILE=/a', 'CA_FILE=/a; PUSH=otlp+http://a; WEBHOOK=http://a'],
    ['CA_FILE=/a; PUSH=otlp+https://a', 'CA_FILE=/a; WEBHOOK=https://a'],
  ],
];
for (const [name, problem, wrong, right] of TABLE) {
  test(`readConfig() says of ${name}: ${problem}`, () => {
    const message = `Cannot use LASTSCRAPE_${name}: ${problem}`;
    for (const settings of wrong) assert.deepEqual(readProblems(toEnvironment(settings)), [message], settings);
    for (const settings of right) assert.deepEqual(readProblems(toEnvironment(settings)), [], settings);
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
