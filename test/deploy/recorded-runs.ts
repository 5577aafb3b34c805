// A real Prometheus with three runs: two recorded with the exporter, one with lastscrape in its place.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { listLines } from '../../src/exposition/exposition-text.ts';
import { readLocustCsv } from '../../src/front/locust/csv.ts';
import { openLocustMemory } from '../../src/front/locust/memory.ts';
import { readLocustStats } from '../../src/front/locust/page.ts';
import { makeFolder } from '../support/folder.ts';
import { type Network, openNetwork } from '../support/network.ts';
import type { Programs } from '../support/programs.ts';
import { runPrometheus } from '../support/prometheus.ts';

const ROOT = join(import.meta.dirname, '../..');

/** The first sample of what Prometheus holds, on a whole 15 s, an hour ago. */
export const BEGIN_SECONDS = Math.floor(Date.now() / 15_000) * 15 - 3_600;

const RECORDINGS = join(ROOT, 'fixtures/recordings');
const RUNNING = 'locust-2.8-to-2.47/2.47.0-running';
const STOPPED = 'locust-2.8-to-2.47/2.47.0-stopped';

/** What lastscrape shows in the exporter's place, from a recorded page and CSV; `isUp`: Locust answers. */
function exposeLocust(recording: string, isUp: boolean): string {
  const read = (suffix: string) => readFileSync(join(RECORDINGS, `${recording}.stats-requests.${suffix}`), 'utf8');
  const stats = readLocustStats(read('json')) ?? assert.fail('no page');
  const memory = openLocustMemory('locust');
  memory.takeStats(stats);
  if (recording === STOPPED)
    memory.takeCsv(readLocustCsv(Buffer.from(read('csv')), memory.isShown) ?? assert.fail('no CSV'));
  return memory
    .listFamilies(isUp ? 'stats' : 'down')
    .flatMap((family) => [...listLines(family)])
    .join('');
}

/** Bodies that were recorded, or made from recordings, at seconds after the begin. */
const BODIES = [
  { test: 'cart', pod: 'cart-master-a', from: 0, to: 60, file: 'exporter-0.5.0-locust-2.47.0/05-running.9.txt' },
  {
    test: 'cart',
    pod: 'cart-master-a',
    from: 75,
    to: 105,
    file: 'exporter-0.5.0-locust-2.47.0/10-after-master-exit.1.txt',
  },
  { test: 'old', pod: 'old-master-b', from: 0, to: 60, file: 'exporter-0.5/05-running.1.txt' },
  { test: 'place', pod: 'place-master-c', from: 0, to: 30, text: exposeLocust(RUNNING, true) },
  { test: 'place', pod: 'place-master-c', from: 45, to: 60, text: exposeLocust(STOPPED, true) },
  { test: 'place', pod: 'place-master-c', from: 75, to: 90, text: exposeLocust(STOPPED, false) },
] as const;

/**
 * Of kube-state-metrics; `_` is no scrape. cart's Locust has ended from 90 s on, the exporter and lastscrape
 * from 120 s on; place's from 60 s on, and lastscrape, a native sidecar, from 75 s on.
 */
const STATES = [
  ['cart-master-a', 'kube_pod_container_status_running', 'lastscrape', '1 _ 1 _ 1 _ 1 _ 0 _ 0'],
  ['cart-master-a', 'kube_pod_container_status_terminated', 'lastscrape', '0 _ 0 _ 0 _ 0 _ 1 _ 1'],
  ['cart-master-a', 'kube_pod_container_status_running', 'cart-master', '1 _ 1 _ 1 _ 0 _ 0 _ 0'],
  ['cart-master-a', 'kube_pod_container_status_running', 'locust-metrics-exporter', '1 _ 1 _ 1 _ 1 _ 0 _ 0'],
  ['cart-master-a', 'kube_pod_container_status_terminated', 'cart-master', '0 _ 0 _ 0 _ 1 _ 1 _ 1'],
  ['place-master-c', 'kube_pod_init_container_status_running', 'locust-metrics-exporter', '1 _ 1 _ 1 0 0'],
  ['place-master-c', 'kube_pod_init_container_status_running', 'wait-for-tests', '1 _ 1 _ 1 1 1'],
  ['place-master-c', 'kube_pod_container_status_terminated', 'place-master', '0 _ 0 _ 1 1 1'],
  ...['exact', 'late', 'lost', 'never'].map(
    (pod) => [pod, 'kube_pod_init_container_status_terminated', 'lastscrape', '0 _ 0 _ 1'] as const,
  ),
  ['runs', 'kube_pod_init_container_status_terminated', 'lastscrape', '0 _ 0 _ 0'],
] as const;

