// The scenarios of deploy/migrate.md: each after-manifest as it is written, with other images and a mesh's proxy.
// And deploy/job/migration, in the same way. How else main may end is in container.cluster.ts.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { VERSION } from '../../src/base/version.ts';
import type { Container, Manifest, Namespace, Pod } from './cluster.ts';
import { IMAGES } from './images.ts';
import { editContainers, type PodSpec, withFields } from './locust-test.ts';
import { END_MS, findStatus, readEnd, runScenarioIn, START_MS, scrapeHeld } from './scenario.ts';

const DEPLOY = join(import.meta.dirname, '../../deploy');

/** The Job of every manifest, and its main container. */
const MAIN = 'report';

/** The test's image for each that the manifests name; kubexit is a script: no registry has the real one. */
const REPLACED: Readonly<Record<string, string>> = {
  [`lastscrape:${VERSION}`]: IMAGES.lastscrape,
  'registry.example.com/report:1': IMAGES.report,
  [`registry.example.com/lastscrape:${VERSION}`]: IMAGES.lastscrape,
  'registry.example.com/migrate:1': IMAGES.report,
  'karlkfi/kubexit:latest': IMAGES.kubexit,
  'prom/statsd-exporter:v0.31.0': IMAGES.statsdExporter,
  'gcr.io/cloud-sql-connectors/cloud-sql-proxy:2.27.0': IMAGES.cloudSqlProxy,
};

type Edit = (spec: PodSpec) => PodSpec;

export function runMigrationScenarios(): void {
  migration('kubexit: the exporter outlives main by one scrape, and the proxy outlives both', async (namespace) => {
    await start(namespace, 'kubexit');
    await scrapeToTheEnd(namespace);
    const pod = await proveEnd(namespace, { [MAIN]: 0, 'statsd-exporter': 0, lastscrape: 0 });
    assert.deepEqual(readResults(pod), ['scraped', 'statsd-exporter stopped']);
    // Native: the kubelet starts and ends it, once.
    const proxy = findStatus(pod, 'cloud-sql-proxy');
    assert.equal(proxy?.restartCount, 0);
    assert.ok((proxy?.state.terminated?.finishedAt ?? '') >= finishedAt(pod, 'lastscrape'));
  });

  migration('kubexit chain: the exporter waits for the tombstone of lastscrape', async (namespace) => {
    await start(namespace, 'kubexit-chain');
    await scrapeToTheEnd(namespace);
    const pod = await proveEnd(namespace, { [MAIN]: 0, 'statsd-exporter': 0, lastscrape: 0 });
    assert.deepEqual(readResults(pod), ['scraped']);
    assert.deepEqual(readEnd(pod).report.mainExitCodes, { [MAIN]: 0 });
    const log = await namespace.readLog(pod.metadata.name, 'statsd-exporter');
    assert.match(log, /lastscrape has Died, TERM for/);
    assert.ok(finishedAt(pod, 'statsd-exporter') >= finishedAt(pod, MAIN));
  });

  migration('scuttle: the proxy, then Istio', async (namespace) => {
    await start(namespace, 'scuttle', (spec) => withMesh(spec, 'istio'));
    const pod = await proveEnd(namespace, {
      [MAIN]: 0,
      'cloud-sql-proxy': 0,
      'istio-proxy': 0,
      lastscrape: 0,
    });
    assert.deepEqual(readResults(pod), ['released', 'cloud-sql-proxy stopped', 'istio stopped']);
    assert.deepEqual(readEnd(pod).report.mainExitCodes, { [MAIN]: 0 });
    const log = await namespace.readLog(pod.metadata.name, 'istio-proxy');
    assert.match(log, /it was asked: POST \/quitquitquit/);
  });

  migration('linkerd-await: the proxy is asked, and gone', async (namespace) => {
    await start(namespace, 'linkerd-await', (spec) => withMesh(spec, 'linkerd'));
    const pod = await proveEnd(namespace, { [MAIN]: 0, 'linkerd-proxy': 0, lastscrape: 0 });
    assert.deepEqual(readResults(pod), ['released', 'linkerd stopped']);
  });

  migration('k8s-controller-sidecars: without the names of the main containers', async (namespace) => {
    await start(namespace, 'k8s-controller-sidecars');
    await scrapeToTheEnd(namespace);
    const pod = await proveEnd(namespace, EXIT_CODES);
    assert.deepEqual(readResults(pod), ['scraped', 'statsd-exporter stopped', 'cloud-sql-proxy stopped']);
    assert.deepEqual(readEnd(pod).report.mainExitCodes, { [MAIN]: 0 });
  });

  migration('k8s-controller-sidecars: the same without any right in the cluster', async (namespace) => {
    const env = [
      { name: 'LASTSCRAPE_METRICS_URL', value: 'http://localhost:9102/metrics' },
      { name: 'LASTSCRAPE_DONE_WHEN', value: `process:${MAIN}` },
      { name: 'LASTSCRAPE_QUIT', value: 'statsd-exporter, cloud-sql-proxy' },
    ];
    await start(namespace, 'k8s-controller-sidecars', (spec) => {
      const shared = { ...spec, shareProcessNamespace: true, automountServiceAccountToken: false };
      return withFields(shared, 'lastscrape', { env });
    });
    await scrapeToTheEnd(namespace);
    const pod = await proveEnd(namespace, EXIT_CODES);
    assert.equal(readEnd(pod).report.outcome, 'scraped');
  });

  migration('pkill: TERM by name, and nothing but 0 in the pod', async (namespace) => {
    await start(namespace, 'pkill');
    const pod = await proveEnd(namespace, { [MAIN]: 0, 'cloud-sql-proxy': 0, lastscrape: 0 });
    assert.deepEqual(readResults(pod), ['released', 'signal:cloud-sql-proxy stopped']);
  });

  runScenarioIn('job: a migration, then its database proxy, then the mesh', async (namespace) => {
    await applyManifest(namespace, 'job/migration/account.yaml', (spec) => spec);
    await applyManifest(namespace, 'job/migration/job.yaml', (spec) => withMesh(spec, 'istio'));
    const exitCodes = { migrate: 0, 'cloud-sql-proxy': 0, 'istio-proxy': 0, lastscrape: 0 };
    const pod = await proveEnd(namespace, exitCodes, 'migrate');
    assert.deepEqual(readResults(pod), ['released', 'cloud-sql-proxy stopped', 'istio stopped']);
    assert.deepEqual(readEnd(pod).report.mainExitCodes, { migrate: 0 });
  });
}

