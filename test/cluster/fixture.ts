// Opens what the scenarios share: images on the node, Prometheus in the cluster, the policy applied.

import { existsSync } from 'node:fs';
import { VERSION } from '../../src/base/version.ts';
import { template } from '../deploy/chart.ts';
import { gateDist } from '../image/dist.ts';
import { makeFolder } from '../support/folder.ts';
import { findOnPath, findPrograms, listMissing, readTestVariable } from '../support/programs.ts';
import { until } from '../support/until.ts';
import { DEFINITIONS, definitionPath } from '../tools/definitions.ts';
import { type Cluster, openCluster, RUN_LABEL } from './cluster.ts';
import { openGuideShell } from './guide-shell.ts';
import { listMissingTargets, openImageLoader, PUSHGATEWAY } from './images.ts';
import { KYVERNO, startKyverno } from './kyverno.ts';
import { startClusterPrometheus } from './prometheus.ts';
import { CLUSTER_PROMETHEUS_PATH } from './prometheus-path.ts';
import { type Fixture, START_MS } from './scenario.ts';

/** Shown where no cluster is named. */
const HOW_TO =
  'Cannot run test:cluster: KUBECONFIG and LASTSCRAPE_TEST_IMAGE_LOAD must be set; start a cluster, for instance "kind create cluster",\n' +
  'then run: KUBECONFIG=~/.kube/config LASTSCRAPE_TEST_IMAGE_LOAD="kind load image-archive" npm run test:cluster\n';

/** The kinds that a run makes outside of namespaces, with policies and without. */
const CLUSTER_KINDS =
  'validatingadmissionpolicies,validatingadmissionpolicybindings,clusterroles,clusterrolebindings,namespaces,customresourcedefinitions';
const POLICY_KINDS = 'mutatingadmissionpolicies,mutatingadmissionpolicybindings';

/** Ends the process, with what to do, where there is no cluster. */
export function requireCluster(): { readonly loadCommand: string } {
  const loadCommand = readTestVariable('LASTSCRAPE_TEST_IMAGE_LOAD');
  if (readTestVariable('KUBECONFIG') === undefined || loadCommand === undefined) {
    process.stderr.write(HOW_TO);
    process.exit(1);
  }
  const programs = ['kubectl', 'helm', 'busybox', 'iptables', 'tar', 'ldd', PUSHGATEWAY].filter(
    (name) => findOnPath(name) === undefined,
  );
  const missing = [
    ...programs.map((name) => `${name} on the PATH`),
    ...listMissing(findPrograms(), ['locust']),
    ...listMissingTargets(),
    ...([CLUSTER_PROMETHEUS_PATH, ...DEFINITIONS.map(definitionPath)].every((path) => existsSync(path))
      ? []
      : [
          'Prometheus with Kubernetes discovery, definitions: run "npm exec -- node test/tools/install-cluster.ts" (needs Go)',
        ]),
  ];
  if (missing.length > 0) {
    process.stderr.write(`Cannot run test:cluster: programs are missing; install ${missing.join('; ')}\n`);
    process.exit(1);
  }
  if (gateDist('test:cluster') !== false) process.exit(1);
  return { loadCommand };
}