/** Of jobs behind a front: scraped after their end, or not; `never` was no target. */
const FRONTS = [
  ['exact', 'main_ended', '0 0 1'],
  ['exact', 'may_miss_seconds', '_ _ 0'],
  ['late', 'main_ended', '0 0 1'],
  ['late', 'may_miss_seconds', '_ _ 0.7'],
  ['lost', 'main_ended', '0 0'],
  ['runs', 'main_ended', '0 0 0'],
] as const;

/** Of a keeper, a sample every 15 s: what is listed longest ended at the first. */
const KEEPER = [
  ['pages', '', '3 2'],
  ['pages_listed', '', '2 1'],
  ['handed_over_total', '', '0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20'],
  ['scraped_total', '', '0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 10 10 10 10 10'],
  ['expired_total', '', '0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 5'],
  ['refused_total', 'reason="full"', '0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 15'],
  ['refused_total', 'reason="tooOften"', '0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0'],
  ['oldest_page_timestamp_seconds', '', `${BEGIN_SECONDS} ${BEGIN_SECONDS}`],
] as const;

/** What Prometheus is to hold, as OpenMetrics: the lines of one family follow each other. */
function writeOpenMetrics(): string {
  const families = new Map<string, string[]>();
  const add = (name: string, labels: string, value: string, seconds: number) => {
    const lines = families.get(name) ?? [];
    families.set(name, lines);
    lines.push(`${name}{${labels}} ${value} ${BEGIN_SECONDS + seconds}`);
  };
  for (const { test: name, pod, from, to, ...body } of BODIES) {
    const text = 'text' in body ? body.text : readFileSync(join(RECORDINGS, body.file), 'utf8');
    for (const [, metric = '', labels = '', value = ''] of text.matchAll(/^(locust_\w+)(?:\{(.*)\})? (\S+)\r?$/gm)) {
      const target = `namespace="shop",locust_test="${name}",pod="${pod}"`;
      for (let at = from; at <= to; at += 15) add(metric, labels === '' ? target : `${target},${labels}`, value, at);
    }
  }
  // Another Locust, whose series lack the monitors' labels.
  add('locust_requests_num_requests', 'namespace="shop",pod="other",method="",name="Aggregated"', '7', 0);
  add('locust_up', 'namespace="shop",pod="other"', '1', 0);
  for (const [pod, metric, container, values] of STATES) {
    values.split(' ').forEach((value, index) => {
      if (value === '_') return;
      add(metric, `namespace="shop",pod="${pod}",container="${container}"`, value, index * 15);
    });
  }
  for (const [pod, name, values] of FRONTS) {
    values.split(' ').forEach((value, index) => {
      if (value !== '_') add(`lastscrape_${name}`, `namespace="shop",pod="${pod}"`, value, index * 15);
    });
  }
  for (const [name, labels, values] of KEEPER) {
    for (const [index, value] of values.split(' ').entries()) {
      const target = 'namespace="monitoring",pod="lastscrape-keeper-d"';
      add(`lastscrape_keeper_${name}`, labels === '' ? target : `${target},${labels}`, value, index * 15);
    }
  }
  return `${[...families.values()].flat().join('\n')}\n# EOF\n`;
}

/** Starts it; disposing of it ends it and removes what it wrote. */
export async function openRecordedRuns(programs: Programs): Promise<{ readonly network: Network } & AsyncDisposable> {
  const stack = new AsyncDisposableStack();
  const directory = makeFolder();
  try {
    const [promtool = ''] = programs.promtool ?? [];
    writeFileSync(join(directory, 'series.txt'), writeOpenMetrics());
    execFileSync(promtool, ['tsdb', 'create-blocks-from', 'openmetrics', 'series.txt', 'prometheus'], {
      cwd: directory,
    });
    const network = stack.use(await openNetwork(directory));
    stack.use(await runPrometheus({ network, directory, command: programs.prometheus ?? [], config: '{}' }));
    return { network, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}
