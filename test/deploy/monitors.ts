// The scrape jobs that prometheus-operator makes of a PodMonitor and a ServiceMonitor (0.85.0,
// pkg/prometheus/promcfg.go), for the fields that the monitors in deploy/monitoring use.
import type { EndpointRole } from './discovery.ts';

/** One relabelling rule as Prometheus's configuration has it. */
export type RelabelRule = {
  readonly source_labels?: readonly string[];
  readonly regex?: string;
  readonly target_label?: string;
  readonly replacement?: string;
  readonly action?: string;
};

/** What of a PodMonitor or a ServiceMonitor is read here. */
export type Monitor = {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: {
    readonly selector: { readonly matchLabels?: Readonly<Record<string, string>> };
    readonly podMetricsEndpoints?: readonly MonitorEndpoint[];
    readonly endpoints?: readonly MonitorEndpoint[];
  };
};

type MonitorEndpoint = { readonly port?: string; readonly relabelings: readonly Readonly<Record<string, unknown>>[] };

const JOB_NAME: RelabelRule = { source_labels: ['job'], target_label: '__tmp_prometheus_job_name' };
const RUNNING: RelabelRule = {
  source_labels: ['__meta_kubernetes_pod_phase'],
  regex: '(Failed|Succeeded)',
  action: 'drop',
};

/** The one endpoint of a monitor. */
export function readEndpoint({ spec }: Monitor): MonitorEndpoint {
  const [endpoint, ...more] = spec.podMetricsEndpoints ?? spec.endpoints ?? [];
  if (endpoint === undefined || more.length > 0) throw new Error('Cannot read the monitor: it must have one endpoint');
  return endpoint;
}

/** A monitor's relabelings in the spelling of Prometheus's configuration. */
export function readRelabelings(monitor: Monitor): RelabelRule[] {
  return readEndpoint(monitor).relabelings.map((rule) =>
    Object.fromEntries(
      Object.entries(rule).map(([key, value]) => [
        key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        value,
      ]),
    ),
  );
}

/** All rules of a PodMonitor's job; `relabelings` stands for the monitor's own. */
export function renderPodMonitor(monitor: Monitor, relabelings = readRelabelings(monitor)): RelabelRule[] {
  const { port } = readEndpoint(monitor);
  return [
    JOB_NAME,
    RUNNING,
    ...selectorRules(monitor, 'pod'),
    ...(port === undefined
      ? []
      : [{ source_labels: ['__meta_kubernetes_pod_container_port_name'], regex: port, action: 'keep' }]),
    { source_labels: ['__meta_kubernetes_namespace'], target_label: 'namespace' },
    { source_labels: ['__meta_kubernetes_pod_container_name'], target_label: 'container' },
    { source_labels: ['__meta_kubernetes_pod_name'], target_label: 'pod' },
    { target_label: 'job', replacement: `${monitor.metadata.namespace}/${monitor.metadata.name}` },
    ...relabelings,
  ];
}

/** All rules of a ServiceMonitor's job; `relabelings` stands for the monitor's own. */
export function renderServiceMonitor(
  monitor: Monitor,
  role: EndpointRole,
  relabelings = readRelabelings(monitor),
): RelabelRule[] {
  const { port = '' } = readEndpoint(monitor);
  const kind = role === 'endpoints' ? 'endpoint' : 'endpointslice';
  return [
    JOB_NAME,
    ...selectorRules(monitor, 'service'),
    { source_labels: [`__meta_kubernetes_${kind}_port_name`], regex: port, action: 'keep' },
    { source_labels: ['__meta_kubernetes_namespace'], target_label: 'namespace' },
    { source_labels: ['__meta_kubernetes_service_name'], target_label: 'service' },
    { source_labels: ['__meta_kubernetes_pod_name'], target_label: 'pod' },
    { source_labels: ['__meta_kubernetes_pod_container_name'], target_label: 'container' },
    RUNNING,
    { source_labels: ['__meta_kubernetes_service_name'], target_label: 'job' },
    { target_label: 'endpoint', replacement: port },
    ...relabelings,
  ];
}

function selectorRules({ spec }: Monitor, kind: 'pod' | 'service'): RelabelRule[] {
  return Object.entries(spec.selector.matchLabels ?? {}).map(([key, value]) => {
    const name = key.replaceAll(/[^a-zA-Z0-9_]/g, '_');
    return {
      source_labels: [`__meta_kubernetes_${kind}_label_${name}`, `__meta_kubernetes_${kind}_labelpresent_${name}`],
      regex: `(${value});true`,
      action: 'keep',
    };
  });
}
