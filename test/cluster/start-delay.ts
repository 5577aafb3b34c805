// `node test/cluster/start-delay.ts [ROUNDS [ROWS]]`: how much later main starts because of lastscrape, on the cluster of
// KUBECONFIG with deploy/jobs-policy.yaml applied and lastscrape's image on its node: from `kubectl create` to main's
// first line, in rounds of one pod a row, so that all rows meet the same load. ROWS: a pattern of their names.
// LASTSCRAPE_TEST_MAIN: an image with a shell.

import { execFileSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import type { Container, Pod } from '../deploy/injected.ts';

const NAMESPACE = 'lastscrape-start-delay';
const MAIN = process.env['LASTSCRAPE_TEST_MAIN'] ?? 'localhost/busy:1';
const ROUNDS = Number(process.argv[2] ?? 20);
const WANTED = new RegExp(process.argv[3] ?? '');

const READY = { command: ['/lastscrape', '--ready'] };
const limits = (cpu: string, request = '10m') => ({
  resources: { requests: { cpu: request, memory: '64Mi' }, limits: { cpu, memory: '64Mi' } },
});

/** A row: annotations of the pod, what its main is given, and what is changed in the container that the policy adds. */
type Row = {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly main?: Readonly<Record<string, unknown>>;
  readonly sidecar?: Readonly<Record<string, unknown>> | null;
};

const HOOK = { 'lastscrape.dev/hook': 'python' };
const GUARANTEED = { resources: { limits: { cpu: '50m', memory: '32Mi' } } };
const PROBE = { periodSeconds: 1, failureThreshold: 60 };

const ROWS: Readonly<Record<string, Row>> = {
  'without lastscrape': { sidecar: null },
  'the label': {},
  'the label, Guaranteed': { main: GUARANTEED },
  'the hook': { annotations: HOOK },
  'the hook, Guaranteed': { annotations: HOOK, main: GUARANTEED },
  'the hook, limit 100m': { annotations: HOOK, sidecar: limits('100m') },
  'the hook, limit 250m': { annotations: HOOK, sidecar: limits('250m') },
  'the hook, limit 1': { annotations: HOOK, sidecar: limits('1') },
  'startupProbe by exec, limit 500m': { sidecar: { startupProbe: { exec: READY, ...PROBE, timeoutSeconds: 5 } } },
  'startupProbe by exec, limit 100m': {
    sidecar: { startupProbe: { exec: READY, ...PROBE, timeoutSeconds: 5 }, ...limits('100m') },
  },
  'startupProbe by HTTP, limit 500m': {
    sidecar: { startupProbe: { httpGet: { path: '/-/ready', port: 9469 }, ...PROBE } },
  },
  'startupProbe by HTTP, 100m, as before': {
    sidecar: { startupProbe: { httpGet: { path: '/-/ready', port: 9469 }, ...PROBE }, ...limits('100m', '100m') },
  },
};

function kubectl(args: readonly string[], input = ''): string {
  return execFileSync('kubectl', ['--namespace', NAMESPACE, ...args], { input, encoding: 'utf8' });
}

function create(pod: unknown, ...args: readonly string[]): string {
  return kubectl(['create', '--filename=-', ...args], JSON.stringify(pod));
}

/** A pod as the policy makes it, changed as the row says; without the label, so that it stays so. */
function buildPod(name: string, { annotations = {}, main = {}, sidecar = {} }: Row): Pod {
  const container = { name: 'main', image: MAIN, command: ['/bin/sh', '-c', 'echo started'], ...main };
  const spec = { restartPolicy: 'Never', containers: [container] };
  const all = { 'prometheus.io/port': '8000', 'lastscrape.dev/scrapes': '0', ...annotations };
  const head = { apiVersion: 'v1', kind: 'Pod' } as const;
  const labels = { 'lastscrape.dev/inject': 'true' };
  const labelled = { ...head, metadata: { name, labels, annotations: all }, spec };
  const { spec: changed }: Pod = JSON.parse(create(labelled, '--dry-run=server', '--output=json'));
  const { initContainers = [], containers, volumes, hostAliases, terminationGracePeriodSeconds } = changed;
  const [added] = initContainers;
  if (added === undefined) throw new Error('Cannot measure: the policy adds nothing; apply deploy/jobs-policy.yaml');
  const edited = { ...added, ...sidecar } as Container;
  const given = { restartPolicy: 'Never', containers, volumes, hostAliases, terminationGracePeriodSeconds };
  return {
    ...head,
    metadata: { name, annotations: all },
    spec: sidecar === null ? spec : { ...given, initContainers: [edited] },
  } as Pod;
}

/** Milliseconds from `kubectl create` to main's first line. */
async function measure(name: string, row: Row): Promise<number> {
  const pod = buildPod(name, row);
  const startedAtMs = Date.now();
  create(pod);
  for (;;) {
    await delay(200);
    if (/^(Succeeded|Failed)$/.test(kubectl(['get', 'pod', name, '--output=jsonpath={.status.phase}']))) break;
    if (Date.now() - startedAtMs > 180_000) throw new Error(kubectl(['describe', 'pod', name]));
  }
  const [at = ''] = kubectl(['logs', name, '--container=main', '--timestamps']).split(' ');
  kubectl(['delete', 'pod', name, '--wait=false']);
  return Date.parse(at) - startedAtMs;
}

const rows = Object.entries(ROWS).filter(([name]) => WANTED.test(name));
const found = new Map(rows.map(([name]) => [name, [] as number[]]));
execFileSync('kubectl', ['create', 'namespace', NAMESPACE], { stdio: 'ignore' });
try {
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, [name, row]] of rows.entries()) {
      found.get(name)?.push(await measure(`try-${round}-${index}`, row));
    }
  }
} finally {
  execFileSync('kubectl', ['delete', 'namespace', NAMESPACE, '--wait=false'], { stdio: 'ignore' });
}

const seconds = (ms = Number.NaN) => (ms / 1_000).toFixed(1);
const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
const base = median(found.get('without lastscrape') ?? []);
const lines = [...found].map(([name, values]) => {
  const middle = median(values);
  return `| ${name} | ${seconds(middle)} | ${seconds(middle - base)} | ${seconds(Math.max(...values))} |`;
});
process.stdout.write(`${ROUNDS} pods each, seconds from kubectl create to main's first line\n\n`);
process.stdout.write(`| | median | later | worst |\n|---|---|---|---|\n${lines.join('\n')}\n`);
