// deploy/policy.yaml and its companions agree with the program and each other. What a real API server makes
// of the policy is in fixtures/injected; the cluster test asks a real one again.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { VERSION } from '../../src/base/version.ts';
import { readConfig } from '../../src/config/config.ts';
import { VARIABLES } from '../../src/config/variables.ts';
import { KINDS } from '../../src/main.ts';
import { CONTEXT } from '../observe/condition-context.ts';
import {
  type Container,
  findLastscrape,
  gateGoldens,
  INJECTED,
  isInPlace,
  normalise,
  type Pod,
  readAnswer,
  readGolden,
  readPod,
  readVariants,
  UNTOUCHED,
} from './injected.ts';

const stale = gateGoldens();

const ROOT = join(import.meta.dirname, '..', '..');
const ROUTES = [...['deploy/policy.yaml', 'deploy/job/component/lastscrape.yaml'], 'deploy/jobs-policy.yaml'];

function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

function readCode(file: string): string {
  return read(file).replaceAll(/^\s*#.*$/gm, '');
}

/**
 * What an annotation may set: every variable but EXIT_ZERO (the policies set it: a mistake in an annotation
 * must not fail a test), TERMINATION_LOG (the kubelet's path), HOOKS and files (an annotation mounts none), and
 * what needs the keeper's volumes in the pod.
 */
const ANNOTATED = VARIABLES.map(({ name }) => name).filter(
  (name) => !/^LASTSCRAPE_(EXIT_ZERO|TERMINATION_LOG|HOOKS|HAND_OVER.*|.*_FILE)$/.test(name),
);

function nameAnnotation(variable: string): string {
  return `lastscrape.dev/${variable.replace('LASTSCRAPE_', '').toLowerCase().replaceAll('_', '-')}`;
}

test('the policy lets an annotation set every variable but a few, in the order of the README', () => {
  const [policy] = parseAllDocuments(read('deploy/policy.yaml'));
  const variables: readonly { name: string; expression: string }[] = policy?.toJS().spec.variables;
  const { expression = '' } = variables.find(({ name }) => name === 'annotated') ?? {};
  const names = [...expression.matchAll(/'([A-Z_]+)'/g)].map(([, name]) => `LASTSCRAPE_${name}`);
  assert.deepEqual(names, ANNOTATED);
});

test('an injected container has a variable for each annotation, in the order of the README, always exits 0, and knows its pod', {
  skip: stale,
}, () => {
  for (const name of INJECTED) {
    const { env = [] } = findLastscrape(readGolden(name));
    const set: Readonly<Record<string, string>> = {
      ...(name.endsWith('native') ? { LASTSCRAPE_QUIT: 'none' } : {}),
      ...(name.startsWith('front-')
        ? { LASTSCRAPE_METRICS_URL: 'http://localhost:9647/metrics', LASTSCRAPE_FRONT: '9646' }
        : {}),
      ...(name === 'otel' ? { LASTSCRAPE_METRICS_URL: 'locust+http://localhost:8089' } : {}),
      ...(isInPlace(name)
        ? { LASTSCRAPE_FRONT: '9646', LASTSCRAPE_TERMINATION_GRACE: name === 'otel' ? '95s' : '125s' }
        : {}),
    };
    const expected = ANNOTATED.map((variable) =>
      variable in set
        ? { name: variable, value: set[variable] }
        : {
            name: variable,
            valueFrom: { fieldRef: { fieldPath: `metadata.annotations['${nameAnnotation(variable)}']` } },
          },
    );
    const always = [
      { name: 'LASTSCRAPE_EXIT_ZERO', value: 'true' },
      { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
    ];
    assert.deepEqual(env, [...expected, ...always], name);
  }
});

test('each route names the image once, at the version of the program', () => {
  for (const file of ROUTES) {
    assert.deepEqual(readCode(file).match(/lastscrape:[\w.-]+/g), [`lastscrape:${VERSION}`], file);
  }
  for (const name of INJECTED) assert.equal(findLastscrape(readGolden(name))['image'], `lastscrape:${VERSION}`);
});

test('an injected container reserves next to nothing, and may do nothing', () => {
  for (const name of INJECTED) {
    const { resources, securityContext, ...container } = findLastscrape(readGolden(name));
    const requests = { cpu: '10m', memory: '64Mi' };
    assert.deepEqual(resources, { requests, limits: { ...requests, cpu: '500m' } });
    assert.deepEqual(securityContext, {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      readOnlyRootFilesystem: true,
      runAsGroup: 65532,
      runAsNonRoot: true,
      runAsUser: name === 'otel-annotated' ? 1000 : 65532,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    assert.equal(container['terminationMessagePolicy'], 'FallbackToLogsOnError');
    assert.equal(container['volumeMounts'], undefined);
  }
});

test('an injected container restarts after an accidental signal only', () => {
  // SIGABRT (V8 out of memory), SIGKILL (the kernel out of memory), SIGSEGV; not SIGTERM, not its own codes.
  const exitCodes = { operator: 'In', values: [134, 137, 139] };
  for (const name of INJECTED) {
    const { restartPolicy, restartPolicyRules } = findLastscrape(readGolden(name));
    assert.equal(restartPolicy, isInPlace(name) ? 'Always' : 'Never');
    assert.deepEqual(restartPolicyRules, isInPlace(name) ? undefined : [{ action: 'Restart', exitCodes }]);
  }
});

test('normalise() leaves of the answer of an API server the golden, and of that the pod with one more container', () => {
  for (const name of INJECTED) {
    assert.deepEqual(normalise(readAnswer(name)), readGolden(name), name);
    if (isInPlace(name)) continue;
    const { spec, ...rest } = readGolden(name);
    const containers = spec.containers.slice(0, -1);
    const own = normalise(readPod(name));
    const expected = name.startsWith('front-') ? moveExporter(own) : own;
    assert.deepEqual({ ...rest, spec: { ...spec, containers } }, expected, name);
  }
});

test('without an exporter lastscrape is the native sidecar that it would be, with its name, port and annotations, and a grace for the TTL', {
  skip: stale,
}, () => {
  for (const [name, seconds] of [
    ['otel', 100],
    ['otel-annotated', 130],
  ] as const) {
    const golden = readGolden(name);
    const own = normalise(readPod(name));
    const { initContainers: [added] = [], terminationGracePeriodSeconds, ...spec } = golden.spec;
    const { name: container, ports } = added ?? {};
    assert.deepEqual([container, ports], ['locust-metrics-exporter', [{ containerPort: 9646 }]]);
    assert.equal(golden.spec.initContainers?.length, 1);
    assert.equal(terminationGracePeriodSeconds, seconds);
    assert.deepEqual(spec, own.spec, name);
    const { annotations } = readPod('native').metadata;
    assert.deepEqual(golden.metadata.annotations, { ...annotations, ...own.metadata.annotations }, name);
  }
});

function moveExporter({ spec, ...rest }: Pod): Pod {
  const move = (container: Container): Container => {
    if (container.name !== 'locust-metrics-exporter') return container;
    const env = container.env?.map((each) =>
      each.name === 'LOCUST_EXPORTER_WEB_LISTEN_ADDRESS' ? { ...each, value: '127.0.0.1:9647' } : each,
    );
    assert.notDeepEqual(env, container.env);
    return { ...container, env } as Container;
  };
  const { containers, initContainers } = spec;
  const init = initContainers === undefined ? {} : { initContainers: initContainers.map(move) };
  return { ...rest, spec: { ...spec, containers: containers.map(move), ...init } };
}

test('normalise() keeps every field of a pod that is not a default', () => {
  for (const name of [...INJECTED, ...UNTOUCHED]) {
    const { metadata, ...pod } = readPod(name);
    const { name: _, ...rest } = metadata;
    assert.deepEqual(normalise({ metadata, ...pod }), { ...pod, metadata: rest }, name);
  }
});

test('the grace is raised for what lastscrape reads as a duration, and for nothing else', () => {
  const rows = readVariants().filter(({ annotations }) => 'lastscrape.dev/termination-grace' in annotations);
  assert.ok(rows.length > 15);
  for (const { annotations, ownSeconds = 30, seconds = 30 } of rows) {
    const value = annotations['lastscrape.dev/termination-grace'];
    const result = readConfig({ LASTSCRAPE_TERMINATION_GRACE: value }, KINDS, {
      pid: 1,
      kill: () => {},
      pod: CONTEXT.pod,
    });
    const wantedSeconds = 'config' in result ? Math.ceil(result.config.limits.terminationGraceMs / 1_000) + 5 : 0;
    assert.equal(
      seconds,
      Math.max(ownSeconds, wantedSeconds > 5 ? wantedSeconds : 0),
      `${value} in a pod of ${ownSeconds} s`,
    );
  }
});
