// The operator's pods (fixtures/pods), what they are with lastscrape (fixtures/injected), and what a server
// adds by default. Every route is compared with these: Kyverno, kustomize, a real cluster.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parse, parseAllDocuments } from 'yaml';
import { VERSION } from '../../src/base/version.ts';
import { readTestVariable } from '../support/programs.ts';

const FIXTURES = join(import.meta.dirname, '..', '..', 'fixtures');

/** A part of a manifest, as YAML or JSON gives it. */
export type Fields = { [field: string]: unknown };

type Variable = { name: string; value?: string; valueFrom?: { fieldRef?: Fields } };

/** A container of a pod: what the tests ask of it by name, and the rest. */
export type Container = Fields & {
  name: string;
  env?: readonly Variable[];
  ports?: readonly Fields[];
  volumeMounts?: readonly Fields[];
};

/** A pod, from a file or from a server. */
export type Pod = Fields & {
  metadata: Fields & { annotations?: Record<string, string>; labels?: Record<string, string> };
  spec: Fields & {
    containers: readonly Container[];
    initContainers?: readonly Container[];
    terminationGracePeriodSeconds?: number;
  };
};

/** The pods of fixtures/pods that get the container; each has a golden of the same name. */
export const INJECTED = [
  'regular',
  'regular-1.1.1',
  'native',
  'front-regular',
  'front-regular-1.1.1',
  'front-native',
  'otel',
  'otel-annotated',
] as const;

export const UNTOUCHED = ['host-network', 'opted-out', 'worker', 'already-injected'] as const;

/** The name of a file in fixtures/pods, without its ending. */
export type PodName = (typeof INJECTED)[number] | (typeof UNTOUCHED)[number];

/** One row of fixtures/injected/annotations.yaml: what a test's annotations change. */
export type Variant = {
  readonly pod: PodName;
  readonly annotations: Readonly<Record<string, string>>;
  readonly env?: readonly Variable[];
  /** terminationGracePeriodSeconds that the pod brings along; absent is the default, 30 s. */
  readonly ownSeconds?: number;
  /** The golden whose container lastscrape is the one to expect. */
  readonly lastscrape: (typeof INJECTED)[number];
  /** terminationGracePeriodSeconds to expect; absent is the default, 30 s. */
  readonly seconds?: number;
};

/** The pod as the operator makes it. */
export function readPod(name: PodName): Pod {
  return parse(readFileSync(join(FIXTURES, 'pods', `${name}.yaml`), 'utf8'));
}

const require = (key: string, ...values: readonly string[]) => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In', values }] }],
      },
    },
  },
});

/** What in the spec of a pod, or in the scheduling of a LocustTest, keeps lastscrape out. */
export const ELSEWHERE: Readonly<Record<string, Fields>> = {
  'Windows by affinity': require('kubernetes.io/os', 'windows'),
  'another architecture by affinity': require('kubernetes.io/arch', 's390x', 'ppc64le'),
  'Windows by a selector': { nodeSelector: { 'kubernetes.io/os': 'windows' } },
  'Windows by an old label': { nodeSelector: { 'beta.kubernetes.io/os': 'windows' } },
  'another architecture by an old label': require('beta.kubernetes.io/arch', 's390x'),
};

/** Pods that stay as they are: no master, lastscrape under another name, or in the exporter's place. */
export function readStrangers(): Readonly<Record<string, Pod>> {
  const pod = readPod('regular');
  const { 'performance-test-pod-name': name, ...unnamed } = pod.metadata.labels ?? {};
  const labels: Readonly<Record<string, Record<string, string>>> = {
    'no name of a test': unnamed,
    'not a master': { ...pod.metadata.labels, 'performance-test-pod-name': 'checkout-load-worker' },
    'master not at the end': { ...pod.metadata.labels, 'performance-test-pod-name': `${name}-0` },
    'not the operator': { ...pod.metadata.labels, 'managed-by': 'somebody-else' },
  };
  const others: Readonly<Record<string, Container>> = {
    'its image, from a registry': { name: 'watcher', image: 'registry.example:5000/tools/lastscrape:0.1.0' },
    'its image, by digest': { name: 'watcher', image: `lastscrape@sha256:${'0'.repeat(64)}` },
    'its variables': { name: 'watcher', image: 'watcher', env: [{ name: 'LASTSCRAPE_DONE_WHEN', value: 'port:5557' }] },
  };
  const strangers = Object.entries(labels).map(([what, own]) => [
    what,
    { ...pod, metadata: { ...pod.metadata, labels: own } },
  ]);
  const seconds = Object.entries(others).map(([what, container]) => [
    what,
    {
      ...pod,
      spec: { ...pod.spec, containers: [...pod.spec.containers, { imagePullPolicy: 'IfNotPresent', ...container }] },
    },
  ]);
  const otel = readPod('otel');
  const without: Readonly<Record<string, Pod['spec']>> = {
    'OpenTelemetry, its port is taken': {
      ...otel.spec,
      containers: otel.spec.containers.map((each) => ({ ...each, ports: [{ containerPort: 9646 }] })),
    },
    'OpenTelemetry, it is there': {
      ...otel.spec,
      initContainers: [
        {
          ...{ name: 'locust-metrics-exporter', image: 'watcher', imagePullPolicy: 'IfNotPresent' },
          ...{ restartPolicy: 'Always', env: [{ name: 'LASTSCRAPE_FRONT', value: '9646' }] },
        },
      ],
    },
  };
  const unexported = Object.entries(without).map(([what, spec]) => [what, { ...otel, spec }]);
  const inPlace = [
    'registry.example:5000/tools/lastscrape:0.1.0',
    'registry.example/tools/locust-lastscrape:1',
    `registry.example/lastscrape-mirror@sha256:${'0'.repeat(64)}`,
  ].flatMap((image) =>
    (['regular', 'native'] as const).map((name) => [
      `in the exporter's place, ${name}: ${image}`,
      withExporterImage(readPod(name), image),
    ]),
  );
  const elsewhere = Object.entries(ELSEWHERE).map(([what, own]) => [what, { ...pod, spec: { ...pod.spec, ...own } }]);
  return Object.fromEntries([...strangers, ...seconds, ...unexported, ...inPlace, ...elsewhere]);
}

