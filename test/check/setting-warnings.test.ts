import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listOddSettings, ODD_SETTINGS, type OddSetting } from '../../src/check/setting-warnings.ts';
import type { ExporterObservation } from '../../src/decide/model.ts';
import { readValid, toEnvironment } from '../config/read-config.ts';

const TOTALS = { requests: null, failures: null, users: null };
const REFUSED: ExporterObservation = { kind: 'refused' };
const FAILED: ExporterObservation = { kind: 'failed', why: 'HTTP 404', mayCount: false };
const COUNTING: ExporterObservation = {
  kind: 'answered',
  scrapes: { finishedCount: 1, inFlightCount: 1 },
  totals: TOTALS,
};
const NOT_COUNTING: ExporterObservation = { kind: 'answered', scrapes: null, totals: TOTALS };

/** Settings without their prefix, separated by `; `; the rules that find them odd; what the exporter showed. */
const TABLE: readonly (readonly [string, readonly OddSetting[], ExporterObservation?])[] = [
  ['', []],
  ['', [], COUNTING],
  ['', [], REFUSED],
  ['METRICS_URL=http://localhost:9646', ['metricsUrlWithoutPath']],
  ['METRICS_URL=http://localhost:9646/', ['metricsUrlWithoutPath']],
  ['METRICS_URL=http://localhost:9646/?format=prometheus', []],
  ['METRICS_URL=http://localhost:9646; DONE_WHEN=port:1; SCRAPES=0', []],
  ['METRICS_URL=http://localhost:1/a,http://localhost:2/a', ['twoMetricsUrls']],
  ['METRICS_URL=http://localhost:1/a http://localhost:2/a', ['twoMetricsUrls']],
  ['METRICS_URL=http://localhost:1/a,localhost:2/a', ['twoMetricsUrls']],
  ['METRICS_URL=http://localhost:1/probe?target=http://localhost:2/a,b', []],
  ['METRICS_URL=http://localhost:5557/metrics', ['metricsUrlOnMainsPort']],
  ['METRICS_URL=http://127.0.0.1/metrics; DONE_WHEN=port:80', ['metricsUrlOnMainsPort']],
  ['METRICS_URL=http://localhost:80/metrics; DONE_WHEN=port:127.0.0.1:80', ['metricsUrlOnMainsPort']],
  ['METRICS_URL=http://elsewhere:5557/metrics', []],
  ['METRICS_URL=http://localhost:557/metrics', []],
  ['FAIL_IF=a > 1', []],
  ['FAIL_IF=a > 1; DONE_WHEN=sigterm; TTL=25s; METRICS_URL=http://localhost:1/m', ['verdictOfSidecar']],
  ['QUIT=locust-exporter,locust-exporter', ['targetTwice']],
  ['QUIT=locust-exporter,POST http://localhost:9646/quitquitquit', ['targetTwice']],
  ['DONE_WHEN=metric:up; QUIT=envoy,envoy:9902', []],
  ['DONE_WHEN=metric:up; QUIT=signal:a,signal:TERM:a', ['targetTwice']],
  ['TTL=0', ['ttlOfZero']],
  ['TTL=0; SCRAPES=2', ['ttlOfZero']],
  ['TTL=0; SCRAPES=0', []],
  ['SCRAPES=0', []],
  ['SCRAPES=0; TTL=90s', ['scrapesOfZero']],
  ['POLL=90s', []],
  ['POLL=91s', ['pollAboveTtl']],
  ['POLL=91s; SCRAPES=0', []],
  ['SETTLE=90s', []],
  ['SETTLE=91s', ['settleAboveTtl']],
  ['SETTLE=91s; SCRAPES=0', []],
  ['TERMINATION_GRACE=25s', []],
  ['TERMINATION_GRACE=25001ms', ['graceAboveUsual']],
  ['PUSH=otlp+http://a; TERMINATION_GRACE=5s', ['graceTooShortToTell']],
  ['WEBHOOK=http://a; TERMINATION_GRACE=0', ['graceTooShortToTell']],
  ['WEBHOOK=http://a; TERMINATION_GRACE=6s', []],
  ['TERMINATION_GRACE=0', []],
  ['WEBHOOK=http://a; WEBHOOK_HEADERS_FILE=/h', ['credentialsWithoutTls']],
  ['WEBHOOK=https://a; WEBHOOK_HEADERS_FILE=/h', []],
  ['PUSH=otlp+http://a; PUSH_HEADERS_FILE=/h', ['credentialsWithoutTls']],
  ['PUSH=otlp+https://a; PUSH_HEADERS_FILE=/h; WEBHOOK=http://a', []],
  ['DONE_WHEN=port:1', ['holdWithoutExporter'], REFUSED],
  ['DONE_WHEN=port:1', ['holdWithoutExporter'], FAILED],
  ['DONE_WHEN=port:1', ['holdByDefault']],
  ['DONE_WHEN=port:1; SCRAPES=1', []],
  ['DONE_WHEN=port:1; METRICS_URL=http://localhost:9100/metrics', []],
  ['QUIT=signal:nginx', ['conditionsByDefault']],
  ['QUIT=signal:nginx; DONE_WHEN=metric:up', []],
  ['QUIT=signal:nginx,locust-exporter', []],
  ['QUIT=none', []],
  ['DONE_WHEN=port:1; SCRAPES=0', [], REFUSED],
  ['DONE_WHEN=port:1', [], COUNTING],
  ['', ['holdWithoutCounter'], NOT_COUNTING],
  ['SCRAPES=0', [], NOT_COUNTING],
  ['FRONT=9469', []],
  ['FRONT=9469', [], REFUSED],
  ['FRONT=9469', [], NOT_COUNTING],
  ['FRONT=9469; TTL=0', ['ttlOfZero']],
  ['FRONT=9469; DONE_WHEN=port:1; METRICS_URL=http://localhost:8000/metrics', [], REFUSED],
  ['FRONT=9469; DONE_WHEN=port:1; METRICS_URL=http://localhost:8000', ['metricsUrlWithoutPath']],
  ['FRONT=9469; DONE_WHEN=port:8000; METRICS_URL=http://localhost:8000/metrics', []],
  ['FRONT=9469; DONE_WHEN=port:1', ['frontByDefault']],
  ['FRONT=9469; DONE_WHEN=port:1; METRICS_URL=http://localhost:9646/metrics', []],
  ['FRONT=9469; DONE_WHEN=port:1,metric:locust_up', []],
  ['FRONT=9469; METRICS_URL=http://localhost:8000/metrics', ['frontForLocust']],
  ['FRONT=9469; METRICS_URL=file:///shared/job.prom', ['frontForLocust']],
  ['FRONT=9469; METRICS_URL=file:///a; DONE_WHEN=port:1', []],
  ['FRONT=9469; METRICS_URL=file:///a/; DONE_WHEN=port:1', []],
  ['FRONT=9469; METRICS_URL=http://127.0.0.1:9646/metrics', []],
  [
    'FRONT=9469; DONE_WHEN=port:1; METRICS_URL=http://localhost:8000/metrics; QUIT=http://127.0.0.1:8000/quit',
    ['quitAtSource'],
  ],
  ['FRONT=9469; DONE_WHEN=port:1; METRICS_URL=http://a/metrics; QUIT=http://a/quit', ['quitAtSource']],
  ['FRONT=9469; DONE_WHEN=port:1; METRICS_URL=http://a/metrics; QUIT=http://b/quit', []],
  ['FRONT=9469; DONE_WHEN=port:1; METRICS_URL=http://localhost:8000/metrics; QUIT=http://localhost:1/,signal:a', []],
  ['FRONT=9469; DONE_WHEN=metric:up; METRICS_URL=http://localhost:8000/metrics; QUIT=http://localhost:8000/', []],
  ['DONE_WHEN=port:1; METRICS_URL=http://localhost:8000/metrics; QUIT=http://localhost:8000/quit', []],
  ['FRONT=9469; QUIT=locust-exporter:9469', ['quitAtFront']],
  ['FRONT=[::1]:9469; QUIT=locust-exporter:9469', ['quitAtFront']],
  ['FRONT=192.0.2.1:9469; QUIT=locust-exporter:9469', []],
  ['FRONT=9469; QUIT=locust-exporter,http://elsewhere:9469/', []],
  ['FRONT=9469; DONE_WHEN=port:1; METRICS_URL=http://localhost:8000/metrics; POLL=1001ms', ['pollWithFront']],
  ['FRONT=9469; DONE_WHEN=port:1; METRICS_URL=file:///a; POLL=2s', []],
  ['FRONT=9469; POLL=2s', []],
  ['DONE_WHEN=sigterm; SCRAPES=1', ['ttlAboveGrace']],
  ['DONE_WHEN=sigterm; SCRAPES=0', []],
  ['DONE_WHEN=sigterm; SCRAPES=1; TTL=25s', []],
  ['DONE_WHEN=port:1,sigterm; SCRAPES=1; TERMINATION_GRACE=60s', ['graceAboveUsual', 'ttlAboveGrace']],
];
for (const [settings, expected, exporter = null] of TABLE) {
  const kind = exporter === null ? '' : ` where the exporter is ${exporter.kind}`;
  test(`listOddSettings() finds ${expected.join(', ') || 'nothing'} in "${settings}"${kind}`, () => {
    const env = toEnvironment(settings);
    const odd = listOddSettings({ config: readValid(env), isSet: (name) => name in env, exporter });
    const ids = odd.map(({ id }) => id);
    assert.deepEqual(ids, expected);
    for (const { text } of odd) assert.match(text, /: |; /, 'what is, and what to do or what follows');
  });
}

test('every rule is in the table', () => {
  const expected = new Set(TABLE.flatMap(([, ids]) => ids));
  assert.deepEqual([...expected].toSorted(), Object.keys(ODD_SETTINGS).toSorted());
});

test('listOddSettings() names the scrapers that nothing waits for', () => {
  const [odd] = listOddSettings({
    config: readValid(toEnvironment('FRONT=9469; TTL=0')),
    isSet: () => true,
    exporter: null,
  });
  assert.match(odd?.text ?? '', /nothing waits for the scrapers of LASTSCRAPE_SCRAPES: /);
});
