// Real Prometheus, before and after a hand-over: the same series, the last numbers, and no `up` of 0. The pod's own
// target comes from a file with the labels of Kubernetes' discovery; the keeper's by HTTP, in the same job.

import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { frontProgram, gateFront } from '../pods/front-programs.ts';
import { type Child, startChild } from '../support/child.ts';
import { makeFolder } from '../support/folder.ts';
import { listen } from '../support/listen.ts';
import { closedPort } from '../support/peer.ts';
import { type Keeper, startKeeper, until } from './keeper.ts';

const ROOT = join(import.meta.dirname, '../..');
const skip = gateFront('test/keeper/prometheus.test.ts', ['prometheus', 'prometheus3']);
const TIMEOUT_MS = 120_000;

/** Rules of a PodMonitor as the Prometheus operator writes them, and of the community chart's kubernetes-pods job. */
const RULES = {
  podMonitor: `
      - {source_labels: [job], target_label: __tmp_prometheus_job_name}
      - {action: drop, source_labels: [__meta_kubernetes_pod_phase], regex: '(Failed|Succeeded)'}
      - {action: keep, source_labels: [__meta_kubernetes_pod_label_app, __meta_kubernetes_pod_labelpresent_app], regex: '(shop);true'}
      - {action: keep, source_labels: [__meta_kubernetes_pod_container_port_name], regex: lastscrape}
      - {source_labels: [__meta_kubernetes_namespace], target_label: namespace}
      - {source_labels: [__meta_kubernetes_pod_container_name], target_label: container}
      - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
      - {target_label: job, replacement: monitoring/lastscrape-front}
      - {target_label: endpoint, replacement: lastscrape}
      - {source_labels: [__address__, __tmp_hash], target_label: __tmp_hash, regex: "(.+);", replacement: $1, action: replace}`,
  kubernetesPods: `
      - {source_labels: [__meta_kubernetes_pod_annotation_prometheus_io_scrape], action: keep, regex: true}
      - {source_labels: [__meta_kubernetes_pod_annotation_prometheus_io_scheme], action: replace, regex: '(https?)', target_label: __scheme__}
      - {source_labels: [__meta_kubernetes_pod_annotation_prometheus_io_path], action: replace, target_label: __metrics_path__, regex: '(.+)'}
      - {source_labels: [__meta_kubernetes_pod_annotation_prometheus_io_port, __meta_kubernetes_pod_ip], action: replace, regex: '(\\d+);((([0-9]+?)(\\.|$)){4})', replacement: '$2:$1', target_label: __address__}
      - {action: labelmap, regex: '__meta_kubernetes_pod_label_(.+)'}
      - {source_labels: [__meta_kubernetes_namespace], action: replace, target_label: namespace}
      - {source_labels: [__meta_kubernetes_pod_name], action: replace, target_label: pod}
      - {source_labels: [__meta_kubernetes_pod_phase], regex: 'Pending|Succeeded|Failed|Completed', action: drop}
      - {source_labels: [__meta_kubernetes_pod_node_name], action: replace, target_label: node}`,
} as const;

type Server = { readonly name: string; readonly child: Child; readonly port: number };

/** A Prometheus that scrapes every second, with a job for each set of rules. */
async function startServer(name: string, command: string, keeper: Keeper, targetFile: string): Promise<Server> {
  const folder = makeFolder();
  const port = await closedPort();
  const jobs = Object.entries(RULES).map(
    ([job, rules]) => `
  - job_name: ${job}
    file_sd_configs: [{files: ["${targetFile}"]}]
    http_sd_configs: [{url: "${keeper.serveUrl}/targets", refresh_interval: 1s}]
    relabel_configs:${rules}`,
  );
  const config = join(folder, 'prometheus.yml');
  writeFileSync(config, `global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:${jobs.join('')}\n`);
  const child = startChild({
    name,
    command: [
      command,
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    env: { HOME: folder },
    cwd: folder,
  });
  await child.waitForLine(/Server is ready to receive web requests/, TIMEOUT_MS);
  return { name, child, port };
}

type Matrix = readonly { readonly metric: Record<string, string>; readonly values: readonly [number, string][] }[];

async function readSeries({ port }: Server, selector: string): Promise<Matrix> {
  const url = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(selector)}`;
  const { data } = (await (await fetch(url)).json()) as { data: { result: Matrix } };
  return data.result;
}

/** A program, and lastscrape before it, with the target that Kubernetes' discovery has for that pod. */
async function startPod(keeper: Keeper, name: string) {
  const folder = makeFolder();
  const page = { text: 'jobs_done_total 1\n' };
  const program = createServer((_, response) =>
    response.writeHead(200, { 'content-type': 'text/plain' }).end(page.text),
  );
  const [port, front] = [await listen(program), await closedPort()];
  writeFileSync(join(folder, 'labels'), 'app="shop"\njob-name="import"');
  writeFileSync(join(folder, 'annotations'), `prometheus.io/scrape="true"\nprometheus.io/port="${front}"`);
  const child = startChild({
    name,
    command: [process.execPath, join(ROOT, 'bin/lastscrape.ts')],
    env: {
      LASTSCRAPE_METRICS_URL: `http://127.0.0.1:${port}/metrics`,
      LASTSCRAPE_FRONT: `127.0.0.1:${front}`,
      LASTSCRAPE_DONE_WHEN: 'sigterm',
      LASTSCRAPE_HAND_OVER: new URL(keeper.handOverUrl).origin,
      LASTSCRAPE_HAND_OVER_FOLDER: folder,
      ...{ POD_NAME: name, POD_NAMESPACE: 'batch', POD_UID: `uid-${name}`, NODE_NAME: 'node-1' },
    },
    cwd: folder,
  });
  const meta = (label: string) => `__meta_kubernetes_${label}`;
  const labels = {
    [meta('namespace')]: 'batch',
    [meta('pod_name')]: name,
    [meta('pod_uid')]: `uid-${name}`,
    [meta('pod_ip')]: '127.0.0.1',
    [meta('pod_phase')]: 'Running',
    [meta('pod_ready')]: 'true',
    [meta('pod_node_name')]: 'node-1',
    [meta('pod_label_app')]: 'shop',
    [meta('pod_labelpresent_app')]: 'true',
    [meta('pod_label_job_name')]: 'import',
    [meta('pod_labelpresent_job_name')]: 'true',
    [meta('pod_annotation_prometheus_io_scrape')]: 'true',
    [meta('pod_annotation_prometheus_io_port')]: `${front}`,
    [meta('pod_container_name')]: 'lastscrape',
    [meta('pod_container_init')]: 'true',
    [meta('pod_container_port_name')]: 'lastscrape',
    [meta('pod_container_port_number')]: `${front}`,
  };
  return { child, page, program, target: { targets: [`127.0.0.1:${front}`], labels } };
}

