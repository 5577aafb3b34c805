// Prometheus configured in the ways that drop a held pod, each a job over the same discovered targets; and what a
// real one then answers to /api/v1/targets.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { makeFolder } from '../support/folder.ts';
import { openNetwork } from '../support/network.ts';
import { prometheusAt, runPrometheus } from '../support/prometheus.ts';
import { until } from '../support/until.ts';

/** Of the pod in fixtures/explain/lastscrape-holds-as-a-native-sidecar.json. */
const HELD = 'native-held-ps8kx';
export const FRONT = 9469;
const POD = '__meta_kubernetes_pod';

type Labels = Readonly<Record<string, string>>;
type Found = { readonly targets: readonly [string]; readonly labels: Labels };

/** A target as Kubernetes' discovery makes it (discovery/kubernetes/pod.go), as far as rules look at it. */
function target(pod: string, address: string, container: Labels, isHeld = true, namespace = 'default'): Found {
  const own = Object.entries(container).map(([name, value]) => [`${POD}_${name}`, value]);
  const labels = {
    __meta_kubernetes_namespace: namespace,
    [`${POD}_name`]: pod,
    [`${POD}_ready`]: `${!isHeld}`,
    [`${POD}_container_init`]: 'false',
    ...Object.fromEntries(own),
  };
  return { targets: [address], labels };
}

const LASTSCRAPE = { container_init: 'true', container_port_name: 'lastscrape', container_name: 'lastscrape' };
const MAIN = target(HELD, '127.0.0.1:8000', { container_name: 'main', container_port_name: 'http' });
const OWN = target(HELD, `127.0.0.1:${FRONT}`, LASTSCRAPE);
const WEB = target(
  'web-1',
  '127.0.0.2:8000',
  { container_name: 'web', annotation_prometheus_io_scrape: 'true' },
  false,
);
const ALL = [MAIN, OWN, WEB];

type Story = {
  readonly job: string;
  readonly found: readonly Found[];
  readonly rules: readonly object[];
  readonly rule: string;
};

const when = (label: string, regex: string, action: 'drop' | 'keep') => ({
  source_labels: [`${POD}_${label}`],
  regex,
  action,
});

/** A job, what it discovers, its relabelling, and the rule that explain must name. */
export const STORIES: readonly Story[] = [
  { job: 'right', found: ALL, rules: [when('container_port_name', 'lastscrape', 'keep')], rule: 'scraped' },
  { job: 'refused', found: [target(HELD, `127.0.0.3:${FRONT}`, LASTSCRAPE)], rules: [], rule: 'failing' },
  { job: 'main-only', found: [MAIN, WEB], rules: [], rule: 'port' },
  {
    job: 'annotated',
    found: ALL,
    rules: [{ source_labels: ['__address__'], regex: '(.+):.+', replacement: '$1:8000', target_label: '__address__' }],
    rule: 'port',
  },
  { job: 'no-init', found: ALL, rules: [when('container_init', 'true', 'drop')], rule: 'initContainer' },
  {
    job: 'ready-only',
    found: [...ALL, target('job-2', '127.0.0.4:9469', LASTSCRAPE, false)],
    rules: [when('ready', 'false', 'drop')],
    rule: 'notReady',
  },
  { job: 'alone', found: [OWN], rules: [when('ready', 'true', 'keep')], rule: 'initContainer' },
  {
    job: 'scrape-only',
    found: [...ALL, target('job-2', '127.0.0.4:9469', { ...LASTSCRAPE, annotation_prometheus_io_scrape: 'true' })],
    rules: [when('annotation_prometheus_io_scrape', 'true', 'keep')],
    rule: 'annotation',
  },
  {
    job: 'own-rule',
    found: [...ALL, target('job-2', '127.0.0.4:9469', LASTSCRAPE)],
    rules: [when('name', HELD, 'drop')],
    rule: 'other',
  },
  { job: 'undeclared', found: [MAIN, WEB], rules: [when('container_name', 'web', 'keep')], rule: 'undeclared' },
  { job: 'selector', found: [WEB], rules: [], rule: 'notDiscovered' },
  { job: 'elsewhere', found: [target('web-1', '127.0.0.2:8000', {}, false, 'other')], rules: [], rule: 'namespace' },
];

/** What one answer has of a job. */
type Answer = {
  readonly activeTargets: readonly { readonly discoveredLabels: Labels; readonly health: string }[];
  readonly droppedTargets: readonly { readonly discoveredLabels: Labels }[];
};

/** The answer as a Prometheus gives it that has only this job. */
export function selectJob({ activeTargets, droppedTargets }: Answer, job: string): Answer {
  const isOf = (each: { readonly discoveredLabels: Labels }) => each.discoveredLabels['job'] === job;
  return { activeTargets: activeTargets.filter(isOf), droppedTargets: droppedTargets.filter(isOf) };
}

/** Asks a real Prometheus, which listens on the front's port and so answers in lastscrape's place. */
export async function askPrometheus(command: readonly string[]): Promise<Answer> {
  const folder = makeFolder();
  await using network = await openNetwork(folder);
  const jobs = STORIES.map(({ job, found, rules }) => {
    writeFileSync(join(folder, `${job}.json`), JSON.stringify(found));
    const files = { files: [join(folder, `${job}.json`)] };
    return {
      job_name: job,
      scrape_interval: '1s',
      scrape_timeout: '1s',
      file_sd_configs: [files],
      relabel_configs: rules,
    };
  });
  const config = stringify({ scrape_configs: jobs });
  await using child = await runPrometheus({ network, command, directory: folder, config, port: FRONT });
  const { ask } = prometheusAt(child, network, FRONT);
  return await until('all targets are scraped or dropped', 60_000, async () => {
    const answer = await ask<Answer>('targets');
    const jobs = new Set(
      [...answer.activeTargets, ...answer.droppedTargets].map(({ discoveredLabels }) => discoveredLabels['job']),
    );
    const isKnown = answer.activeTargets.every(({ health }) => health !== 'unknown');
    return STORIES.every(({ job }) => jobs.has(job)) && isKnown ? answer : undefined;
  });
}
