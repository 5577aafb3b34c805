// deploy/jobs-policy.yaml agrees with the program. What an API server
// makes of labelled pods is in fixtures/injected/jobs; the cluster test asks a real one again.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { readConfig } from '../../src/config/config.ts';
import { KINDS } from '../../src/main.ts';
import { CONTEXT } from '../observe/condition-context.ts';
import { type Fields, normalise, type Pod } from './injected.ts';
import { findSidecar, JOB_NOT_LAST, JOBS_INJECTED, readJobGolden, readJobPod } from './injected-jobs.ts';

const ROOT = join(import.meta.dirname, '..', '..');

function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

function resolveVariables(pod: Pod): Record<string, string> {
  const { env = [] } = findSidecar(pod);
  return Object.fromEntries(
    env.map(({ name, value, valueFrom }) => {
      const [, annotation = ''] =
        /^metadata\.annotations\['(.+)'\]$/.exec(String(valueFrom?.fieldRef?.['fieldPath'])) ?? [];
      return [name, value ?? pod.metadata.annotations?.[annotation] ?? ''];
    }),
  );
}

function readSettings(pod: Pod): ReturnType<typeof readConfig> {
  return readConfig(resolveVariables(pod), KINDS, { pid: 1, kill: () => {}, pod: CONTEXT.pod });
}

test('a labelled pod gets lastscrape as its last native sidecar, and else only times and the port for Prometheus change', () => {
  for (const name of JOBS_INJECTED) {
    const { metadata, spec, ...rest } = readJobGolden(name);
    // What ends main by a probe, of tcpSocket where it says no grace, waits for it as before.
    const text = JSON.stringify(readJobPod(name)).replaceAll('"tcpSocket"', '"terminationGracePeriodSeconds":30,$&');
    const { spec: own, metadata: ownMetadata, ...ownRest } = normalise(addWanted(JSON.parse(text)));
    assert.deepEqual(rest, ownRest, name);
    const { terminationGracePeriodSeconds, initContainers = [], ...others } = spec;
    const { terminationGracePeriodSeconds: ownSeconds = 30, initContainers: ownInit = [], ...ownOthers } = own;
    // The pod's limit grows by what may come after main's end.
    if (name === 'http-metrics') ownOthers['activeDeadlineSeconds'] = 640;
    assert.deepEqual(others, ownOthers, name);
    // Others behind it may push.
    assert.deepEqual(initContainers.toSpliced(name === 'pushed' ? 2 : ownInit.length, 1), ownInit, name);
    assert.ok(Number(terminationGracePeriodSeconds) >= ownSeconds, name);
    const { annotations = {} } = ownMetadata;
    const front = String(findSidecar(readJobGolden(name)).ports?.[0]?.['containerPort']);
    const moved = {
      ...(name === 'named-port' || 'prometheus.io/port' in annotations ? { 'prometheus.io/port': front } : {}),
      ...(name === 'own-url' ? { 'prometheus.io/path': '/metrics', 'prometheus.io/scheme': 'http' } : {}),
    };
    const labelled = { annotations: {}, ...metadata };
    assert.deepEqual(labelled, { ...ownMetadata, annotations: { ...annotations, ...moved } }, name);
  }
});

/** The pod with what lastscrape.dev/hook and lastscrape.dev/pushgateway add to it. */
function addWanted({ metadata, spec, ...rest }: Pod): Pod {
  const { annotations = {} } = metadata;
  const names = annotations['lastscrape.dev/pushgateway']?.split(', ').map((each) => each.split(':')[0]);
  const hostAliases = [...((spec['hostAliases'] as unknown[]) ?? []), { ip: '127.0.0.1', hostnames: names }];
  const pushed = { metadata, spec: { ...spec, ...(names === undefined ? {} : { hostAliases }) }, ...rest };
  if (annotations['lastscrape.dev/hook'] !== 'python') return pushed;
  const mount = { name: 'lastscrape-hooks', mountPath: '/lastscrape-hooks', readOnly: true };
  const containers = spec.containers.map((each) => {
    // Its envFrom may set PYTHONPATH.
    if (each.name === 'unknown') return each;
    const { env = [], volumeMounts = [], ...container } = each;
    const path = env.find(({ name }) => name === 'PYTHONPATH');
    const isThere = path?.value !== undefined || path?.valueFrom !== undefined;
    const hook = [
      { name: 'LASTSCRAPE_SNAPSHOT_URL', value: 'http://127.0.0.1:9469/-/snapshot' },
      { name: 'PYTHONPATH', value: `/lastscrape-hooks/python${isThere ? ':$(PYTHONPATH)' : ''}` },
    ];
    return { ...container, env: [...env, ...hook], volumeMounts: [...volumeMounts, mount] };
  });
  const volumes = [...((spec['volumes'] as unknown[]) ?? []), { name: 'lastscrape-hooks', emptyDir: {} }];
  return { ...pushed, spec: { ...pushed.spec, containers, volumes } };
}

test('the hook is written where main mounts it, and a textfile read in its volume', () => {
  for (const name of JOBS_INJECTED) {
    const isHooked = name === 'hooked' || name === 'pushed';
    const { volumeMounts } = findSidecar(readJobGolden(name));
    const mount = { name: 'lastscrape-hooks', mountPath: '/lastscrape-hooks' };
    const written = { name: 'work', mountPath: '/data/shared/', subPath: 'report', readOnly: true };
    assert.deepEqual(volumeMounts, isHooked ? [mount] : name === 'own-url' ? [written] : undefined, name);
    const hooks = resolveVariables(readJobGolden(name))['LASTSCRAPE_HOOKS'];
    assert.equal(hooks, isHooked ? mount.mountPath : name === 'wrong-hook' ? 'pyhton' : undefined, name);
  }
});

