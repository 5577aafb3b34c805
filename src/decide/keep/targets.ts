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
const ADDRESS_LABEL = /^pod_annotation(present)?_prometheus_io_(port|path|scheme)$/;

/** The labels of the target whose page is at `path` of the keeper; an empty one is none to Prometheus. */
export function listTargetLabels({ pod, target }: HandOver, path: string): Readonly<Record<string, string>> {
  const job = pod.labels['batch.kubernetes.io/job-name'] ?? pod.labels['job-name'] ?? '';
  const texts = Object.entries({ label: pod.labels, annotation: pod.annotations }).flatMap(([what, all]) =>
    Object.entries(all).flatMap(([name, value]) => {
      // As strutil.SanitizeLabelName (prometheus/prometheus, util/strutil/strconv.go).
      const sanitized = name.replaceAll(/[^a-zA-Z0-9_]/g, '_');
      return [[`pod_${what}_${sanitized}`, value] as const, [`pod_${what}present_${sanitized}`, 'true'] as const];
    }),
  );
  const meta = {
    namespace: pod.namespace,
    pod_name: pod.name,
    pod_uid: pod.uid,
    pod_ip: pod.ip,
    pod_node_name: pod.node,
    pod_container_name: target.container,
    pod_container_port_name: target.portName,
    pod_container_port_number: `${target.port}`,
    pod_container_port_protocol: 'TCP',
    pod_controller_kind: job === '' ? '' : 'Job',
    pod_controller_name: job,
    ...Object.fromEntries(texts.filter(([name]) => !ADDRESS_LABEL.test(name))),
  };
  return {
    __metrics_path__: path,
    instance: `${pod.ip.includes(':') ? `[${pod.ip}]` : pod.ip}:${target.port}`,
    ...Object.fromEntries(Object.entries(meta).map(([name, value]) => [`__meta_kubernetes_${name}`, value])),
  };
}
