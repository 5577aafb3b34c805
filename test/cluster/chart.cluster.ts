// deploy/chart on a real Kubernetes: installed, tested, upgraded, taken away, and refused; its policies are
// for the namespace of the story only.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { CHART } from '../deploy/chart.ts';
import { until } from '../support/until.ts';
import { RUN_LABEL } from './cluster.ts';
import { IMAGES } from './images.ts';
import { getFixture, requirePolicies, runScenarioIn, START_MS } from './scenario.ts';

/** What it makes outside of namespaces: kinds, and what follows the name. */
const MADE = [
  ['mutatingadmission', ['', '-jobs']],
  ['validatingadmission', ['-annotations', '-jobs']],
] as const;

export function runChartScenarios(): void {
  runScenarioIn('chart: installed, tested, upgraded and taken away', async (namespace) => {
    requirePolicies();
    const { cluster } = getFixture();
    const name = `chart-${cluster.run}`;
    // Not for the namespace of the release itself, in which `helm test` has its pods.
    const other = await cluster.openNamespace('chart-pods');
    const values = nameAndLimit(name, other.name);
    const helm = (...args: readonly string[]) => runHelmIn(namespace.name, ...args);
    const mutating = { policy: 'mutatingadmissionpolicies', kyverno: 'mutatingpolicies' }[
      getFixture().engine ?? 'policy'
    ];
    const policies = `${mutating},validatingadmissionpolicies`;
    const isThere = async () => (await cluster.kubectl(['get', policies, '--output=name'])).includes(`/${name}`);
    const upgrade = (image: string) => helm('upgrade', name, CHART, '--reuse-values', '--set', `image=${image}`);
    const untilImage = (image: string) => untilImageIn(other.name, image);
    const notes = await install(namespace.name, name, IMAGES.renamed, values);
    assert.match(notes, /must print "locust-metrics-exporter lastscrape"/);
    await untilImage(IMAGES.renamed);
    await upgrade(IMAGES.lastscrape);
    await untilImage(IMAGES.lastscrape);
    const tested = await helm('test', name, '--timeout', '2m');
    assert.match(tested, /Phase: +Succeeded[\s\S]*Phase: +Succeeded/);
    assert.match(tested, /^lastscrape \d/m);
    // Pods of other namespaces than those of `namespaces` stay as they are.
    assert.equal(await readImage(namespace.name), '');
    // A test that fails leaves nothing; this image knows no --version.
    await upgrade(IMAGES.mesh);
    await assert.rejects(helm('test', name, '--timeout', '2m'), /test-image/);
    await helm('uninstall', name);
    assert.equal(await isThere(), false);
    assert.equal(await cluster.kubectl(['get', 'pods', '--namespace', namespace.name, '--output=name']), '');
  });

  runScenarioIn('chart: two releases beside each other, one lastscrape in a pod of both', async (namespace) => {
    requirePolicies();
    const { cluster } = getFixture();
    const [both, second] = [await cluster.openNamespace('chart-both'), await cluster.openNamespace('chart-second')];
    const names = [`chart-a-${cluster.run}`, `chart-b-${cluster.run}`] as const;
    await install(namespace.name, names[0], IMAGES.lastscrape, nameAndLimit(names[0], both.name));
    await install(namespace.name, names[1], IMAGES.renamed, nameAndLimit(names[1], `${both.name},${second.name}`));
    await untilImageIn(second.name, IMAGES.renamed);
    assert.ok([IMAGES.lastscrape, IMAGES.renamed].includes((await readImage(both.name)) as never));
    const test = await cluster.kubectl([
      ...['run', 'locust-metrics-exporter', '--image=none', '--restart=Never', '--dry-run=server'],
      ...['--namespace', both.name, '--labels=managed-by=locust-k8s-operator,performance-test-pod-name=a-master'],
      '--output=jsonpath={.spec.containers[*].name}',
    ]);
    assert.equal(test, 'locust-metrics-exporter lastscrape');
    const again = ['install', 'again', CHART, '--set', `image=a,name=${names[0]},engine=${getFixture().engine}`];
    await assert.rejects(runHelmIn(second.name, ...again), /exists and cannot be imported into the current release/);
    await runHelmIn(namespace.name, 'uninstall', names[0]);
    await untilImageIn(both.name, IMAGES.renamed);
    await runHelmIn(namespace.name, 'uninstall', names[1]);
  });

  runScenarioIn('chart: a wrong value is refused, and nothing is installed', async (namespace) => {
    for (const [value, said] of [
      ['jobs.enabled=yes,image=a', /jobs.enabled|got string, want boolean/],
      getFixture().engine !== null
        ? (['jobs.enabled=true', /image is not set/] as const)
        : (['image=a', /this cluster has no MutatingAdmissionPolicy: /] as const),
    ] as const) {
      await assert.rejects(runHelmIn(namespace.name, 'install', 'wrong', CHART, '--set', value), said);
    }
    assert.equal(await runHelmIn(namespace.name, 'list', '--all', '--short'), '');
  });
}

/** Values of a release with policies of that name, for pods of these namespaces, `a,b`. */
export function nameAndLimit(name: string, namespaces: string): readonly string[] {
  const condition = 'namespaces[0].key=kubernetes.io/metadata.name,namespaces[0].operator=In';
  return ['--set', `name=${name},${condition},namespaces[0].values={${namespaces}}`];
}

/** Installs the chart; it is taken away with all that the run has made. @returns its notes */
export async function install(
  namespace: string,
  name: string,
  image: string,
  values: readonly string[],
): Promise<string> {
  const { cluster } = getFixture();
  cluster.defer(() => runHelmIn(namespace, 'uninstall', name, '--ignore-not-found'));
  const engine = `engine=${getFixture().engine}`;
  const notes = await runHelmIn(namespace, 'install', name, CHART, ...values, '--set', `image=${image},${engine}`);
  // Those of Kyverno go with its definitions.
  for (const [kind, suffixes] of MADE.slice(engine === 'engine=kyverno' ? 1 : 0)) {
    const names = suffixes.map((each) => name + each);
    await cluster.kubectl(['label', `${kind}policies,${kind}policybindings`, ...names, `${RUN_LABEL}=${cluster.run}`]);
  }
  return notes;
}

function readImage(namespace: string): Promise<string> {
  return getFixture().cluster.kubectl([
    ...['run', 'try-lastscrape', '--image=none', '--restart=Never', '--dry-run=server'],
    ...['--namespace', namespace, '--labels=lastscrape.dev/inject=true'],
    ...['--annotations=prometheus.io/port=8000', '--output=jsonpath={.spec.initContainers[*].image}'],
  ]);
}

function untilImageIn(namespace: string, image: string): Promise<boolean> {
  return until(`lastscrape of the image ${image}`, START_MS, async () => {
    const answer = await readImage(namespace);
    if (answer === image) return true;
    throw new Error(`it is "${answer}"`);
  });
}

/** Runs helm without keeping the other stories waiting. @throws with what it says */
export async function runHelmIn(namespace: string, ...args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)('helm', [...args, '--namespace', namespace]);
  // Logs of its tests are on stderr.
  return args[0] === 'test' ? stdout + stderr : stdout;
}
