// lastscrape in the place of Locust's exporter on a real Kubernetes: the operator's pods with another image
// of the exporter, and nothing else changed; most in namespaces that opted out of the policy.

import assert from 'node:assert/strict';
import { until } from '../support/until.ts';
import type { Container, Namespace } from './cluster.ts';
import { openGuideShell } from './guide-shell.ts';
import { IMAGES } from './images.ts';
import { startKiller } from './killer.ts';
import { EXPORTER, MASTER, withFields, withVariable } from './locust-test.ts';
import {
  END_MS,
  endRun,
  findFirstEnd,
  findStatus,
  getFixture,
  masterPod,
  proveTotalStored,
  readEnd,
  readLocustTotal,
  readStoredTotal,
  runScenario,
  START_MS,
  untilBack,
  untilContainer,
  untilLogged,
} from './scenario.ts';

const OPTED_OUT = { namespaceLabels: { 'lastscrape.dev/inject': 'false' } };
/** A short test, with the chart's one value. */
const SHORT = { runSeconds: 8, autoquitSeconds: 2, exporterImage: IMAGES.lastscrape } as const;
/** The operator's limits of the exporter. */
const LIMIT_MIB = 128;

/** Registers the scenarios; five of all run side by side. */
export function runInPlaceScenarios(): void {
  for (const shape of ['regular-1.1.1', 'regular', 'native'] as const) {
    runScenario(
      `in place, ${shape}: with the image alone the Job completes, and the final numbers are stored`,
      { ...SHORT, ...OPTED_OUT, shape, isHeld: true },
      async (namespace) => {
        const running = await untilContainer(namespace, EXPORTER, 'running', START_MS);
        await untilLogged(namespace, running, 'main is running', START_MS, EXPORTER);
        const { name } = masterPod(namespace).metadata;
        const quit = `/api/v1/namespaces/${namespace.name}/pods/${name}:9646/proxy/quitquitquit`;
        await assert.rejects(getFixture().cluster.read(quit), /: 403 /, 'it cannot be quit over the network');
        await endRun(namespace);
        await proveInPlace(namespace, 'Complete');
        using shell = await openGuideShell(getFixture().cluster, namespace);
        assert.equal(JSON.parse(await shell.run('exporter report')).outcome, 'scraped', "the guide's command");
        const median = 'locust_requests_response_time_percentile{method="",name="Aggregated",quantile="0.5"}';
        assert.equal((await getFixture().prometheus.readSamples(median, namespace.name)).at(-1)?.value, 1);
      },
    );
  }

  for (const shape of ['regular', 'native'] as const) {
    runScenario(
      `in place, ${shape}: a test that fails is a Failed Job with its numbers stored`,
      { ...SHORT, ...OPTED_OUT, shape, users: 'failing' },
      async (namespace) => {
        await proveInPlace(namespace, 'Failed');
        assert.equal(findStatus(masterPod(namespace), MASTER)?.state.terminated?.exitCode, 1);
      },
    );

    runScenario(
      `in place, ${shape}: deleted in mid-run it keeps what Locust showed last, within the grace`,
      { ...SHORT, ...OPTED_OUT, shape, runSeconds: 120 },
      async (namespace) => {
        await untilStoredSome(namespace);
        const { name } = masterPod(namespace).metadata;
        await getFixture().cluster.kubectl(['delete', 'job', MASTER, '--namespace', namespace.name, '--wait=false']);
        const { pod } = await namespace.untilPod(
          'the pod gone',
          120_000,
          (each, { type }) => type === 'DELETED' && each.metadata.name === name,
        );
        const { report, exitCode } = readEnd(pod, EXPORTER);
        // The kubelet ends by SIGKILL what outlives the grace: 137.
        assert.equal(exitCode, 0);
        assert.equal(report.outcome, 'scraped', report.summary);
        await proveStored(namespace, report.final.requests);
      },
    );

    runScenario(
      `in place, ${shape}: under a name that the policy does not know both are there, and neither is in the other's way`,
      { ...SHORT, shape, exporterImage: IMAGES.renamed },
      async (namespace) => {
        await proveBoth(namespace);
      },
    );
  }

  runScenario(
    'in place, regular: a bad locustfile is a Failed Job when the time to start is over',
    {
      ...SHORT,
      ...OPTED_OUT,
      shape: 'regular',
      more: 'this is no Python',
      // As an image with a line "ENV" for it would have it: the chart sets no variables of the exporter.
      edit: (spec) => withVariable(spec, 'LASTSCRAPE_START_TIMEOUT', '15s'),
    },
    async (namespace) => {
      assert.equal(await namespace.untilJobEnded(MASTER, END_MS), 'Failed');
      const { report, exitCode } = readEnd(masterPod(namespace), EXPORTER);
      assert.equal(report.outcome, 'neverStarted', report.summary);
      assert.equal(exitCode, 0);
    },
  );

  runScenario(
    'in place, native: a bad locustfile is a Failed Job at once',
    { ...SHORT, ...OPTED_OUT, shape: 'native', more: 'this is no Python' },
    async (namespace) => {
      assert.equal(await namespace.untilJobEnded(MASTER, END_MS), 'Failed');
      const { report } = readEnd(masterPod(namespace), EXPORTER);
      assert.deepEqual([report.outcome, report.heldSeconds], ['neverStarted', null], report.summary);
    },
  );

  runScenario(
    'in place, native: killed (out of memory) it comes back, and the final numbers are stored',
    { ...SHORT, ...OPTED_OUT, shape: 'native', isHeld: true },
    async (namespace) => {
      const killer = await startKiller(namespace);
      await untilStoredSome(namespace);
      await killer.kill(masterPod(namespace), 'out of memory', LIMIT_MIB);
      await untilBack(namespace, EXPORTER);
      await endRun(namespace);
      await proveInPlace(namespace, 'Complete');
      const status = findStatus(masterPod(namespace), EXPORTER);
      assert.equal(status?.restartCount, 1);
      assert.equal(findFirstEnd(namespace, EXPORTER)?.reason, 'OOMKilled');
    },
  );

  runScenario(
    'in place, regular: an image that comes after Locust has started is early enough',
    {
      ...SHORT,
      ...OPTED_OUT,
      shape: 'regular',
      exporterImage: LATE,
      edit: (spec) => withFields(spec, EXPORTER, { image: lateName() }),
    },
    async (namespace) => {
      // A pod that is not Ready is in no Service: without it no worker arrives, and the test does not begin.
      await untilContainer(namespace, MASTER, 'running', START_MS);
      assert.ok(findStatus(masterPod(namespace), EXPORTER)?.state.waiting, 'its image is not there yet');
      await getFixture().images.loadLastscrapeAs(lateName());
      await proveInPlace(namespace, 'Complete');
    },
  );

  runScenario(
    'in place, native: Locust whose image comes late is waited for',
    {
      ...SHORT,
      ...OPTED_OUT,
      shape: 'native',
      image: LATE,
      edit: (spec) => withFields(spec, MASTER, { image: lateName('locust') }),
    },
    async (namespace) => {
      const running = await untilContainer(namespace, EXPORTER, 'running', START_MS);
      assert.ok(findStatus(running, MASTER)?.state.waiting, 'Locust is not there yet');
      // More than the grace after the start: it is not what is waited for.
      const startedAt = Date.parse(findStatus(running, EXPORTER)?.state.running?.startedAt ?? '');
      await until('half a minute without main', 120_000, async () =>
        Date.now() - startedAt > 30_000 ? true : undefined,
      );
      await getFixture().images.loadLocustAs(lateName('locust'));
      await proveInPlace(namespace, 'Complete');
    },
  );

  runScenario(
    'in place, regular: with --headless there is no page, and the pod still completes',
    { ...SHORT, ...OPTED_OUT, shape: 'regular', args: ['--headless'] },
    async (namespace) => {
      assert.equal(await namespace.untilJobEnded(MASTER, END_MS), 'Complete');
      const { report, exitCode } = readEnd(masterPod(namespace), EXPORTER);
      assert.equal(report.outcome, 'scraped', report.summary);
      assert.equal(exitCode, 0);
      const ups = await getFixture().prometheus.readSamples('locust_up', namespace.name);
      assert.deepEqual(new Set(ups.map(({ value }) => value)), new Set([0]));
      assert.equal(await readStoredTotal(namespace), undefined);
    },
  );
}

