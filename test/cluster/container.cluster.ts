// `container:` on a real Kubernetes, with the Role and POD_NAME of docs/helpers.md and the policy's
// container. Token rotation and a failing server are played by test/stand-in/api-server.ts.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { findLastscrape, readGolden } from '../deploy/injected.ts';
import { until } from '../support/until.ts';
import { type Container, type Manifest, type Namespace, type Pod, runShell } from './cluster.ts';
import { IMAGES } from './images.ts';
import { END_MS, findStatus, getFixture, type Report, runScenarioIn, START_MS } from './scenario.ts';

const ROOT = join(import.meta.dirname, '../..');
const ROLE = readBlock('docs/helpers.md', 'kind: RoleBinding');
const INJECTED = findLastscrape(readGolden('native')) as Container;
const { env: _, restartPolicy: _policy, restartPolicyRules: _rules, ...WATCHER } = INJECTED;
const POD_NAME: Variable = parse(readBlock('docs/helpers.md', 'container:migrate')).containers.at(-1).env.at(-1);

/** Of the Job, and of the pod where there is no Job. */
const NAME = 'load';
/** Ends at TERM, and not before. */
const STAYS = "trap 'exit 0' TERM; sleep 600 & wait";
/** Ends well at its third start: what it counts is in a volume that outlives a container. */
const THIRD_TIME = 'echo started >> /starts/log; sleep 1; [ $(wc -l < /starts/log) -ge 3 ]';
const STARTS = { volumeMounts: [{ name: 'starts', mountPath: '/starts' }] };
const STARTS_VOLUME = { volumes: [{ name: 'starts', emptyDir: {} }] };

type Variable = { readonly name: string };
type Containers = Readonly<Record<string, object>>;

/** A pod with lastscrape as its last container. */
type Watched = {
  /** The other regular containers. */
  readonly containers: Containers;
  readonly initContainers?: Containers;
  /** Default: `container:load`. */
  readonly doneWhen?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Without: lastscrape knows its pod by the host name. */
  readonly hasPodName?: boolean;
  readonly spec?: object;
  /** More of the Job's specification; null: a pod without a Job. */
  readonly job?: object | null;
};

type End = {
  /** null: no Job, or one that does not end. */
  readonly job: 'Complete' | 'Failed' | null;
  readonly exitCode?: number;
  readonly outcome: Report['outcome'];
  readonly mainExitCodes?: Report['mainExitCodes'];
  readonly problems?: RegExp;
  /** By container, default 0. */
  readonly restartCounts?: Readonly<Record<string, number>>;
};

type Scenario = { readonly name: string; readonly hasRole?: boolean; readonly watched: Watched; readonly end: End };

const FAILS: Watched = { containers: { load: runs('sleep 3; exit 3') } };
const FAILED: End = { job: 'Failed', outcome: 'released', mainExitCodes: { load: 3 } };
const MISCONFIGURED = { job: 'Failed', exitCode: 78, outcome: 'misconfigured' } as const;

/** The sidecar's process is of lastscrape's user, and ends its container with 0. */
const WITH_SIDECAR: Watched = {
  containers: { load: runs('sleep 3'), check: runs('sleep 5'), proxy: runs('sleep 600; exit 0') },
  doneWhen: 'container:*',
  env: { LASTSCRAPE_SIDECARS: 'proxy', LASTSCRAPE_QUIT: 'signal:sleep' },
  spec: { shareProcessNamespace: true, securityContext: { runAsUser: 65532 } },
};
const ALL_WELL: End = { job: 'Complete', outcome: 'released', mainExitCodes: { load: 0, check: 0 } };

