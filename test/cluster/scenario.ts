// What the scenarios share: the parts of the whole run, how a pod's end is read, and what each good end has.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Pod as Golden } from '../deploy/injected.ts';
import { until } from '../support/until.ts';
import type { Cluster, ContainerStatus, Manifest, Namespace, Pod } from './cluster.ts';
import type { ImageLoader } from './images.ts';
import { EXPORTER, type LocustTest, MASTER, startLocustTest } from './locust-test.ts';
import { type ClusterPrometheus, TOTAL } from './prometheus.ts';

export type Fixture = {
  readonly cluster: Cluster;
  /** What adds lastscrape to pods; null: the stories that need it are left out, and say so. */
  readonly engine: 'policy' | 'kyverno' | null;
  /** Of the API server: 36 for 1.36. */
  readonly minor: number;
  readonly prometheus: ClusterPrometheus;
  readonly images: ImageLoader;
};

let current: Fixture | undefined;
let scenarioCount = 0;

/** Gives the scenarios their fixture. */
export function setFixture(fixture: Fixture): void {
  current = fixture;
}

/** The fixture, for a scenario that runs. */
export function getFixture(): Fixture {
  if (current === undefined) throw new Error('Bug: a scenario began before the fixture was open');
  return current;
}

class NoPolicies extends Error {}

/** Leaves a story out where the cluster has no policies. */
export function requirePolicies(): void {
  if (getFixture().engine === null) throw new NoPolicies('LEFT OUT: this cluster has no MutatingAdmissionPolicy v1');
}

/** Leaves a story out where containers have no restart rules. */
export function requireRestartRules(): void {
  if (getFixture().minor < 35) throw new NoPolicies('LEFT OUT: restart rules came with Kubernetes 1.35');
}

/** A golden file as this server would have it. */
export function asServed(golden: Golden): Golden {
  if (getFixture().minor >= 35) return golden;
  const withoutRules = ({
    restartPolicy: _,
    restartPolicyRules: __,
    ...container
  }: Golden['spec']['containers'][number]) => container;
  return { ...golden, spec: { ...golden.spec, containers: golden.spec.containers.map(withoutRules) } };
}

function isForPolicies(manifest: Manifest): boolean {
  const text = JSON.stringify(manifest);
  return text.includes('"lastscrape.dev/inject":"true"') || text.includes(`"performance-test-pod-name":"${MASTER}"`);
}

/** Registers a scenario with its own namespace; describes the pods there when it fails. */
export function runScenarioIn(name: string, play: (namespace: Namespace) => Promise<void>): void {
  runLabelledScenario(name, {}, play);
}

/** The same with labels of the namespace. */
export function runLabelledScenario(
  name: string,
  labels: Readonly<Record<string, string>>,
  play: (namespace: Namespace) => Promise<void>,
): void {
  it(name, async (context) => {
    scenarioCount += 1;
    const slug = `${scenarioCount}-${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`.slice(0, 36).replace(/-$/, '');
    const namespace = await getFixture().cluster.openNamespace(slug, labels);
    const isOptedOut = labels['lastscrape.dev/inject'] === 'false';
    const apply = (...manifests: readonly Manifest[]) => {
      if (!isOptedOut && manifests.some(isForPolicies)) requirePolicies();
      if (JSON.stringify(manifests).includes('"restartPolicyRules"')) requireRestartRules();
      return namespace.apply(...manifests);
    };
    const tryPod = (pod: object) => {
      requirePolicies();
      return namespace.tryPod(pod);
    };
    try {
      await play({ ...namespace, apply, tryPod });
    } catch (error) {
      if (error instanceof NoPolicies) return context.skip(error.message);
      process.stderr.write(`${name} failed; ${await namespace.describe()}\n`);
      throw error;
    }
    // Its pods would take the processors from the others.
    await getFixture().cluster.kubectl(['delete', 'namespace', namespace.name, '--wait=false', '--ignore-not-found']);
  });
}

