// The variables of Locust's exporter: what they switch on, which of ours take precedence, and every message in full.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Environment } from '../../src/base/parse.ts';
import { readFallbackConfig } from '../../src/config/config.ts';
import { KINDS } from '../../src/main.ts';
import { PROGRAM, readProblems, readValid } from './read-config.ts';

const URI = { LOCUST_EXPORTER_URI: 'http://localhost:8089' };
const OPERATOR = { ...URI, LOCUST_EXPORTER_WEB_LISTEN_ADDRESS: ':9646' };
const LOCUST = { LASTSCRAPE_METRICS_URL: 'locust+http://localhost:8089' };

function read(env: Environment) {
  const { metricsUrl, front, conditions, targets, limits, locust, placeBy } = readValid(env);
  return {
    url: metricsUrl.href,
    front: front?.text ?? null,
    doneWhen: conditions.map(({ text }) => text).join(),
    scrapes: limits.scrapesWantedCount,
    quit: targets.map(({ name }) => name).join(),
    ...locust,
    placeBy,
  };
}

const IN_PLACE = {
  url: 'locust+http://localhost:8089',
  front: '9646',
  doneWhen: 'metric:locust_up,port:5557',
  scrapes: 'auto',
  quit: '',
  namespace: 'locust',
  path: '/metrics',
  headersFile: null as string | null,
  placeBy: 'LOCUST_EXPORTER_URI',
};
const USUAL = {
  ...IN_PLACE,
  url: 'http://localhost:9646/metrics',
  front: null,
  scrapes: 1,
  quit: 'locust-exporter',
  placeBy: null,
};

const TABLE: readonly (readonly [what: string, env: Environment, expected: Partial<typeof IN_PLACE> | null])[] = [
  ["the operator's variables", OPERATOR, {}],
  ['the URI alone', URI, {}],
  ['blanks', { LOCUST_EXPORTER_URI: ' http://localhost:8089 ', LOCUST_EXPORTER_WEB_LISTEN_ADDRESS: '  ' }, {}],
  ['an address', { ...URI, LOCUST_EXPORTER_WEB_LISTEN_ADDRESS: '127.0.0.1:9000' }, { front: '127.0.0.1:9000' }],
  ['IPv6', { ...URI, LOCUST_EXPORTER_WEB_LISTEN_ADDRESS: '[::1]:9000' }, { front: '[::1]:9000' }],
  [
    'a namespace',
    { ...OPERATOR, LOCUST_METRIC_NAMESPACE: 'load_test' },
    { namespace: 'load_test', doneWhen: 'metric:load_test_up,port:5557' },
  ],
  ['headers', { ...OPERATOR, LASTSCRAPE_METRICS_HEADERS_FILE: '/a' }, { headersFile: '/a' }],
  ['a path', { ...OPERATOR, LOCUST_EXPORTER_WEB_TELEMETRY_PATH: '/numbers' }, { path: '/numbers' }],
  [
    'a base path',
    { LOCUST_EXPORTER_URI: 'http://localhost:8089/locust' },
    { url: 'locust+http://localhost:8089/locust' },
  ],
  ['our own front', { ...OPERATOR, LASTSCRAPE_FRONT: '9999' }, { front: '9999' }],
  ['our own end', { ...OPERATOR, LASTSCRAPE_DONE_WHEN: 'port:5557' }, { doneWhen: 'port:5557' }],
  ['our own targets', { ...OPERATOR, LASTSCRAPE_QUIT: 'istio' }, { quit: 'istio' }],
  ['our own count', { ...OPERATOR, LASTSCRAPE_SCRAPES: '2' }, { scrapes: 2 as never }],
  [
    'our own URL',
    { ...LOCUST, LASTSCRAPE_FRONT: '9646', LOCUST_METRIC_NAMESPACE: 'x' },
    { placeBy: null as never, namespace: 'x', doneWhen: 'metric:x_up,port:5557' },
  ],
  [
    'our own URL, and their address',
    { ...LOCUST, LOCUST_EXPORTER_WEB_LISTEN_ADDRESS: ':9646' },
    { placeBy: null as never },
  ],
  ['nothing', {}, null],
  ["a namespace that only Locust's page needs", { LOCUST_METRIC_NAMESPACE: 'load-test' }, null],
  ['an address and no URI', { LOCUST_EXPORTER_WEB_LISTEN_ADDRESS: ':9646' }, null],
  ['no front, said by ours', { ...OPERATOR, LASTSCRAPE_FRONT: 'none' }, null],
  ['an exporter, said by ours', { ...OPERATOR, LASTSCRAPE_METRICS_URL: 'http://localhost:9646/metrics' }, null],
  [
    'what cannot be read and does not count',
    { LOCUST_EXPORTER_URI: 'x', LOCUST_EXPORTER_WEB_LISTEN_ADDRESS: 'x', LASTSCRAPE_FRONT: 'none' },
    null,
  ],
];
for (const [what, env, expected] of TABLE) {
  test(`readConfig() with ${what} is ${expected === null ? 'as usual' : "in the exporter's place"}`, () => {
    assert.deepEqual(read(env), expected === null ? USUAL : { ...IN_PLACE, ...expected });
  });
}