const EXIT_CODES = { [MAIN]: 0, 'statsd-exporter': 0, 'cloud-sql-proxy': 0, lastscrape: 0 };

function migration(name: string, play: (namespace: Namespace) => Promise<void>): void {
  runScenarioIn(`migrate: ${name}`, play);
}

/** Applies an after-manifest. `edit` changes the pod: what a webhook adds, or how main ends. */
async function start(namespace: Namespace, name: string, edit: Edit = (spec) => spec): Promise<void> {
  await applyManifest(namespace, `migrate/${name}.yaml`, edit);
}

async function applyManifest(namespace: Namespace, file: string, edit: Edit): Promise<void> {
  const text = readFileSync(join(DEPLOY, file), 'utf8');
  const documents: readonly Manifest[] = parseAllDocuments(text).map((document) => document.toJS());
  await namespace.apply(...documents.map((each) => (each.kind === 'Job' ? editJob(each, edit) : each)));
}

function editJob(job: Manifest, edit: Edit): Manifest {
  const { template, ...rest } = job['spec'] as { template: { spec: PodSpec } };
  const edited = edit(template.spec);
  const replace = (container: Container) => {
    const image = REPLACED[container.image ?? ''] ?? Object.values(IMAGES).find((each) => each === container.image);
    assert.ok(image, `an image of the test for ${container.image}`);
    return { ...container, image };
  };
  return { ...job, spec: { ...rest, template: { ...template, spec: editContainers(edited, replace) } } };
}

/** The pod with what a mesh's webhook adds: its proxy as a regular container, here a stand-in. */
function withMesh(spec: PodSpec, mesh: 'istio' | 'linkerd'): PodSpec {
  return { ...spec, containers: [...spec.containers, { name: `${mesh}-proxy`, image: IMAGES.mesh, args: [mesh] }] };
}

async function scrapeToTheEnd(namespace: Namespace): Promise<void> {
  const { pod } = await namespace.untilPod('the end of main', START_MS, (each) => hasEnded(each, MAIN));
  assert.match(await scrapeHeld(namespace, pod, 9102), /^report_rows 42$/m);
}

function hasEnded(pod: Pod, container: string): boolean {
  return findStatus(pod, container)?.state.terminated !== undefined;
}

/** Checks by which exit code each regular container ended, without a restart, and that the Job is Complete. */
async function proveEnd(namespace: Namespace, exitCodes: Readonly<Record<string, number>>, job = MAIN): Promise<Pod> {
  assert.equal(await namespace.untilJobEnded(job, END_MS), 'Complete');
  const pods = new Map(namespace.events.map(({ pod }) => [pod.metadata.name, pod]));
  assert.equal(pods.size, 1, `one pod was enough: ${JSON.stringify([...pods.values()].map(({ status }) => status))}`);
  const [pod] = pods.values();
  assert.ok(pod);
  const statuses = pod.status.containerStatuses ?? [];
  const codes = Object.fromEntries(statuses.map(({ name, state }) => [name, state.terminated?.exitCode]));
  assert.deepEqual(codes, exitCodes);
  const counts = Object.fromEntries(statuses.map(({ name, restartCount }) => [name, restartCount]));
  assert.deepEqual(counts, Object.fromEntries(Object.keys(exitCodes).map((name) => [name, 0])));
  return pod;
}

function finishedAt(pod: Pod, container: string): string {
  return findStatus(pod, container)?.state.terminated?.finishedAt ?? '';
}

/** The outcome, and the result of each target, in the order in which they were asked. */
function readResults(pod: Pod): readonly string[] {
  const { outcome, targets } = readEnd(pod).report;
  return [outcome, ...targets.map(({ target, result }) => `${target} ${result}`)];
}
