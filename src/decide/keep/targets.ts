// A hand-over as a target of Prometheus's HTTP discovery: the labels that Kubernetes' discovery gives to the
// pod, so that the same relabelling makes the same series. Pure.

import type { PageFormat } from './keep.ts';

/** What stands before the pages of a hand-over. */
export type HandOver = {
  readonly pod: {
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
    /** Without brackets. */
    readonly ip: string;
    /** Empty: not known; so for the names below. */
    readonly node: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
  };
  /** The port that Prometheus scraped, with the name that it has in the pod, and its container. */
  readonly target: { readonly container: string; readonly portName: string; readonly port: number };
  /** When main ended, in seconds since 1970. */
  readonly endedAtSeconds: number;
  readonly formats: readonly PageFormat[];
};

/** By these rules set the address, the path or the scheme of a target, which are the keeper's here. */
const ADDRESS_LABEL = /^__meta_kubernetes_pod_annotation(present)?_prometheus_io_(port|path|scheme)$/;

/** The labels of the target whose page is at `path` of the keeper. */
export function listTargetLabels({ pod, target }: HandOver, path: string): Readonly<Record<string, string>> {
  const meta = (name: string) => `__meta_kubernetes_${name}`;
  const job = pod.labels['batch.kubernetes.io/job-name'] ?? pod.labels['job-name'] ?? '';
  const known = {
    pod_node_name: pod.node,
    pod_container_name: target.container,
    pod_container_port_name: target.portName,
    pod_controller_kind: job === '' ? '' : 'Job',
    pod_controller_name: job,
  };
  const labels: (readonly [string, string])[] = [
    ['__metrics_path__', path],
    ['instance', `${pod.ip.includes(':') ? `[${pod.ip}]` : pod.ip}:${target.port}`],
    [meta('namespace'), pod.namespace],
    [meta('pod_name'), pod.name],
    [meta('pod_uid'), pod.uid],
    [meta('pod_ip'), pod.ip],
    [meta('pod_container_port_number'), `${target.port}`],
    [meta('pod_container_port_protocol'), 'TCP'],
    ...Object.entries(known).flatMap(([name, value]) => (value === '' ? [] : [[meta(name), value] as const])),
    ...Object.entries(pod.labels).flatMap(([name, value]) => describe('label', name, value)),
    ...Object.entries(pod.annotations).flatMap(([name, value]) => describe('annotation', name, value)),
  ];
  return Object.fromEntries(labels.filter(([name]) => !ADDRESS_LABEL.test(name)));

  function describe(what: 'label' | 'annotation', name: string, value: string): (readonly [string, string])[] {
    // As strutil.SanitizeLabelName (prometheus/prometheus, util/strutil/strconv.go).
    const sanitized = name.replaceAll(/[^a-zA-Z0-9_]/g, '_');
    return [
      [meta(`pod_${what}_${sanitized}`), value],
      [meta(`pod_${what}present_${sanitized}`), 'true'],
    ];
  }
}
