// deploy/monitoring without the rules: which targets each monitor keeps, as a real Prometheus relabels them by file_sd
// (discovery.ts) with what the operator makes of it, that every relabelling rule is needed, and the NetworkPolicy.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { VERSION } from '../../src/base/version.ts';
import { askJudge, listMissingJudges, OPERATOR_JUDGE } from '../judges/judges.ts';
import { makeFolder } from '../support/folder.ts';
import { type Network, openNetwork } from '../support/network.ts';
import { findPrograms, gatePrograms, listMissing } from '../support/programs.ts';
import { runPrometheus } from '../support/prometheus.ts';
import { until } from '../support/until.ts';
import { discoverPod, discoverService, type EndpointRole, type Pod, type Service, type Target } from './discovery.ts';

const FILE = 'test/deploy/monitoring.test.ts';
const ROOT = join(import.meta.dirname, '../..');
const MONITORING = join(ROOT, 'deploy/monitoring');
const programs = findPrograms();
const missing = [...listMissing(programs, ['prometheus', 'promtool']), ...listMissingJudges(OPERATOR_JUDGE)];
const skip = gatePrograms(FILE, missing, () => [OPERATOR_JUDGE.folder]);

type RelabelRule = Readonly<Record<string, unknown>>;

type Monitor = {
  readonly kind: 'PodMonitor' | 'ServiceMonitor';
  readonly metadata: { readonly namespace: string };
  readonly spec: Readonly<Partial<Record<'podMetricsEndpoints' | 'endpoints', readonly MonitorEndpoint[]>>>;
};
type MonitorEndpoint = Readonly<Record<'interval' | 'scrapeTimeout', string>> & {
  readonly relabelings: readonly unknown[];
};

const podMonitor: Monitor = readYaml('podmonitor.yaml');
const serviceMonitor: Monitor = readYaml('servicemonitor.yaml');
const { scrape_configs }: { readonly scrape_configs: readonly ScrapeConfig[] } = readYaml('scrape-config.yaml');
const [scrapeConfig = assert.fail('scrape-config.yaml has no entry')] = scrape_configs;

type ScrapeConfig = {
  readonly job_name: string;
  readonly scrape_interval: string;
  readonly scrape_timeout: string;
  readonly kubernetes_sd_configs: unknown;
  readonly relabel_configs: readonly RelabelRule[];
};

/** A pod of the cluster: a file of fixtures/pods, a name and a test, and what is to be kept of it. */
type Row = {
  readonly name: string;
  readonly shape: 'regular-1.1.1' | 'regular' | 'native' | 'worker' | 'otel' | 'host-network';
  readonly phase?: string;
  readonly ready?: string;
  readonly hasNoAddress?: true;
  change?(pod: Pod): void;
  /** By role pod: whether its exporter is a target. */
  readonly isKept: boolean;
  /** By its Service; absent means the same. */
  readonly isKeptByService?: Partial<Record<EndpointRole, boolean>>;
};

