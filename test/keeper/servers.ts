// Prometheus servers that scrape pods and a keeper, each way in which people have them do so.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { renderManifest } from '../deploy/chart.ts';
import { askJudge } from '../judges/judges.ts';
import { startChild } from '../support/child.ts';
import { makeFolder } from '../support/folder.ts';
import { findFreePort } from '../support/listen.ts';
import type { Keeper } from './keeper.ts';

const ROOT = join(import.meta.dirname, '../..');
const READY_MS = 120_000;
/** Of scrapes and discovery, and their time-outs: with 1 s a busy machine has nothing but time-outs. */
const INTERVAL = '3s';

type Fields = Readonly<Record<string, unknown>>;
/** An entry of `scrape_configs`. */
export type Job = Fields & {
  readonly job_name: string;
  readonly http_sd_configs?: readonly { readonly url: string }[];
  readonly kubernetes_sd_configs?: readonly Fields[];
};

type PodMonitor = {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: Fields & { readonly podMetricsEndpoints: readonly { readonly relabelings: readonly Fields[] }[] };
};
type ScrapeConfig = Pick<PodMonitor, 'metadata'> & { readonly spec: { readonly relabelings: readonly Fields[] } };

const KEEPER = [{ url: 'http://lastscrape-keeper.monitoring.svc:9471/targets' }];

/** The job of the community chart (prometheus-community/helm-charts, charts/prometheus), and the keeper in it. */
export const KUBERNETES_PODS: Job = {
  ...parse(`
job_name: kubernetes-pods
honor_labels: true
kubernetes_sd_configs: [{role: pod}]
relabel_configs:
  - {source_labels: [__meta_kubernetes_pod_annotation_prometheus_io_scrape], action: keep, regex: true}
  - {source_labels: [__meta_kubernetes_pod_annotation_prometheus_io_scrape_slow], action: drop, regex: true}
  - {source_labels: [__meta_kubernetes_pod_annotation_prometheus_io_scheme], action: replace, regex: '(https?)', target_label: __scheme__}
  - {source_labels: [__meta_kubernetes_pod_annotation_prometheus_io_path], action: replace, target_label: __metrics_path__, regex: '(.+)'}
  - {source_labels: [__meta_kubernetes_pod_annotation_prometheus_io_port, __meta_kubernetes_pod_ip], action: replace, regex: '(\\d+);(([A-Fa-f0-9]{1,4}::?){1,7}[A-Fa-f0-9]{1,4})', replacement: '[$2]:$1', target_label: __address__}
  - {source_labels: [__meta_kubernetes_pod_annotation_prometheus_io_port, __meta_kubernetes_pod_ip], action: replace, regex: '(\\d+);((([0-9]+?)(\\.|$)){4})', replacement: '$2:$1', target_label: __address__}
  - {action: labelmap, regex: '__meta_kubernetes_pod_annotation_prometheus_io_param_(.+)', replacement: '__param_$1'}
  - {action: labelmap, regex: '__meta_kubernetes_pod_label_(.+)'}
  - {source_labels: [__meta_kubernetes_namespace], action: replace, target_label: namespace}
  - {source_labels: [__meta_kubernetes_pod_name], action: replace, target_label: pod}
  - {source_labels: [__meta_kubernetes_pod_phase], regex: 'Pending|Succeeded|Failed|Completed', action: drop}
  - {source_labels: [__meta_kubernetes_pod_node_name], action: replace, target_label: node}
`),
  http_sd_configs: KEEPER,
};

/** Of somebody's own, with all that an operator makes rules of. */
const OWN_MONITOR: PodMonitor = parse(`
metadata: {name: shop, namespace: batch}
spec:
  jobLabel: app
  podTargetLabels: [tier, job-name]
  namespaceSelector: {any: true}
  selector:
    matchLabels: {app: shop}
    matchExpressions: [{key: tier, operator: In, values: [web, batch]}, {key: debug, operator: DoesNotExist}]
  podMetricsEndpoints:
    - port: lastscrape
      relabelings:
        - {sourceLabels: [__meta_kubernetes_pod_node_name], targetLabel: node}
        - {sourceLabels: [__meta_kubernetes_pod_uid], targetLabel: uid}
        - {sourceLabels: [__meta_kubernetes_pod_controller_kind, __meta_kubernetes_pod_controller_name], targetLabel: controller}
        - {action: labelmap, regex: __meta_kubernetes_pod_annotation_example_com_(.+)}
        - {sourceLabels: [__meta_kubernetes_pod_container_port_number], targetLabel: port}
`);

/** The same, of which a ScrapeConfig can say all. */
const PLAIN_MONITOR: PodMonitor = {
  metadata: { name: 'plain', namespace: 'batch' },
  spec: { ...OWN_MONITOR.spec, jobLabel: undefined, podTargetLabels: undefined },
};

/** The scrape jobs of our files for a Prometheus without the operator. */
function readScrapeConfig(): readonly Job[] {
  return parse(readFileSync(join(ROOT, 'deploy/monitoring/keeper-scrape-config.yaml'), 'utf8')).scrape_configs;
}

