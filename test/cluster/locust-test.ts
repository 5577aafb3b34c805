// Plays the Locust operator: what it makes for one LocustTest, from fixtures/pods, with the test's images, a
// short run, and requests so small that many tests fit on one node.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Container, Manifest, Namespace, Pod } from './cluster.ts';
import { IMAGES } from './images.ts';

/** The name of every LocustTest; each has its own namespace. */
export const NAME = 'checkout-load';
/** The Job of the master, and its main container. */
export const MASTER = `${NAME}-master`;
/** How long a finished Job of workers is kept: a setting of the operator. */
export const WORKER_KEPT_SECONDS = 300;
export const EXPORTER = 'locust-metrics-exporter';

/** The exporter as a regular container (operator 1.1.1, 2.0 to 2.2.3) or a native sidecar (2.3.0 on), or none. */
export type Shape = 'regular' | 'regular-1.1.1' | 'native' | 'otel';

/** What a user writes into a LocustTest, and what a scenario changes of the operator's pod. */
export type LocustTest = {
  readonly shape: Shape;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  /** Seconds; default 5: an exporter still reads the last total; with less, only lastscrape in its place. */
  readonly autoquitSeconds?: number;
  /** Seconds; default 10. */
  readonly runSeconds?: number;
  /** After these seconds the run goes on until `endRun`: what a scenario does in it cannot come too late. */
  readonly isHeld?: boolean;
  /** Default: users who succeed at everything. */
  readonly users?: 'steady' | 'failing';
  /** More Python at the end of the locustfile. */
  readonly more?: string;
  readonly args?: readonly string[];
  /** Default: IMAGES.locust. */
  readonly image?: string;
  /** The chart's value for the exporter's image. Default: IMAGES.exporter. */
  readonly exporterImage?: string;
  /** Of the master's Job; default 0, as the operator has it. */
  readonly backoffLimit?: number;
  /** Changes the master's pod last of all. */
  readonly edit?: (spec: PodSpec) => PodSpec;
};

export type PodSpec = {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly [field: string]: unknown;
};

type PodFixture = {
  readonly metadata: {
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
  };
  readonly spec: PodSpec;
};

/**
 * Users without a target: they report requests to Locust without sending a byte. The master is patient:
 * a worker without processor for 3 s counts as lost; and a run is not over before it has a request, of users who
 * fail every fifth time a failure.
 */
export const LOCUSTFILE = (isFailing: boolean, more: string) => `
import gevent
import locust.runners
from locust import User, constant, events, task

locust.runners.HEARTBEAT_LIVENESS = 60

@events.test_stopping.add_listener
def wait_for_a_request(environment, **_):
    runner = environment.runner
    while isinstance(runner, locust.runners.MasterRunner) and runner.stats.total.${isFailing ? 'num_failures' : 'num_requests'} == 0:
        gevent.sleep(0.1)

class Teller(User):
    wait_time = constant(0.2)
    count = 0

    @task
    def tell(self):
        Teller.count += 1
        failed = Exception("told to fail") if ${isFailing ? 'self.count % 5 == 0' : 'False'} else None
        self.environment.events.request.fire(
            request_type="GET", name="/told", response_time=1, response_length=2, exception=failed, context={})
${more}`;

/** The master stops its users when its page was asked for this path. */
const LOOKED = `
import gevent.event

looked = gevent.event.Event()

@events.init.add_listener
def hold(environment, web_ui, **_):
    if web_ui:
        web_ui.app.add_url_rule("/looked", view_func=lambda: looked.set() or "")
        environment.events.test_stopping.add_listener(lambda **_: looked.wait())
`;

export function editContainers<Spec extends PodSpec | Pod['spec']>(
  spec: Spec,
  change: (container: Container) => Container,
): Spec {
  const { containers, initContainers } = spec;
  const init = initContainers === undefined ? {} : { initContainers: initContainers.map(change) };
  return { ...spec, containers: containers.map(change), ...init };
}

export function withFields<Spec extends PodSpec | Pod['spec']>(spec: Spec, name: string, fields: object): Spec {
  return editContainers(spec, (each) => (each.name === name ? { ...each, ...fields } : each));
}

export function withVariable(spec: PodSpec, name: string, value: string): PodSpec {
  const add = (each: Container) => ({ ...each, env: [...(each.env ?? []), { name, value }] });
  return editContainers(spec, (each) => (each.name === EXPORTER ? add(each) : each));
}