const LATE = 'localhost/lastscrape-test/late:1';

/** An image that no other run has loaded. */
function lateName(what = 'lastscrape'): string {
  return `localhost/lastscrape-test/late-${what}:${getFixture().cluster.run}`;
}

/** Checks an operator's pod with another image alone: the printed total is stored, Locust ended first. */
async function proveInPlace(namespace: Namespace, condition: 'Complete' | 'Failed'): Promise<void> {
  assert.equal(await namespace.untilJobEnded(MASTER, END_MS), condition);
  const pod = masterPod(namespace);
  const { containers, initContainers = [] } = pod.spec;
  const native = initContainers.map(({ name }) => name);
  assert.deepEqual([...containers.map(({ name }) => name), ...native], [MASTER, EXPORTER]);
  const own = [...containers, ...initContainers].at(-1);
  const names = own?.env?.map(({ name }) => name);
  assert.deepEqual(names, ['LOCUST_EXPORTER_URI', 'LOCUST_EXPORTER_WEB_LISTEN_ADDRESS']);
  assert.deepEqual(readLimits(own), { cpu: '250m', memory: `${LIMIT_MIB}Mi` });
  const { report, exitCode } = readEnd(pod, EXPORTER);
  assert.equal(report.outcome, 'scraped', report.summary);
  assert.equal(exitCode, 0);
  const total = await readLocustTotal(namespace);
  assert.equal(report.final.requests, total);
  await proveStored(namespace, total);
  const endedAt = findStatus(pod, MASTER)?.state.terminated?.finishedAt ?? 'never';
  assert.ok((findStatus(pod, EXPORTER)?.state.terminated?.finishedAt ?? '') >= endedAt, 'held');
}

/** Checks a pod with lastscrape in the exporter's place and the policy's as well. */
async function proveBoth(namespace: Namespace): Promise<void> {
  assert.equal(await namespace.untilJobEnded(MASTER, END_MS), 'Complete');
  const pod = masterPod(namespace);
  assert.equal(pod.spec.containers.at(-1)?.name, 'lastscrape');
  const { report, exitCode } = readEnd(pod);
  // Where the machine is busy the other may be gone before this one has seen twice that main ended.
  assert.ok(['released', 'exporterGone'].includes(report.outcome) && exitCode === 0, report.summary);
  await proveStored(namespace, await readLocustTotal(namespace));
}

async function proveStored(namespace: Namespace, total: number): Promise<void> {
  assert.ok(total > 0, 'a run without requests proves nothing');
  await proveTotalStored(namespace, total);
}

async function untilStoredSome(namespace: Namespace): Promise<void> {
  await untilContainer(namespace, EXPORTER, 'running', START_MS);
  await until(
    'a total in Prometheus',
    START_MS,
    async () => ((await readStoredTotal(namespace)) ?? 0) > 0 || undefined,
  );
}

function readLimits(container: Container | undefined): object {
  const resources = container?.['resources'] as { readonly limits?: Readonly<Record<string, string>> } | undefined;
  return { cpu: resources?.limits?.['cpu'], memory: resources?.limits?.['memory'] };
}
