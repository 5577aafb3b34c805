// What lastscrape costs in the place of Locust's exporter, beside the real one where there is one (`npm run
// measure -- --locust-cost`): time, CPU and memory of scrapes as Prometheus makes them, both in turns, with a
// page of 500 names, and with the 10,000 rows that both remember when names come and go; the same within 64
// MiB, and a tenth of a processor as well; and what the age of Locust's own page does to a scrape.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Child } from '../support/child.ts';
import { listen } from '../support/listen.ts';
import { closedPort } from '../support/peer.ts';
import { openPod, type Pod, START_MS } from '../support/pod.ts';
import { type ExporterProgram, findPrograms } from '../support/programs.ts';
import { until } from '../support/until.ts';
import { writeTable } from './budgets.ts';
import { dropFromCache } from './footprint.ts';
import { openClient } from './front.ts';
import { findMedian } from './median.ts';
import { openMemoryGroup } from './memory-limit.ts';
import { readCost, readThreadSeconds } from './process-cost.ts';
import { openRunner, type Runner } from './runner.ts';
import { findSubject } from './subject.ts';

type Measured = {
  readonly name: string;
  readonly scrapeMs: readonly number[];
  readonly sizeBytes: number;
  readonly anonymousBytes: readonly number[];
  /** CPU time of all that it does, scraped every SCRAPE_SECONDS. */
  readonly cpuShare: number;
};
type Started = { readonly name: string; readonly pid: number; readonly url: string };

const PAGE_ROWS_COUNT = 500;
/** Rows and turns; short scrapes need many turns on a busy machine. */
const SIZES = [
  [PAGE_ROWS_COUNT, 40],
  [10_000, 14],
] as const;
/** Longer than an answer is used again. */
const PAUSE_MS = 600;
const SCRAPE_SECONDS = 15;
const WINDOW_SECONDS = 30;
/** lastscrape reads the CSV for 30 s after a quit request. */
const CSV_TURN_COUNT = 8;
const CSV_PAUSE_MS = 3_000;
const LIMIT_MEBIBYTES = 64;
/** 100m as Kubernetes writes it. */
const LIMIT_SHARE = 0.1;
/** Locust keeps its page for 2 s. */
const PAGE_KEPT_MS = 2_100;
const PAGE_TURN_COUNT = 8;
const LOCUSTFILE = join(import.meta.dirname, 'many-names.py');

/** Prints the tables. */
export async function measureInPlaceCost(): Promise<void> {
  using group = openMemoryGroup();
  using slowGroup = openMemoryGroup();
  await using runner = openRunner();
  const subject = findSubject();
  const real = findPrograms().exporters.find(({ isReal }) => isReal);
  const command = subject.binary === undefined ? subject.command : [runner.copy(subject.binary, 'lastscrape')];
  if (subject.binary !== undefined) dropFromCache(command[0] as string);
  for (const each of [group, slowGroup]) each?.setLimit(LIMIT_MEBIBYTES * 2 ** 20);
  const isSlowed = slowGroup?.limitCpu(LIMIT_SHARE) === true;
  const rows: string[][] = [];
  for (const [rowCount, turnCount] of SIZES) {
    await using stack = new AsyncDisposableStack();
    // A Locust each: a page read by one program is cached for the next.
    const begin = async (name: string, wrapped: readonly string[]) => {
      const locust = stack.use(await openPages(rowCount));
      return start(runner, name, wrapped, locust.url);
    };
    // The first one to read the binary pays for its pages: they are within the limit.
    const limited = group === undefined ? [] : [await begin(`the same in ${LIMIT_MEBIBYTES} MiB`, group.wrap(command))];
    const slowed = isSlowed
      ? [await begin(`the same in ${LIMIT_MEBIBYTES} MiB and ${LIMIT_SHARE * 1_000}m`, slowGroup.wrap(command))]
      : [];
    const own = await begin('lastscrape', command);
    const exporter = real === undefined ? [] : [await begin('the exporter', real.command)];
    const all = [...exporter, own, ...limited, ...slowed];
    say(`${rowCount} rows: every page once`);
    using client = openClient();
    for (let page = 0; page < rowCount / PAGE_ROWS_COUNT + 1; page++) {
      await delay(PAUSE_MS);
      for (const { url } of all) await client.scrape(url, 'gzip');
    }
    say(`${rowCount} rows: scrapes`);
    for (const one of await measureTurns(all, turnCount, PAUSE_MS, watchCpu))
      rows.push([String(rowCount), ...describe(one)]);
    say(`${rowCount} rows: the CSV`);
    // The slow one alone: its scrapes would keep the others waiting until they read no CSV any more.
    for (const readers of [[own, ...limited], slowed]) {
      for (const { url } of readers) await fetch(new URL('/quitquitquit', url), { method: 'POST' });
      for (const one of await measureTurns(readers, CSV_TURN_COUNT, CSV_PAUSE_MS)) {
        rows.push([String(rowCount), ...describe({ ...one, name: `${one.name}, the CSV as well` })]);
      }
    }
    for (const { pid } of all) process.kill(pid, 'SIGKILL');
    await delay(PAUSE_MS);
  }
  console.log(
    writeTable(
      [
        'rows',
        'program',
        'scrape: median (ms)',
        'longest (ms)',
        'body (MB)',
        'anonymous memory: median (MB)',
        'most (MB)',
        'CPU (% of a core)',
      ],
      rows,
    ),
  );
  console.log(
    `\nScrapes with gzip over a kept connection, all programs in turns, ${SIZES.map(([, count]) => count).join(' or ')} of each; Locust is a server that only has pages, which are ready. ` +
      `The CPU is that of all that a program does within ${WINDOW_SECONDS} s, scraped every ${SCRAPE_SECONDS} s, lastscrape's own polls and reads of the page among it; with the CSV it is that of the ${(CSV_TURN_COUNT * CSV_PAUSE_MS) / 1000} s ` +
      `after \`/quitquitquit\`, scraped every ${CSV_PAUSE_MS / 1000} s. Linux ${process.arch}, ${subject.name} of lastscrape.\n`,
  );
  if (real !== undefined) await measurePages(real);
}

