// deploy/job, built by the real kustomize: the component adds the policy's container, last, to Jobs.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { test } from 'node:test';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { makeFolder } from '../support/folder.ts';
import { findPrograms, gate } from '../support/programs.ts';
import { type Container, type Fields, findLastscrape, gateGoldens, type Pod, readGolden, readPod } from './injected.ts';
import { findSidecar, readJobGolden } from './injected-jobs.ts';

type Job = Fields & {
  kind: string;
  metadata: { name: string; labels?: Record<string, string> };
  spec: { template: Pod };
};

const DEPLOY = join(realpathSync(import.meta.dirname), '..', '..', 'deploy');
const programs = findPrograms();
const skip = gate(programs, 'test/deploy/kustomize.test.ts', ['kustomize']);
const stale = gateGoldens();

function build(folder: string): Job[] {
  const [file = '', ...args] = programs.kustomize ?? [];
  const text = execFileSync(file, [...args, folder], { encoding: 'utf8' });
  return parseAllDocuments(text).map((document) => document.toJS());
}

/** A kustomization of these resources with components of deploy/job, in a folder of its own. */
function buildWith(
  resources: readonly Fields[],
  more: Fields = {},
  names: readonly ComponentName[] = ['component'],
): Job[] {
  return build(writeKustomization(resources, more, names));
}

type ComponentName = 'component' | 'front' | 'hand-over' | 'hook';

function writeKustomization(resources: readonly Fields[], more: Fields, names: readonly ComponentName[]): string {
  const folder = makeFolder();
  writeFileSync(join(folder, 'resources.yaml'), resources.map((resource) => stringify(resource)).join('---\n'));
  const components = names.map((name) => relative(folder, join(DEPLOY, 'job', name)));
  writeFileSync(join(folder, 'kustomization.yaml'), stringify({ resources: ['resources.yaml'], components, ...more }));
  return folder;
}

function buildJob(
  name: string,
  spec: Pod['spec'],
  labels: Record<string, string> = {},
): Fields & Pick<Job, 'metadata'> {
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, labels },
    spec: { template: { spec: { restartPolicy: 'Never', ...spec } } },
  };
}

function buildCronJob(
  name: string,
  spec: Pod['spec'],
  labels: Record<string, string> = {},
): Fields & Pick<Job, 'metadata'> {
  const job = buildJob(name, spec, labels);
  return { ...job, kind: 'CronJob', spec: { jobTemplate: { spec: job['spec'] } } };
}

function findSpec(built: readonly Job[], name: string): Pod['spec'] {
  const found = built.find(({ metadata }) => metadata.name === name) as Job & { spec: { jobTemplate?: Job } };
  return (found.spec.jobTemplate ?? found).spec.template.spec;
}

function isNamedAs({ metadata }: Pick<Job, 'metadata'>): (job: Job) => boolean {
  return (job) => job.metadata.name === metadata.name;
}

/** The policy's container, without what the component leaves out (deploy/job/component/lastscrape.yaml). */
function expectedContainer(): Container {
  const { restartPolicy, restartPolicyRules, env = [], ...container } = findLastscrape(readGolden('regular'));
  return { ...container, env: env.filter(({ name }) => name !== 'LASTSCRAPE_EXIT_ZERO') };
}

type Volumes = { readonly volumes?: readonly Fields[] };

const MAIN = { name: 'main', image: 'main:1' };

test("the component appends the container of the policy to the operator's shapes, field by field", {
  skip: skip || stale,
}, () => {
  for (const name of ['regular', 'native'] as const) {
    const [job] = buildWith([buildJob(name, readPod(name).spec)]);
    const { spec } = (job as Job).spec.template;
    assert.deepEqual(spec.containers, [...readPod(name).spec.containers, expectedContainer()]);
    assert.deepEqual(spec.initContainers, readPod(name).spec.initContainers);
  }
});

