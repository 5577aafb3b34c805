// deploy/annotations-policy.yaml on a real API server: what kubectl prints of an unknown annotation on each
// kind that has pods in it, and that nothing is refused.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ELSEWHERE, readPod } from '../deploy/injected.ts';
import { until } from '../support/until.ts';
import { type Manifest, RUN_LABEL, runShell } from './cluster.ts';
import { openGuideShell } from './guide-shell.ts';
import { getFixture, runScenarioIn, START_MS } from './scenario.ts';

const POLICY = join(import.meta.dirname, '../../deploy/annotations-policy.yaml');
const HELPERS = join(import.meta.dirname, '../../deploy/chart/templates/_helpers.tpl');

const [, NAMES = ''] = /"lastscrape\.annotations\.all" -}}\n(.*)/.exec(readFileSync(HELPERS, 'utf8')) ?? [];
const KNOWN = `${NAMES} HOOK PUSHGATEWAY HAND_OVER`.toLowerCase().replaceAll('_', '-').replaceAll(' ', ', ');

type Annotations = Readonly<Record<string, string>>;
type Fields = Readonly<Record<string, unknown>>;

const UNKNOWN: Annotations = { 'lastscrape.dev/tll': '2m', 'lastscrape.dev/ttl': '2m' };
const WARNING = unknown('lastscrape.dev/tll');

function unknown(names: string): string {
  return `${names}: lastscrape has no such annotation and ignores it; lastscrape.dev/ may be followed by ${KNOWN}`;
}

function misplaced(kind: string, place: string): string {
  return `lastscrape.dev/ttl: an annotation of lastscrape does nothing on the ${kind} itself; it belongs on ${place}`;
}

const NO_LABEL = 'lastscrape.dev/injcet';

function noLabel(name: string): string {
  return `${name}: does nothing as a label; the only label is lastscrape.dev/inject, the rest are annotations`;
}

function unreadable(values: string): string {
  return `${values}: cannot be read, and nothing would be held; must be a duration such as 90s or 1m30s`;
}

const NOT_ADDED = 'lastscrape is not added: its image is for Linux on amd64 and arm64';

const SPEC = { restartPolicy: 'Never', containers: [{ name: 'main', image: 'none' }] };

function pod(annotations?: Annotations): Manifest {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'pod', annotations }, spec: SPEC };
}

function withLabels(manifest: Manifest, ...names: readonly string[]): Manifest {
  const labels = Object.fromEntries(names.map((name) => [name, 'true']));
  const { kind, spec, metadata } = manifest as unknown as { kind: string; spec: Fields; metadata: Fields };
  if (kind === 'Pod') return { ...manifest, metadata: { ...metadata, labels } };
  if (manifest.apiVersion === 'locust.io/v1') return { ...manifest, spec: { ...spec, labels: { master: labels } } };
  const place =
    kind === 'LocustTest' ? ['master'] : [...(kind === 'Job' ? [] : ['jobTemplate', 'spec']), 'template', 'metadata'];
  const put = (value: Fields, [first, ...rest]: readonly string[]): Fields =>
    first === undefined ? { ...value, labels } : { ...value, [first]: put((value[first] ?? {}) as Fields, rest) };
  return { ...manifest, spec: put(spec, place) };
}

function job(annotations?: Annotations, own?: Annotations): Manifest {
  const template = { metadata: { annotations }, spec: SPEC };
  return { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'job', annotations: own }, spec: { template } };
}

function cronJob(annotations?: Annotations, own?: Annotations): Manifest {
  const { spec } = job(annotations);
  const metadata = { name: 'cron-job', annotations: own };
  return {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata,
    spec: { schedule: '0 0 1 1 *', suspend: true, jobTemplate: { spec } },
  };
}

const COMMAND = '--locustfile /lotest/src/test.py --host http://localhost';
const NODE = { command: COMMAND, replicas: 1 };