const TLS = 'an http: URL: TLS is not supported; start Locust without --tls-cert, or keep locust_exporter';
const PATH = 'a path such as "/metrics" that does not begin with "/-/"';
const PAGE =
  'a locust+http: URL without user, password and query, such as "locust+http://localhost:8089", with the path of --web-base-path if it is set, and without /stats/requests';

/** A variable, a wrong value next to the operator's, what it must be, and how the value is shown if not as it is. */
const WRONG: readonly (readonly [name: string, value: string, must: string, shown?: string])[] = [
  ['LOCUST_EXPORTER_URI', 'https://localhost:8089', TLS],
  [
    'LOCUST_EXPORTER_URI',
    'http://localhost:8089/stats/requests',
    'an http: URL without user, password and query, such as "http://localhost:8089", without /stats/requests; or set LASTSCRAPE_METRICS_URL, which takes precedence',
  ],
  ['LOCUST_EXPORTER_WEB_LISTEN_ADDRESS', 'pod:9646', 'a port with or without an IP address, such as ":9646"'],
  ['LOCUST_METRIC_NAMESPACE', 'load-test', 'letters, digits and "_", no digit first, such as "locust"'],
  ['LOCUST_EXPORTER_WEB_TELEMETRY_PATH', 'metrics', PATH],
  ['LOCUST_EXPORTER_WEB_TELEMETRY_PATH', '/-/healthy', PATH],
  ['LOCUST_EXPORTER_WEB_TELEMETRY_PATH', '/quitquitquit', PATH],
  ['LOCUST_EXPORTER_WEB_TELEMETRY_PATH', '/a b', PATH],
  ['LASTSCRAPE_METRICS_URL', 'locust+https://a', TLS],
  ['LASTSCRAPE_METRICS_URL', 'locust+http://u:p@a', PAGE, 'locust+http://***@a'],
  ['LASTSCRAPE_METRICS_URL', 'locust+http://a/stats/requests', PAGE],
  ['LASTSCRAPE_METRICS_URL', 'locust+http://a?b', PAGE, 'locust+http://a?***'],
  ['LASTSCRAPE_METRICS_URL', 'locust+x', PAGE],
];
for (const [name, value, must, shown = value] of WRONG) {
  test(`readConfig() says what ${name}=${value} must be`, () => {
    const front = name === 'LASTSCRAPE_METRICS_URL' ? { LASTSCRAPE_FRONT: '9646' } : {};
    const env = name.endsWith('_ADDRESS') || name.endsWith('_URI') ? URI : OPERATOR;
    assert.deepEqual(readProblems({ ...env, ...front, [name]: value }), [
      `Cannot read ${name}: it is "${shown}"; must be ${must}`,
    ]);
  });
}

test('readConfig() says what does not go with the page of Locust', () => {
  const page = 'LASTSCRAPE_METRICS_URL';
  assert.deepEqual(readProblems(LOCUST), [
    `Cannot use ${page}: it needs a front; set LASTSCRAPE_FRONT as well, such as "9469", or change this`,
  ]);
  assert.deepEqual(readProblems({ ...OPERATOR, LASTSCRAPE_FRONT: '8089' }), [
    `Cannot use LASTSCRAPE_FRONT: port 8089 is taken by ${page}, which the front serves; must be another port`,
  ]);
  assert.deepEqual(readProblems({ ...OPERATOR, LASTSCRAPE_QUIT: 'locust-exporter' }), [
    `Cannot read LASTSCRAPE_QUIT: "locust-exporter" must be locust-exporter:PORT where ${page} has no port of an exporter`,
  ]);
});

test('a variable of the exporter that cannot be read keeps no pod from being outlasted', () => {
  const env = { ...OPERATOR, LOCUST_METRIC_NAMESPACE: 'load-test' };
  const { metricsUrl, front } = readFallbackConfig(env, ['LOCUST_METRIC_NAMESPACE'], KINDS, PROGRAM);
  assert.deepEqual([metricsUrl.href, front?.text], ['locust+http://localhost:8089', '9646']);
});