function describe({ name, scrapeMs, sizeBytes, anonymousBytes, cpuShare }: Measured): string[] {
  const mega = (bytes: number) => (bytes / 1e6).toFixed(1);
  return [
    ...[name, findMedian(scrapeMs).toFixed(1), Math.max(...scrapeMs).toFixed(0), mega(sizeBytes)],
    ...[mega(findMedian(anonymousBytes)), mega(Math.max(...anonymousBytes)), (cpuShare * 100).toFixed(1)],
  ];
}

async function start(runner: Runner, name: string, command: readonly string[], locustUrl: string): Promise<Started> {
  const port = await closedPort();
  const { pid, child } = runner.start(command, {
    LOCUST_EXPORTER_URI: locustUrl,
    LOCUST_EXPORTER_WEB_LISTEN_ADDRESS: `127.0.0.1:${port}`,
    LASTSCRAPE_TERMINATION_LOG: 'termination-log',
  });
  child.stdout?.resume();
  const url = `http://127.0.0.1:${port}/metrics`;
  using client = openClient();
  await until(`${name} answers`, 60_000, () =>
    client.scrape(url, 'gzip').then(
      () => true,
      () => undefined,
    ),
  );
  return { name, pid, url };
}

/**
 * Scrapes all in turn, `count` times. `watchApart`: measures the CPU afterwards, at Prometheus's scrape
 * interval.
 */
async function measureTurns(
  all: readonly Started[],
  count: number,
  pauseMs: number,
  watchApart?: typeof watchCpu,
): Promise<readonly Measured[]> {
  using client = openClient();
  const taken = all.map((one) => ({ one, scrapeMs: [] as number[], anonymousBytes: [] as number[] }));
  const watch = openCpuWatch(all);
  for (let turn = 0; turn < count; turn++) {
    await delay(pauseMs);
    for (const { one, scrapeMs, anonymousBytes } of taken) {
      scrapeMs.push((await client.scrape(one.url, 'gzip')) * 1000);
      anonymousBytes.push(readCost(one.pid).anonymousBytes);
    }
  }
  const shares = watchApart === undefined ? watch() : await watchApart(all);
  return Promise.all(
    taken.map(async ({ one, scrapeMs, anonymousBytes }, index) => ({
      ...{ name: one.name, scrapeMs, anonymousBytes, cpuShare: shares[index] as number },
      sizeBytes: (await (await fetch(one.url)).arrayBuffer()).byteLength,
    })),
  );
}

async function watchCpu(all: readonly Started[]): Promise<readonly number[]> {
  using client = openClient();
  const watch = openCpuWatch(all);
  for (let seconds = 0; seconds < WINDOW_SECONDS; seconds += SCRAPE_SECONDS) {
    for (const { url } of all) await client.scrape(url, 'gzip');
    await delay(SCRAPE_SECONDS * 1000);
  }
  return watch();
}

function openCpuWatch(all: readonly Started[]): () => readonly number[] {
  const beganAtMs = performance.now();
  const before = all.map(({ pid }) => readThreadSeconds(pid));
  return () => {
    const seconds = (performance.now() - beganAtMs) / 1000;
    return all.map(({ pid }, index) => (readThreadSeconds(pid) - (before[index] as number)) / seconds);
  };
}

