// A LocustTest gated by thresholds on a real Kubernetes: by an annotation, by a variable in the exporter's
// place, with Locust's real percentiles; and what a waiting pipeline reads.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Manifest, Namespace, Pod } from './cluster.ts';
import { openGuideShell } from './guide-shell.ts';
import { IMAGES } from './images.ts';
import { EXPORTER, type LocustTest, MASTER, withVariable } from './locust-test.ts';
import {
  END_MS,
  evict,
  findStatus,
  getFixture,
  masterPod,
  proveGoodEnd,
  proveTotalStored,
  type Report,
  readEnd,
  readLocustTotal,
  runScenario,
  runScenarioIn,
  START_MS,
  untilLogged,
} from './scenario.ts';

/** With what the users of the test do: 1 ms each, and of the failing ones every fifth. */
const RATIO = 'locust_requests_fail_ratio > 0.01';
const AVERAGE = 'locust_requests_avg_response_time{name="Aggregated"} > 500';
const TOO_FEW = 'locust_requests_num_requests{name="Aggregated",method=""} < 3';
const PAGE = readFileSync(join(import.meta.dirname, '../../docs/verdict.md'), 'utf8');
const OPTED_OUT = { namespaceLabels: { 'lastscrape.dev/inject': 'false' } };
/** Locust's own verdict, its exit code, is switched off: what fails here fails by a threshold. */
const TOLERANT = { args: ['--exit-code-on-error', '0'] } as const;

const failIf = (...entries: readonly string[]) => ({ annotations: { 'lastscrape.dev/fail-if': entries.join(', ') } });