function locustTestV2(annotations?: Annotations, own?: Annotations): Manifest {
  const metadata = { name: 'locust-test', annotations: own };
  const spec = { image: 'none', master: { command: COMMAND, annotations }, worker: NODE };
  return { apiVersion: 'locust.io/v2', kind: 'LocustTest', metadata, spec };
}

function locustTestV1(annotations?: Annotations): Manifest {
  const metadata = { name: 'locust-test' };
  const commands = { masterCommandSeed: COMMAND, workerCommandSeed: COMMAND, workerReplicas: 1, image: 'none' };
  return {
    apiVersion: 'locust.io/v1',
    kind: 'LocustTest',
    metadata,
    spec: { ...commands, annotations: { master: annotations } },
  };
}

/** Each object, and the warnings that kubectl prints for it. */
const ROWS: readonly (readonly [what: string, manifest: Manifest, warnings: readonly string[]])[] = [
  ['a pod', pod(UNKNOWN), [WARNING]],
  ['a Job', job(UNKNOWN), [WARNING]],
  ['a CronJob', cronJob(UNKNOWN), [WARNING]],
  ['a LocustTest, v2', locustTestV2(UNKNOWN), [WARNING]],
  ['a LocustTest, v1', locustTestV1(UNKNOWN), [WARNING]],
  [
    'two at once',
    pod({ 'lastscrape.dev/done_when': 'x', 'lastscrape.dev/TTL': '1m' }),
    [unknown('lastscrape.dev/TTL, lastscrape.dev/done_when')],
  ],
  ...Object.entries(ELSEWHERE).flatMap(([what, own]) => {
    const { metadata, spec } = readPod('regular');
    const master = { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name: 'pod' }, spec: { ...spec, ...own } };
    const locustTest = locustTestV2();
    return [
      [`a master, ${what}`, master, [NOT_ADDED]] as const,
      [
        `a LocustTest, ${what}`,
        { ...locustTest, spec: { ...(locustTest['spec'] as Fields), scheduling: own } },
        [NOT_ADDED],
      ] as const,
    ];
  }),
  ['the policies set it', pod({ 'lastscrape.dev/exit-zero': 'true' }), [unknown('lastscrape.dev/exit-zero')]],
  [
    'a label that is nearly true',
    { ...pod(), metadata: { name: 'pod', labels: { 'lastscrape.dev/inject': 'True' } } },
    ['lastscrape.dev/inject: True does nothing; must be true or false, in small letters'],
  ],
  [
    'the label as an annotation',
    pod({ 'lastscrape.dev/inject': 'false' }),
    ['lastscrape.dev/inject is a label, and does nothing as an annotation'],
  ],
  ...[pod, job, cronJob, locustTestV2, locustTestV1].flatMap((make) => [
    [
      `a label that is nearly ours, ${make.name}`,
      withLabels(make(), NO_LABEL, 'lastscrape.dev/inject', 'lastscrape.dev/test'),
      [noLabel(NO_LABEL)],
    ] as const,
    [
      `durations that cannot be read, ${make.name}`,
      make({ 'lastscrape.dev/ttl': '2mins', 'lastscrape.dev/poll': ' 1m30s ', 'lastscrape.dev/settle': '9O' }),
      [unreadable('lastscrape.dev/ttl: 2mins, lastscrape.dev/settle: 9O')],
    ] as const,
  ]),
  [
    'other values that cannot be read',
    pod({ 'lastscrape.dev/scrapes': 'x'.repeat(10_000), 'lastscrape.dev/dry-run': 'y\u001b' }),
    [
      `lastscrape.dev/scrapes: ${'x'.repeat(60)}... must be auto or a whole number from 0 to 1000, lastscrape.dev/dry-run: (control characters) must be true or false: cannot be read, and nothing would be held`,
    ],
  ],
  ['what can be read', pod({ 'lastscrape.dev/scrapes': ' auto ', 'lastscrape.dev/log-level': 'warn' }), []],
  ['an annotation written as a label', withLabels(job(), 'lastscrape.dev/hook'), [noLabel('lastscrape.dev/hook')]],
  [
    'durations that can be read',
    pod({ 'lastscrape.dev/ttl': '90', 'lastscrape.dev/poll': '', 'lastscrape.dev/settle': '1h2m3s4ms' }),
    [],
  ],
  ['a Job itself', job(undefined, { 'lastscrape.dev/ttl': '2m' }), [misplaced('Job', 'its pod template')]],
  ['a CronJob itself', cronJob(undefined, { 'lastscrape.dev/ttl': '2m' }), [misplaced('CronJob', 'its pod template')]],
  [
    'a LocustTest itself',
    locustTestV2(undefined, { 'lastscrape.dev/ttl': '2m' }),
    [misplaced('LocustTest', 'its master')],
  ],
  ...[pod, job, cronJob, locustTestV2, locustTestV1].flatMap((make) => [
    [
      `known and foreign annotations, ${make.name}`,
      make({ 'lastscrape.dev/ttl': '2m', 'example.com/tll': '2m' }),
      [],
    ] as const,
    [`no annotation, ${make.name}`, make(), []] as const,
  ]),
];

