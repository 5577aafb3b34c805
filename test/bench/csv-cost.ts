// What it costs a Locust of 500 names under load to be read: its master's CPU and the requests that its
// worker makes, while nobody reads, with the real exporter, and with lastscrape in its place, without the CSV
// and with it. One Locust, the kinds in turns.
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Child } from '../support/child.ts';
import { openPod, type Pod, START_MS } from '../support/pod.ts';
import type { ExporterProgram, Programs } from '../support/programs.ts';
import { until } from '../support/until.ts';
import { writeTable } from './budgets.ts';
import { findMedian } from './median.ts';
import { readThreadSeconds } from './process-cost.ts';

type Reader = {
  readonly name: string;
  readonly start: (pod: Pod) => Child | null;
  /** lastscrape reads the CSV under load only after a quit request. */
  readonly readsCsv: boolean;
};

type Window = { readonly masterShare: number; readonly requestsPerSecond: number };

const READERS: readonly Reader[] = [
  { name: 'nobody', start: () => null, readsCsv: false },
  { name: 'exporter', start: (pod) => pod.startExporter(), readsCsv: false },
  { name: 'lastscrape in its place: the page', start: (pod) => pod.startInPlace(), readsCsv: false },
  { name: 'the same, told that Locust ends: the page and the CSV', start: (pod) => pod.startInPlace(), readsCsv: true },
];

const LOCUSTFILE = join(import.meta.dirname, 'many-names.py');
/** many-names.py. */
const WANTED_PER_SECOND = 200;
const ROUND_COUNT = 5;
const SETTLE_MS = 3_000;
const WINDOW_MS = 10_000;
const SCRAPE_MS = 5_000;
const PAGE_READ_COUNT = 15;
/** Locust keeps its page for 2 s. */
const PAGE_KEPT_MS = 2_100;

/** Prints the table. */
export async function measureCsvCost(programs: Programs, exporter: ExporterProgram): Promise<void> {
  await using pod = await openPod(programs, exporter);
  const master = pod.startMaster({
    locustfile: LOCUSTFILE,
    runTime: '1h',
    extraArgs: ['--users', '20', '--spawn-rate', '20'],
  });
  const worker = pod.startWorker(LOCUSTFILE);
  await master.waitForLine(/All users spawned|Spawning is complete/, START_MS);
  await until('500 names', START_MS, async () => ((await readRowCount(pod)) > 500 ? true : undefined));
  const windows = new Map(READERS.map((reader) => [reader, [] as Window[]]));
  for (let round = 0; round < ROUND_COUNT; round += 1) {
    for (const reader of READERS) windows.get(reader)?.push(await watch(pod, reader, master, worker));
    process.stderr.write(`csv: round ${round + 1} of ${ROUND_COUNT}\n`);
  }
  const listOf = (reader: Reader) => windows.get(reader) ?? [];
  const [nobody] = READERS as readonly [Reader];
  // Compared within a round: other load on the machine moves both.
  const listShares = (reader: Reader) =>
    listOf(reader).map((one, round) => one.requestsPerSecond / (listOf(nobody)[round] as Window).requestsPerSecond);
  console.log(
    writeTable(
      ['who reads', 'CPU of the master (% of a core)', 'requests a second', 'of those without a reader'],
      READERS.map((reader) => [
        reader.name,
        (findMedian(listOf(reader).map((one) => one.masterShare)) * 100).toFixed(1),
        findMedian(listOf(reader).map((one) => one.requestsPerSecond)).toFixed(0),
        `${(findMedian(listShares(reader)) * 100).toFixed(0)} %`,
      ]),
    ),
  );
  const pageMs = await timeReads(pod, '/stats/requests', PAGE_KEPT_MS);
  const csvMs = await timeReads(pod, '/stats/requests/csv', 0);
  console.log(
    `\nA Locust of 500 names with a worker whose users want ${WANTED_PER_SECOND} requests a second; medians of ${ROUND_COUNT} times ${WINDOW_MS / 1000} s for each kind, in turns; a scrape every ${SCRAPE_MS / 1000} s. ` +
      `Locust makes a page in ${pageMs.toFixed(0)} ms and a CSV in ${csvMs.toFixed(0)} ms under this load (medians of ${PAGE_READ_COUNT}).`,
  );
}

async function watch(pod: Pod, { start, readsCsv }: Reader, master: Child, worker: Child): Promise<Window> {
  const { exporter: port } = pod.network.ports;
  await using child = start(pod);
  if (child !== null) await pod.waitForPort(port);
  await delay(SETTLE_MS);
  if (readsCsv) await pod.network.get(port, '/quitquitquit');
  const beganAtMs = performance.now();
  const cpuBefore = readThreadSeconds(master.pid);
  const madeBefore = readMade(worker);
  for (let passedMs = 0; passedMs < WINDOW_MS; passedMs += SCRAPE_MS) {
    if (child !== null) await pod.network.get(port, '/metrics');
    await delay(beganAtMs + passedMs + SCRAPE_MS - performance.now());
  }
  const seconds = (performance.now() - beganAtMs) / 1000;
  const madeAfter = readMade(worker);
  return {
    masterShare: (readThreadSeconds(master.pid) - cpuBefore) / seconds,
    requestsPerSecond: (madeAfter.count - madeBefore.count) / ((madeAfter.atMs - madeBefore.atMs) / 1000),
  };
}

/** What the worker has said last. */
function readMade(worker: Child): { readonly count: number; readonly atMs: number } {
  const line = worker.lines.findLast(({ text }) => text.startsWith('made '));
  if (line === undefined) throw new Error(`Cannot read what the worker made; ${worker.tail()}`);
  return { count: Number(line.text.slice('made '.length)), atMs: line.atMs };
}

async function readRowCount(pod: Pod): Promise<number> {
  const { status, body } = await pod.network.get(pod.network.ports.web, '/stats/requests');
  return status === 200 ? JSON.parse(body).stats.length : 0;
}

async function timeReads(pod: Pod, path: string, pauseMs: number): Promise<number> {
  const times: number[] = [];
  for (let count = 0; count < PAGE_READ_COUNT; count += 1) {
    await delay(pauseMs);
    const beganAtMs = performance.now();
    await pod.network.get(pod.network.ports.web, path);
    times.push(performance.now() - beganAtMs);
  }
  return findMedian(times);
}