const SCENARIOS: readonly Scenario[] = [
  { name: 'a Job that fails is a Failed Job, and the report has the exit code', watched: FAILS, end: FAILED },
  {
    name: 'OnFailure: two failures are not the end, the third start is',
    watched: {
      containers: { load: runs(THIRD_TIME, STARTS) },
      spec: { restartPolicy: 'OnFailure', ...STARTS_VOLUME },
      // A Job counts the restarts of its pod, too.
      job: { backoffLimit: 6 },
    },
    end: { job: 'Complete', outcome: 'released', mainExitCodes: { load: 0 }, restartCounts: { load: 2 } },
  },
  {
    name: 'restartPolicyRules in a pod that never restarts: the same, known by its host name',
    watched: {
      containers: {
        load: runs(`${THIRD_TIME} || exit 3`, {
          ...STARTS,
          restartPolicy: 'Never',
          restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [3] } }],
        }),
      },
      spec: STARTS_VOLUME,
      hasPodName: false,
    },
    end: { job: 'Complete', outcome: 'released', mainExitCodes: { load: 0 }, restartCounts: { load: 2 } },
  },
  { name: '* waits for all but the sidecars, which it stops', watched: WITH_SIDECAR, end: ALL_WELL },
  {
    name: '* does not wait for a native sidecar',
    watched: {
      containers: { load: runs('sleep 3'), check: runs('sleep 5') },
      initContainers: { proxy: runs(STAYS, { restartPolicy: 'Always' }) },
      doneWhen: 'container:*',
    },
    end: ALL_WELL,
  },
  {
    name: 'an Indexed Job gets the advice to set POD_NAME',
    watched: { ...FAILS, hasPodName: false, job: { completionMode: 'Indexed', completions: 1 } },
    end: {
      ...MISCONFIGURED,
      problems: /pod \S+\/load-0 is not there \(HTTP 404\); .*: set POD_NAME from metadata\.name by fieldRef$/,
    },
  },
];

export function runContainerScenarios(): void {
  for (const { name, hasRole = true, watched, end } of SCENARIOS) {
    runScenarioIn(`container: ${name}`, async (namespace) => {
      if (hasRole) await applyRole(namespace);
      await start(namespace, watched);
      await proveEnd(namespace, end);
    });
  }

  runScenarioIn('container: without a Role it says which commands to run, and these are enough', async (namespace) => {
    await start(namespace, FAILS);
    const { pod, report } = await proveEnd(namespace, MISCONFIGURED);
    const [, commands = ''] = /; create the Role: (.*)$/.exec(report.problems?.[0] ?? '') ?? [];
    assert.deepEqual(report.problems, [
      `Cannot use "container:load" of LASTSCRAPE_DONE_WHEN: the API server forbids system:serviceaccount:${namespace.name}:default ` +
        `to get pod ${namespace.name}/${pod.metadata.name} (HTTP 403); create the Role: ${commands}`,
    ]);
    await runShell(commands, ROOT);
    await getFixture().cluster.kubectl(['delete', 'job', NAME, '--namespace', namespace.name]);
    await start(namespace, FAILS);
    await proveEnd(namespace, FAILED, pod);
  });

  runScenarioIn('container: a pod that is deleted while main runs is reported after the grace', async (namespace) => {
    const watched: Watched = {
      containers: { load: runs(STAYS) },
      // Long enough to see the end: answers of the API server are cached for 5 s, and settle in 3 s.
      env: { LASTSCRAPE_TERMINATION_GRACE: '15s' },
      job: null,
    };
    await applyRole(namespace);
    await start(namespace, watched);
    await untilRunning(namespace);
    await until('"main is running" in the log of lastscrape', START_MS, async () =>
      (await namespace.readLog(NAME, 'lastscrape')).includes('"msg":"main is running"') ? true : undefined,
    );
    await getFixture().cluster.kubectl(['delete', 'pod', NAME, '--namespace', namespace.name, '--wait=false']);
    const { report } = await proveEnd(namespace, { job: null, outcome: 'terminated' });
    assert.match(report.summary, /^Terminated before main was seen to end/);
  });
}

