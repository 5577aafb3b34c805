// LocustTests of the real operator, with lastscrape as the exporter's image, by the policy, by both, and
// without. Runs where LASTSCRAPE_TEST_OPERATORS names operators that were built.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { IMAGES } from './images.ts';
import { EXPORTER, MASTER } from './locust-test.ts';
import { IMAGE_VALUE, installOperator, listOperators, NOT_RUN, type OperatorBuild, renderChart } from './operator.ts';
import { EXPORTER_IMAGES, type OperatorResult, type Route, runOperatorTest } from './operator-test.ts';
import { getFixture } from './scenario.ts';

const INTERVALS = [5, 15] as const;
/** The routes with one image of the exporter. */
const TOGETHER = [
  ['image', 'both'],
  ['policy', 'neither'],
  ['otel', 'otlp'],
] as const satisfies readonly (readonly Route[])[];
/** From this version on the exporter is a native sidecar. */
const FIRST_NATIVE = '2.3.0';

/** Registers the scenarios. The operators are installed one after the other: there is one kind LocustTest. */
export function runOperatorScenarios(): void {
  const builds = listOperators();
  if (builds.length === 0) {
    process.stderr.write(NOT_RUN);
    return;
  }
  describe('the real operator', { concurrency: 1 }, () => {
    for (const build of builds) {
      it(`${build.version}: the one value of the chart changes one variable of the operator`, async () => {
        await proveOneValue(build);
      });
      it(`${build.version}: LocustTests`, async () => {
        const fixture = getFixture();
        await fixture.images.loadOtlpLocust();
        await using operator = await installOperator(fixture, build);
        for (const routes of TOGETHER) {
          const [first] = routes;
          await operator.setExporterImage(EXPORTER_IMAGES[first]);
          const results = await Promise.all(
            routes.flatMap((route) =>
              INTERVALS.map((seconds) => runOperatorTest(fixture, operator.version, route, seconds)),
            ),
          );
          for (const result of results) proveResult(result);
        }
      });
    }
  });
}

async function proveOneValue(build: OperatorBuild): Promise<void> {
  const before = await renderChart(build, []);
  const after = await renderChart(build, [`${IMAGE_VALUE}=${IMAGES.lastscrape}`]);
  const changed = after.flatMap((line, index) => (line === before[index] ? [] : [`${after[index - 1]}\n${line}`]));
  assert.equal(after.length, before.length);
  assert.equal(changed.length, 1, changed.join('\n'));
  assert.match(changed[0] ?? '', /^ *- name: METRICS_EXPORTER_IMAGE\n *value: "docker\.io\/library\/lastscrape:/);
}

function proveResult(result: OperatorResult): void {
  const { operator, route, intervalSeconds, phase, printed, stored, summary } = result;
  const what = `${operator}, ${route}, ${intervalSeconds} s: ${JSON.stringify(result)}`;
  const isNative = operator.localeCompare(FIRST_NATIVE, 'en', { numeric: true }) >= 0;
  const isOpen = route === 'otel' || route === 'otlp';
  const own = isNative || isOpen ? [EXPORTER, MASTER] : [MASTER, EXPORTER];
  assert.deepEqual(result.containers, route === 'policy' ? [...own, 'lastscrape'] : own, what);
  if (route === 'neither') {
    // What is stored is a matter of luck; that the pod does not end with a regular exporter is not.
    assert.equal(phase, isNative ? 'Succeeded' : 'Running', what);
    return;
  }
  assert.equal(phase, 'Succeeded', what);
  assert.equal(stored, printed, what);
  // Only the policy passes annotations on.
  const isJudged = isOpen || route === 'policy';
  assert.match(summary ?? '', isJudged ? /^Passed the threshold; scraped / : /^Scraped /, what);
  assert.equal(result.verdict, isOpen ? 'passed' : null, what);
  if (route === 'otlp') assert.ok((result.sentCount ?? 0) > 0, what);
}
