// One LocustTest of a real operator, from its making to its end, and what of its total Prometheus stored.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readSettled, until } from '../support/until.ts';
import type { Namespace, Pod } from './cluster.ts';
import { IMAGES } from './images.ts';
import { EXPORTER, LOCUSTFILE, MASTER, NAME } from './locust-test.ts';
import { INTERVAL_ANNOTATION } from './prometheus.ts';
import {
  END_MS,
  type Fixture,
  findStatus,
  masterPod,
  type Report,
  readLocustTotal,
  readStoredTotal,
  START_MS,
} from './scenario.ts';

/**
 * How lastscrape comes into the pod: the chart's value, the policy, both, or not at all; by the policy in OpenTelemetry
 * mode, where the operator makes no exporter: of a Locust that cannot send OTLP, and of one that does.
 */
export type Route = 'image' | 'policy' | 'both' | 'neither' | 'otel' | 'otlp';

/** The chart's value for the exporter's image. */
export const EXPORTER_IMAGES: Readonly<Record<Route, string>> = {
  image: IMAGES.lastscrape,
  both: IMAGES.lastscrape,
  policy: IMAGES.exporter,
  neither: IMAGES.exporter,
  otel: IMAGES.exporter,
  otlp: IMAGES.exporter,
};

export type OperatorResult = {
  readonly operator: string;
  readonly route: Route;
  readonly intervalSeconds: number;
  /** Of the LocustTest; `Running` where it was so a minute after Locust had ended, and nothing was held. */
  readonly phase: string;
  /** Locust's own total, and the newest that Prometheus has. */
  readonly printed: number;
  readonly stored: number | undefined;
  /** Of lastscrape's report, where there was one. */
  readonly summary: string | null;
  readonly containers: readonly string[];
  /** In OpenTelemetry mode: what deploy/ci/verdict.sh printed, and how many requests Prometheus was told by OTLP. */
  readonly verdict: string | null;
  readonly sentCount: number | null;
};

const RUN_SECONDS = 20;
/** Long enough for an exporter to have Locust's last total. */
const AUTOQUIT_SECONDS = 5;
/** How long after Locust a LocustTest may end. */
const patienceMs = (route: Route) => (route === 'neither' ? 60_000 : 150_000);
const RESOURCES = { requests: { cpu: '10m', memory: '16Mi' }, limits: { cpu: '1', memory: '1Gi' } };

/** Creates one in its own namespace, waits for its end, and deletes it. */
export async function runOperatorTest(
  { cluster, prometheus }: Fixture,
  operator: string,
  route: Route,
  intervalSeconds: number,
): Promise<OperatorResult> {
  // Whether the policy is applied or not.
  const labels = { 'lastscrape.dev/inject': route === 'image' || route === 'neither' ? 'false' : 'true' };
  const slug = `${operator.replaceAll('.', '-')}-${route}-${intervalSeconds}`;
  const namespace = await cluster.openNamespace(slug, labels);
  try {
    await apply(namespace, intervalSeconds, route, prometheus.otlpUrl);
    const isMaster = (pod: Pod) => pod.metadata.labels?.['performance-test-pod-name'] === MASTER;
    await namespace.untilPod(
      `the end of Locust in ${namespace.name}`,
      START_MS + END_MS,
      (pod) => isMaster(pod) && findStatus(pod, MASTER)?.state.terminated !== undefined,
    );
    const read = async (): Promise<LocustTestObject> =>
      JSON.parse(await cluster.read(`/apis/locust.io/v2/namespaces/${namespace.name}/locusttests/${NAME}`));
    await until('the end of the LocustTest', patienceMs(route), async () =>
      /^(Succeeded|Failed)$/.test((await read()).status.phase) ? true : undefined,
    ).catch(() => undefined);
    const printed = await readLocustTotal(namespace);
    const stored = await readLastStored(namespace, printed);
    const { phase } = (await read()).status;
    const isOpen = route === 'otel' || route === 'otlp';
    const sent = route === 'otlp' ? await prometheus.readSamples(sentSelector(namespace), null) : [];
    const pod = masterPod(namespace);
    const report = readReport(pod);
    if (report !== null && stored !== printed) await showLoss(namespace, pod);
    return {
      ...{ operator, route, intervalSeconds, phase, printed, stored },
      summary: report?.summary ?? null,
      containers: [...(pod.spec.initContainers ?? []), ...pod.spec.containers].map(({ name }) => name),
      verdict: isOpen ? await readVerdict(namespace) : null,
      sentCount: route === 'otlp' ? (sent.at(-1)?.value ?? 0) : null,
    };
  } finally {
    await cluster.kubectl([
      'delete',
      'locusttests.locust.io',
      NAME,
      '--namespace',
      namespace.name,
      '--ignore-not-found',
    ]);
    await cluster.kubectl(['delete', 'namespace', namespace.name, '--wait=false', '--ignore-not-found']);
  }
}

