// What a front costs: a scrape through it and a direct one in turn; memory and own polls with and without it,
// scraped alike. That 30 MB pass it in 64 MiB is tested: test/binary/formats-memory.test.ts.

import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { FLAGS } from '../../image/flags.ts';
import { findFreePort } from '../support/listen.ts';
import { findMedian } from './median.ts';
import { type Cost, readCost, readThreadSeconds } from './process-cost.ts';
import {
  discard,
  type Exposition,
  INSTANCE_COUNT,
  openRunner,
  type Runner,
  type Running,
  readLookCount,
  SMALL_BYTES,
  stop,
  WARM_UP_SECONDS,
  watchEnv,
} from './runner.ts';
import type { Subject } from './subject.ts';

/** How long and how often; the short form of the bench has less of all. */
export type FrontPlan = {
  readonly subject: Subject;
  readonly watchSeconds: number;
  readonly encodings: readonly Encoding[];
  readonly scrapeCount: number;
};

export type Encoding = 'identity' | 'gzip';

/** One kind of scrape: direct, through a relay that does nothing else, and through a front. */
export type ScrapeCost = {
  readonly bodyBytes: number;
  /** Every page is the one before: it is not checked and packed again. */
  readonly isSame: boolean;
  readonly encoding: Encoding;
  readonly directSeconds: number;
  /** The relay's are without gzip, which it does not do. */
  readonly relaySeconds: number;
  readonly relayCpuSeconds: number;
  readonly frontSeconds: number;
  readonly frontCpuSeconds: number;
};

/** lastscrape with a front or without, at one size. */
export type FrontMemory = {
  readonly hasFront: boolean;
  readonly bodyBytes: number;
  readonly residentBytes: number;
  readonly anonymousBytes: number;
  readonly cpuSecondsAMinute: number;
  /** Reads of the source not caused by a scrape. */
  readonly ownPollsAMinute: number;
};

export type FrontFigures = {
  readonly scrapes: readonly ScrapeCost[];
  readonly memory: readonly FrontMemory[];
};

export const MIDDLE_BYTES = 3_000_000;
/** Between two scrapes while the memory is watched. */
export const SCRAPE_SECONDS = 5;

/** In which no own poll comes between the scrapes that are timed. */
const NO_POLL = '1h';
/** Between two scrapes that are timed: what the first left to do is done by then. */
const PAUSE_MS = 100;
/** Measures everything, one part after the other. */
export async function measureFront(plan: FrontPlan): Promise<FrontFigures> {
  await using runner = openRunner();
  const { subject } = plan;
  const command = subject.binary === undefined ? subject.command : [runner.copy(subject.binary, 'lastscrape')];
  say('scrapes');
  const scrapes: ScrapeCost[] = [];
  for (const bodyBytes of [SMALL_BYTES, MIDDLE_BYTES]) {
    for (const isSame of [true, false]) {
      scrapes.push(...(await timeScrapes(runner, command, { bodyBytes, isSame }, plan)));
    }
  }
  say('memory');
  const memory = await watchMemory(runner, command, plan.watchSeconds);
  return { scrapes, memory };
}

type Client = Disposable & {
  /** One scrape over a kept connection: its seconds. @throws unless it is a whole 200 */
  readonly scrape: (url: string, encoding: Encoding) => Promise<number>;
};

export function openClient(): Client {
  const agent = new Agent({ keepAlive: true });
  return {
    scrape: (url, encoding) =>
      new Promise((resolve, reject) => {
        const startedAtMs = performance.now();
        const headers = { 'Accept-Encoding': encoding, 'X-Prometheus-Scrape-Timeout-Seconds': '30' };
        get(url, { agent, headers }, (response) => {
          response.resume();
          response.on('error', reject);
          response.on('end', () => {
            if (response.statusCode === 200) resolve((performance.now() - startedAtMs) / 1000);
            else reject(new Error(`Cannot scrape ${url}: it answers ${response.statusCode}`));
          });
        }).on('error', reject);
      }),
    [Symbol.dispose]: () => agent.destroy(),
  };
}

type Watcher = { readonly running: Running; readonly url: string; readonly exposition: Exposition };

/** Starts lastscrape before a source of its own; `url` is what its scraper asks. */
async function startWatcher(
  runner: Runner,
  command: readonly string[],
  exposition: Exposition,
  { hasFront, env }: { readonly hasFront: boolean; readonly env: Readonly<Record<string, string>> },
): Promise<Watcher> {
  const port = await findFreePort();
  const front: Record<string, string> = hasFront ? { LASTSCRAPE_FRONT: `127.0.0.1:${port}` } : {};
  const running = discard(runner.start(command, { ...watchEnv(exposition), ...front, ...env }));
  return { running, exposition, url: hasFront ? `http://127.0.0.1:${port}/metrics` : `${exposition.url}/metrics` };
}

async function openRelay(runner: Runner, source: string) {
  const running = runner.start([process.execPath, ...FLAGS, join(import.meta.dirname, 'relay-main.ts'), source], {});
  const [line] = await once(running.child.stdout?.setEncoding('utf8') ?? running.child, 'data');
  const [, port = ''] = /^ready (\d+)$/m.exec(line) ?? [];
  return { running, url: `http://127.0.0.1:${port}/` };
}

