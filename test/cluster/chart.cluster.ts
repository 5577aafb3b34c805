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

const POLICIES = 'mutatingadmissionpolicies,validatingadmissionpolicies';
/** What it makes outside of namespaces: kinds, and what follows the name. */
const MADE = [
  ['mutatingadmission', ['', '-jobs']],
  ['validatingadmission', ['-annotations', '-jobs']],
] as const;

export function runChartScenarios(): void {
  runScenarioIn('chart: installed, tested, upgraded and taken away', {}, async (namespace) => {
    requirePolicies();
    const { cluster } = getFixture();
    const name = `chart-${cluster.run}`;
    // Not for the namespace of the release itself, in which `helm test` has its pods.
    const other = await cluster.openNamespace('chart-pods');
    const values = [
      ...['--set', `name=${name}`],
      ...['--set', 'namespaces[0].key=kubernetes.io/metadata.name,namespaces[0].operator=In'],
      ...['--set', `namespaces[0].values={${other.name}}`],
    ];
    const helm = (...args: readonly string[]) => runHelmIn(namespace.name, ...args);
    const isThere = async () => (await cluster.kubectl(['get', POLICIES, '--output=name'])).includes(`/${name}`);
    const readImage = (namespaceName: string) =>
      cluster.kubectl([
        ...['run', 'try-lastscrape', '--image=none', '--restart=Never', '--dry-run=server'],
        ...['--namespace', namespaceName, '--labels=lastscrape.dev/inject=true'],
        ...['--annotations=prometheus.io/port=8000', '--output=jsonpath={.spec.initContainers[*].image}'],
      ]);
    const untilImage = (image: string) =>
      until(`lastscrape of the image ${image}`, START_MS, async () => {
        const answer = await readImage(other.name);
        if (answer === image) return true;
        throw new Error(`it is "${answer}"`);
      });
    cluster.defer(() => helm('uninstall', name, '--ignore-not-found'));

    const notes = await helm('install', name, CHART, ...values, '--set', `image=${IMAGES.renamed}`);
    for (const [kind, names] of MADE) {
      const label = [`${RUN_LABEL}=${cluster.run}`];
      await cluster.kubectl([
        'label',
        `${kind}policies,${kind}policybindings`,
        ...names.map((each) => name + each),
        ...label,
      ]);
    }
    assert.match(notes, /must print "locust-metrics-exporter lastscrape"/);
    await untilImage(IMAGES.renamed);
    await helm('upgrade', name, CHART, ...values, '--set', `image=${IMAGES.lastscrape}`);
    await untilImage(IMAGES.lastscrape);
    const tested = await helm('test', name, '--timeout', '2m');
    assert.match(tested, /Phase: +Succeeded[\s\S]*Phase: +Succeeded/);
    assert.match(tested, /^lastscrape \d/m);
    // Pods of other namespaces than those of `namespaces` stay as they are.
    assert.equal(await readImage(namespace.name), '');
    // A test that fails leaves nothing; this image knows no --version.
    await helm('upgrade', name, CHART, ...values, '--set', `image=${IMAGES.mesh}`);
    await assert.rejects(helm('test', name, '--timeout', '2m'), /test-image/);
    await helm('uninstall', name);
    assert.equal(await isThere(), false);
    assert.equal(await cluster.kubectl(['get', 'pods', '--namespace', namespace.name, '--output=name']), '');
  });

  runScenarioIn('chart: a wrong value is refused, and nothing is installed', {}, async (namespace) => {
    for (const [value, said] of [
      ['jobs.enabled=yes,image=a', /jobs.enabled|got string, want boolean/],
      getFixture().hasPolicies
        ? (['jobs.enabled=true', /image is not set/] as const)
        : (['image=a', /this cluster has no MutatingAdmissionPolicy: /] as const),
    ] as const) {
      await assert.rejects(runHelmIn(namespace.name, 'install', 'wrong', CHART, '--set', value), said);
    }
    assert.equal(await runHelmIn(namespace.name, 'list', '--all', '--short'), '');
  });
}

/** Runs helm without keeping the other stories waiting. @throws with what it says */
async function runHelmIn(namespace: string, ...args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)('helm', [...args, '--namespace', namespace]);
  // Logs of its tests are on stderr.
  return args[0] === 'test' ? stdout + stderr : stdout;
}