test('main waits for lastscrape only where it needs it from its first moment; Guaranteed and BestEffort pods stay that, and one of a single user', () => {
  for (const name of JOBS_INJECTED) {
    const { lifecycle, startupProbe, resources, securityContext } = findSidecar(readJobGolden(name));
    assert.equal((securityContext as Fields)['runAsUser'], name === 'earlier-sidecar' ? 1000 : 65532, name);
    const isNeeded = ['hooked', 'http-metrics', 'pushed', 'scrape-ports'].includes(name);
    const hook = { postStart: { exec: { command: ['/lastscrape', '--ready'] } } };
    assert.deepEqual([lifecycle, startupProbe], [isNeeded ? hook : undefined, undefined], name);
    const { requests } = (resources ?? {}) as { requests?: Fields };
    assert.equal(requests?.['cpu'], { guaranteed: '100m', 'wrong-ttl': '10m' }[name as 'guaranteed'], name);
  }
});

test('the metrics are read where the pod says that they are', () => {
  const urls = JOBS_INJECTED.map((name) => [name, resolveVariables(readJobGolden(name))['LASTSCRAPE_METRICS_URL']]);
  assert.deepEqual(Object.fromEntries(urls), {
    annotated: 'http://localhost:8000/internal/metrics?format=a%26b',
    'earlier-sidecar': 'http://localhost:9102/metrics',
    guaranteed: 'http://localhost:8000/metrics',
    hooked: 'http://localhost:8000/metrics',
    'http-metrics': 'http://localhost:8000/metrics',
    'named-port': 'http://localhost:8000/stats',
    'own-url': 'file:///data/shared/job.prom',
    pushed: 'pushgateway://127.0.0.1:80',
    'scrape-ports': 'http://localhost:8000/metrics',
    'wrong-hook': 'http://localhost:8000/metrics',
    'wrong-ttl': 'http://localhost:8000/metrics',
  });
});

test('the program reads what it is given: the signal, the front at the port that is declared, nothing to quit', () => {
  for (const name of JOBS_INJECTED.filter((each) => !each.startsWith('wrong-'))) {
    const pod = readJobGolden(name);
    const settings = readSettings(pod);
    assert.ok('config' in settings, `${name}: ${JSON.stringify(settings)}`);
    const { conditions, front, isExitZero, targets } = settings.config;
    assert.deepEqual([conditions.map(({ text }) => text), isExitZero, targets], [['sigterm'], true, []], name);
    assert.deepEqual(findSidecar(pod).ports, [{ name: 'lastscrape', containerPort: front?.port }], name);
    assert.equal(settings.config.limits.pollMs, name === 'own-url' ? 1_000 : 250);
    assert.equal(settings.config.limits.scrapesWantedCount, name === 'http-metrics' ? 2 : 'auto');
  }
});

test('TTL + 5 s is the grace of lastscrape, and the kubelet waits 5 s longer, or as long as the pod said', () => {
  // As much longer as another native sidecar may take.
  const rows = { 'earlier-sidecar': 125, 'named-port': 300, 'http-metrics': 40, 'own-url': 131 } as const;
  for (const [name, seconds] of Object.entries(rows)) {
    const pod = readJobGolden(name as keyof typeof rows);
    const settings = readSettings(pod);
    assert.ok('config' in settings);
    const { ttlMs, terminationGraceMs } = settings.config.limits;
    assert.equal(terminationGraceMs, Math.ceil(ttlMs / 1_000) * 1_000 + 5_000, name);
    assert.equal(pod.spec.terminationGracePeriodSeconds, seconds, name);
    assert.ok(seconds * 1_000 >= terminationGraceMs + 5_000, name);
  }
});

test('a wrong TTL or hook is named by the program, and leaves the times of the default', () => {
  for (const [name, problem] of [
    [
      'wrong-hook',
      'LASTSCRAPE_HOOKS: it is "pyhton"; must be "none" or an absolute path such as "/lastscrape-hooks" (the annotation lastscrape.dev/hook must be "python")',
    ],
    ['wrong-ttl', 'LASTSCRAPE_TTL: it is "soon"; must be a duration such as "90s", "1m30s" or "500ms"'],
  ] as const) {
    const settings = readSettings(readJobGolden(name));
    assert.deepEqual('problems' in settings && settings.problems, [`Cannot read ${problem}`]);
    assert.equal(readJobGolden(name).spec.terminationGracePeriodSeconds, 100);
  }
});

test('a native sidecar after lastscrape is overtaken: lastscrape moves to the end', () => {
  const { spec, ...rest } = readJobGolden(JOB_NOT_LAST);
  const { spec: own, ...ownRest } = normalise(readJobPod(JOB_NOT_LAST));
  assert.deepEqual(rest, ownRest);
  const text = JSON.stringify({ ...own, initContainers: own.initContainers?.toReversed() });
  assert.deepEqual(spec, JSON.parse(text.replace('"/otel', '"/lastscrape-hooks/python:/otel')));
  assert.equal(spec.initContainers?.at(-1)?.name, 'lastscrape');
});

test('both policies are evaluated again where another one changes the pod after them', () => {
  for (const file of ['deploy/policy.yaml', 'deploy/jobs-policy.yaml']) {
    assert.equal(parseAllDocuments(read(file))[0]?.toJS().spec.reinvocationPolicy, 'IfNeeded', file);
  }
});
