// `npm run measure -- --keeper`: the final numbers of jobs that change in their last instant, hand over, and are
// gone at once, in two Prometheus servers. It prints a table, and fails only when a run does.

import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findMedian } from '../bench/median.ts';
import { jobCommand, readResult, WORKED } from '../pods/front-jobs.ts';
import { END_MS, type FrontPod, POLL, readReport, terminateAfter, withFrontPod } from '../pods/front-pod.ts';
import { describeFrontPrograms, LASTSCRAPE, listMissingFrontPrograms } from '../pods/front-programs.ts';
import type { Prometheus } from '../support/prometheus.ts';
import { readLast } from '../support/proof.ts';
import { until } from '../support/until.ts';

/** How a job sees to it that its last change is kept: the Python hook, a POST, a push. */
const WAYS = ['hook', 'call', 'push'] as const;
type Way = (typeof WAYS)[number];

const PROGRAMS = ['prometheus', 'prometheus3', 'python', 'curl'] as const;
const SERVERS = ['prometheus', 'prometheus3'] as const;
const SIDE_BY_SIDE_COUNT = 10;
const INTERVAL_MS = 5000;
const KEEPER_PORTS = [9470, 9471] as const;
/** Both servers see the last page some intervals after it was handed over, and the keeper lists it for a minute. */
const STORED_MS = 600_000;

type Run = {
  readonly name: string;
  readonly way: Way;
  readonly final: number;
  readonly exitMs: number;
  readonly outcome: string;
};

/** Prints the table. @throws when programs are missing, or a run fails. */
export async function measureFinalNumbers(runCount: number): Promise<void> {
  const missing = listMissingFrontPrograms(PROGRAMS);
  if (missing.length > 0) throw new Error(`Cannot measure: real programs are missing; install ${missing.join('; ')}`);
  const programs = describeFrontPrograms(SERVERS).slice(0, SERVERS.length);
  const { runs, stored } = await withFrontPod((pod) => playAll(pod, runCount));
  console.log(
    '| the last change is kept by | handed over | stored by Prometheus 2.42 | by Prometheus 3 | SIGTERM to exit: median, most (ms) |',
  );
  console.log('|---|---:|---:|---:|---:|');
  // What is missing, for whoever asks why.
  for (const { name, way, outcome, final } of runs) {
    const newest = stored.map((found) => found.get(name));
    if (newest.some((value) => value !== final))
      process.stderr.write(`${name} ${way} ${outcome}: ${final}, stored ${newest}\n`);
  }
  for (const way of WAYS) {
    const own = runs.filter((run) => run.way === way);
    const exitsMs = own.map(({ exitMs }) => exitMs);
    const count = (isSo: (run: Run) => boolean) => `${own.filter(isSo).length} of ${own.length}`;
    const cells = [
      count(({ outcome }) => outcome === 'handedOver'),
      ...SERVERS.map((_, index) => count(({ name, final }) => stored[index]?.get(name) === final)),
      `${findMedian(exitsMs).toFixed(0)}, ${Math.max(...exitsMs)}`,
    ];
    console.log(`| ${way} | ${cells.join(' | ')} |`);
  }
  console.log(
    `\nReal jobs, ${SIDE_BY_SIDE_COUNT} side by side, each a pod that is gone at once; a scrape every ${INTERVAL_MS / 1000} s, the front polls every ${POLL}; ${programs.join(', ')}. ` +
      'A final number counts if it is the newest of the one series that Prometheus has of the pod.',
  );
}

