// The commands of deploy/README.md, and what the API server makes of every pod of fixtures/pods today.

import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { template } from '../deploy/chart.ts';
import type { BlockName } from '../deploy/guide.ts';
import {
  buildGolden,
  buildPod,
  type Fields,
  INJECTED,
  normalise,
  readGolden,
  readPod,
  readStrangers,
  readVariants,
  UNTOUCHED,
} from '../deploy/injected.ts';
import { until } from '../support/until.ts';
import { DEFINITIONS, type Definition, definitionPath } from '../tools/definitions.ts';
import type { Namespace } from './cluster.ts';
import { openGuideShell } from './guide-shell.ts';
import { IMAGES } from './images.ts';
import { MASTER, NAME, startLocustTest, WORKER_KEPT_SECONDS } from './locust-test.ts';
import {
  asServed,
  END_MS,
  endRun,
  findStatus,
  getFixture,
  proveGoodEnd,
  runScenarioIn,
  START_MS,
  scrapeHeld,
  untilContainer,
} from './scenario.ts';

export function runGuideScenarios(): void {
  runScenarioIn('guide: a test, watched from its first pod to the report', async (namespace) => {
    using shell = await openGuideShell(getFixture().cluster, namespace);
    await using watch = shell.start('watch');
    await startLocustTest(namespace, {
      shape: 'native',
      isHeld: true,
      annotations: { 'lastscrape.dev/scrapes': '2' },
    });
    await untilContainer(namespace, MASTER, 'running', START_MS);
    await untilContainer(namespace, 'lastscrape', 'running', START_MS);

    const plan = await shell.run('check in the pod');
    assert.match(plan, /^3\. Quit {5}nothing \(LASTSCRAPE_QUIT is none\)\.$/m);
    assert.match(plan, /^ {2}http:\/\/localhost:9646\/metrics: /m);
    assert.match(plan, /^ {2}port:5557: /m);
    assert.doesNotMatch(plan, /process namespace/, 'no entry needs it');
    const kept = (await shell.run('kept')).split('\n').filter((line) => line.startsWith(`${namespace.name} `));
    const rows = kept.map((line) => line.split(/ +/).slice(1));
    assert.deepEqual(rows, [
      [MASTER, '<none>'],
      [`${NAME}-worker`, `${WORKER_KEPT_SECONDS}`],
    ]);

    await endRun(namespace);
    await untilContainer(namespace, MASTER, 'terminated', END_MS);
    await proveGoodEnd(namespace);
    assert.equal(JSON.parse(await shell.run('report')).outcome, 'scraped');

    const seen = () => listStates(watch.lines.map(({ text }) => text));
    await until('the last line of the watch', START_MS, async () =>
      seen().includes('0/3 Completed') ? true : undefined,
    );
    // What the guide says; the kubelet may tell two changes at once, never in another order.
    const sure = ['3/3 Running', '2/3 NotReady', '0/3 Completed'];
    const states = seen().filter((state) => sure.includes(state));
    assert.deepEqual(states, sure);
  });

  runScenarioIn('guide: the example of the kustomize component', async (namespace) => {
    using shell = await openGuideShell(getFixture().cluster, namespace);
    const printing = shell.run('example');
    // Plays Prometheus, once lastscrape counts.
    const { pod } = await namespace.untilPod(
      'the end of export-orders',
      END_MS,
      (each) => findStatus(each, 'export-orders')?.state.terminated !== undefined,
    );
    assert.match(await scrapeHeld(namespace, pod, 9102), /^orders_exported 3000$/m);
    const printed = await printing;
    const { outcome, targets, exitCode } = JSON.parse(/\{"summary".*\}/.exec(printed)?.[0] ?? '{}');
    assert.equal(outcome, 'scraped', printed);
    assert.equal(exitCode, 0);
    const quit = targets.map(({ target, result }: { target: string; result: string }) => [target, result]);
    assert.deepEqual(quit, [['statsd-exporter', 'stopped']]);
  });

  runScenarioIn('guide: the example of the kustomize component with a front', async (namespace) => {
    using shell = await openGuideShell(getFixture().cluster, namespace);
    const printed = await shell.run('front example');
    const { outcome, exitCode } = JSON.parse(/\{"summary".*\}/.exec(printed)?.[0] ?? '{}');
    assert.deepEqual([outcome, exitCode], ['scraped', 0], printed);
    for (const [metric, isRight] of [
      ['export_rows_total', (value: number) => value === 5_000],
      ['export_last_success_timestamp_seconds', (value: number) => value > 0],
    ] as const) {
      await until(`${metric} in Prometheus`, START_MS, async () => {
        const stored = (await getFixture().prometheus.readSamples(metric, namespace.name)).at(-1)?.value;
        if (stored !== undefined && isRight(stored)) return true;
        throw new Error(`it holds ${stored}`);
      });
    }
  });

  runScenarioIn('guide: monitors, rules, network policy and the Kyverno policy are accepted', async (namespace) => {
    using shell = await openGuideShell(getFixture().cluster, namespace);
    assert.match(await shell.run('networkpolicy'), /networkpolicy.networking.k8s.io\/locust-exporter created/);
    const known = (await getFixture().cluster.kubectl(['get', 'customresourcedefinitions', '--output=name'])).split(
      '\n',
    );
    const foreign = DEFINITIONS.filter(({ name }) =>
      known.includes(`customresourcedefinition.apiextensions.k8s.io/${name}`),
    );
    if (foreign.length > 0) {
      process.stderr.write(
        `LEFT OUT of the guide: what is for ${foreign.map(({ name }) => name).join(', ')}, which this cluster has: it could be obeyed\n`,
      );
      return;
    }
    for (const definition of DEFINITIONS) await define(definition);
    const applied: readonly (readonly [BlockName, RegExp])[] = [
      ['podmonitor', /podmonitor.monitoring.coreos.com\/locust-master created/],
      ['servicemonitor', /servicemonitor.monitoring.coreos.com\/locust-master created/],
      ['alerts', /prometheusrule.monitoring.coreos.com\/lastscrape created/],
    ];
    for (const [name, expected] of applied) assert.match(await shell.run(name), expected);
    await proveNoDrift(namespace);
    const { stdout } = template([`image=${IMAGES.lastscrape}`, 'engine=kyverno'], { only: ['policy', 'jobs-policy'] });
    const said = await getFixture().cluster.kubectl(['apply', '--filename', '-'], stdout);
    assert.match(said, /kyverno.io\/lastscrape created\n.*lastscrape-jobs created/);
  });

  runScenarioIn('guide: the API server makes of every pod what the golden files say', async (namespace) => {
    const wanted = [
      ...INJECTED.map((name) => [name, readPod(name), readGolden(name)] as const),
      ...UNTOUCHED.map((name) => [name, readPod(name), normalise(readPod(name))] as const),
      ...Object.entries(readStrangers()).map(([what, pod]) => [what, pod, normalise(pod)] as const),
      ...readVariants().map((row) => [JSON.stringify(row.annotations), buildPod(row), buildGolden(row)] as const),
    ];
    const wrong: string[] = [];
    for (const [what, pod, golden] of wanted) {
      if (!isDeepStrictEqual(normalise((await namespace.tryPod(pod)).pod), asServed(golden))) wrong.push(what);
    }
    assert.deepEqual(wrong, []);
  });
}

