import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listOddSettings, ODD_SETTINGS, type OddSetting } from '../../src/check/setting-warnings.ts';
import type { ExporterObservation } from '../../src/decide/model.ts';
import { readValid, toEnvironment } from '../config/read-config.ts';
import { answer, REFUSED } from '../decide/phases.ts';

const FAILED: ExporterObservation = { kind: 'failed', why: 'HTTP 404', mayCount: false };
const COUNTING = answer(1);

/** Settings without their prefix, separated by `; `; the rules that find them odd; what the exporter showed. */
const TABLE: readonly (readonly [string, readonly OddSetting[], ExporterObservation?])[] = [
  ['', []],
  ['', [], COUNTING],
  ['', [], REFUSED],
  ['METRICS_URL=http://localhost:9646', ['metricsUrlWithoutPath']],
  ['METRICS_URL=http://localhost:9646/', ['metricsUrlWithoutPath']],
  ['METRICS_URL=http://localhost:9646/?format=prometheus', []],
  ['METRICS_URL=http://localhost:5557/metrics', ['metricsUrlOnMainsPort']],
  ['METRICS_URL=http://127.0.0.1/metrics; DONE_WHEN=port:80', ['metricsUrlOnMainsPort']],
  ['METRICS_URL=http://localhost:80/metrics; DONE_WHEN=port:127.0.0.1:80', ['metricsUrlOnMainsPort']],
  ['METRICS_URL=http://elsewhere:5557/metrics', []],
  ['METRICS_URL=http://localhost:557/metrics', []],
  ['FAIL_IF=a > 1', []],
  ['FAIL_IF=a > 1; DONE_WHEN=sigterm; TTL=25s; METRICS_URL=http://localhost:1/m', ['verdictOfSidecar']],
  ['SCRAPES=0', []],
  ['SETTLE=90s', []],
  ['SETTLE=91s', ['settleAboveTtl']],
  ['SETTLE=91s; SCRAPES=0', []],
  ['TERMINATION_GRACE=10m', []],
  ['DONE_WHEN=port:1', ['holdWithoutExporter'], REFUSED],
  ['DONE_WHEN=port:1', ['holdWithoutExporter'], FAILED],
  ['DONE_WHEN=port:1; SCRAPES=0', [], REFUSED],
  ['DONE_WHEN=port:1', [], COUNTING],
  ['FRONT=9469', [], REFUSED],
  ['FRONT=9469; DONE_WHEN=port:1; METRICS_URL=http://localhost:8000/metrics', [], REFUSED],
  ['FRONT=9469; DONE_WHEN=port:1; METRICS_URL=http://localhost:8000', ['metricsUrlWithoutPath']],
  ['FRONT=9469; DONE_WHEN=port:8000; METRICS_URL=http://localhost:8000/metrics', []],
  ['DONE_WHEN=sigterm; SCRAPES=1', ['ttlAboveGrace']],
  ['DONE_WHEN=sigterm; SCRAPES=0', []],
  ['DONE_WHEN=sigterm; SCRAPES=1; TTL=25s', []],
  ['DONE_WHEN=port:1,sigterm; SCRAPES=1; TERMINATION_GRACE=60s', ['ttlAboveGrace']],
];
for (const [settings, expected, exporter = null] of TABLE) {
  const kind = exporter === null ? '' : ` where the exporter is ${exporter.kind}`;
  test(`listOddSettings() finds ${expected.join(', ') || 'nothing'} in "${settings}"${kind}`, () => {
    const env = toEnvironment(settings);
    const odd = listOddSettings({ config: readValid(env), isPod: true, exporter });
    const ids = odd.map(({ id }) => id);
    assert.deepEqual(ids, expected);
    for (const { text } of odd) assert.match(text, /: |; /, 'what is, and what to do or what follows');
  });
}

test('every rule is in the table', () => {
  const expected = new Set(TABLE.flatMap(([, ids]) => ids));
  assert.deepEqual([...expected].toSorted(), Object.keys(ODD_SETTINGS).toSorted());
});