async function playAll(pod: FrontPod, runCount: number) {
  const [handOver, serve] = KEEPER_PORTS.map((port) => `127.0.0.1:${port}`);
  const keeper = pod.start('the keeper', [...LASTSCRAPE, 'keep'], {
    LASTSCRAPE_KEEPER_FOLDER: join(pod.directory, 'pages'),
    LASTSCRAPE_KEEPER_LISTEN: `${handOver}`,
    LASTSCRAPE_KEEPER_SERVE: `${serve}`,
    LASTSCRAPE_KEEPER_AUTH: 'none',
  });
  await keeper.waitForLine(/keeping the pages/, END_MS);
  const targets = openTargets(join(pod.directory, 'targets.json'));
  const config = `
global: {scrape_interval: ${INTERVAL_MS}ms, scrape_timeout: ${INTERVAL_MS}ms}
scrape_configs:
  - job_name: pods
    file_sd_configs: [{files: ["${targets.file}"]}]
    http_sd_configs: [{url: "http://${serve}/targets", refresh_interval: ${INTERVAL_MS}ms}]
    relabel_configs: [{source_labels: [__meta_kubernetes_pod_name], target_label: pod}]
`;
  const servers = await Promise.all(
    SERVERS.map(async (program) =>
      pod.startPrometheus({ program, config, folder: program, port: await pod.network.newPort() }),
    ),
  );
  const runs: Run[] = [];
  let nextIndex = 0;
  async function work(): Promise<void> {
    while (nextIndex < runCount) {
      runs.push(await playJob(pod, nextIndex++, targets));
      process.stderr.write(`${runs.length} of ${runCount} jobs\n`);
    }
  }
  await Promise.all(Array.from({ length: SIDE_BY_SIDE_COUNT }, work));
  await until('nothing in the keeper', STORED_MS, async () => {
    const { body } = await pod.network.get(KEEPER_PORTS[1], '/metrics');
    return /^lastscrape_keeper_pages 0$/m.test(body) || undefined;
  });
  return { runs, stored: await Promise.all(servers.map((server) => readAll(server, runs))) };
}

/** One job of 1.6 to 2.6 intervals, and its pod's end. */
async function playJob(pod: FrontPod, index: number, targets: ReturnType<typeof openTargets>): Promise<Run> {
  const way = WAYS[index % WAYS.length] ?? 'hook';
  const name = `job-${index}`;
  const [source, port] = [await pod.network.newPort(), await pod.network.newPort()];
  const hooks = join(pod.directory, `hooks-${index}`);
  const front = await pod.startFront({
    source: way === 'push' ? `pushgateway://127.0.0.1:${source}` : `http://127.0.0.1:${source}/metrics`,
    port,
    env: {
      LASTSCRAPE_HAND_OVER: `http://127.0.0.1:${KEEPER_PORTS[0]}`,
      ...{ POD_NAME: name, POD_NAMESPACE: `shop-${index % 10}`, POD_UID: `uid-${index}` },
      ...(way === 'hook' && { LASTSCRAPE_HOOKS: hooks }),
    },
  });
  targets.add(name, port);
  const snapshotUrl = `http://127.0.0.1:${port}/-/snapshot`;
  const job = pod.start(`the job ${name} (${way})`, jobCommand(way === 'push' ? 'shell' : 'python'), {
    JOB_MS: `${Math.round(INTERVAL_MS * (1.6 + Math.random()))}`,
    JOB_PORT: `${source}`,
    JOB_PUSH_URL: `http://127.0.0.1:${source}/metrics/job/shell`,
    ...(way === 'call' && { JOB_SNAPSHOT_URL: snapshotUrl }),
    ...(way === 'hook' && { PYTHONPATH: join(hooks, 'python'), LASTSCRAPE_SNAPSHOT_URL: snapshotUrl }),
  });
  await terminateAfter(job, front.child);
  const signalledMs = Date.now();
  const { atMs } = await front.child.waitForExit(END_MS);
  // Kubernetes' discovery drops a pod that has ended.
  targets.remove(name);
  const [{ final }, { outcome }] = [await readResult(job), await readReport(front)];
  return { name, way, final, outcome: `${outcome}`, exitMs: atMs - signalledMs };
}

/** What is stored last of each job. */
async function readAll(server: Prometheus, runs: readonly Run[]): Promise<ReadonlyMap<string, number | undefined>> {
  const found = new Map<string, number | undefined>();
  for (const { name } of runs) found.set(name, await readLast(server, `${WORKED}{pod="${name}"}`));
  return found;
}

/** The file from which Prometheus has the pods that run. */
function openTargets(file: string) {
  const ports = new Map<string, number>();
  function write(): void {
    const groups = [...ports].map(([name, port]) => ({
      targets: [`127.0.0.1:${port}`],
      labels: { __meta_kubernetes_pod_name: name },
    }));
    // Renamed: Prometheus would read half a file.
    writeFileSync(`${file}.part`, JSON.stringify(groups));
    renameSync(`${file}.part`, file);
  }
  return {
    file,
    add(name: string, port: number): void {
      ports.set(name, port);
      write();
    },
    remove(name: string): void {
      ports.delete(name);
      write();
    },
  };
}