/** A scrape with a real Locust of 500 names, which renders its page again 2 s after the last read. */
async function measurePages(exporter: ExporterProgram): Promise<void> {
  const subject = findSubject();
  await using pod = await openPod({ ...findPrograms(), watcher: subject.command }, exporter);
  const master = pod.startMaster({
    locustfile: LOCUSTFILE,
    runTime: '1h',
    extraArgs: ['--users', '20', '--spawn-rate', '20'],
  });
  pod.startWorker(LOCUSTFILE);
  await master.waitForLine(/All users spawned|Spawning is complete/, START_MS);
  const rows: string[][] = [];
  for (const [name, begin] of [
    ['the exporter', () => pod.startExporter()],
    ['lastscrape', () => pod.startInPlace()],
  ] as const) {
    say(`Locust's page: ${name}`);
    rows.push([name, ...(await timePages(pod, begin)).map((ms) => ms.toFixed(1))]);
  }
  console.log(
    writeTable(['program', 'a scrape every 2.1 s (ms)', 'a scrape just after a reader of the page (ms)'], rows),
  );
  console.log(
    `\nMedians of ${PAGE_TURN_COUNT}, a real Locust of 500 names at 200 requests a second. The exporter asks when it is scraped, and Locust makes the page for it; lastscrape has asked by itself.`,
  );
}

async function timePages(pod: Pod, begin: () => Child): Promise<readonly number[]> {
  const { exporter: port, web } = pod.network.ports;
  await using child = begin();
  await pod.waitForPort(port);
  const [alone, after]: [number[], number[]] = [[], []];
  for (let turn = 0; turn < PAGE_TURN_COUNT && child.exit === undefined; turn++) {
    for (const [times, isRead] of [
      [alone, false],
      [after, true],
    ] as const) {
      await delay(PAGE_KEPT_MS);
      if (isRead) await pod.network.get(web, '/stats/requests');
      const beganAtMs = performance.now();
      await pod.network.get(port, '/metrics');
      times.push(performance.now() - beganAtMs);
    }
  }
  return [findMedian(alone), findMedian(after)];
}

/** A Locust that runs: page by page 500 other names, until `rowCount` were shown; its CSV has them all. */
async function openPages(rowCount: number): Promise<Disposable & { readonly url: string }> {
  const pages = Array.from({ length: rowCount / PAGE_ROWS_COUNT }, (_, page) => writePage(page * PAGE_ROWS_COUNT));
  const csv = writeCsv(rowCount);
  let count = 0;
  const server = createServer(({ url = '' }, response) => {
    if (url.endsWith('/csv')) response.end(csv);
    else response.setHeader('Content-Type', 'application/json').end(pages[count++ % pages.length]);
  });
  await listen(server);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function writePage(from: number): Buffer {
  const row = (name: string, method: string) => ({
    ...{
      method,
      name,
      safe_name: name,
      num_requests: 123_456,
      num_failures: 12,
      avg_response_time: 21.762812291626688,
    },
    ...{ current_fail_per_sec: 0.1, min_response_time: 2, max_response_time: 880, current_rps: 5.333333333333333 },
    ...{ median_response_time: 9, avg_content_length: 1234.5678901234567, total_rps: 5.5, total_fail_per_sec: 0.12 },
    ...{ 'response_time_percentile_0.95': 95, 'response_time_percentile_0.99': 410 },
  });
  const rows = Array.from({ length: PAGE_ROWS_COUNT }, (_, index) => row(writeName(from + index), 'GET'));
  const stats = [...rows, row('Aggregated', '')];
  return Buffer.from(
    JSON.stringify({ stats, errors: [], workers: [], state: 'running', user_count: 5, fail_ratio: 0 }),
  );
}

function writeCsv(rowCount: number): Buffer {
  const numbers =
    '123456,12,9,21.762812291626688,2,880,1234.5678901234567,5.333333333333333,0.1,9,10,11,12,13,95,100,410,500,600,880';
  const head =
    'Type,Name,Request Count,Failure Count,Median Response Time,Average Response Time,Min Response Time,Max Response Time,' +
    'Average Content Size,Requests/s,Failures/s,50%,66%,75%,80%,90%,95%,98%,99%,99.9%,99.99%,100%';
  const rows = Array.from({ length: rowCount }, (_, index) => `GET,${writeName(index)},${numbers}`);
  return Buffer.from([head, ...rows, `,Aggregated,${numbers}`, ''].join('\r\n'));
}

function writeName(index: number): string {
  return `/api/v1/customers/${index}`;
}

function say(part: string): void {
  process.stderr.write(`in place: ${part}\n`);
}
