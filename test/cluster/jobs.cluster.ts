// Jobs with metrics of their own on a real Kubernetes and Prometheus: lost without lastscrape, stored with
// it, by every way to add it.

import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parse, stringify } from 'yaml';
import { VERSION } from '../../src/base/version.ts';
import { makeFolder } from '../support/folder.ts';
import { readSettled, until } from '../support/until.ts';
import type { Container, Manifest, Namespace } from './cluster.ts';
import { runShell } from './cluster.ts';
import {
  buildCountingJob,
  buildTask,
  JOB,
  jobPod,
  METRIC,
  proveFinal,
  proveHeld,
  readFinal,
  readStored,
  SNAPSHOT,
  untilJobContainer,
  untilStored,
} from './counting-job.ts';
import { openGuideShell } from './guide-shell.ts';
import { IMAGES } from './images.ts';
import type { PodSpec } from './locust-test.ts';
import { ANNOTATION_JOB, FRONT_JOB, INTERVAL_ANNOTATION, startClusterPrometheus } from './prometheus.ts';
import { END_MS, findStatus, getFixture, readEnd, runScenarioIn, START_MS } from './scenario.ts';

const DEPLOY = join(import.meta.dirname, '../../deploy');

const ANNOTATED = { 'prometheus.io/scrape': 'true', 'prometheus.io/port': '8000' };

/** How many Python jobs there are with the hook, and as many without. */
const PYTHON_COUNT = 20;