test('the component leaves a Job with lastscrape.dev/inject: "false" and other kinds as they are', {
  skip,
}, () => {
  const template = { spec: { containers: [MAIN] } };
  const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' }, spec: { template } };
  const cronJob = {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'nightly' },
    spec: { jobTemplate: { spec: { template } } },
  };
  const migrate = buildJob('migrate', { containers: [MAIN] }, { 'lastscrape.dev/inject': 'false' });
  const wanted = buildJob('wanted', { containers: [MAIN] }, { 'lastscrape.dev/inject': 'true' });
  const built = buildWith([migrate, deployment, cronJob, wanted]);
  for (const other of [migrate, deployment, cronJob]) assert.deepEqual(built.find(isNamedAs(other)), other);
  assert.equal(built.find(isNamedAs(wanted))?.spec.template.spec.containers.length, 2);
});

test('the image is replaced by "images" of the kustomization', { skip }, () => {
  const images = [{ name: 'lastscrape', newName: 'registry.example.com/tools/lastscrape', newTag: '9.9.9' }];
  const [job] = buildWith([buildJob('load', { containers: [MAIN] })], { images });
  const built = (job as Job).spec.template.spec.containers.map((container) => container['image']);
  assert.deepEqual(built, ['main:1', 'registry.example.com/tools/lastscrape:9.9.9']);
});

test('the example is its Job with lastscrape last, which sees the file that main leaves behind', {
  skip: skip || stale,
}, () => {
  const [job, ...others] = build(join(DEPLOY, 'job', 'example'));
  assert.deepEqual(others, []);
  const { metadata, spec } = (job as Job).spec.template;
  const [main, exporter, lastscrape] = spec.containers;
  assert.deepEqual([main?.name, exporter?.name, spec.containers.length], ['export-orders', 'statsd-exporter', 3]);
  const volumeMounts = [{ name: 'shared', mountPath: '/shared', readOnly: true }];
  assert.deepEqual(lastscrape, { ...expectedContainer(), volumeMounts });
  assert.deepEqual(spec['volumes'], [{ name: 'shared', emptyDir: {} }]);
  assert.deepEqual(main?.volumeMounts, [{ name: 'shared', mountPath: '/shared' }]);
  const file = metadata.annotations?.['lastscrape.dev/done-when']?.replace('file:', '');
  assert.ok(String(main?.['args']).startsWith(`trap 'touch ${file}' EXIT\n`), file);
});

/** The policy's native sidecar in a pod without annotations; the component read its URL from there. */
function expectedSidecar(): Container {
  const { env = [], ...container } = findSidecar(readJobGolden('wrong-ttl'));
  const fieldRef = { fieldPath: "metadata.annotations['lastscrape.dev/metrics-url']" };
  const metricsUrl = { name: 'LASTSCRAPE_METRICS_URL', valueFrom: { fieldRef } };
  return { ...container, env: byName(env.map((each) => (each.name === metricsUrl.name ? metricsUrl : each))) };
}