const ROWS: readonly Row[] = [
  { name: 'v1', shape: 'regular-1.1.1', isKept: true },
  { name: 'v2-2', shape: 'regular', isKept: true },
  { name: 'v2-3', shape: 'native', isKept: true },
  { name: 'v2-3-pending', shape: 'native', phase: 'Pending', ready: 'unknown', isKept: true },
  { name: 'held', shape: 'regular', ready: 'false', isKept: true },
  { name: 'held-v2-3', shape: 'native', ready: 'false', isKept: true },
  {
    name: 'terminating',
    shape: 'regular',
    ready: 'false',
    change(pod) {
      pod.metadata.deletionTimestamp = '2026-11-21T09:30:00Z';
    },
    isKept: true,
    isKeptByService: { endpoints: false },
  },
  { name: 'host-network', shape: 'host-network', isKept: true },
  { name: 'succeeded', shape: 'regular', phase: 'Succeeded', ready: 'false', isKept: false },
  { name: 'failed', shape: 'native', phase: 'Failed', ready: 'false', isKept: false },
  { name: 'no-address-yet', shape: 'native', phase: 'Pending', ready: 'false', hasNoAddress: true, isKept: false },
  { name: 'v1-worker', shape: 'worker', isKept: false },
  {
    // An injection of their own puts exporters everywhere; the label only nearly ends like a master's.
    name: 'nightly-master',
    shape: 'worker',
    change: ({ spec }) => spec.containers.push(exporterOn(9646)),
    isKept: false,
  },
  { name: 'otel', shape: 'otel', isKept: false },
  {
    name: 'otel-proxy',
    shape: 'otel',
    change: ({ spec }) => spec.containers.push({ ...exporterOn(9646), name: 'proxy' }),
    isKept: false,
    // Its Service has no port for metrics.
  },
  {
    name: 'somebody-elses',
    shape: 'regular',
    change: ({ metadata }) => {
      metadata.labels['managed-by'] = 'somebody';
    },
    isKept: false,
  },
  {
    name: 'two-ports',
    shape: 'regular',
    change: ({ spec }) => findExporter(spec.containers).ports?.push({ containerPort: 6060, name: 'pprof' }),
    isKept: true,
  },
  {
    name: 'no-port',
    shape: 'regular',
    change: ({ spec }) => {
      delete findExporter(spec.containers).ports;
    },
    isKept: false,
    isKeptByService: { endpoints: true, endpointslice: true },
  },
];

const NAMESPACE = 'load-tests';
const cluster = ROWS.map((row, i) => ({ row, pod: makePod(row, `127.0.64.${i + 1}`) }));
const pods = cluster.map(({ pod }) => pod);

describe('relabelling', { skip }, () => {
  test('scrape-config.yaml and podmonitor.yaml have the same rules', async () => {
    const [rules = []] = await renderMonitors([{ monitor: podMonitor }]);
    // The operator's own come first, and those by which shards share the targets last.
    assert.deepEqual(rules.slice(-3 - scrapeConfig.relabel_configs.length, -3), scrapeConfig.relabel_configs);
  });

  test('both monitors and the scrape config have the same times', () => {
    const { scrape_interval, scrape_timeout } = scrapeConfig;
    for (const endpoint of [...(podMonitor.spec.podMetricsEndpoints ?? []), ...(serviceMonitor.spec.endpoints ?? [])]) {
      const { interval, scrapeTimeout } = endpoint;
      assert.deepEqual([interval, scrapeTimeout], [scrape_interval, scrape_timeout]);
    }
  });

  test('a real Prometheus keeps the exporters of masters that have not ended, and misses every rule that is taken out', async () => {
    const rules = scrapeConfig.relabel_configs;
    const jobs = new Map<string, Job>([
      ['scrape config', { targets: podTargets(), rules }],
      ...rules.map(
        (_, i) => [`scrape config without ${i}`, { targets: podTargets(), rules: rules.toSpliced(i, 1) }] as const,
      ),
      [
        'scrape config for port 9700',
        {
          targets: [exporterOn(9700)].flatMap((exporter) => podTargets([withExporter(exporter)])),
          rules: JSON.parse(JSON.stringify(rules).replace('"9646"', '"9700"')),
        },
      ],
    ]);
    const { endpoints: [endpoint = assert.fail('servicemonitor.yaml has no endpoint')] = [], ...spec } =
      serviceMonitor.spec;
    const monitored: Monitored[] = [{ name: 'PodMonitor', monitor: podMonitor, targets: podTargets() }];
    for (const [role, knowsInit] of [
      ['endpoints', false],
      ['endpoints', true],
      ['endpointslice', false],
      ['endpointslice', true],
    ] as const) {
      const targets = serviceTargets(role, knowsInit);
      const name = `ServiceMonitor by ${role}${knowsInit ? ' with native sidecars' : ''}`;
      monitored.push({ name, monitor: serviceMonitor, role, targets });
      endpoint.relabelings.forEach((_, i) => {
        const endpoints = [{ ...endpoint, relabelings: endpoint.relabelings.toSpliced(i, 1) }];
        const monitor = { ...serviceMonitor, spec: { ...spec, endpoints } };
        monitored.push({ name: `${name} without ${i}`, monitor, role, targets });
      });
    }
    const rendered = await renderMonitors(monitored);
    for (const [i, { name, targets }] of monitored.entries()) jobs.set(name, { targets, rules: rendered[i] ?? [] });
    const kept = await relabel(jobs);

    const byPod = listKept((row) => row.isKept);
    assert.deepEqual(kept.get('scrape config'), byPod);
    assert.deepEqual(kept.get('PodMonitor'), byPod);
    rules.forEach((rule, i) => {
      const keptOnes = kept.get(`scrape config without ${i}`);
      assert.notDeepEqual(keptOnes, byPod, `nothing needs the rule ${JSON.stringify(rule)}`);
    });
    const instances = kept.get('scrape config for port 9700')?.map(({ instance }) => instance);
    assert.deepEqual(instances, ['127.0.65.1:9700']);

    for (const [name] of jobs) {
      const [, role, i] = /^ServiceMonitor by (endpoints|endpointslice)\b.*?(?: without (\d))?$/.exec(name) ?? [];
      if (role !== 'endpoints' && role !== 'endpointslice') continue;
      const wanted = listKept((row) => row.isKeptByService?.[role] ?? row.isKept);
      if (i === undefined) assert.deepEqual(kept.get(name), wanted, name);
      else assert.notDeepEqual(kept.get(name), wanted, `nothing needs ${name.replace(' without', ', rule')}`);
    }
  });

  test('the scrape config is one that promtool reads', () => {
    assert.deepEqual(scrapeConfig.kubernetes_sd_configs, [
      { role: 'pod', selectors: [{ role: 'pod', label: 'managed-by=locust-k8s-operator' }] },
    ]);
    const { kubernetes_sd_configs, ...others } = scrapeConfig;
    const folder = makeFolder();
    const file = join(folder, 'prometheus.yml');
    const config = { scrape_configs: [{ ...others, file_sd_configs: [{ files: ['targets.json'] }] }] };
    writeFileSync(file, JSON.stringify(config));
    const [promtool = ''] = programs.promtool ?? [];
    execFileSync(promtool, ['check', 'config', file], { stdio: 'pipe' });
  });
});

