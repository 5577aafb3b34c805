// A Job that serves its own metrics (stand-in/counting-job.ts), and what Prometheus has of it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readSettled } from '../support/until.ts';
import type { Container, Manifest, Namespace, Pod } from './cluster.ts';
import { IMAGES } from './images.ts';
import type { PodSpec } from './locust-test.ts';
import { FRONT_JOB } from './prometheus.ts';
import { END_MS, findStatus, getFixture, type Report, readEnd, START_MS } from './scenario.ts';

/** The name of every Job; each has its own namespace. */
export const JOB = 'report';

/** What a program's metric is called. */
export const METRIC = 'job_worked_total';

/** A label on a pod template: all that a user of the policy adds. */
export const LABELLED = { 'lastscrape.dev/inject': 'true' };

export type CountingJob = {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** JOB_… of the program; JOB_MS is 8 s where it is not said. */
  readonly env?: Readonly<Record<string, string>>;
  /** Of the program's port. Default: metrics. */
  readonly portName?: string;
  /** More fields of the Job; default: backoffLimit 0. */
  readonly job?: Readonly<Record<string, unknown>>;
  /** Changes the pod last of all. */
  readonly edit?: (spec: PodSpec) => PodSpec;
};

/** A Job as far as the scenarios change it. */
export type JobManifest = Manifest & { spec: { [field: string]: unknown; template: { spec: PodSpec } } };

export function buildCountingJob(test: CountingJob): JobManifest {
  const { labels = LABELLED, annotations = {}, env = {}, portName = 'metrics', job = {}, edit = (spec) => spec } = test;
  const main: Container = {
    name: 'main',
    image: IMAGES.job,
    env: Object.entries({ JOB_MS: '8000', ...env }).map(([name, value]) => ({ name, value })),
    ports: [{ name: portName, containerPort: 8000 }],
    resources: { requests: { cpu: '10m', memory: '16Mi' } },
  };
  const template = {
    metadata: { labels: { app: JOB, ...labels }, annotations },
    spec: edit({ restartPolicy: 'Never', containers: [main] }),
  };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: JOB },
    spec: { backoffLimit: 0, ...job, template },
  };
}

/** A Job whose first run ends with 1, and whose restart rule then restarts main, or all containers of the pod in place. */
export function buildRestartedJob(action: 'Restart' | 'RestartAllContainers', more: CountingJob = {}): JobManifest {
  const rule = { action, exitCodes: { operator: 'In', values: [1] } };
  const restarted = { restartPolicy: 'Never', restartPolicyRules: [rule] };
  const runs = { volumeMounts: [{ name: 'runs', mountPath: '/runs' }] };
  return buildCountingJob({
    ...more,
    env: { ...SNAPSHOT, JOB_FAIL_FILE: '/runs/count', JOB_FAILURES: '1', ...more.env },
    edit: (spec) => ({
      ...spec,
      containers: spec.containers.map((each) => ({ ...each, ...restarted, ...runs })),
      volumes: [{ name: 'runs', emptyDir: {} }],
    }),
  });
}

const TASK = readFileSync(join(import.meta.dirname, '../stand-in/task.py'), 'utf8');

/** Of a container that runs stand-in/task.py, with Locust's Python. */
export function buildTask(env: Readonly<Record<string, string>>) {
  // That of the image, which the policy's would replace.
  const all = { PYTHONPATH: '/opt/site', ...env };
  return {
    image: IMAGES.locust,
    command: ['/usr/bin/python', '-c', TASK],
    env: Object.entries(all).map(([name, value]) => ({ name, value })),
  };
}

/** Main's environment that has it call for a snapshot after its last change. */
export const SNAPSHOT = { JOB_FRONT: '9469' };

/** The newest state of the Job's pod; of the one by that name, where there are several. */
export function jobPod({ events }: Namespace, name?: string): Pod {
  const event = events.findLast(
    ({ pod }) => pod.metadata.labels?.['app'] === JOB && (name === undefined || pod.metadata.name === name),
  );
  assert.ok(event, 'there is a pod of the Job');
  return event.pod;
}

export async function untilJobContainer(
  namespace: Namespace,
  name: string,
  state: 'running' | 'terminated',
): Promise<Pod> {
  const { pod } = await namespace.untilPod(
    `${name} ${state}`,
    END_MS,
    (each) => each.metadata.labels?.['app'] === JOB && findStatus(each, name)?.state[state] !== undefined,
  );
  return pod;
}

/** What main printed at its end: its final value, and what the last read of its page showed. */
export async function readFinal(
  namespace: Namespace,
  pod: Pod,
): Promise<{ readonly final: number; readonly shown: number }> {
  const log = (await namespace.readLog(pod.metadata.name, 'main')).trim();
  assert.doesNotMatch(log, /^no snapshot/m);
  return JSON.parse(log.split('\n').at(-1) ?? '');
}

export async function readStored(namespace: Namespace, pod: Pod, job = FRONT_JOB): Promise<number | undefined> {
  const selector = `${METRIC}{job="${job}",pod="${pod.metadata.name}"}`;
  return (await getFixture().prometheus.readSamples(selector, namespace.name)).at(-1)?.value;
}

export async function untilStored(namespace: Namespace, pod: Pod, value: number, job = FRONT_JOB): Promise<void> {
  assert.equal(await readSettled(value, START_MS, () => readStored(namespace, pod, job)), value, 'in Prometheus');
}

/** Checks that lastscrape is the last native sidecar of a pod, once, saw main's end and was scraped. */
export function proveHeld(pod: Pod): Report {
  const names = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].map(({ name }) => name);
  assert.equal(names.filter((name) => name === 'lastscrape').length, 1, `once in ${names}`);
  assert.equal(pod.spec.initContainers?.at(-1)?.name, 'lastscrape', `last of ${names}`);
  const { report, exitCode } = readEnd(pod);
  assert.equal(report.outcome, 'scraped', report.summary);
  assert.deepEqual([exitCode, report.exitCode], [0, 0]);
  assert.ok(report.scrapesSeen >= 1, report.summary);
  return report;
}

/** Checks that the Job ended so, its pod was held and main's final number is stored. @returns its pod */
export async function proveFinal(namespace: Namespace, condition: 'Complete' | 'Failed' = 'Complete'): Promise<Pod> {
  assert.equal(await namespace.untilJobEnded(JOB, END_MS), condition);
  const pod = jobPod(namespace);
  proveHeld(pod);
  await untilStored(namespace, pod, (await readFinal(namespace, pod)).final);
  return pod;
}