export function runJobsScenarios(): void {
  runScenarioIn('jobs: without lastscrape the final numbers are lost', async (namespace) => {
    await namespace.apply(buildCountingJob({ labels: {}, annotations: ANNOTATED }));
    assert.equal(await namespace.untilJobEnded(JOB, END_MS), 'Complete');
    const pod = jobPod(namespace);
    assert.equal(pod.spec.initContainers, undefined);
    const { final } = await readFinal(namespace, pod);
    assert.ok(((await readStored(namespace, pod, ANNOTATION_JOB)) ?? 0) < final, 'the last change is not there');
  });

  runScenarioIn('jobs: by policy, the label alone', async (namespace) => {
    using shell = await openGuideShell(getFixture().cluster, namespace);
    await namespace.apply(buildCountingJob({}));
    await proveLastRead(namespace);
    assert.equal(JSON.parse(await shell.run('jobs report')).outcome, 'scraped');
    // kubectl warns on its stderr.
    assert.equal(await shell.run('jobs warning'), 'pod/try-lastscrape created (server dry run)\n');
  });

  runScenarioIn('jobs: by policy, a scrape by annotations moves over to the front', async (namespace) => {
    await namespace.apply(buildCountingJob({ annotations: ANNOTATED, portName: 'http', env: SNAPSHOT }));
    assert.equal(await namespace.untilJobEnded(JOB, END_MS), 'Complete');
    const pod = jobPod(namespace);
    proveHeld(pod);
    const { final } = await readFinal(namespace, pod);
    await untilStored(namespace, pod, final, ANNOTATION_JOB);
  });

  runScenarioIn(
    'jobs: by policy, failed by its own metrics: the Job is Complete, its report says it',
    async (namespace) => {
      using shell = await openGuideShell(getFixture().cluster, namespace);
      const atTheEnd = `${METRIC} > 1000000`;
      const annotations = { 'lastscrape.dev/fail-if': `${METRIC} <= 0, ${atTheEnd}` };
      await namespace.apply(buildCountingJob({ annotations, env: SNAPSHOT }));
      // A native sidecar fails no Job: a pipeline must read the report.
      assert.equal(await namespace.untilJobEnded(JOB, END_MS), 'Complete');
      const pod = jobPod(namespace);
      assert.equal(findStatus(pod, 'main')?.state.terminated?.exitCode, 0, 'main is content');
      const { report, exitCode } = readEnd(pod);
      assert.deepEqual([report.outcome, report.verdict, report.exitCode, exitCode], ['scraped', 'failed', 1, 0]);
      const { final } = await readFinal(namespace, pod);
      assert.deepEqual(report.failed, { entry: atTheEnd, seen: final });
      assert.equal(findStatus(pod, 'lastscrape')?.restartCount, 0);
      await untilStored(namespace, pod, final);
      const { verdict, failed } = JSON.parse(await shell.run('jobs report'));
      assert.deepEqual([verdict, failed], ['failed', report.failed]);
    },
  );

  runScenarioIn('jobs: by policy, a CronJob at 30 s', async (namespace) => {
    const annotations = { [INTERVAL_ANNOTATION]: '30s' };
    const { spec } = buildCountingJob({ annotations, env: { ...SNAPSHOT, JOB_MS: '35000' } });
    await namespace.apply({
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name: JOB },
      spec: { schedule: '* * * * *', concurrencyPolicy: 'Forbid', jobTemplate: { spec } },
    });
    const pod = await untilJobContainer(namespace, 'lastscrape', 'terminated');
    const { name } = pod.metadata;
    proveHeld(pod);
    const { final } = await readFinal(namespace, pod);
    await untilStored(namespace, pod, final);
    await namespace.untilPod(
      'its end',
      END_MS,
      ({ metadata, status }) => metadata.name === name && status.phase === 'Succeeded',
    );
  });

  runScenarioIn('jobs: by the kustomize component', async (namespace) => {
    const annotations = { 'lastscrape.dev/metrics-url': 'http://localhost:8000/metrics' };
    const job = buildCountingJob({ labels: {}, annotations, env: SNAPSHOT });
    const built = await buildWithComponent(job);
    await namespace.apply(built);
    await proveFinal(namespace);
  });

  runScenarioIn('jobs: by hand', async (namespace) => {
    const { spec } = parse(readFileSync(join(DEPLOY, 'job/front/job.yaml'), 'utf8')).spec.template;
    const [lastscrape] = spec.initContainers;
    assert.equal(lastscrape.image, `registry.example.com/lastscrape:${VERSION}`);
    const edit = (own: PodSpec) => ({
      ...own,
      terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds,
      initContainers: [{ ...lastscrape, image: IMAGES.lastscrape }],
    });
    await namespace.apply(buildCountingJob({ labels: {}, env: SNAPSHOT, edit }));
    await proveFinal(namespace);
  });

  for (const [what, annotations, lostLeast, lostMost] of [
    ['the hook: the final number of each', { 'lastscrape.dev/hook': 'python' }, 0, 0],
    // A poll every 250 ms may meet the last milliseconds, more so on a busy node.
    ['the label alone: of hardly any', {}, PYTHON_COUNT / 2, PYTHON_COUNT],
  ] as const) {
    runScenarioIn(`jobs: by policy, ${PYTHON_COUNT} Python jobs with ${what}`, async (namespace) => {
      const job = { parallelism: 5, completions: PYTHON_COUNT };
      const edit = ({ containers: [main, ...others], ...spec }: PodSpec) => ({
        ...spec,
        containers: [
          { ...(main as Container), ...buildTask({}), securityContext: { readOnlyRootFilesystem: true } },
          ...others,
        ],
      });
      await namespace.apply(buildCountingJob({ annotations, job, edit }));
      assert.equal(await namespace.untilJobEnded(JOB, END_MS), 'Complete');
      const names = [...new Set(namespace.events.map(({ pod }) => pod.metadata.name))];
      assert.equal(names.length, PYTHON_COUNT);
      const read = async (name: string) => {
        const pod = jobPod(namespace, name);
        const { final } = await readFinal(namespace, pod);
        const stored = await readStored(namespace, pod);
        // Of one that is lost: what Prometheus says of its scrapes, and lastscrape of its own.
        const selector = `up{job="${FRONT_JOB}",pod="${name}"}`;
        const ups = await getFixture().prometheus.readSamples(selector, namespace.name);
        return { final, stored, ups, log: await namespace.readLog(name, 'lastscrape') };
      };
      const lost = await until('the final numbers', START_MS, async () => {
        const all = (await Promise.all(names.map(read))).filter(({ final, stored }) => final !== stored);
        if (all.length <= lostMost) return all;
        throw new Error(JSON.stringify(all, null, 1));
      });
      assert.ok(lost.length >= lostLeast, JSON.stringify(lost, null, 1));
    });
  }

  runScenarioIn('jobs: two Prometheus, and both have the final number', async (namespace) => {
    const second = await startClusterPrometheus(getFixture().cluster, 'monitoring-2', { only: [namespace.name] });
    // Long enough for both to have scraped it.
    await namespace.apply(buildCountingJob({ env: { ...SNAPSHOT, JOB_MS: '30000' } }));
    const pod = await proveFinal(namespace);
    const { scrapesWanted } = readEnd(pod).report;
    assert.equal(scrapesWanted, 2);
    const { final } = await readFinal(namespace, pod);
    const read = () => second.readSamples(`${METRIC}{job="${FRONT_JOB}"}`, namespace.name);
    assert.equal(await readSettled(final, START_MS, async () => (await read()).at(-1)?.value), final);
  });

  runScenarioIn('jobs: an earlier native sidecar is the source, and lives in the hold', async (namespace) => {
    const main = {
      name: 'main',
      image: IMAGES.busybox,
      args: [
        '-c',
        'for batch in $(seq 8); do until echo "job_worked_total:100|c" | nc -w 30 localhost 9125; do sleep 1; done; sleep 1; done; ' +
          'echo \'{"final":800,"shown":0}\'',
      ],
    };
    const statsd = {
      name: 'statsd-exporter',
      image: IMAGES.statsdExporter,
      restartPolicy: 'Always',
      ports: [{ name: 'metrics', containerPort: 9102 }],
    };
    await namespace.apply(
      buildCountingJob({ edit: (spec) => ({ ...spec, initContainers: [statsd], containers: [main] }) }),
    );
    const pod = await proveFinal(namespace);
    const ends = ['lastscrape', 'statsd-exporter'].map((name) => findStatus(pod, name)?.state.terminated?.finishedAt);
    assert.ok((ends[0] ?? '') <= (ends[1] ?? ''), `lastscrape first: ${ends}`);
    const ups = await getFixture().prometheus.readSamples(`lastscrape_source_up{job="${FRONT_JOB}"}`, namespace.name);
    assert.equal(ups.at(-1)?.value, 1, 'the source answered in the hold');
  });

  for (const place of ['before', 'behind'] as const) {
    runScenarioIn(`jobs: a mesh as a native sidecar ${place} lastscrape, by hand`, async (namespace) => {
      const mesh = { name: 'mesh', image: IMAGES.mesh, args: ['istio'], restartPolicy: 'Always' };
      const annotations = { 'lastscrape.dev/metrics-url': 'http://localhost:8000/metrics' };
      const job = await buildWithComponent(buildCountingJob({ labels: {}, annotations, env: SNAPSHOT }));
      const { initContainers = [], ...rest } = job.spec.template.spec;
      const ordered = place === 'before' ? [mesh, ...initContainers] : [...initContainers, mesh];
      job.spec.template.spec = { ...rest, initContainers: ordered };
      await namespace.apply(job);
      assert.equal(await namespace.untilJobEnded(JOB, END_MS), 'Complete');
      const pod = jobPod(namespace);
      const [own = '', foreign = ''] = ['lastscrape', 'mesh'].map(
        (name) => findStatus(pod, name)?.state.terminated?.finishedAt,
      );
      // Behind lastscrape it is gone before the hold begins, and with a real one so is the network.
      if (place === 'before') assert.ok(own <= foreign, `the mesh ended at ${foreign}, lastscrape at ${own}`);
      else
        assert.ok(Date.parse(foreign) <= Date.parse(readEnd(pod).report.mainEndedAt), `the mesh ended at ${foreign}`);
    });
  }
}

/** Checks a Job that requests no snapshot: what lastscrape read last is stored. @returns its pod */
async function proveLastRead(namespace: Namespace): Promise<void> {
  assert.equal(await namespace.untilJobEnded(JOB, END_MS), 'Complete');
  const pod = jobPod(namespace);
  proveHeld(pod);
  const { final, shown } = await readFinal(namespace, pod);
  assert.ok(shown > 0 && shown < final, `shown ${shown} of ${final}`);
  await untilStored(namespace, pod, shown);
  const main = findStatus(pod, 'main')?.state.terminated;
  assert.equal(main?.exitCode, 0);
}

/** The Job as a kustomization with deploy/job/front makes it. */
async function buildWithComponent(job: Manifest): Promise<ReturnType<typeof buildCountingJob>> {
  const folder = makeFolder();
  cpSync(join(DEPLOY, 'job/front'), join(folder, 'front'), { recursive: true });
  writeFileSync(join(folder, 'job.yaml'), stringify(job));
  writeFileSync(
    join(folder, 'kustomization.yaml'),
    stringify({ resources: ['job.yaml'], components: [relative(folder, join(folder, 'front'))] }),
  );
  return parse(await runShell('kubectl kustomize .', folder));
}