type Job = { readonly targets: readonly Target[]; readonly rules: readonly RelabelRule[] };

/** A monitor, and how the operator's Prometheus finds what is behind a Service. */
type Rendered = { readonly monitor: Monitor; readonly role?: EndpointRole };
type Monitored = Rendered & { readonly name: string; readonly targets: readonly Target[] };

async function renderMonitors(monitors: readonly Rendered[]): Promise<readonly (readonly RelabelRule[])[]> {
  const questions = monitors.map(({ monitor, role = 'endpoints' }) => {
    const serviceDiscoveryRole = role === 'endpoints' ? 'Endpoints' : 'EndpointSlice';
    const prometheus = { metadata: { name: 'main', namespace: 'monitoring' }, spec: { serviceDiscoveryRole } };
    return { prometheus, [`${monitor.kind}s`]: [monitor] };
  });
  const answers = await askJudge<{ readonly config: string; readonly error: string }>('operator', questions);
  return answers.map(({ config, error }) => {
    assert.equal(error, '');
    return parse(config.replaceAll('$(SHARD)', '0')).scrape_configs[0].relabel_configs;
  });
}

/** The labels of a kept target that count here. */
type Kept = Readonly<Record<'instance' | 'namespace' | 'pod' | 'locust_test', string>>;

type ApiTargets = {
  readonly data: {
    readonly activeTargets: readonly { readonly labels: Target; readonly discoveredLabels: Target }[];
    readonly droppedTargets: readonly { readonly discoveredLabels: Target }[];
  };
};

/** Whose a target is; the label job is shown as the rules left it (Prometheus 2.42). */
const MARK = '__meta_of_job';

