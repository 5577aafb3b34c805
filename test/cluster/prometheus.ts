// A real Prometheus in the cluster: the scrape_config of deploy/monitoring, and what it stored.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import type { Cluster } from './cluster.ts';
import { IMAGES } from './images.ts';

/** How often it scrapes where a test says nothing else. */
const INTERVAL = '5s';
/** The annotation of a pod that is scraped at another interval. */
export const INTERVAL_ANNOTATION = 'test.lastscrape.dev/interval';

export const TOTAL = 'locust_requests_num_requests{name="Aggregated",method=""}';

/** The scrape job by the port name lastscrape (deploy/job/front), and the one by annotations. */
export const FRONT_JOB = 'lastscrape-front';
export const ANNOTATION_JOB = 'kubernetes-pods';

export type ClusterPrometheus = {
  /** The samples of that one series, oldest first, the last hour; empty without one. `null`: of no namespace. */
  readSamples(selector: string, namespace: string | null): Promise<readonly Sample[]>;
  /** Where it takes OTLP, for the exporter of a program in the cluster. */
  readonly otlpUrl: string;
};

/** One sample, with the time of its scrape (epoch seconds). */
export type Sample = { readonly atSeconds: number; readonly value: number };

/** What one is for: pods of all namespaces or of these only, and the pages of a keeper, whose targets are at this URL. */
type Scope = { readonly only?: readonly string[]; readonly keeperTargets?: string };

/** Starts it in its own namespace, and waits until it answers. */
export async function startClusterPrometheus(
  cluster: Cluster,
  own = 'monitoring',
  scope: Scope = {},
): Promise<ClusterPrometheus> {
  const namespace = await cluster.openNamespace(own);
  const name = `lastscrape-test-${own}-${cluster.run}`;
  const labels = { 'lastscrape.dev/test': cluster.run };
  cluster.defer(() => cluster.kubectl(['delete', 'clusterrole,clusterrolebinding', name]));
  await cluster.apply(
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name, labels },
      rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] }],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name, labels },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', name: 'default', namespace: namespace.name }],
    },
  );
  await namespace.apply(
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'prometheus' },
      data: { 'prometheus.yml': configText(scope) },
    },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'prometheus', labels: { 'app.kubernetes.io/name': 'prometheus' } },
      spec: {
        containers: [
          {
            name: 'prometheus',
            image: IMAGES.prometheus,
            args: [
              ...['--config.file=/etc/prometheus/prometheus.yml', '--storage.tsdb.path=/data'],
              '--web.enable-otlp-receiver',
            ],
            // Without, a busy node gives it next to nothing, and it gives up scrapes that were answered.
            resources: { requests: { cpu: '500m' } },
            volumeMounts: [
              { name: 'config', mountPath: '/etc/prometheus' },
              { name: 'data', mountPath: '/data' },
            ],
            readinessProbe: { httpGet: { path: '/-/ready', port: 9090 }, periodSeconds: 1, timeoutSeconds: 30 },
          },
        ],
        volumes: [
          { name: 'config', configMap: { name: 'prometheus' } },
          { name: 'data', emptyDir: {} },
        ],
      },
    },
  );
  const { pod } = await namespace
    .untilPod('Prometheus ready', 360_000, ({ status }) =>
      (status.conditions ?? []).some(({ type, status: is }) => type === 'Ready' && is === 'True'),
    )
    .catch(async (error) => {
      throw new Error(`${error.message}; ${await namespace.describe()}`);
    });
  const api = `/api/v1/namespaces/${namespace.name}/pods/prometheus:9090/proxy/api/v1`;
  return {
    otlpUrl: `http://${pod.status.podIP}:9090/api/v1/otlp`,
    async readSamples(selector, inNamespace) {
      const label = inNamespace === null ? '' : `namespace="${inNamespace}",`;
      const within = selector.includes('{') ? selector.replace('{', `{${label}`) : `${selector}{${label}}`;
      const answer: Answer = JSON.parse(
        await cluster.read(`${api}/query?query=${encodeURIComponent(`${within}[1h]`)}`),
      );
      const { result } = answer.data;
      if (result.length > 1) throw new Error(`Cannot read ${within}: there are ${result.length} such series`);
      return (result[0]?.values ?? []).map(([atSeconds, value]) => ({ atSeconds, value: Number(value) }));
    },
  };
}

type Answer = { readonly data: { readonly result: readonly { readonly values: readonly [number, string][] }[] } };

// As shipped, but for the interval; and the job by annotations that many a cluster has.
function configText({ only, keeperTargets }: Scope): string {
  const shipped = ['monitoring', 'job/front'].flatMap((folder) => {
    const path = join(import.meta.dirname, '../../deploy', folder, 'scrape-config.yaml');
    return parse(readFileSync(path, 'utf8')).scrape_configs;
  });
  const annotation = `__meta_kubernetes_pod_annotation_${INTERVAL_ANNOTATION.replaceAll(/[^a-z]/g, '_')}`;
  const setting = (label: string) => ({ source_labels: [annotation], regex: '(.+)', target_label: label });
  const jobs = [...shipped, BY_ANNOTATIONS].map((job: { job_name: string; relabel_configs: readonly object[] }) => ({
    ...job,
    ...(only === undefined ? {} : { kubernetes_sd_configs: [{ role: 'pod', namespaces: { names: only } }] }),
    ...(keeperTargets === undefined || job.job_name !== FRONT_JOB
      ? {}
      : { http_sd_configs: [{ url: keeperTargets, refresh_interval: INTERVAL }] }),
    scrape_interval: INTERVAL,
    scrape_timeout: INTERVAL,
    relabel_configs: [...job.relabel_configs, setting('__scrape_interval__')],
  }));
  return stringify({ scrape_configs: jobs });
}

// Prometheus's own example (documentation/examples/prometheus-kubernetes.yml), as in its Helm chart.
const BY_ANNOTATIONS = {
  job_name: ANNOTATION_JOB,
  kubernetes_sd_configs: [{ role: 'pod' }],
  relabel_configs: [
    { source_labels: ['__meta_kubernetes_pod_annotation_prometheus_io_scrape'], regex: 'true', action: 'keep' },
    // A LocustTest's pods are the first job's.
    { source_labels: ['__meta_kubernetes_pod_label_managed_by'], regex: 'locust-k8s-operator', action: 'drop' },
    {
      source_labels: ['__meta_kubernetes_pod_annotation_prometheus_io_path'],
      regex: '(.+)',
      target_label: '__metrics_path__',
    },
    {
      source_labels: ['__address__', '__meta_kubernetes_pod_annotation_prometheus_io_port'],
      regex: '(.+?)(?::\\d+)?;(\\d+)',
      replacement: '$1:$2',
      target_label: '__address__',
    },
    { source_labels: ['__meta_kubernetes_pod_phase'], regex: 'Succeeded|Failed', action: 'drop' },
    { source_labels: ['__meta_kubernetes_namespace'], target_label: 'namespace' },
    { source_labels: ['__meta_kubernetes_pod_name'], target_label: 'pod' },
  ],
};