/** The pod with another image of the exporter, as the chart's value makes it. */
export function withExporterImage({ spec, ...rest }: Pod, image: string): Pod {
  const change = (container: Container): Container =>
    container.name === 'locust-metrics-exporter' ? { ...container, image } : container;
  const { containers, initContainers } = spec;
  const init = initContainers === undefined ? {} : { initContainers: initContainers.map(change) };
  return { ...rest, spec: { ...spec, containers: containers.map(change), ...init } };
}

/** The pod that a real API server made of it with deploy/policy.yaml applied, normalised. */
export function readGolden(name: (typeof INJECTED)[number]): Pod {
  return parse(readFileSync(join(FIXTURES, 'injected', `${name}.yaml`), 'utf8'));
}

/** The rows of fixtures/injected/annotations.yaml. */
export function readVariants(): readonly Variant[] {
  return parse(readFileSync(join(FIXTURES, 'injected', 'annotations.yaml'), 'utf8'));
}

export function readAnswer(name: (typeof INJECTED)[number]): Pod {
  return JSON.parse(readFileSync(join(FIXTURES, 'injected', `${name}.answer.json`), 'utf8'));
}

/** A checksum of a policy without comments and version: the goldens hold for this policy only. */
export function hashPolicy(file: 'policy.yaml' | 'jobs-policy.yaml'): string {
  const text = readFileSync(join(FIXTURES, '..', 'deploy', file), 'utf8');
  const documents = parseAllDocuments(text.replace(`'lastscrape:${VERSION}'`, "'lastscrape'"));
  return createHash('sha256').update(JSON.stringify(documents)).digest('hex');
}

/** Why tests of fixtures/injected do not run: deploy/ changed since. `false`: right. @throws with CI=true */
export function gateGoldens(): string | false {
  const files = ['policy.yaml', 'jobs-policy.yaml'] as const;
  const read = (file: string) =>
    readFileSync(join(FIXTURES, 'injected', file.replace('.yaml', '.sha256')), 'utf8').trim();
  const changed = files.find((file) => read(file) !== hashPolicy(file));
  if (changed === undefined) return false;
  const message = `NOT COMPARED with fixtures/injected: deploy/${changed} changed since; test/tools/make-injected.ts rewrites them, with a cluster`;
  if (readTestVariable('CI') === 'true') throw new Error(message);
  process.stderr.write(`${message}\n`);
  return message;
}

/** The operator's pod with the annotations and the grace of a row. */
export function buildPod(variant: Variant): Pod {
  return annotate(readPod(variant.pod), variant, variant.ownSeconds);
}

/** What a policy must make of it, normalised. */
export function buildGolden(variant: Variant): Pod {
  const pod = normalise(annotate(readPod(variant.pod), variant, variant.seconds));
  const container = findLastscrape(readGolden(variant.lastscrape));
  return { ...pod, spec: { ...pod.spec, containers: [...pod.spec.containers, container] } };
}

/** Whether lastscrape stands in the place of an exporter that the operator does not make. */
export function isInPlace(name: PodName): boolean {
  return name.startsWith('otel');
}

/** The container lastscrape. @throws unless it is there once, as the last regular container, or in an exporter's place. */
export function findLastscrape(pod: Pod): Container {
  const inPlace = pod.spec.initContainers?.at(-1);
  if (inPlace?.env?.some(({ name }) => name === 'LASTSCRAPE_FRONT')) return inPlace;
  const names = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].map(({ name }) => name);
  const last = pod.spec.containers.at(-1);
  if (last?.name !== 'lastscrape' || names.filter((name) => name === 'lastscrape').length !== 1) {
    throw new Error(
      `Cannot find lastscrape in the pod: its containers are ${names.join(', ')}; must be there once, as the last regular one`,
    );
  }
  return last;
}

