// lastscrape in the operator's pods on a real Kubernetes: what happens without it, and with the policy
// applied.

import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { readBlock } from '../deploy/guide.ts';
import { until } from '../support/until.ts';
import type { Namespace } from './cluster.ts';
import { type Death, startKiller } from './killer.ts';
import { EXPORTER, MASTER, type PodSpec, withFields } from './locust-test.ts';
import { INTERVAL_ANNOTATION } from './prometheus.ts';
import {
  END_MS,
  endRun,
  findStatus,
  getFixture,
  masterPod,
  proveGoodEnd,
  proveTotalStored,
  readLocustTotal,
  readReport,
  readStoredTotal,
  runScenario,
  START_MS,
  untilBack,
  untilContainer,
  untilLogged,
} from './scenario.ts';

const OPTED_OUT = { 'lastscrape.dev/inject': 'false' };

/** Registers the scenarios; five of all run side by side. */
export function runPodScenarios(): void {
  runScenario(
    'late image: a main that comes after a minute is not taken for never started',
    {
      shape: 'native',
      image: 'localhost/lastscrape-test/late:1',
      edit: (spec) => withFields(spec, MASTER, { image: `localhost/lastscrape-test/late:${getFixture().cluster.run}` }),
    },
    async (namespace) => {
      await untilContainer(namespace, MASTER, 'waiting', START_MS);
      const { pod } = await namespace.untilPod(
        'lastscrape running',
        START_MS,
        (each) => findStatus(each, 'lastscrape')?.state.running !== undefined,
      );
      const startedAt = Date.parse(findStatus(pod, 'lastscrape')?.state.running?.startedAt ?? '');
      await until('a minute with lastscrape, and without main', 120_000, async () =>
        Date.now() - startedAt > 60_000 ? true : undefined,
      );
      assert.ok(findStatus(masterPod(namespace), MASTER)?.state.waiting, 'main is still waiting for its image');
      assert.ok(findStatus(masterPod(namespace), 'lastscrape')?.state.running, 'lastscrape still watches');
      await getFixture().images.loadLocustAs(`localhost/lastscrape-test/late:${getFixture().cluster.run}`);
      await proveGoodEnd(namespace);
    },
  );

  runScenario(
    'without lastscrape a regular exporter keeps the pod for ever',
    {
      shape: 'regular',
      namespaceLabels: OPTED_OUT,
    },
    async (namespace) => {
      const ended = await untilContainer(namespace, MASTER, 'terminated', END_MS);
      assert.deepEqual(
        ended.spec.containers.map(({ name }) => name),
        [MASTER, EXPORTER],
      );
      const endedAt = Date.parse(findStatus(ended, MASTER)?.state.terminated?.finishedAt ?? '');
      // Longer than any hold of the other scenarios.
      await until('a minute after the end', 120_000, async () => (Date.now() - endedAt > 60_000 ? true : undefined));
      const pod = masterPod(namespace);
      assert.equal(pod.status.phase, 'Running');
      assert.ok(findStatus(pod, EXPORTER)?.state.running);
    },
  );

  // The interval is the default of Prometheus. A scrape may by luck come between the last number and the end,
  // so three tests.
  for (const index of [1, 2, 3]) {
    runScenario(
      `without lastscrape a native sidecar is gone before its last scrape ${index}`,
      {
        shape: 'native',
        autoquitSeconds: 1,
        labels: OPTED_OUT,
        annotations: { [INTERVAL_ANNOTATION]: '60s' },
      },
      async (namespace) => {
        assert.equal(await namespace.untilJobEnded(MASTER, END_MS), 'Complete');
        assert.deepEqual(
          masterPod(namespace).spec.containers.map(({ name }) => name),
          [MASTER],
        );
        lost.push((await readStoredTotal(namespace)) !== (await readLocustTotal(namespace)));
        if (lost.length === 3) assert.ok(lost.includes(true), 'at least one of three lost its final numbers');
      },
    );
  }

  for (const shape of ['regular', 'native'] as const) {
    runScenario(
      `${shape}: held until the scrape after the end, and the Job completes`,
      { shape },
      async (namespace) => {
        const { targets } = await proveGoodEnd(namespace);
        const stopped = shape === 'regular' ? [{ target: 'locust-exporter', result: 'stopped' }] : [];
        assert.deepEqual(
          targets.map(({ target, result }) => ({ target, result })),
          stopped,
        );
      },
    );

    runScenario(
      `${shape}: in the exporter's place, nothing else is scraped, and no request can quit it`,
      { shape, annotations: { 'lastscrape.dev/front': 'true' }, isHeld: true },
      async (namespace) => {
        await untilMoment(namespace, 'while main runs');
        const { name } = masterPod(namespace).metadata;
        const quit = `/api/v1/namespaces/${namespace.name}/pods/${name}:9646/proxy/quitquitquit`;
        await assert.rejects(getFixture().cluster.read(quit), /: 404 /);
        await endRun(namespace);
        const { targets } = await proveGoodEnd(namespace);
        const stopped = shape === 'regular' ? ['locust-exporter stopped'] : [];
        assert.deepEqual(
          targets.map(({ target, result }) => `${target} ${result}`),
          stopped,
        );
        // They vanish from the exporter with Locust's end.
        const [ups, users] = await Promise.all(
          ['locust_up', 'locust_users'].map((each) => getFixture().prometheus.readSamples(each, namespace.name)),
        );
        assert.equal(users?.at(-1)?.atSeconds, ups?.at(-1)?.atSeconds, 'the newest locust_users');
      },
    );

    runScenario(
      `${shape}: a test that fails is a Failed Job, and no hanging one`,
      { shape, users: 'failing' },
      async (namespace) => {
        assert.equal(await namespace.untilJobEnded(MASTER, END_MS), 'Failed');
        const pod = masterPod(namespace);
        assert.equal(findStatus(pod, MASTER)?.state.terminated?.exitCode, 1);
        assert.equal(readReport(namespace).report.outcome, 'scraped');
        await proveTotalStored(namespace, await readLocustTotal(namespace));
      },
    );
  }

  runScenario(
    'annotations set the scrapes and the TTL',
    {
      shape: 'native',
      annotations: { 'lastscrape.dev/scrapes': '50', 'lastscrape.dev/ttl': '12s' },
    },
    async (namespace) => {
      assert.equal(await namespace.untilJobEnded(MASTER, END_MS), 'Complete');
      const { report, exitCode } = readReport(namespace);
      assert.equal(report.outcome, 'expired', report.summary);
      assert.match(report.summary, /^Not scraped often enough within 12 s after main ended, /);
      assert.equal(exitCode, 0);
    },
  );

  for (const shape of ['native', 'regular'] as const) {
    runScenario(
      `${shape}: a wrong value is in the status of the pod, and does not fail the test`,
      {
        shape,
        annotations: { 'lastscrape.dev/ttl': 'soon', 'lastscrape.dev/termination-grace': 'later' },
      },
      async (namespace) => {
        const ended = await untilContainer(namespace, 'lastscrape', 'terminated', END_MS);
        const { name } = ended.metadata;
        assert.ok(findStatus(ended, MASTER)?.state.terminated, 'it stayed until main had ended');
        if (shape === 'regular') {
          // Nobody stops the exporter: the guide says how a person does.
          assert.ok(findStatus(ended, EXPORTER)?.state.running);
          const quit = `/api/v1/namespaces/${namespace.name}/pods/${name}:9646/proxy/quitquitquit`;
          // It exits without an answer, and the API server says so.
          await assert.rejects(getFixture().cluster.read(quit), /Cannot read/);
        }
        assert.equal(await namespace.untilJobEnded(MASTER, END_MS), 'Complete');
        const { report, exitCode } = readReport(namespace);
        assert.equal(exitCode, 0);
        assert.deepEqual(report.problems, [
          'Cannot read LASTSCRAPE_TTL: it is "soon"; must be a duration such as "90s", "1m30s" or "500ms"',
          'Cannot read LASTSCRAPE_TERMINATION_GRACE: it is "later"; must be a duration such as "90s", "1m30s" or "500ms"',
        ]);
        const described = await getFixture().cluster.kubectl(['describe', 'pod', name, '--namespace', namespace.name]);
        assert.ok(described.includes('Cannot read LASTSCRAPE_TTL'), described);
      },
    );
  }

  runScenario(
    'a Locust that fails at its start is never seen, and its Job fails',
    {
      shape: 'regular',
      annotations: { 'lastscrape.dev/start-timeout': '15s' },
      edit: (spec) => withFields(spec, MASTER, { args: ['--no-such-option'] }),
    },
    async (namespace) => {
      assert.equal(await namespace.untilJobEnded(MASTER, END_MS), 'Failed');
      const { report, exitCode } = readReport(namespace);
      assert.equal(report.outcome, 'neverStarted', report.summary);
      assert.equal(exitCode, 0);
      assert.deepEqual(
        report.targets.map(({ result }) => result),
        ['stopped'],
      );
    },
  );

  runScenario(
    'deleted while it is held: ends within the grace, and keeps the numbers',
    {
      shape: 'native',
      annotations: { 'lastscrape.dev/scrapes': '50', 'lastscrape.dev/ttl': '10m' },
    },
    async (namespace) => {
      await untilContainer(namespace, MASTER, 'terminated', END_MS);
      const { name } = masterPod(namespace).metadata;
      const total = await readLocustTotal(namespace);
      await untilLogged(namespace, masterPod(namespace), 'main ended', START_MS);
      await getFixture().cluster.kubectl(['delete', 'job', MASTER, '--namespace', namespace.name, '--wait=false']);
      const { pod } = await namespace.untilPod(
        'the pod gone',
        120_000,
        (each, { type }) => type === 'DELETED' && each.metadata.name === name,
      );
      // The kubelet ends by SIGKILL what outlives the grace: 137.
      assert.equal(findStatus(pod, 'lastscrape')?.state.terminated?.exitCode, 0);
      assert.notEqual(findStatus(pod, EXPORTER)?.state.terminated?.exitCode, 137);
      await proveTotalStored(namespace, total);
    },
  );

  const deaths = [
    ['SIGKILL', 'while main runs'],
    ['SIGKILL', 'in the hold'],
    ['out of memory', 'while main runs'],
  ] as const;
  for (const [death, moment] of deaths) {
    runScenario(
      `killed ${moment} (${death}): restart rules bring it back in a pod that never restarts`,
      {
        shape: 'regular',
        ...(moment === 'in the hold' ? { annotations: { 'lastscrape.dev/scrapes': '4' } } : { isHeld: true }),
      },
      async (namespace) => {
        const killer = await startKiller(namespace);
        await untilMoment(namespace, moment);
        await killer.kill(masterPod(namespace), death);
        if (moment === 'while main runs') {
          await untilBack(namespace);
          await endRun(namespace);
        }
        await proveGoodEnd(namespace);
        proveOneRestart(namespace, death);
      },
    );
  }

  runScenario(
    'killed in a pod that restarts on failure: the kubelet brings it back',
    {
      shape: 'regular',
      labels: OPTED_OUT,
      isHeld: true,
      // A container that restarts counts.
      backoffLimit: 6,
      edit: byHand,
    },
    async (namespace) => {
      const killer = await startKiller(namespace);
      await untilMoment(namespace, 'while main runs');
      await killer.kill(masterPod(namespace), 'SIGKILL');
      await untilBack(namespace);
      await endRun(namespace);
      await proveGoodEnd(namespace);
      proveOneRestart(namespace, 'SIGKILL');
    },
  );

  runScenario(
    'Prometheus scrapes the exporter of the master and nothing else',
    { shape: 'native', isHeld: true },
    async (namespace) => {
      const targets = await until('its target', START_MS, async () => {
        const found = await getFixture().prometheus.readTargets(namespace.name);
        return found.length > 0 ? found : undefined;
      });
      // Prometheus may learn of the address before this test does.
      const { pod } = await namespace.untilPod(
        'its address',
        START_MS,
        ({ metadata, status }) => metadata.name === masterPod(namespace).metadata.name && status.podIP !== undefined,
      );
      assert.deepEqual(targets, [
        {
          instance: `${pod.status.podIP}:9646`,
          job: 'locust',
          locust_test: 'checkout-load',
          namespace: namespace.name,
          pod: pod.metadata.name,
        },
      ]);
      await endRun(namespace);
      await proveGoodEnd(namespace);
      await until('no target any more', START_MS, async () =>
        (await getFixture().prometheus.readTargets(namespace.name)).length === 0 ? true : undefined,
      );
    },
  );
}

/** Checks that lastscrape died so, once, and was started again. */
function proveOneRestart(namespace: Namespace, death: Death): void {
  const status = findStatus(masterPod(namespace), 'lastscrape');
  assert.equal(status?.restartCount, 1);
  assert.equal(status.lastState?.terminated?.exitCode, 137);
  assert.equal(status.lastState?.terminated?.reason, death === 'SIGKILL' ? 'Error' : 'OOMKilled');
}

/** Whether each of the three tests without lastscrape lost its final numbers. */
const lost: boolean[] = [];

async function untilMoment(namespace: Namespace, moment: 'while main runs' | 'in the hold'): Promise<void> {
  const msg = moment === 'in the hold' ? 'main ended' : 'main is running';
  await untilContainer(namespace, 'lastscrape', 'running', START_MS);
  await untilLogged(namespace, masterPod(namespace), msg, END_MS);
}

/** The guide's container without restart rules, in a pod with restartPolicy OnFailure. */
function byHand(spec: PodSpec): PodSpec {
  const [{ env, restartPolicy, restartPolicyRules, ...container }] = parse(readBlock('run', 'by hand'));
  return { ...spec, restartPolicy: 'OnFailure', containers: [...spec.containers, container] };
}
