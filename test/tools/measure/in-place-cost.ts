// What lastscrape costs in the place of Locust's exporter, beside the real one where there is one: memory, CPU and time of a scrape, with
// a page of 500 names, and with the 10,000 rows that both remember when names come and go. Locust is a server that only has pages.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { findPrograms } from '../../support/programs.ts';
import { until } from '../../support/until.ts';
import { findMedian } from './median.ts';
import { readCost, readCpuSeconds } from './process-cost.ts';
import { openRunner, type Running } from './runner.ts';

const PAGE_ROWS_COUNT = 500;
const SCRAPE_COUNT = 20;
/** Longer than an answer is used again. */
const PAUSE_MS = 600;

/** Prints the table. */
export async function measureInPlaceCost(): Promise<void> {
  const programs = findPrograms();
  const real = programs.exporters.find(({ isReal }) => isReal);
  console.log(
    '\n| rows | program | scrape, median (ms) | longest (ms) | body (MB) | resident (MB) | anonymous (MB) | CPU of a scrape (ms) |',
  );
  console.log('|---:|---|---:|---:|---:|---:|---:|---:|');
  for (const rowCount of [PAGE_ROWS_COUNT, 10_000]) {
    if (real !== undefined) console.log(await measure(real.name, real.command, rowCount));
    console.log(await measure('lastscrape', programs.watcher, rowCount));
  }
}

async function measure(name: string, command: readonly string[], rowCount: number): Promise<string> {
  await using runner = openRunner();
  using locust = await openPages(rowCount);
  const port = await findPort();
  const running = runner.start(command, {
    LOCUST_EXPORTER_URI: locust.url,
    LOCUST_EXPORTER_WEB_LISTEN_ADDRESS: `127.0.0.1:${port}`,
    LASTSCRAPE_TERMINATION_LOG: 'termination-log',
  });
  running.child.stdout?.resume();
  const url = `http://127.0.0.1:${port}/metrics`;
  await until(`${name} answers`, 20_000, async () => ((await scrape(url)) === null ? undefined : true));
  // Every page once, so that all rows are known.
  for (let page = 0; page < rowCount / PAGE_ROWS_COUNT + 1; page++) await scrapeLater(url);
  // Awaited here: the programs end with this function.
  return await measureScrapes(name, running, url, rowCount);
}

async function measureScrapes(name: string, { pid }: Running, url: string, rowCount: number): Promise<string> {
  const times: number[] = [];
  let bodyBytes = 0;
  let cpuSeconds = 0;
  for (let count = 0; count < SCRAPE_COUNT; count++) {
    const before = readCpuSeconds(pid);
    const { tookMs, sizeBytes } = await scrapeLater(url);
    cpuSeconds += readCpuSeconds(pid) - before;
    times.push(tookMs);
    bodyBytes = sizeBytes;
  }
  times.sort((left, right) => left - right);
  const { residentBytes, anonymousBytes } = readCost(pid);
  const mega = (bytes: number) => (bytes / 1e6).toFixed(1);
  const cells = [
    ...[rowCount, name, findMedian(times).toFixed(1), (times.at(-1) ?? 0).toFixed(1), mega(bodyBytes)],
    ...[mega(residentBytes), mega(anonymousBytes), ((cpuSeconds / SCRAPE_COUNT) * 1_000).toFixed(0)],
  ];
  return `| ${cells.join(' | ')} |`;
}

async function scrapeLater(url: string): Promise<{ readonly tookMs: number; readonly sizeBytes: number }> {
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  const scraped = await scrape(url);
  if (scraped === null) throw new Error(`Cannot scrape ${url}`);
  return scraped;
}

/** As Prometheus does it; null: nobody is there. */
async function scrape(url: string): Promise<{ readonly tookMs: number; readonly sizeBytes: number } | null> {
  const beganMs = performance.now();
  try {
    const response = await fetch(url, { headers: { 'X-Prometheus-Scrape-Timeout-Seconds': '10' } });
    const body = await response.arrayBuffer();
    return response.ok ? { tookMs: performance.now() - beganMs, sizeBytes: body.byteLength } : null;
  } catch {
    return null;
  }
}

/** A Locust that runs: page by page 500 other names, until `rowCount` were shown. */
async function openPages(rowCount: number): Promise<Disposable & { readonly url: string }> {
  const pages = Array.from({ length: rowCount / PAGE_ROWS_COUNT }, (_, page) => writePage(page * PAGE_ROWS_COUNT));
  let count = 0;
  const server = createServer((_, response) => {
    response.setHeader('Content-Type', 'application/json');
    response.end(pages[count++ % pages.length]);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
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
    ...{ method, name, num_requests: 123_456, num_failures: 12, avg_response_time: 21.762812291626688 },
    ...{ current_fail_per_sec: 0.1, min_response_time: 2, max_response_time: 880, current_rps: 5.333333333333333 },
    ...{ median_response_time: 9, avg_content_length: 1234.5678901234567 },
    ...{ 'response_time_percentile_0.95': 95, 'response_time_percentile_0.99': 410 },
  });
  const rows = Array.from({ length: PAGE_ROWS_COUNT }, (_, index) => row(`/api/v1/customers/${from + index}`, 'GET'));
  const stats = [...rows, row('Aggregated', '')];
  return Buffer.from(
    JSON.stringify({ stats, errors: [], workers: [], state: 'running', user_count: 5, fail_ratio: 0 }),
  );
}

async function findPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