/** Waits until lastscrape has ended, and its Job, and compares. `before` is a pod of an earlier start. */
async function proveEnd(
  namespace: Namespace,
  { job, exitCode = 0, outcome, mainExitCodes, problems, restartCounts = {} }: End,
  before?: Pod,
): Promise<{ readonly pod: Pod; readonly report: Report }> {
  const { pod } = await namespace.untilPod(
    'the end of lastscrape',
    END_MS,
    (each) =>
      each.metadata.uid !== before?.metadata.uid && findStatus(each, 'lastscrape')?.state.terminated !== undefined,
  );
  const ended = findStatus(pod, 'lastscrape')?.state.terminated;
  assert.ok(ended?.message, 'lastscrape has a termination message');
  const report: Report = JSON.parse(ended.message);
  assert.deepEqual(
    { exitCode: ended.exitCode, outcome: report.outcome, mainExitCodes: report.mainExitCodes },
    { exitCode, outcome, mainExitCodes },
    ended.message,
  );
  assert.equal(report.exitCode, outcome === 'misconfigured' ? 78 : 0);
  const seen = (pod.status.containerStatuses ?? []).map(({ name, restartCount }) => [name, restartCount] as const);
  const expected = seen.map(([name]) => [name, restartCounts[name] ?? 0] as const);
  assert.deepEqual(Object.fromEntries(seen), Object.fromEntries(expected), 'restarts');
  if (problems !== undefined) assert.match((report.problems ?? []).join('\n'), problems);
  if (job !== null) assert.equal(await namespace.untilJobEnded(NAME, END_MS), job);
  return { pod, report };
}

async function untilRunning(namespace: Namespace): Promise<void> {
  const isRunning = (pod: Pod) => findStatus(pod, 'lastscrape')?.state.running !== undefined;
  await namespace.untilPod('lastscrape running', START_MS, isRunning);
}

async function applyRole(namespace: Namespace): Promise<void> {
  await getFixture().cluster.kubectl(['apply', '--namespace', namespace.name, '-f', '-'], ROLE);
}

async function start(namespace: Namespace, watched: Watched): Promise<void> {
  const { containers, initContainers = {}, hasPodName = true, job = {} } = watched;
  const env = {
    LASTSCRAPE_DONE_WHEN: watched.doneWhen ?? 'container:load',
    LASTSCRAPE_SCRAPES: '0',
    LASTSCRAPE_QUIT: 'none',
    ...watched.env,
  };
  const lastscrape = {
    ...WATCHER,
    name: 'lastscrape',
    image: IMAGES.lastscrape,
    env: [...Object.entries(env).map(([name, value]) => ({ name, value })), ...(hasPodName ? [POD_NAME] : [])],
  };
  const spec = {
    restartPolicy: 'Never',
    initContainers: named(initContainers),
    containers: [...named(containers), lastscrape],
    ...watched.spec,
  };
  const manifest: Manifest =
    job === null
      ? { apiVersion: 'v1', kind: 'Pod', metadata: { name: NAME }, spec }
      : {
          apiVersion: 'batch/v1',
          kind: 'Job',
          metadata: { name: NAME },
          spec: { backoffLimit: 0, ...job, template: { spec } },
        };
  await namespace.apply(manifest);
}

function runs(script: string, more: object = {}): object {
  return { image: IMAGES.busybox, args: ['-c', script], ...more };
}

function named(containers: Containers): readonly object[] {
  return Object.entries(containers).map(([name, container]) => ({ name, ...container }));
}

function readBlock(page: string, holding: string): string {
  const blocks = [...readFileSync(join(ROOT, page), 'utf8').matchAll(/```yaml\n([\s\S]*?)```/g)].map(
    ([, block = '']) => block,
  );
  const found = blocks.find((block) => block.includes(holding));
  if (found === undefined) throw new Error(`Cannot find "${holding}" in ${page}: no block of YAML has it`);
  return found;
}
