// lastscrape in the operator's pods on a real Kubernetes, by the policy.

import assert from 'node:assert/strict';
import type { Namespace } from './cluster.ts';
import { type Death, startKiller } from './killer.ts';
import { EXPORTER, MASTER } from './locust-test.ts';
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
  runScenario,
  START_MS,
  untilBack,
  untilContainer,
  untilLogged,
} from './scenario.ts';

/** Registers the scenarios; five of all run side by side. */
export function runPodScenarios(): void {
  for (const shape of ['regular', 'native'] as const) {
    runScenario(
      `${shape}: held until the scrape after the end, and the Job completes`,
      { shape },
      async (namespace) => {
        const { targets } = await proveGoodEnd(namespace);
        const stopped = shape === 'regular' ? [{ target: 'locust-exporter', result: 'stopped' }] : [];
        const asked = targets.map(({ target, result }) => ({ target, result }));
        assert.deepEqual(asked, stopped);
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
        const asked = targets.map(({ target, result }) => `${target} ${result}`);
        assert.deepEqual(asked, stopped);
        // They vanish from the exporter with Locust's end.
        const [ups, users] = await Promise.all(
          ['locust_up', 'locust_users'].map((each) => getFixture().prometheus.readSamples(each, namespace.name)),
        );
        assert.equal(users?.at(-1)?.atSeconds, ups?.at(-1)?.atSeconds, 'the newest locust_users');
      },
    );
  }

  for (const shape of ['native', 'regular'] as const) {
    runScenario(
      `${shape}: a wrong value is in the status of the pod, and does not fail the test`,
      { shape, annotations: { 'lastscrape.dev/ttl': 'soon', 'lastscrape.dev/termination-grace': 'later' } },
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
    'an exporter on another port (locustPods.metricsExporter.port): read and stopped there',
    {
      shape: 'regular',
      annotations: { 'lastscrape.dev/scrapes': '0' },
      edit: (spec) => JSON.parse(JSON.stringify(spec).replaceAll('9646', '9700')),
    },
    async (namespace) => {
      assert.equal(await namespace.untilJobEnded(MASTER, END_MS), 'Complete');
      assert.match(readReport(namespace).report.summary, /locust-exporter stopped/);
    },
  );

  runScenario(
    'deleted while it is held: ends within the grace, and keeps the numbers',
    { shape: 'native', annotations: { 'lastscrape.dev/scrapes': '50', 'lastscrape.dev/ttl': '10m' } },
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
        ...(moment === 'in the hold' ? { annotations: { 'lastscrape.dev/scrapes': '8' } } : { isHeld: true }),
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
}

function proveOneRestart(namespace: Namespace, death: Death): void {
  const status = findStatus(masterPod(namespace), 'lastscrape');
  assert.equal(status?.restartCount, 1);
  assert.equal(status.lastState?.terminated?.exitCode, 137);
  assert.equal(status.lastState?.terminated?.reason, death === 'SIGKILL' ? 'Error' : 'OOMKilled');
}

async function untilMoment(namespace: Namespace, moment: 'while main runs' | 'in the hold'): Promise<void> {
  const msg = moment === 'in the hold' ? 'main ended' : 'main is running';
  await untilContainer(namespace, 'lastscrape', 'running', START_MS);
  await untilLogged(namespace, masterPod(namespace), msg, END_MS);
}