// One Prometheus runs all jobs side by side.
async function relabel(jobs: ReadonlyMap<string, Job>): Promise<Map<string, Kept[]>> {
  const directory = makeFolder();
  await using network = await openNetwork(directory);
  const { kubernetes_sd_configs, ...others } = scrapeConfig;
  const config = {
    scrape_configs: [...jobs].map(([job_name, { targets, rules }], i) => {
      const file = join(directory, `targets-${i}.json`);
      const groups = targets.map(({ __address__ = '', ...labels }) => ({
        targets: [__address__],
        labels: { ...labels, [MARK]: job_name },
      }));
      writeFileSync(file, JSON.stringify(groups));
      return { ...others, job_name, file_sd_configs: [{ files: [file] }], relabel_configs: rules };
    }),
  };
  const text = JSON.stringify(config);
  await using _ = await runPrometheus({ network, directory, command: programs.prometheus ?? [], config: text });
  const { activeTargets, droppedTargets } = await until('every target', 60_000, () => readTargets(network, jobs));
  for (const { discoveredLabels } of droppedTargets) assert.ok(jobs.has(discoveredLabels[MARK] ?? ''));
  return new Map(
    [...jobs.keys()].map((job) => [
      job,
      activeTargets
        .filter(({ discoveredLabels }) => discoveredLabels[MARK] === job)
        .map(({ labels: { instance = '', namespace = '', pod = '', locust_test = '' } }) => ({
          ...{ instance, namespace, pod, locust_test },
        }))
        .toSorted(byInstance),
    ]),
  );
}

// Prometheus publishes targets a few seconds after it found them: `undefined` until each job has all.
async function readTargets(network: Network, jobs: ReadonlyMap<string, Job>): Promise<ApiTargets['data'] | undefined> {
  const { status, body } = await network.get(network.ports.prometheus, '/api/v1/targets');
  assert.equal(status, 200);
  const { data }: ApiTargets = JSON.parse(body);
  const all = [...data.activeTargets, ...data.droppedTargets];
  const isComplete = [...jobs].every(
    ([job, { targets }]) =>
      all.filter(({ discoveredLabels }) => discoveredLabels[MARK] === job).length === targets.length,
  );
  return isComplete ? data : undefined;
}

function listKept(isKept: (row: Row) => boolean): Kept[] {
  return cluster
    .filter(({ row }) => isKept(row))
    .map(({ row, pod }) => ({
      instance: `${pod.status.podIP}:9646`,
      namespace: NAMESPACE,
      pod: pod.metadata.name,
      locust_test: `team-a.${row.name}`,
    }))
    .toSorted(byInstance);
}

function byInstance(one: Kept, other: Kept): number {
  return one.instance < other.instance ? -1 : 1;
}

function podTargets(of: readonly Pod[] = pods): Target[] {
  return of.flatMap(discoverPod);
}

function serviceTargets(role: EndpointRole, knowsInit: boolean): Target[] {
  return cluster.flatMap(({ row, pod }) => {
    const name = pod.metadata.labels['performance-test-pod-name'] ?? '';
    const service: Service = {
      name,
      namespace: NAMESPACE,
      selector: { 'performance-test-pod-name': name },
      ports: [
        { name: 'port5557', port: 5557 },
        { name: 'port5558', port: 5558 },
        ...(row.shape === 'otel' ? [] : [{ name: 'prometheus-metrics', port: 9646 }]),
      ],
    };
    return discoverService(service, pods, role, knowsInit);
  });
}

// The operator makes a dot in a test's name a dash in the pod's (labels.go).
function makePod(row: Row, address: string): Pod {
  const pod: Pod = parse(readFileSync(join(ROOT, `fixtures/pods/${row.shape}.yaml`), 'utf8'));
  const node = `team-a-${row.name}-${row.shape === 'worker' ? 'worker' : 'master'}`;
  const [main = assert.fail(`${row.shape} has no container`)] = pod.spec.containers;
  main.name = node;
  pod.metadata.name = `${node}-x7k2p`;
  pod.metadata.namespace = NAMESPACE;
  Object.assign(pod.metadata.labels, {
    'performance-test-name': `team-a.${row.name}`,
    'performance-test-pod-name': node,
  });
  pod.spec.containers.push({ name: 'lastscrape', image: `lastscrape:${VERSION}` });
  const podIP = row.hasNoAddress ? '' : address;
  pod.status = { phase: row.phase ?? 'Running', ready: row.ready ?? 'true', podIP };
  row.change?.(pod);
  return pod;
}

function exporterOn(containerPort: number): Pod['spec']['containers'][number] {
  return { name: 'locust-metrics-exporter', image: 'containersol/locust_exporter:v0.5.0', ports: [{ containerPort }] };
}