export function runVerdictScenarios(): void {
  for (const shape of ['regular', 'native'] as const) {
    runScenario(
      `verdict, ${shape}: a test within its thresholds is a Complete Job`,
      { shape, ...failIf(RATIO, AVERAGE, TOO_FEW) },
      async (namespace) => {
        const printed = runPipeline(namespace);
        const report = await proveGoodEnd(namespace);
        assert.equal(report.verdict, 'passed');
        assert.match(report.summary, /^Passed 3 thresholds; scraped /);
        assert.deepEqual(JSON.parse(await printed).verdict, 'passed');
      },
    );

    runScenario(
      `verdict, ${shape}: a test fails its Job by the failure ratio, which vanishes with Locust`,
      { ...TOLERANT, shape, users: 'failing', ...failIf(AVERAGE, RATIO) },
      async (namespace) => {
        const printed = assert.rejects(runPipeline(namespace), /it ended with 1\n\{"summary":"Failed by /);
        const { failed } = await proveFailed(namespace);
        assert.equal(failed?.entry, RATIO);
        assert.ok(Number(failed.seen) > 0.1 && Number(failed.seen) < 0.3, String(failed.seen));
        await printed;
      },
    );
  }

  runScenario(
    'verdict, OpenTelemetry: lastscrape stands where the operator makes no exporter, and has page, report and verdict',
    { shape: 'otel', ...failIf(RATIO, AVERAGE, TOO_FEW) },
    async (namespace) => {
      const printed = runPipeline(namespace);
      assert.equal(await namespace.untilJobEnded(MASTER, END_MS), 'Complete');
      const { report, exitCode } = readEnd(masterPod(namespace), EXPORTER);
      assert.deepEqual([report.outcome, report.verdict, exitCode], ['scraped', 'passed', 0], report.summary);
      const total = await readLocustTotal(namespace);
      assert.equal(report.final.requests, total);
      await proveTotalStored(namespace, total);
      assert.equal(JSON.parse(await printed).verdict, 'passed');
    },
  );

  const percentile = (quantile: string, limit: number) =>
    `locust_requests_response_time_percentile{name="Aggregated",quantile="${quantile}"} > ${limit}`;
  for (const [shape, end, exitCode] of [
    ['regular', 'Failed', 1],
    ['native', 'Complete', 1],
  ] as const) {
    runScenario(
      `verdict, in place, ${shape}: judged by Locust's own percentiles, the Job is ${end}`,
      inPlace(shape, `${percentile('0.5', 500)}, ${percentile('0.95', 0.5)}`),
      async (namespace) => {
        const printed = assert.rejects(runPipeline(namespace), /it ended with 1\n\{"summary":"Failed by /);
        // The exit code of a native sidecar is ignored: a pipeline must read the report.
        assert.equal(await namespace.untilJobEnded(MASTER, END_MS), end);
        const { report, exitCode: code } = readEnd(masterPod(namespace), EXPORTER);
        assert.deepEqual(report.failed, { entry: percentile('0.95', 0.5), seen: 1 });
        assert.deepEqual([report.outcome, report.verdict, code, report.exitCode], ['scraped', 'failed', exitCode, 1]);
        await printed;
      },
    );
  }

  runScenarioIn('verdict: a Job that repeats failures does not repeat a failing verdict', async (namespace) => {
    await namespace.apply(failingJob());
    assert.equal(await namespace.untilJobEnded('counts', END_MS), 'Failed');
    const pods = new Set(namespace.events.map(({ pod }) => pod.metadata.name));
    assert.equal(pods.size, 1, 'it ran once');
    const pod = namespace.events.at(-1)?.pod as Pod;
    const { report, exitCode } = readEnd(pod);
    assert.deepEqual([report.verdict, report.failed, exitCode], ['failed', { entry: 'errors_total > 0', seen: 3 }, 1]);
  });

  runScenarioIn(
    'verdict: an eviction is repeated, and does not count; then the verdict fails the Job',
    async (namespace) => {
      // A single failure that counts would end it.
      await namespace.apply(failingJob({ seconds: 40, backoffLimit: 0 }));
      const isRunning = (pod: Pod) => findStatus(pod, 'main')?.state.running !== undefined;
      const { pod: first } = await namespace.untilPod('main running', START_MS, isRunning);
      await untilLogged(namespace, first, 'main is running', START_MS);
      const { name } = first.metadata;
      await evict(namespace.name, name);
      assert.equal(await namespace.untilJobEnded('counts', END_MS), 'Failed');
      const ends = new Map(namespace.events.map(({ pod }) => [pod.metadata.name, pod]));
      assert.equal(ends.size, 2);
      const verdicts = [...ends.values()].map((pod) => [readEnd(pod).report.verdict, readEnd(pod).exitCode]);
      assert.deepEqual(verdicts, [
        ['notJudged', 75],
        ['failed', 1],
      ]);
    },
  );
}

/** A job that counts three errors in a textfile, and succeeds. */
const COUNTS =
  'printf "# TYPE errors_total counter\\nerrors_total 3\\n" >/shared/a.tmp; mv /shared/a.tmp /shared/a.prom; ' +
  'trap "exit 143" TERM; sleep $SECONDS & wait; touch /shared/done';

/** A Job that is repeated three times, unless the policy of docs/verdict.md ends it. */
function failingJob({ seconds = 0, ...job }: { seconds?: number; backoffLimit?: number } = {}): Manifest {
  const [, yaml = ''] = /^ {2}```yaml\n( {2}backoffLimit: 3\n[\s\S]*?)^ {2}```$/m.exec(PAGE) ?? [];
  const volumeMounts = [{ name: 'shared', mountPath: '/shared' }];
  const env = {
    LASTSCRAPE_DONE_WHEN: 'file:/shared/done',
    LASTSCRAPE_METRICS_URL: 'file:///shared/a.prom',
    LASTSCRAPE_FRONT: '9469',
    LASTSCRAPE_SCRAPES: '0',
    LASTSCRAPE_FAIL_IF: 'errors_total > 0',
  };
  const containers = [
    {
      name: 'main',
      image: IMAGES.busybox,
      command: ['sh', '-c', COUNTS.replace('$SECONDS', `${seconds}`)],
      volumeMounts,
    },
    {
      name: 'lastscrape',
      image: IMAGES.lastscrape,
      env: Object.entries(env).map(([name, value]) => ({ name, value })),
      volumeMounts,
    },
  ];
  const spec = { restartPolicy: 'Never', volumes: [{ name: 'shared', emptyDir: {} }], containers };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'counts' },
    spec: { ...parse(yaml), ...job, template: { spec } },
  };
}

/** What a pipeline does, as the guide has it: waits for the Job, prints the report, ends with 0 or 1. */
async function runPipeline(namespace: Namespace): Promise<string> {
  using shell = await openGuideShell(getFixture().cluster, namespace);
  return await shell.run('verdict');
}

/** Checks a test that Locust took for good and a threshold fails: scraped, and the Job is Failed. */
async function proveFailed(namespace: Namespace): Promise<Report> {
  assert.equal(await namespace.untilJobEnded(MASTER, END_MS), 'Failed');
  const pod = masterPod(namespace);
  assert.equal(findStatus(pod, MASTER)?.state.terminated?.exitCode, 0, 'Locust is content');
  const { report, exitCode } = readEnd(pod);
  assert.deepEqual([report.outcome, report.verdict, report.exitCode, exitCode], ['scraped', 'failed', 1, 1]);
  assert.equal(findStatus(pod, 'lastscrape')?.restartCount, 0);
  await proveTotalStored(namespace, await readLocustTotal(namespace));
  return report;
}

/** lastscrape in the exporter's place; an image with a line "ENV" for its thresholds would do the same. */
function inPlace(shape: 'regular' | 'native', entries: string): LocustTest & typeof OPTED_OUT {
  return {
    runSeconds: 8,
    autoquitSeconds: 2,
    ...OPTED_OUT,
    shape,
    exporterImage: IMAGES.lastscrape,
    edit: (spec) => withVariable(spec, 'LASTSCRAPE_FAIL_IF', entries),
  };
}