type LocustTestObject = { readonly status: { readonly phase: string } };

/** What deploy/ci/verdict.sh prints of it. @throws unless it passed */
async function readVerdict({ name }: Namespace): Promise<string> {
  const script = join(import.meta.dirname, '../../deploy/ci/verdict.sh');
  const { stdout } = await promisify(execFile)(script, ['--namespace', name, '--timeout', '60', `locusttest/${NAME}`]);
  return JSON.parse(stdout).verdict;
}

/** The series that Locust sends, by the name of its service. */
function sentSelector({ name }: Namespace): string {
  return `locust_client_duration_seconds_count{job="${name}"}`;
}

function observe({ name }: Namespace, route: Route, otlpUrl: string): object {
  if (route !== 'otel' && route !== 'otlp') return {};
  const extraEnvVars = {
    OTEL_SERVICE_NAME: name,
    OTEL_METRIC_EXPORT_INTERVAL: '2000',
    // Prometheus takes metrics alone.
    OTEL_LOGS_EXPORTER: 'none',
    OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'cumulative',
  };
  const open = { enabled: true, endpoint: otlpUrl, protocol: 'http/protobuf', insecure: true, extraEnvVars };
  return { observability: { openTelemetry: open } };
}

async function apply(namespace: Namespace, intervalSeconds: number, route: Route, otlpUrl: string): Promise<void> {
  const locustfile = '--locustfile /lotest/src/locustfile.py';
  const users = `--host http://127.0.0.1 --users 3 --spawn-rate 3 --run-time ${RUN_SECONDS}s`;
  await namespace.apply(
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: `${NAME}-files` },
      data: { 'locustfile.py': LOCUSTFILE(false, '') },
    },
    {
      apiVersion: 'locust.io/v2',
      kind: 'LocustTest',
      metadata: { name: NAME },
      spec: {
        image: route === 'otlp' ? IMAGES.locustOtlp : IMAGES.locust,
        ...observe(namespace, route, otlpUrl),
        master: {
          command: `${locustfile} ${users}`,
          autoquit: { enabled: true, timeout: AUTOQUIT_SECONDS },
          annotations: {
            [INTERVAL_ANNOTATION]: `${intervalSeconds}s`,
            'lastscrape.dev/fail-if': 'locust_requests_fail_ratio > 0.01',
          },
          resources: RESOURCES,
        },
        worker: { command: locustfile, replicas: 1, resources: RESOURCES },
        testFiles: { configMapRef: `${NAME}-files` },
      },
    },
  );
}

// A sample is there a moment after its scrape.
function readLastStored(namespace: Namespace, printed: number): Promise<number | undefined> {
  return readSettled<number | undefined>(printed, 30_000, () => readStoredTotal(namespace).catch(() => undefined));
}

/** Prints lastscrape's log to stderr where the stored total is not the last one. */
async function showLoss(namespace: Namespace, pod: Pod): Promise<void> {
  const names = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].map(({ name }) => name);
  const watcher = names.includes('lastscrape') ? 'lastscrape' : EXPORTER;
  const log = await namespace.readLog(pod.metadata.name, watcher);
  process.stderr.write(`In ${namespace.name} Prometheus has not the last total; ${watcher} logged:\n${log}\n`);
}

function readReport(pod: Pod): Report | null {
  for (const name of ['lastscrape', EXPORTER]) {
    const message = findStatus(pod, name)?.state.terminated?.message;
    if (message !== undefined) return JSON.parse(message);
  }
  return null;
}