/** Creates the LocustTest and its objects; the Service before the worker, which needs its address. */
export async function startLocustTest(namespace: Namespace, test: LocustTest): Promise<void> {
  const {
    shape,
    annotations = {},
    labels = {},
    users = 'steady',
    more = '',
    isHeld = false,
    exporterImage,
    edit = (spec) => spec,
  } = test;
  const master = readPod(shape);
  const worker = readPod('worker');
  await namespace.apply(
    { apiVersion: 'locust.io/v2', kind: 'LocustTest', metadata: { name: NAME } },
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: `${NAME}-files` },
      data: { 'locustfile.py': LOCUSTFILE(users === 'failing', isHeld ? LOOKED + more : more) },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: MASTER },
      spec: {
        selector: { 'performance-test-pod-name': MASTER },
        ports: [
          { name: 'port5557', port: 5557 },
          { name: 'port5558', port: 5558 },
          { name: 'prometheus-metrics', port: 9646 },
        ],
      },
    },
  );
  const fit = (container: Container) =>
    container.name === EXPORTER && exporterImage !== undefined
      ? { ...container, image: exporterImage }
      : small(container);
  const masterHost = await namespace.readField(`service/${MASTER}`, '{.spec.clusterIP}');
  const owner = await namespace.readField(`locusttests.locust.io/${NAME}`, '{.metadata.uid}');
  const spec = edit({
    ...master.spec,
    containers: master.spec.containers.map((container) => fit(buildMaster(container, test))),
    ...(master.spec.initContainers === undefined ? {} : { initContainers: master.spec.initContainers.map(fit) }),
  });
  await namespace.apply(
    buildJob(
      { name: MASTER, owner, backoffLimit: test.backoffLimit },
      { ...master.metadata.labels, ...labels },
      { ...master.metadata.annotations, ...annotations },
      spec,
    ),
    buildJob(
      { name: `${NAME}-worker`, owner, ttlSecondsAfterFinished: WORKER_KEPT_SECONDS },
      worker.metadata.labels,
      worker.metadata.annotations,
      {
        ...worker.spec,
        containers: worker.spec.containers.map((container) => small(buildWorker(container, masterHost))),
      },
    ),
  );
}

function readPod(name: string): PodFixture {
  return parse(readFileSync(join(import.meta.dirname, '../../fixtures/pods', `${name}.yaml`), 'utf8'));
}

function buildJob(
  { name, owner, backoffLimit = 0, ttlSecondsAfterFinished }: JobSettings,
  labels: object,
  annotations: object,
  spec: PodSpec,
): Manifest {
  const template = { metadata: { labels, annotations }, spec };
  const test = { apiVersion: 'locust.io/v2', kind: 'LocustTest', name: NAME, uid: owner };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, ownerReferences: [{ ...test, controller: true, blockOwnerDeletion: true }] },
    spec: { backoffLimit, ttlSecondsAfterFinished, template },
  };
}

type JobSettings = {
  readonly name: string;
  /** The LocustTest's UID. */
  readonly owner: string;
  readonly backoffLimit?: number | undefined;
  readonly ttlSecondsAfterFinished?: number;
};

// The operator's arguments stay as they are, but for the time until autoquit and the number of workers.
function buildMaster(container: Container, test: LocustTest): Container {
  const { image, args: more = [], autoquitSeconds = 5, runSeconds = 10 } = test;
  if (container.name === EXPORTER) return container;
  const args = (container.args ?? []).map((arg, index, all) => {
    if (all[index - 1] === '--autoquit') return String(autoquitSeconds);
    return arg.replace(/^--expect-workers=.*/, '--expect-workers=1');
  });
  const users = ['--host', 'http://127.0.0.1', '--users', '3', '--spawn-rate', '3', '--run-time', `${runSeconds}s`];
  return { ...container, image: image ?? IMAGES.locust, args: [...args, ...users, ...more] };
}

// By the Service's address, since a cluster of the test may have no DNS.
function buildWorker(container: Container, masterHost: string): Container {
  const args = (container.args ?? []).map((arg) =>
    arg.startsWith('--master-host=') ? `--master-host=${masterHost}` : arg,
  );
  return { ...container, image: IMAGES.locust, args };
}

// A node of two cores must hold some ten of these; limits stay.
function small(container: Container): Container {
  const { limits = {} } = (container['resources'] ?? {}) as { limits?: object };
  return {
    ...container,
    ...(container.name === EXPORTER ? { image: IMAGES.exporter } : {}),
    resources: { limits, requests: { cpu: '10m', memory: '16Mi' } },
  };
}