async function timeScrapes(
  runner: Runner,
  command: readonly string[],
  { bodyBytes, isSame }: Pick<ScrapeCost, 'bodyBytes' | 'isSame'>,
  { encodings, scrapeCount }: FrontPlan,
): Promise<readonly ScrapeCost[]> {
  const exposition = await runner.openExposition(bodyBytes, { isSame });
  const env = { LASTSCRAPE_POLL: NO_POLL };
  const { running, url } = await startWatcher(runner, command, exposition, { hasFront: true, env });
  const relay = await openRelay(runner, `${exposition.url}/metrics`);
  using client = openClient();
  await waitForFront(client, url);
  const costs: ScrapeCost[] = [];
  for (const encoding of encodings) {
    const taken = { direct: [] as number[], relay: [] as number[], front: [] as number[] };
    const cpu = { relay: [] as number[], front: [] as number[] };
    for (let turn = 0; turn < scrapeCount; turn += 1) {
      taken.direct.push(await client.scrape(`${exposition.url}/metrics`, encoding));
      await delay(PAUSE_MS);
      for (const [way, { pid }, at] of [
        ['relay', relay.running, relay.url],
        ['front', running, url],
      ] as const) {
        const before = readThreadSeconds(pid);
        taken[way].push(await client.scrape(at, way === 'relay' ? 'identity' : encoding));
        // What it does afterwards with the answer belongs to it as well.
        await delay(PAUSE_MS);
        cpu[way].push(readThreadSeconds(pid) - before);
      }
    }
    costs.push({
      bodyBytes,
      isSame,
      encoding,
      directSeconds: findMedian(taken.direct),
      relaySeconds: findMedian(taken.relay),
      relayCpuSeconds: findMedian(cpu.relay),
      frontSeconds: findMedian(taken.front),
      frontCpuSeconds: findMedian(cpu.front),
    });
  }
  await stop(relay.running);
  await stop(running);
  await exposition.stop();
  return costs;
}

/** With and without a front, at both sizes, all at once; each scraped, or its source, as Prometheus does. */
async function watchMemory(
  runner: Runner,
  command: readonly string[],
  seconds: number,
): Promise<readonly FrontMemory[]> {
  using client = openClient();
  const groups = await Promise.all(
    [SMALL_BYTES, MIDDLE_BYTES].flatMap((bodyBytes) =>
      [false, true].map(async (hasFront) => {
        const watchers = await Promise.all(
          Array.from({ length: INSTANCE_COUNT }, async () =>
            startWatcher(runner, command, await runner.openExposition(bodyBytes), { hasFront, env: {} }),
          ),
        );
        return { bodyBytes, hasFront, watchers, costs: [] as Cost[] };
      }),
    ),
  );
  const all = groups.flatMap(({ watchers }) => watchers);
  await Promise.all(all.map(({ url }) => waitForFront(client, url)));
  await delay(WARM_UP_SECONDS * 1000);
  const startedAtMs = performance.now();
  const cpuBefore = new Map(all.map(({ running }) => [running, readThreadSeconds(running.pid)]));
  const readsBefore = new Map(
    await Promise.all(all.map(async (one) => [one, await readLookCount(one.exposition)] as const)),
  );
  const scrapeCounts = new Map(all.map((one) => [one, 0]));
  let scraping: Promise<unknown> = Promise.resolve();
  let nextScrapeMs = startedAtMs;
  while (performance.now() - startedAtMs < seconds * 1000) {
    if (performance.now() >= nextScrapeMs) {
      nextScrapeMs += SCRAPE_SECONDS * 1000;
      await scraping;
      scraping = scrapeInTurn(client, all, scrapeCounts);
    }
    await delay(200);
    for (const { watchers, costs } of groups) costs.push(...watchers.map(({ running }) => readCost(running.pid)));
  }
  await scraping;
  const minutes = (performance.now() - startedAtMs) / 60_000;
  const memory = await Promise.all(
    groups.map(async ({ bodyBytes, hasFront, watchers, costs }): Promise<FrontMemory> => {
      const polls = await Promise.all(
        watchers.map(async (one) => {
          const readCount = (await readLookCount(one.exposition)) - (readsBefore.get(one) ?? 0);
          return readCount - (scrapeCounts.get(one) ?? 0);
        }),
      );
      const cpu = watchers.map(({ running }) => readThreadSeconds(running.pid) - (cpuBefore.get(running) ?? 0));
      return {
        bodyBytes,
        hasFront,
        residentBytes: findMedian(costs.map(({ residentBytes }) => residentBytes)),
        anonymousBytes: findMedian(costs.map(({ anonymousBytes }) => anonymousBytes)),
        cpuSecondsAMinute: findMedian(cpu) / minutes,
        ownPollsAMinute: findMedian(polls) / minutes,
      };
    }),
  );
  await Promise.all(all.map(({ running }) => stop(running)));
  await Promise.all(all.map(({ exposition }) => exposition.stop()));
  return memory;
}

async function scrapeInTurn(client: Client, all: readonly Watcher[], counts: Map<Watcher, number>): Promise<void> {
  for (const one of all) {
    await client.scrape(one.url, 'gzip');
    counts.set(one, (counts.get(one) ?? 0) + 1);
  }
}

async function waitForFront(client: Client, url: string): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      await client.scrape(url, 'identity');
      return;
    } catch (error) {
      if (attempt === 300) throw error;
      await delay(100);
    }
  }
}

function say(part: string): void {
  process.stderr.write(`front: ${part}\n`);
}