export function runAnnotationScenarios(): void {
  runScenarioIn('annotations: kubectl warns of annotations without effect, and refuses nothing', async (namespace) => {
    const { cluster } = getFixture();
    using shell = await openGuideShell(cluster, namespace);
    await shell.run('annotations');
    try {
      await cluster.kubectl([
        ...['label', 'validatingadmissionpolicies,validatingadmissionpolicybindings', 'lastscrape-annotations'],
        ...[`${RUN_LABEL}=${cluster.run}`, '--overwrite'],
      ]);
      await checkWarnings(namespace.name);
      assert.equal(await shell.run('annotations check'), 'pod/try-lastscrape created (server dry run)\n');
    } finally {
      await cluster.kubectl(['delete', '--filename', POLICY]);
    }
  });
}

async function checkWarnings(namespace: string): Promise<void> {
  const listWarnings = (args: string, manifest?: Manifest) =>
    readWarnings(`kubectl --namespace=${namespace} ${args}`, manifest);
  const create = 'create --dry-run=server --filename=-';
  // The API server learns of the policy, and of the definition, a moment after it took them.
  await until('the policy at work', START_MS, async () =>
    (await listWarnings(create, locustTestV1(UNKNOWN))).length > 0 ? true : undefined,
  );
  for (const [what, manifest, warnings] of ROWS) assert.deepEqual(await listWarnings(create, manifest), warnings, what);

  assert.deepEqual(await listWarnings('create --filename=-', cronJob()), []);
  const annotated = await listWarnings('annotate cronjob/cron-job lastscrape.dev/ttl=2m');
  assert.deepEqual(annotated, [misplaced('CronJob', 'its pod template')]);
  const policy = [
    'get',
    'validatingadmissionpolicy/lastscrape-annotations',
    '--output=jsonpath={.status.typeChecking}',
  ];
  // A controller checks the expressions, some time after the policy was made.
  const found = await until('what is wrong in the expressions', START_MS, async () => {
    const printed = await getFixture().cluster.kubectl(policy);
    return printed === '' ? undefined : printed;
  });
  assert.equal(found, '{}');
}

/** What kubectl warned of by this policy; it must end well. Other policies and the API server warn, too. */
async function readWarnings(command: string, manifest?: Manifest): Promise<readonly string[]> {
  const input = manifest === undefined ? '/dev/null' : `<(cat <<'EOF'\n${JSON.stringify(manifest)}\nEOF\n)`;
  const printed = await runShell(`${command} 2>&1 >/dev/null < ${input}`, import.meta.dirname);
  return (
    printed
      .split('\n')
      .filter((line) => / with binding 'lastscrape-annotations'/.test(line))
      .map((line) => line.replace(/^Warning: .* with binding 'lastscrape-annotations': /, ''))
      // CEL goes over a map in any order.
      .map((line) =>
        line.replace(/^[^:]+(?=: lastscrape has no such)/, (names) => names.split(', ').toSorted().join(', ')),
      )
      .toSorted()
  );
}