/** Every value of the chart that makes another object. */
const ALL_VALUES = [
  'monitors.enabled=true',
  'rules.enabled=true',
  'dashboard.enabled=true',
  'networkPolicy.namespaces={shop}',
  'keeper.enabled=true',
];

/**
 * Checks that the API server keeps what the chart renders as it is. Argo CD calls it drift where the server
 * writes a default into an item of a list.
 */
async function proveNoDrift({ name }: Namespace): Promise<void> {
  for (const engine of ['policy', 'kyverno']) {
    const { stdout } = template([`image=${IMAGES.lastscrape}`, `engine=${engine}`, ...ALL_VALUES]);
    for (const document of parseAllDocuments(stdout)) {
      const wanted = document.toJS();
      // The lists of these have keys, by which a default is no drift.
      if (/^(Deployment|Service)$/.test(wanted.kind)) continue;
      if (wanted.metadata.annotations?.['helm.sh/hook'] !== undefined) continue;
      const what = `${wanted.kind} ${wanted.metadata.name} of the engine ${engine}`;
      wanted.metadata.name = 'no-drift';
      if ('namespace' in wanted.metadata) wanted.metadata.namespace = name;
      const args = ['create', '--dry-run=server', '--output=json', '--filename=-'];
      const kept = JSON.parse(await getFixture().cluster.kubectl(args, JSON.stringify(wanted)));
      assert.deepEqual(pickAs(wanted, kept), wanted, what);
    }
  }
}

/** What `kept` has of the fields of `wanted`; lists whole. */
function pickAs(wanted: unknown, kept: unknown): unknown {
  if (Array.isArray(wanted) || typeof wanted !== 'object' || wanted === null) return kept;
  return Object.fromEntries(
    Object.entries(wanted).map(([name, value]) => [name, pickAs(value, (kept as Fields | undefined)?.[name])]),
  );
}

/** The columns READY and STATUS of `kubectl get pods`, without repetitions. */
function listStates(lines: readonly string[]): readonly string[] {
  const states = lines.flatMap((line) => /^\S+ +(\d+\/\d+ +\S+)/.exec(line)?.[1]?.replace(/ +/, ' ') ?? []);
  return states.filter((state, index) => state !== states[index - 1]);
}

async function define(definition: Definition): Promise<void> {
  const { cluster } = getFixture();
  const { name } = definition;
  cluster.defer(() => cluster.kubectl(['delete', 'customresourcedefinition', name, '--ignore-not-found']));
  // Not `apply`: the definition is longer than the annotation that it would write.
  await cluster.kubectl(['create', '--filename', definitionPath(definition)]);
  const resource = `customresourcedefinition/${name}`;
  // `kubectl wait` fails before the first condition is there.
  await until(`${name} known`, START_MS, async () => {
    await cluster.kubectl(['wait', '--for=condition=established', '--timeout=5s', resource]);
    return true;
  });
}