test('Prometheus stores the last numbers in the series of before, for two sets of rules, and its up does not end with 0', {
  skip,
}, async () => {
  await using keeper = await startKeeper();
  const targetFile = join(makeFolder(), 'targets.json');
  const pods = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => startPod(keeper, `import-${name}`)));
  writeFileSync(targetFile, JSON.stringify(pods.map(({ target }) => target)));
  const servers = await Promise.all([
    startServer('Prometheus 2', frontProgram('prometheus'), keeper, targetFile),
    startServer('Prometheus 3', frontProgram('prometheus3'), keeper, targetFile),
  ]);
  try {
    const everywhere = (what: string, isSo: (series: Matrix) => boolean) =>
      Promise.all(
        servers.map((server) =>
          until(
            `${what} in ${server.name}`,
            TIMEOUT_MS,
            async () => isSo(await readSeries(server, 'jobs_done_total[1h]')) || undefined,
          ),
        ),
      );
    const perServer = pods.length * Object.keys(RULES).length;
    await everywhere(
      'every pod',
      (series) => series.length === perServer && series.every(({ values }) => values.length >= 3),
    );
    const before = await Promise.all(servers.map((server) => readSeries(server, 'jobs_done_total')));
    // Kubernetes' discovery drops them; each adds a million in its last instant, and is gone.
    rmSync(targetFile);
    // A target that is dropped later than its pod is gone gets an up of 0, with and without a keeper.
    await Promise.all(
      servers.map(({ name, port }) =>
        until(`no target in ${name}`, TIMEOUT_MS, async () => {
          const answer = await fetch(`http://127.0.0.1:${port}/api/v1/targets?state=active`);
          const { data } = (await answer.json()) as { data: { activeTargets: readonly unknown[] } };
          return data.activeTargets.length === 0 || undefined;
        }),
      ),
    );
    const endedAtSeconds = Date.now() / 1000;
    for (const { page, child } of pods) {
      page.text = 'jobs_done_total 1000001\n';
      process.kill(child.pid, 'SIGTERM');
    }
    await Promise.all(pods.map(({ child }) => child.exited));
    for (const { child } of pods) assert.match(child.lines.at(-1)?.text ?? '', /"outcome":"handedOver"/);
    const hasLast = ({ values }: Matrix[number]) => values.at(-1)?.[1] === '1000001';
    await everywhere('the last numbers', (series) => series.filter(hasLast).length === perServer);
    await until('an empty keeper', TIMEOUT_MS, async () => (await keeper.metric('pages')) === 0 || undefined);
    for (const [index, server] of servers.entries()) {
      const after = await readSeries(server, 'jobs_done_total[1h]');
      const names = (series: readonly { readonly metric: Record<string, string> }[]) =>
        series.map(({ metric }) => JSON.stringify(metric)).sort();
      assert.deepEqual(names(after), names(before[index] ?? []), `${server.name}: no other series`);
      for (const { values } of after) assert.equal(values.at(-1)?.[1], '1000001');
      const ups = await readSeries(server, 'up{namespace="batch"}[1h]');
      assert.equal(ups.length, perServer);
      // One of a busy machine's time-outs is followed by a 1; a page that is gone too early by a 0, or nothing.
      const zeros = ups.filter(({ values }) =>
        values.some(([at, value], index) => at >= endedAtSeconds && value === '0' && values[index + 1]?.[1] !== '1'),
      );
      assert.deepEqual(zeros, [], `${server.name}: up`);
      const increases = await readSeries(server, 'increase(jobs_done_total[1h]) > 900000');
      assert.equal(increases.length, perServer);
    }
    assert.equal(await keeper.metric('scraped_total'), pods.length);
    assert.equal(await keeper.metric('expired_total'), 0);
  } finally {
    for (const { program, child } of pods) {
      program.close();
      await child[Symbol.asyncDispose]();
    }
    for (const { child } of servers) await child[Symbol.asyncDispose]();
  }
});