/** The same with one LocustTest in it. */
export function runScenario(
  name: string,
  test: LocustTest & { readonly namespaceLabels?: Readonly<Record<string, string>> },
  play: (namespace: Namespace) => Promise<void>,
): void {
  runLabelledScenario(name, test.namespaceLabels ?? {}, async (namespace) => {
    await startLocustTest(namespace, test);
    await play(namespace);
  });
}

/** The report, as far as it is read. */
export type Report = {
  readonly summary: string;
  readonly outcome: string;
  readonly verdict?: 'passed' | 'failed';
  readonly failed?: { readonly entry: string; readonly seen: number | string };
  readonly problems?: readonly string[];
  readonly heldSeconds: number;
  readonly scrapesWanted: number;
  readonly mainEndedAt: string;
  readonly scrapesSeen: number;
  readonly mainExitCodes?: Readonly<Record<string, number>>;
  readonly targets: readonly { readonly target: string; readonly result: string; readonly hint?: string }[];
  readonly push?: { readonly to: string; readonly result: string; readonly why?: string };
  readonly final: { readonly requests: number };
  readonly exitCode: number;
};

/** Until Locust runs on a node busy with ten pods, and until a run of 10 s and its hold are over. */
export const START_MS = 180_000;
export const END_MS = 300_000;

export function masterPod({ events }: Namespace): Pod {
  const event = events.findLast(({ pod }) => pod.metadata.labels?.['performance-test-pod-name'] === MASTER);
  assert.ok(event, 'there is a pod of the master');
  return event.pod;
}

export function findStatus(pod: Pod, name: string): ContainerStatus | undefined {
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status;
  return [...initContainerStatuses, ...containerStatuses].find((status) => status.name === name);
}

/** How a container that was started again ended before, from any event: 1.33 forgets it when the pod has ended. */
export function findFirstEnd({ events }: Namespace, name: string) {
  return events.map(({ pod }) => findStatus(pod, name)?.lastState?.terminated).find((each) => each !== undefined);
}

/** Waits until a container of the master's pod is in a state. */
export async function untilContainer(
  namespace: Namespace,
  name: string,
  state: 'waiting' | 'running' | 'terminated',
  withinMs: number,
): Promise<Pod> {
  const { pod } = await namespace.untilPod(`${name} ${state}`, withinMs, (each) => {
    const isMaster = each.metadata.labels?.['performance-test-pod-name'] === MASTER;
    return isMaster && findStatus(each, name)?.state[state] !== undefined;
  });
  return pod;
}

export async function endRun(namespace: Namespace): Promise<void> {
  const { name } = masterPod(namespace).metadata;
  const path = `/api/v1/namespaces/${namespace.name}/pods/${name}:8089/proxy/looked`;
  await until("an answer of Locust's page", START_MS, () => getFixture().cluster.read(path));
}

/** The termination message and the exit code of lastscrape; `name` names its container. */
export function readEnd(pod: Pod, name = 'lastscrape'): { readonly report: Report; readonly exitCode: number } {
  const terminated = findStatus(pod, name)?.state.terminated;
  assert.ok(terminated?.message, `the container ${name} has a termination message`);
  return { report: JSON.parse(terminated.message), exitCode: terminated.exitCode };
}

/** The same in the newest state of the master's pod. */
export function readReport(namespace: Namespace): ReturnType<typeof readEnd> {
  return readEnd(masterPod(namespace));
}

/** As `kubectl drain` does. */
export async function evict(namespace: string, name: string): Promise<void> {
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
  await getFixture().cluster.kubectl(['create', '--raw', path, '--filename=-'], JSON.stringify(eviction));
}

/** Waits until lastscrape has logged that message in a pod. */
export async function untilLogged(
  namespace: Namespace,
  pod: Pod,
  msg: string,
  withinMs: number,
  name = 'lastscrape',
): Promise<void> {
  await until(`"${msg}" in the log of lastscrape`, withinMs, async () => {
    const log = await namespace.readLog(pod.metadata.name, name);
    return log.includes(`"msg":"${msg}"`) ? true : undefined;
  });
}

/**
 * Scrapes a held pod through the API server until lastscrape has ended: on a busy node its count may begin after the
 * first, which is returned.
 */