/** As docs/keeper.md has it for a PodMonitor of one's own: the chart's ScrapeConfig with its job and relabelings. */
function copyPages(pages: ScrapeConfig, { metadata, spec }: PodMonitor): ScrapeConfig {
  const rules = pages.spec.relabelings.map((rule) =>
    rule['targetLabel'] === 'job' ? { ...rule, replacement: `${metadata.namespace}/${metadata.name}` } : rule,
  );
  const relabelings = [...rules, ...spec.podMetricsEndpoints.flatMap((endpoint) => endpoint.relabelings)];
  return { metadata: { ...metadata, name: `${metadata.name}-pages` }, spec: { ...pages.spec, relabelings } };
}

/** What the operator makes of the chart's monitors for one Prometheus; `own`: and of these, the last with its pages. */
async function askOperator(version: string, shards: number, own: readonly PodMonitor[]): Promise<readonly Job[]> {
  const documents = ['deploy/job/front/podmonitor.yaml', 'deploy/monitoring/keeper.yaml'].flatMap((file) =>
    parseAllDocuments(renderManifest(file)).map((document) => document.toJS()),
  );
  const find = (wanted: string) => documents.filter(({ kind }) => kind === wanted);
  const prometheus = { metadata: { name: 'main', namespace: 'monitoring' }, spec: { version, shards } };
  const question = {
    prometheus,
    podMonitors: [...find('PodMonitor'), ...own],
    scrapeConfigs: find('ScrapeConfig').flatMap((pages) => [
      pages,
      ...own.slice(-1).map((monitor) => copyPages(pages, monitor)),
    ]),
  };
  const [answer] = await askJudge<{ config: string; error: string }>('operator', [question]);
  if (answer === undefined || answer.error !== '') throw new Error(`Cannot ask the operator: ${answer?.error}`);
  return parse(answer.config).scrape_configs;
}

/** The chart's monitors as the operator has them scraped by shards. */
export function listShardJobs(version: string): Promise<readonly Job[]> {
  return askOperator(version, 2, []);
}

/** How many ways those are. */
export const WAYS_COUNT = 5;

/**
 * Every way, with a `job` of its own: the chart's monitors; a PodMonitor as the operator has it, with the keeper's
 * targets in its job; another with a ScrapeConfig of its own; the community chart's; our file.
 */
export async function listJobs(version: string): Promise<readonly Job[]> {
  const jobs = await askOperator(version, 1, [OWN_MONITOR, PLAIN_MONITOR]);
  const withKeeper = jobs.map((job) =>
    job.job_name === 'podMonitor/batch/shop/0' ? { ...job, http_sd_configs: KEEPER } : job,
  );
  return [...withKeeper, KUBERNETES_PODS, ...readScrapeConfig().slice(0, 1)];
}

type Plan = {
  readonly name: string;
  readonly command: string;
  readonly jobs: readonly Job[];
  /** What Kubernetes' discovery has. */
  readonly targetFiles: readonly string[];
  /** The first without, as the config-reloader of the operator writes it. */
  readonly shard?: number;
};

export type Matrix = readonly {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly (readonly [atSeconds: number, value: string])[];
}[];

export type Server = Awaited<ReturnType<typeof startServer>>;

/** Starts one that scrapes every 3 s: from files and this keeper what it would from the cluster. */
export async function startServer(
  keeper: Pick<Keeper, 'serveUrl'>,
  { name, command, jobs, targetFiles, shard = 0 }: Plan,
) {
  const folder = makeFolder();
  const port = await findFreePort();
  const localJobs = jobs.map(({ kubernetes_sd_configs: pods, http_sd_configs: pages, ...job }) => ({
    ...job,
    ...{ scrape_interval: INTERVAL, scrape_timeout: INTERVAL },
    ...(pods && { file_sd_configs: [{ files: targetFiles }] }),
    ...(pages && {
      http_sd_configs: pages.map(({ url }) => ({
        url: `${keeper.serveUrl}${new URL(url).pathname}`,
        refresh_interval: INTERVAL,
      })),
    }),
  }));
  const config = join(folder, 'prometheus.yml');
  writeFileSync(config, stringify({ scrape_configs: localJobs }).replaceAll('$(SHARD)', `${shard}`));
  const options = { 'config.file': config, 'storage.tsdb.path': join(folder, 'data') };
  const child = startChild({
    name,
    command: [
      command,
      ...Object.entries(options).map(([option, value]) => `--${option}=${value}`),
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    env: { HOME: folder },
    cwd: folder,
  });
  await child.waitForLine(/Server is ready to receive web requests/, READY_MS);
  async function ask<Found>(path: string): Promise<Found> {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    const { data, error } = (await answer.json()) as { readonly data: Found; readonly error?: string };
    if (error !== undefined) throw new Error(`Cannot ask ${name} for ${path}: ${error}`);
    return data;
  }
  return {
    name,
    child,
    /** What a query answers now; of a range selector every sample. */
    query: async (text: string): Promise<Matrix> =>
      (await ask<{ readonly result: Matrix }>(`query?query=${encodeURIComponent(text)}`)).result,
    /** How many targets it scrapes. */
    countTargets: async (): Promise<number> =>
      (await ask<{ readonly activeTargets: readonly unknown[] }>('targets?state=active')).activeTargets.length,
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}