function findExporter(containers: Pod['spec']['containers']): Pod['spec']['containers'][number] {
  return containers.find(({ name }) => name === 'locust-metrics-exporter') ?? assert.fail('no exporter');
}

function withExporter(exporter: Pod['spec']['containers'][number]): Pod {
  const pod = makePod({ name: 'another-port', shape: 'otel', isKept: false }, '127.0.65.1');
  pod.spec.containers.push(exporter);
  return pod;
}

type Selector = { readonly matchLabels: Readonly<Record<string, string>> };
type Peer = { readonly namespaceSelector?: Selector; readonly podSelector?: Selector };
type NetworkPolicy = {
  readonly spec: {
    readonly podSelector: Selector;
    readonly policyTypes: readonly string[];
    readonly ingress: readonly {
      readonly from?: readonly Peer[];
      readonly ports: readonly { readonly protocol: string; readonly port: number }[];
    }[];
  };
};

type Caller = { readonly namespace: string; readonly labels: Readonly<Record<string, string>> };

const WORKER: Caller = { namespace: NAMESPACE, labels: { 'managed-by': 'locust-k8s-operator' } };
const PROMETHEUS: Caller = { namespace: 'monitoring', labels: { 'app.kubernetes.io/name': 'prometheus' } };
const NEIGHBOUR: Caller = { namespace: NAMESPACE, labels: { app: 'shop' } };
const STRANGER: Caller = { namespace: 'elsewhere', labels: { 'managed-by': 'locust-k8s-operator' } };

// No enforcing network plugin is at hand: the policy is read by the API's documentation, field by field
// (https://kubernetes.io/docs/concepts/services-networking/network-policies/).
describe('networkpolicy.yaml', () => {
  const policy: NetworkPolicy = readYaml('networkpolicy.yaml');

  const FLOWS: readonly [who: string, caller: Caller, ports: readonly number[]][] = [
    ['Prometheus', PROMETHEUS, [9646, 8089]],
    ['a worker', WORKER, [5557, 5558, 8089]],
    ['a neighbour in the namespace', NEIGHBOUR, [8089]],
    ["another namespace's worker", STRANGER, [8089]],
  ];
  for (const [who, caller, ports] of FLOWS) {
    test(`lets ${who} reach ${ports.join(', ')} of a master and nothing else`, () => {
      const open = [5557, 5558, 8089, 9646, 8080].filter((port) => isAllowed(policy, caller, port));
      assert.deepEqual(open.toSorted(), ports.toSorted());
    });
  }

  test('selects every master that the monitors keep, for ingress only', () => {
    assert.deepEqual(policy.spec.policyTypes, ['Ingress']);
    for (const { row, pod } of cluster) {
      if (row.isKept) assert.ok(matches(policy.spec.podSelector, pod.metadata.labels), row.name);
    }
    assert.ok(!matches(policy.spec.podSelector, NEIGHBOUR.labels));
  });

  test('lets through the namespace of the monitors', () => {
    const { namespace } = podMonitor.metadata;
    assert.equal(serviceMonitor.metadata.namespace, namespace);
    assert.ok(isAllowed(policy, { namespace, labels: {} }, 9646));
  });
});

// A peer without namespaceSelector means the policy's own namespace; a rule without `from` means everybody.
function isAllowed({ spec }: NetworkPolicy, { namespace, labels }: Caller, port: number): boolean {
  return spec.ingress.some(
    ({ from, ports }) =>
      ports.some((each) => each.protocol === 'TCP' && each.port === port) &&
      (from === undefined ||
        from.some(
          ({ namespaceSelector, podSelector }) =>
            (namespaceSelector === undefined
              ? namespace === NAMESPACE
              : matches(namespaceSelector, { 'kubernetes.io/metadata.name': namespace })) &&
            (podSelector === undefined || matches(podSelector, labels)),
        )),
  );
}

function matches({ matchLabels }: Selector, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(matchLabels).every(([key, value]) => labels[key] === value);
}

function readYaml<Shape>(name: string): Shape {
  return parse(readFileSync(join(MONITORING, name), 'utf8'));
}