export async function scrapeHeld(namespace: Namespace, pod: Pod, port: number): Promise<string> {
  const { name } = pod.metadata;
  await untilLogged(namespace, pod, 'main ended', START_MS);
  const isOver = (each: Pod) =>
    each.metadata.name === name && findStatus(each, 'lastscrape')?.state.terminated !== undefined;
  const ended = namespace.untilPod('the end of lastscrape', END_MS, isOver);
  const read = () =>
    getFixture().cluster.read(`/api/v1/namespaces/${namespace.name}/pods/${name}:${port}/proxy/metrics`);
  const page = await read();
  while (!(await Promise.race([ended, delay(2_000)]))) await read().catch(() => {});
  return page;
}

/** Waits until a killed lastscrape was started again, and has seen main. */
export async function untilBack(namespace: Namespace, name = 'lastscrape'): Promise<void> {
  const { pod } = await namespace.untilPod(`${name} again`, START_MS, (each) => {
    const { restartCount = 0, state } = findStatus(each, name) ?? {};
    return restartCount > 0 && state?.running !== undefined;
  });
  await untilLogged(namespace, pod, 'main is running', START_MS, name);
}

export async function readLocustTotal(namespace: Namespace): Promise<number> {
  const log = await namespace.readLog(masterPod(namespace).metadata.name, MASTER);
  const [, total] = /^\s*Aggregated\s+(\d+)\s/m.exec(log) ?? [];
  assert.ok(total, `Locust's summary is in its log:\n${log.slice(-2000)}`);
  return Number(total);
}

export async function readStoredTotal(namespace: Namespace): Promise<number | undefined> {
  return (await getFixture().prometheus.readSamples(TOTAL, namespace.name)).at(-1)?.value;
}

/**
 * Checks that Prometheus's newest total of that namespace is this, and locust_up 0 after it.
 * Prometheus stores a scrape a moment after the exporter counted it.
 */
export async function proveTotalStored(namespace: Namespace, total: number): Promise<void> {
  await until(`the total ${total} in Prometheus, and locust_up 0`, START_MS, async () => {
    const ups = await getFixture().prometheus.readSamples('locust_up', namespace.name);
    const stored = await readStoredTotal(namespace);
    const up = ups.at(-1)?.value;
    if (stored === total && up === 0) return true;
    throw new Error(`it holds ${stored}, and locust_up ${up}`);
  });
}

/** Checks an operator's pod that ended well: injected once and last, completed, scraped, reported. */
export async function proveGoodEnd(namespace: Namespace): Promise<Report> {
  assert.equal(await namespace.untilJobEnded(MASTER, END_MS), 'Complete');
  const pod = masterPod(namespace);
  const names = pod.spec.containers.map(({ name }) => name);
  assert.equal(names.at(-1), 'lastscrape', `last of ${names}`);
  assert.equal(names.filter((name) => name === 'lastscrape').length, 1);
  const { report, exitCode } = readReport(namespace);
  assert.equal(report.outcome, 'scraped', report.summary);
  assert.equal(exitCode, 0);
  assert.equal(report.exitCode, 0);
  const total = await readLocustTotal(namespace);
  await proveTotalStored(namespace, total);
  assert.equal(report.final.requests, total);
  // Held: the exporter outlived main, and what was scraped then is a sample.
  const master = findStatus(pod, MASTER)?.state.terminated;
  assert.ok(master, 'main has ended');
  assert.ok((findStatus(pod, 'lastscrape')?.state.terminated?.finishedAt ?? '') >= master.finishedAt, 'held');
  // What a scrape showed says whether it came after the end; its time is when Prometheus set out.
  const ups = await getFixture().prometheus.readSamples('locust_up', namespace.name);
  const afterCount = ups.length - 1 - ups.findLastIndex(({ value }) => value !== 0);
  assert.ok(afterCount >= report.scrapesWanted, `${afterCount} scrapes after the end, ${report.scrapesWanted} wanted`);
  assert.ok(findStatus(pod, EXPORTER)?.state.terminated, 'the exporter has ended');
  return report;
}
