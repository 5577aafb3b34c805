// How a labelled Job ends on a real Kubernetes other than well: main fails, is deleted, killed, out of time;
// lastscrape is killed. And what the policy does not touch, with what kubectl says of it.

import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { normalise, type Pod } from '../deploy/injected.ts';
import {
  JOBS_GOLDEN,
  JOBS_UNTOUCHED,
  JOBS_UNTOUCHED_NAMES,
  readJobGolden,
  readJobPod,
} from '../deploy/injected-jobs.ts';
import { until } from '../support/until.ts';
import { type Manifest, runShell } from './cluster.ts';
import {
  buildCountingJob,
  buildRestartedJob,
  type CountingJob,
  JOB,
  jobPod,
  LABELLED,
  METRIC,
  proveFinal,
  readFinal,
  readStored,
  SNAPSHOT,
  untilJobContainer,
  untilStored,
} from './counting-job.ts';
import { startKiller } from './killer.ts';
import type { PodSpec } from './locust-test.ts';
import {
  asServed,
  END_MS,
  evict,
  findFirstEnd,
  findStatus,
  getFixture,
  readEnd,
  requirePolicies,
  runLabelledScenario,
  runScenarioIn,
  START_MS,
  untilLogged,
} from './scenario.ts';

export function runJobsEndingScenarios(): void {
  runScenarioIn('jobs: a main that fails is a Failed Job, and its numbers are stored', async (namespace) => {
    await namespace.apply(buildCountingJob({ env: { ...SNAPSHOT, JOB_EXIT: '3' } }));
    const pod = await proveFinal(namespace, 'Failed');
    assert.equal(findStatus(pod, 'main')?.state.terminated?.exitCode, 3);
  });

  runScenarioIn(
    "jobs: a podFailurePolicy sees main's exit code alone, where its numbers fail as well",
    async (namespace) => {
      const annotations = { 'lastscrape.dev/fail-if': `${METRIC} > 0`, 'lastscrape.dev/ttl': '1s' };
      const rules = [{ action: 'FailJob', onExitCodes: { operator: 'NotIn', values: [3] } }];
      const env = { JOB_MS: '3000', JOB_EXIT: '3' };
      await namespace.apply(
        buildCountingJob({ annotations, env, job: { backoffLimit: 0, podFailurePolicy: { rules } } }),
      );
      assert.equal(await namespace.untilJobEnded(JOB, END_MS), 'Failed');
      const { report, exitCode } = readEnd(jobPod(namespace));
      assert.deepEqual([report.verdict, report.exitCode, exitCode], ['failed', 1, 0]);
      const job = await getFixture().cluster.read(`/apis/batch/v1/namespaces/${namespace.name}/jobs/${JOB}`);
      assert.equal(JSON.parse(job).status.conditions[0].reason, 'BackoffLimitExceeded');
    },
  );

  for (const how of ['deleted', 'evicted', 'out of time'] as const) {
    runScenarioIn(`jobs: ${how} while main runs, and its last numbers are stored`, async (namespace) => {
      const env = { ...SNAPSHOT, JOB_MS: '0' };
      await namespace.apply(buildCountingJob({ env }));
      const { metadata } = await untilJobContainer(namespace, 'main', 'running');
      // So that Prometheus knows the pod.
      await until('a first sample', START_MS, async () => ((await readFirst(namespace.name)) > 0 ? true : undefined));
      const { kubectl } = getFixture().cluster;
      if (how === 'deleted') await kubectl(['delete', 'job', JOB, '--namespace', namespace.name, '--wait=false']);
      if (how === 'evicted') await evict(namespace.name, metadata.name);
      if (how === 'out of time') {
        const patch = JSON.stringify({ spec: { activeDeadlineSeconds: 1 } });
        await kubectl(['patch', 'job', JOB, '--namespace', namespace.name, '--patch', patch]);
      }
      const { pod } = await namespace.untilPod('the pod gone', END_MS, (_, { type }) => type === 'DELETED');
      assert.equal(findStatus(pod, 'main')?.state.terminated?.exitCode, 143);
      assert.equal(findStatus(pod, 'lastscrape')?.state.terminated?.exitCode, 0);
      // What main adds after its SIGTERM; its log goes with the pod.
      await until('the last number in Prometheus', START_MS, async () => {
        const stored = (await readStored(namespace, pod)) ?? 0;
        if (stored > 1_000_000) return true;
        throw new Error(`it holds ${stored}`);
      });
    });
  }

  runScenarioIn('jobs: a held pod is evicted, and held on', async (namespace) => {
    await namespace.apply(
      buildCountingJob({
        annotations: { 'lastscrape.dev/scrapes': '50', 'lastscrape.dev/ttl': '30s' },
        env: SNAPSHOT,
        // Else the pod counts as failed at once, though main has succeeded.
        job: { backoffLimit: 0, podReplacementPolicy: 'Failed' },
      }),
    );
    const held = await untilJobContainer(namespace, 'main', 'terminated');
    await untilLogged(namespace, held, 'main ended', START_MS);
    const { final } = await readFinal(namespace, held);
    await evict(namespace.name, held.metadata.name);
    const { pod } = await namespace.untilPod('the pod gone', END_MS, (_, { type }) => type === 'DELETED');
    const { report, exitCode } = readEnd(pod);
    // The kubelet has sent its signal already, and sends no other.
    assert.deepEqual([exitCode, report.outcome], [0, 'expired'], report.summary);
    assert.equal(await namespace.untilJobEnded(JOB, END_MS), 'Complete');
    await untilStored(namespace, pod, final);
  });

  runScenarioIn('jobs: main is out of memory, and what was read last is stored', async (namespace) => {
    const edit = (spec: PodSpec): PodSpec => ({
      ...spec,
      containers: spec.containers.map((each) => ({ ...each, resources: { limits: { memory: '128Mi' } } })),
    });
    await namespace.apply(buildCountingJob({ env: { JOB_EAT: 'true' }, edit }));
    const pod = await proveFinal(namespace, 'Failed');
    assert.equal(findStatus(pod, 'main')?.state.terminated?.reason, 'OOMKilled');
  });

  for (const death of ['SIGKILL', 'out of memory'] as const) {
    runScenarioIn(`jobs: lastscrape killed while main runs (${death}) comes back`, async (namespace) => {
      const killer = await startKiller(namespace);
      await namespace.apply(buildCountingJob({ env: { ...SNAPSHOT, JOB_MS: '60000' } }));
      await killer.kill(await untilJobContainer(namespace, 'main', 'running'), death);
      const pod = await proveFinal(namespace);
      assert.equal(findStatus(pod, 'lastscrape')?.restartCount, 1);
    });
  }

  for (const death of ['SIGKILL', 'out of memory'] as const) {
    runScenarioIn(`jobs: lastscrape killed in the hold (${death}), and the Job completes`, async (namespace) => {
      const killer = await startKiller(namespace);
      await namespace.apply(buildCountingJob({ annotations: { 'lastscrape.dev/scrapes': '50' } }));
      const pod = await untilJobContainer(namespace, 'main', 'terminated');
      await untilLogged(namespace, pod, 'main ended', START_MS);
      await killer.kill(pod, death);
      assert.equal(await namespace.untilJobEnded(JOB, END_MS), 'Complete');
      const { state, lastState } = findStatus(jobPod(namespace), 'lastscrape') ?? {};
      assert.ok([state?.terminated?.exitCode, lastState?.terminated?.exitCode].includes(137), 'it was killed');
    });
  }

  runScenarioIn('jobs: a main that fails twice and is started again keeps its lastscrape', async (namespace) => {
    const edit = (spec: PodSpec): PodSpec => ({
      ...spec,
      restartPolicy: 'OnFailure',
      containers: spec.containers.map((each) => ({ ...each, volumeMounts: [{ name: 'runs', mountPath: '/runs' }] })),
      volumes: [{ name: 'runs', emptyDir: {} }],
    });
    const env = { ...SNAPSHOT, JOB_MS: '3000', JOB_FAIL_FILE: '/runs/count', JOB_FAILURES: '2' };
    await namespace.apply(buildCountingJob({ env, edit, job: { backoffLimit: 6 } }));
    const pod = await proveFinal(namespace);
    assert.equal(findStatus(pod, 'main')?.restartCount, 2);
    assert.equal(findStatus(pod, 'lastscrape')?.restartCount, 0);
  });

  runScenarioIn('jobs: main is restarted by a rule of its own, and lastscrape goes on', async (namespace) => {
    await namespace.apply(buildRestartedJob('Restart'));
    const pod = await proveFinal(namespace);
    assert.deepEqual(
      ['main', 'lastscrape'].map((name) => findStatus(pod, name)?.restartCount),
      [1, 0],
    );
  });

  runScenarioIn(
    'jobs: all containers are restarted in place: the hold of that run is cut off, and its report is gone',
    async (namespace) => {
      await namespace.apply(buildRestartedJob('RestartAllContainers'));
      const pod = await proveFinal(namespace);
      assert.deepEqual(
        ['main', 'lastscrape'].map((name) => findStatus(pod, name)?.restartCount),
        [1, 1],
      );
      // The kubelet's words (pkg/kubelet/kubelet_pods.go, 1.36.3): it has removed the container with its message and log.
      const before = findFirstEnd(namespace, 'lastscrape');
      assert.deepEqual([before?.exitCode, before?.reason], [137, 'RestartingAllContainers'], JSON.stringify(before));
    },
  );

  runLabelledScenario(
    'jobs: nothing in a namespace that opted out',
    { 'lastscrape.dev/inject': 'false' },
    async (namespace) => {
      const pod = readJobPod('annotated');
      assert.deepEqual(normalise((await namespace.tryPod(pod)).pod), normalise(pod));
    },
  );

  runScenarioIn('jobs: the API server makes of every pod what the golden files say', async (namespace) => {
    const wanted = [
      ...JOBS_GOLDEN.map((name) => [name, readJobPod(name), readJobGolden(name)] as const),
      ...JOBS_UNTOUCHED_NAMES.map((name) => [name, readJobPod(name), normalise(readJobPod(name))] as const),
    ];
    const wrong: string[] = [];
    // Resources of a pod came with 1.34; before, the server drops them.
    const isKnown = (name: string) => name !== 'pod-resources' || getFixture().minor >= 34;
    for (const [name, pod, golden] of wanted.filter(([name]) => isKnown(name))) {
      if (!isDeepStrictEqual(normalise((await namespace.tryPod(pod)).pod), asServed(golden))) wrong.push(name);
    }
    assert.deepEqual(wrong, []);
    for (const name of JOBS_UNTOUCHED_NAMES.filter(isKnown)) {
      const reason = JOBS_UNTOUCHED[name];
      const warnings = await readWarnings(namespace.name, readJobPod(name));
      assert.equal(warnings.length, reason === null ? 0 : 1, `${name}: ${warnings}`);
      assert.ok(reason === null || warnings[0]?.includes(`lastscrape is not added: ${reason}`), `${name}: ${warnings}`);
    }
  });

  runScenarioIn('jobs: what is applied is warned of on a Job and a CronJob as well', async (namespace) => {
    requirePolicies();
    const none = buildCountingJob({ portName: 'http' });
    const cron = {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name: JOB },
      spec: { schedule: '0 0 1 1 *', jobTemplate: { spec: none.spec } },
    };
    for (const manifest of [none, cron]) {
      const [warning = '', ...others] = await readWarnings(namespace.name, manifest);
      assert.deepEqual(others, []);
      assert.match(warning, /lastscrape is not added: nothing says where the metrics are; /);
    }
    const pushed = { 'lastscrape.dev/pushgateway': 'gateway.a.svc:9091' };
    const deadline = { activeDeadlineSeconds: 90 };
    const tooShort = /activeDeadlineSeconds: 90 s; after main the pod may be held for 90 s, /;
    const rows: readonly (readonly [annotations: Record<string, string>, expected: RegExp, more?: CountingJob])[] = [
      [{}, tooShort, { job: deadline }],
      // A pod's own is lengthened.
      [{}, /^$/, { edit: (spec) => ({ ...spec, ...deadline }) }],
      [{ 'lastscrape.dev/ttl': '89s' }, /^$/, { job: deadline }],
      [{ 'lastscrape.dev/scrapes': '0' }, /^$/, { job: deadline }],
      [{ 'lastscrape.dev/hand-over': 'http://keeper' }, /^$/, { job: deadline }],
      [{ 'lastscrape.dev/done-when': 'port:1' }, /lastscrape.dev\/done-when: does nothing with the label/],
      [
        { 'lastscrape.dev/hook': 'ruby' },
        /lastscrape.dev\/hook: ruby is no hook, and nothing would be held; must be python/,
      ],
      [
        { ...pushed, 'lastscrape.dev/push': 'pushgateway+http://gateway.a.svc:9091' },
        /lastscrape.dev\/push: this name leads to lastscrape itself/,
      ],
      [{ ...pushed, 'lastscrape.dev/push': 'pushgateway+http://gateway.a:9091' }, /^$/],
    ];
    for (const [annotations, expected, more = {}] of rows) {
      const [useless = ''] = await readWarnings(namespace.name, buildCountingJob({ annotations, ...more }));
      assert.match(useless, expected);
    }
    const { spec, ...job } = buildCountingJob({ labels: {} });
    const labelled = { metadata: { name: JOB, labels: LABELLED }, spec };
    for (const [misplaced, where] of [
      [{ ...job, ...labelled }, 'Job itself'],
      [{ ...cron, spec: { ...cron.spec, jobTemplate: labelled } }, 'CronJob or its jobTemplate'],
    ] as const) {
      const [warning = ''] = await readWarnings(namespace.name, misplaced);
      const expected = `lastscrape.dev/inject: as a label of the ${where} it does nothing; it belongs on its pod template`;
      assert.ok(warning.includes(expected), warning);
    }
    assert.deepEqual(await readWarnings(namespace.name, buildCountingJob({})), []);
  });
}

async function readFirst(namespace: string): Promise<number> {
  return (await getFixture().prometheus.readSamples('lastscrape_source_up{job="lastscrape-front"}', namespace)).length;
}

/** What kubectl warned of by a policy; it must end well. */
async function readWarnings(namespace: string, manifest: Manifest | Pod): Promise<readonly string[]> {
  const command = `kubectl --namespace=${namespace} create --dry-run=server --filename=- 2>&1 >/dev/null`;
  const printed = await runShell(`${command} <<'EOF'\n${JSON.stringify(manifest)}\nEOF`, import.meta.dirname);
  return printed.split('\n').filter((line) => /^Warning: .* with binding '/.test(line));
}