/**
 * Annotations, labels and spec of a pod, without what makes it this one and without what an API
 * server puts into every pod (Kubernetes 1.36.3: fixtures/injected/*.answer.json).
 */
export function normalise(pod: Pod): Pod {
  const { containers, initContainers, volumes, tolerations, ...spec } = pod.spec as Pod['spec'] & {
    volumes?: readonly Fields[];
    tolerations?: readonly Fields[];
  };
  const { annotations, labels = {} } = pod.metadata;
  const ownLabels = Object.fromEntries(Object.entries(labels).filter(([name]) => !JOB_LABEL.test(name)));
  return withoutAbsent({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: withoutAbsent({ annotations: withoutNone(annotations), labels: withoutNone(ownLabels) }),
    spec: withoutAbsent({
      containers: containers.map(normaliseContainer),
      initContainers: withoutEmpty(initContainers?.map(normaliseContainer)),
      tolerations: withoutEmpty(tolerations?.filter((toleration) => !isDefaultToleration(toleration))),
      volumes: withoutEmpty(
        volumes?.filter(({ name }) => !String(name).startsWith('kube-api-access-')).map(normaliseVolume),
      ),
      ...without(spec, SPEC_DEFAULTS),
    }),
  }) as Pod;
}

/** What the Job controller adds to the labels of its pods, with and without the prefix. */
const JOB_LABEL = /^(batch\.kubernetes\.io\/)?(controller-uid|job-name)$/;

const SPEC_DEFAULTS: Fields = {
  dnsPolicy: 'ClusterFirst',
  enableServiceLinks: true,
  preemptionPolicy: 'PreemptLowerPriority',
  priority: 0,
  schedulerName: 'default-scheduler',
  securityContext: {},
  serviceAccount: 'default',
  serviceAccountName: 'default',
  terminationGracePeriodSeconds: 30,
};

function normaliseContainer(container: Container): Container {
  const { ports, env, volumeMounts, ...rest } = container;
  return withoutAbsent({
    ...without(rest, {
      resources: {},
      terminationMessagePath: '/dev/termination-log',
      terminationMessagePolicy: 'File',
    }),
    // With hostNetwork the server writes the port down as the host's, too.
    ports: ports?.map((port) => without(port, { protocol: 'TCP', hostPort: port['containerPort'] })),
    env: env?.map(normaliseVariable),
    volumeMounts: withoutEmpty(
      volumeMounts?.filter(({ mountPath }) => mountPath !== '/var/run/secrets/kubernetes.io/serviceaccount'),
    ),
  }) as Container;
}

function normaliseVariable(variable: Variable): Fields {
  const { fieldRef } = variable.valueFrom ?? {};
  if (fieldRef === undefined) return variable;
  return { ...variable, valueFrom: { ...variable.valueFrom, fieldRef: without(fieldRef, { apiVersion: 'v1' }) } };
}

function normaliseVolume(volume: Fields): Fields {
  const { configMap, ...rest } = volume as Fields & { configMap?: Fields };
  return configMap === undefined ? volume : { ...rest, configMap: without(configMap, { defaultMode: 0o644 }) };
}

function isDefaultToleration({ key, tolerationSeconds }: Fields): boolean {
  return /^node\.kubernetes\.io\/(not-ready|unreachable)$/.test(String(key)) && tolerationSeconds === 300;
}

function annotate(
  pod: Pod,
  { annotations, env = [] }: Variant,
  terminationGracePeriodSeconds: number | undefined,
): Pod {
  const [main, ...others] = pod.spec.containers as readonly [Container, ...Container[]];
  const containers =
    env.length === 0 ? pod.spec.containers : [{ ...main, env: [...(main.env ?? []), ...env] }, ...others];
  return {
    ...pod,
    metadata: { ...pod.metadata, annotations: { ...pod.metadata.annotations, ...annotations } },
    spec: withoutAbsent({ ...pod.spec, containers, terminationGracePeriodSeconds }) as Pod['spec'],
  };
}

/** The fields that differ from these defaults, and never the node's name. */
function without(fields: Fields, defaults: Fields): Fields {
  const own = Object.entries(fields).filter(
    ([name, value]) => name !== 'nodeName' && !(name in defaults && isDeepStrictEqual(value, defaults[name])),
  );
  return Object.fromEntries(own);
}

function withoutAbsent(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function withoutNone(fields: Record<string, string> | undefined): Record<string, string> | undefined {
  return Object.keys(fields ?? {}).length === 0 ? undefined : fields;
}

function withoutEmpty<Item>(items: readonly Item[] | undefined): readonly Item[] | undefined {
  return items?.length === 0 ? undefined : items;
}