/** Opens the fixture; what it made is removed when it is disposed of, also where opening failed. */
export async function openFixture(): Promise<Fixture & AsyncDisposable> {
  const { loadCommand } = requireCluster();
  const stack = new AsyncDisposableStack();
  try {
    // What kubectl and helm remember of this address may be of a cluster of another version.
    process.env['KUBECACHEDIR'] = makeFolder();
    const cluster = stack.use(await openCluster());
    await claimCluster(cluster);
    const apis = await cluster.read('/apis/admissionregistration.k8s.io/v1');
    const hasPolicies = apis.includes('"MutatingAdmissionPolicy"');
    const engine = KYVERNO === undefined ? (hasPolicies ? 'policy' : null) : 'kyverno';
    if (engine === null)
      process.stderr.write('LEFT OUT: every story with a policy: no MutatingAdmissionPolicy v1 here\n');
    const minor = Number.parseInt(JSON.parse(await cluster.read('/version')).minor, 10);
    // A run that was killed could not remove what it had made.
    const kinds = hasPolicies ? `${POLICY_KINDS},${CLUSTER_KINDS}` : CLUSTER_KINDS;
    await cluster.kubectl(['delete', kinds, '--selector', RUN_LABEL, '--wait=false', '--ignore-not-found']);
    await refuseForeign(cluster.kubectl, hasPolicies);
    const images = stack.use(openImageLoader(findPrograms(), loadCommand));
    await images.loadAll();
    const prometheus = await startClusterPrometheus(cluster);
    if (KYVERNO !== undefined) await startKyverno(cluster, KYVERNO);
    return { cluster, engine, minor, prometheus, images, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

const LEASE = { name: 'lastscrape-test', namespace: 'default' } as const;
/** How long a lease counts that is not renewed: its run was killed. */
const LEASE_MS = 120_000;

/** Takes the cluster for this run alone: two would share the policies, and each removes what it finds. */
export async function claimCluster(cluster: Cluster): Promise<void> {
  const found = await cluster.kubectl(['get', 'lease', LEASE.name, '--namespace', LEASE.namespace, ...RENEWED_AT]);
  if (Date.now() - Date.parse(found) < LEASE_MS) {
    throw new Error(
      'Cannot run test:cluster: another run has this cluster; wait for its end, or 2 minutes if it was killed',
    );
  }
  const renew = () =>
    cluster.apply({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: LEASE,
      // MicroTime wants six digits.
      spec: { holderIdentity: cluster.run, renewTime: new Date().toISOString().replace('Z', '000Z') },
    });
  await renew();
  const timer = setInterval(() => void renew().catch(() => {}), LEASE_MS / 4);
  cluster.defer(async () => {
    clearInterval(timer);
    await cluster.kubectl(['delete', 'lease', LEASE.name, '--namespace', LEASE.namespace]);
  });
}

const RENEWED_AT = ['--ignore-not-found', '--output=jsonpath={.spec.renewTime}'];

/** Applies both policies as the guide says, once the API server obeys them; takes them away at the end. */
export async function applyPolicy(fixture: Fixture): Promise<void> {
  const { cluster, engine } = fixture;
  if (engine === null) return;
  const namespace = await cluster.openNamespace('guide');
  const shell = await openGuideShell(cluster, namespace);
  cluster.defer(async () => {
    try {
      if (engine === 'policy') await shell.run('all away');
      if (engine === 'policy') await untilPrinted('locust-metrics-exporter', () => shell.run('check'));
    } finally {
      shell[Symbol.dispose]();
    }
  });
  // kubectl prints nothing of a container that ends before it is attached.
  const version = new RegExp(`^lastscrape ${VERSION} `, 'm');
  await until('the version', START_MS, async () => version.test(await shell.run('image')) || undefined);
  const label = [`${RUN_LABEL}=${cluster.run}`, '--overwrite'];
  if (engine === 'kyverno') await applyForKyverno(fixture);
  else {
    await shell.run('policy');
    await shell.run('jobs policy');
    await cluster.kubectl(['label', POLICY_KINDS, 'lastscrape', 'lastscrape-jobs', 'lastscrape-limits', ...label]);
  }
  const validating = 'validatingadmissionpolicies,validatingadmissionpolicybindings';
  await cluster.kubectl(['label', validating, 'lastscrape-jobs', ...label]);
  await untilPrinted('locust-metrics-exporter lastscrape', () => shell.run('check'));
  await untilPrinted('lastscrape', () => shell.run('jobs check'));
}

/** What `engine=kyverno` of the chart renders for a server of this version. */
async function applyForKyverno({ cluster, minor }: Fixture): Promise<void> {
  // As the files of deploy/ have it.
  const values = [`image=lastscrape:${VERSION}`, 'engine=kyverno'];
  const only = ['policy', 'jobs-policy', 'jobs-warnings'];
  const { stdout, stderr, status } = template(values, { version: `1.${minor}.0`, only });
  if (status !== 0) throw new Error(stderr);
  cluster.defer(() => cluster.kubectl(['delete', '--filename', '-'], stdout));
  await cluster.kubectl(['apply', '--filename', '-'], stdout);
}

async function untilPrinted(wanted: string, check: () => Promise<string>): Promise<void> {
  await until(`the policies at work: ${wanted}`, START_MS, async () => {
    const printed = await check();
    if (printed === wanted) return true;
    throw new Error(`the check of deploy/README.md printed "${printed}"`);
  });
}

// Somebody's own policy must not be changed, nor removed at the end. An operator would make the Jobs of the
// LocustTests itself.
async function refuseForeign(kubectl: Cluster['kubectl'], hasPolicies: boolean): Promise<void> {
  for (const [kind, name] of [
    ['mutatingadmissionpolicies', 'lastscrape'],
    ['mutatingadmissionpolicies', 'lastscrape-jobs'],
    ['mutatingadmissionpolicies', 'lastscrape-limits'],
    ['validatingadmissionpolicies', 'lastscrape-annotations'],
    ['validatingadmissionpolicies', 'lastscrape-jobs'],
    ['customresourcedefinitions', LOCUST_TESTS],
  ] as const) {
    if (kind === 'mutatingadmissionpolicies' && !hasPolicies) continue;
    const found = await kubectl([
      ...['get', kind, '--field-selector', `metadata.name=${name}`],
      ...['--selector', `!${RUN_LABEL}`, '--output', 'name'],
    ]);
    if (found.trim() === '') continue;
    throw new Error(
      `Cannot run test:cluster: this cluster has ${kind}/${name} already; delete it, or take another cluster`,
    );
  }
}

const LOCUST_TESTS = 'locusttests.locust.io';

/** Makes LocustTests known, with any field and without a controller. @returns what undoes it */
export async function defineLocustTests(cluster: Cluster): Promise<() => Promise<unknown>> {
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  const versions = ['v1', 'v2'].map((version) => ({ name: version, served: true, storage: version === 'v2', schema }));
  await cluster.apply({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: LOCUST_TESTS, labels: { [RUN_LABEL]: cluster.run } },
    spec: { group: 'locust.io', names: { kind: 'LocustTest', plural: 'locusttests' }, scope: 'Namespaced', versions },
  });
  await cluster.kubectl(['wait', '--for=condition=established', '--timeout=60s', `crd/${LOCUST_TESTS}`]);
  return () => cluster.kubectl(['delete', 'crd', LOCUST_TESTS]);
}