function byName<Item extends { name: string }>(items: readonly Item[]): readonly Item[] {
  return items.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

test('the component with a front adds the native sidecar of the policy, last, to Jobs and CronJobs', {
  skip: skip || stale,
}, () => {
  const before = { name: 'statsd-exporter', image: 'statsd:1', restartPolicy: 'Always' };
  const setUp = { name: 'fetch', image: 'fetch:1' };
  const [, pushed = ''] = /`(hostAliases: .*?)`/.exec(readFileSync(join(DEPLOY, 'README.md'), 'utf8')) ?? [];
  const spec = { restartPolicy: 'Never', containers: [MAIN], ...parse(pushed) };
  const jobs = [
    buildJob('plain', spec),
    buildJob('prepared', { ...spec, initContainers: [setUp, before] }),
    buildJob('other', spec, { 'lastscrape.dev/inject': 'false' }),
    buildCronJob('nightly', spec),
  ];
  const built = buildWith(jobs, {}, ['front']);
  for (const [name, others] of [
    ['plain', []],
    ['prepared', [setUp, before]],
    ['nightly', []],
  ] as const) {
    const { initContainers = [], terminationGracePeriodSeconds, ...rest } = findSpec(built, name);
    const { env = [], ...container } = initContainers.at(-1) as Container;
    assert.deepEqual({ ...container, env: byName(env) }, expectedSidecar(), name);
    assert.deepEqual(initContainers.slice(0, -1), others, name);
    assert.equal(terminationGracePeriodSeconds, 100);
    assert.deepEqual(rest, spec, name);
  }
  assert.deepEqual(findSpec(built, 'other'), spec);
  assert.deepEqual(spec.hostAliases, [{ ip: '127.0.0.1', hostnames: ['pushgateway.monitoring.svc'] }]);
});

test('the component of the hook adds to the first container what the policy adds, and leaves lastscrape last', {
  skip: skip || stale,
}, () => {
  const own = {
    ...MAIN,
    env: [{ name: 'PYTHONPATH', value: '/app' }],
    volumeMounts: [{ name: 'work', mountPath: '/w' }],
  };
  const spec = {
    restartPolicy: 'Never',
    containers: [own, { ...MAIN, name: 'second' }],
    volumes: [{ name: 'work', emptyDir: {} }],
  };
  const plain = { restartPolicy: 'Never', containers: [MAIN] };
  const other = buildJob('other', plain, { 'lastscrape.dev/inject': 'false' });
  const built = buildWith([buildJob('own', spec), buildCronJob('nightly', plain), other], {}, ['front', 'hook']);
  assert.equal(built.length, 3, 'nothing but what was there');
  const mount = { name: 'lastscrape-hooks', mountPath: '/lastscrape-hooks' };
  const url = { name: 'LASTSCRAPE_SNAPSHOT_URL', value: 'http://127.0.0.1:9469/-/snapshot' };
  const python = (behind: string) => ({ name: 'PYTHONPATH', value: `/lastscrape-hooks/python:${behind}` });
  for (const [name, first, volumes] of [
    ['own', { ...own, env: [python('/app'), url], volumeMounts: [...own.volumeMounts, mount] }, spec.volumes],
    ['nightly', { ...MAIN, env: [python(''), url], volumeMounts: [mount] }, []],
  ] as const) {
    const pod = findSpec(built, name) as Pod['spec'] & { volumes?: readonly Fields[] };
    const { containers, initContainers = [], volumes: all = [] } = pod;
    assert.deepEqual(containers[0], first);
    assert.deepEqual(new Set(all), new Set([...volumes, { name: mount.name, emptyDir: {} }]));
    const { env = [], volumeMounts, lifecycle } = initContainers.at(-1) as Container;
    assert.deepEqual(volumeMounts, [mount]);
    assert.deepEqual(lifecycle, findSidecar(readJobGolden('hooked'))['lifecycle']);
    const hooks = env.filter(({ name }) => name === 'LASTSCRAPE_HOOKS');
    assert.deepEqual(hooks, [{ name: 'LASTSCRAPE_HOOKS', value: mount.mountPath }]);
  }
  assert.deepEqual(findSpec(built, 'other'), plain);
  // Each with its components, in one kustomization.
  const folders = ['one', 'two'].map((each) => writeKustomization([buildJob(each, plain)], {}, ['front', 'hook']));
  assert.equal(buildWith([], { resources: folders.map((each) => `../${basename(each)}`) }).length, 2);
});

test('the component of the hand-over adds what docs/keeper.md shows, with or without the hook, and nothing else', {
  skip,
}, () => {
  const page = readFileSync(join(DEPLOY, '..', 'docs', 'keeper.md'), 'utf8');
  const [, shown = ''] = /^```yaml\n(env:[\s\S]*?)^```$/m.exec(page) ?? [];
  const { env, volumeMounts, volumes: needed } = parse(shown);
  const volumes = [{ name: 'work', emptyDir: {} }];
  const initContainers = [{ name: 'fetch', image: 'fetch:1' }];
  const spec = { restartPolicy: 'Never', containers: [MAIN], volumes, initContainers };
  for (const more of [[], ['hook']] as const) {
    const jobs = [
      buildJob('job', spec),
      buildCronJob('cron', spec),
      buildJob('no', spec, { 'lastscrape.dev/inject': 'false' }),
    ];
    const [before, after] = [[], ['hand-over'] as const].map((own) => buildWith(jobs, {}, ['front', ...own, ...more]));
    assert.ok(before !== undefined && after !== undefined);
    assert.deepEqual(findSpec(after, 'no'), spec);
    for (const name of ['job', 'cron']) {
      const { initContainers: was = [], volumes: had = [], ...rest } = findSpec(before, name) as Pod['spec'] & Volumes;
      const { initContainers: now = [], volumes: has = [], ...same } = findSpec(after, name) as Pod['spec'] & Volumes;
      assert.deepEqual(same, rest);
      assert.deepEqual(new Set(has), new Set([...had, ...needed]));
      assert.deepEqual(now.slice(0, -1), initContainers);
      const [plain, container] = [was.at(-1), now.at(-1)];
      // The front has POD_IP already.
      const others = plain?.env?.filter((each) => each.name !== 'POD_IP') ?? [];
      assert.deepEqual(byName(container?.env ?? []), byName([...others, ...env]), name);
      const mounts = [...((plain?.volumeMounts as readonly Fields[]) ?? []), ...volumeMounts];
      assert.deepEqual(new Set(container?.volumeMounts as readonly Fields[]), new Set(mounts));
    }
  }
});

test('what main has stays: a grace of its own, and a PYTHONPATH of envFrom, are kept by a label, or the build fails', {
  skip,
}, () => {
  const grace = { containers: [MAIN], terminationGracePeriodSeconds: 600 };
  const from = { containers: [{ ...MAIN, envFrom: [{ configMapRef: { name: 'report' } }] }] };
  const keepsGrace = { 'lastscrape.dev/grace': 'own' };
  for (const make of [buildJob, buildCronJob]) {
    assert.throws(() => buildWith([make('own', grace)], {}, ['front']), /terminationGracePeriodSeconds failed/);
    const [kept] = buildWith([make('own', grace, keepsGrace)], {}, ['front']);
    assert.equal(findSpec([kept as Job], 'own')['terminationGracePeriodSeconds'], 600);
    assert.throws(() => buildWith([make('own', from)], {}, ['front', 'hook']), /envFrom failed/);
    const keepsPath = { 'lastscrape.dev/python-path': 'own' };
    assert.equal(buildWith([make('own', from, keepsPath)], {}, ['front', 'hook']).length, 1);
  }
});

test('the example with a front is its CronJob with lastscrape last, and nothing else', { skip: skip || stale }, () => {
  const built = build(join(DEPLOY, 'job', 'front-example'));
  assert.deepEqual(built.map(({ kind }) => kind).toSorted(), ['ConfigMap', 'CronJob']);
  const { spec } = built.find(({ kind }) => kind === 'CronJob') as unknown as {
    spec: { jobTemplate: { spec: { template: Pod } } };
  };
  const { metadata, spec: pod } = spec.jobTemplate.spec.template;
  const sidecars = pod.initContainers?.map(({ name }) => name);
  assert.deepEqual(sidecars, ['lastscrape']);
  assert.deepEqual(byName(pod.initContainers?.[0]?.env ?? []), expectedSidecar().env);
  const program = readFileSync(join(DEPLOY, 'job', 'front-example', 'export.py'), 'utf8');
  const port = /ThreadingHTTPServer\(\("", (\d+)\)/.exec(program)?.[1];
  assert.equal(metadata.annotations?.['lastscrape.dev/metrics-url'], `http://localhost:${port}/metrics`);
});
