// A keeper at work for a minute, as the budget has it: pods that hand over, and two Prometheus.

import { setTimeout as delay } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { Agent, request } from 'undici';
import { findMedian } from '../bench/median.ts';
import { readCost, readCpuSeconds } from '../bench/process-cost.ts';
import type { Keeper, Target } from './keeper.ts';

/**
 * What that minute cost: share of a core, and that of all clients; scrapes, hand-overs that failed before it too,
 * the pages listed at its end; the most anonymous memory.
 */
export type Work = Readonly<
  Record<'cores' | 'clientCores' | 'scrapesCount' | 'heldCount' | 'listedCount' | 'anonymousBytes', number>
>;

/** Clients that hand over at the same time, as pods of many nodes do. */
export const CLIENTS_COUNT = 8;
const LISTS_COUNT = 11;
const SCRAPES_COUNT = 500;

const HAND_OVERS_A_MINUTE = 1_000;
const REPLICAS_COUNT = 2;
const SCRAPED_EVERY_MS = 15_000;
const SCRAPE = { 'accept-encoding': 'gzip', 'x-prometheus-scrape-timeout-seconds': '10' };
/** Until as many pages leave the list as come to it. */
const SETTLE_MS = 90_000;
const MINUTE_MS = 60_000;

/**
 * Pods hand over, and each of two Prometheus asks for targets and scrapes all of them every 15 s, as it does at
 * moments that its targets' names spread over that time.
 */
export async function measureWork(keeper: Keeper, page: string): Promise<Work> {
  const { pid } = keeper.child;
  const startedAtMs = performance.now();
  const endAtMs = startedAtMs + SETTLE_MS + MINUTE_MS;
  let [scrapesCount, heldCount, anonymousBytes] = [0, 0, 0];
  async function handOverOn(): Promise<void> {
    for (let number = 0; performance.now() < endAtMs; number++) {
      void handOverOne(keeper, page, number).catch(() => heldCount++);
      await delay(Math.max(1, startedAtMs + ((number + 1) * MINUTE_MS) / HAND_OVERS_A_MINUTE - performance.now()));
    }
  }
  async function scrapeOn(replica: number): Promise<void> {
    // Each in a pod of its own, and its discovery by a connection of its own.
    const localAddress = `127.0.0.${replica + 2}`;
    const discovery = new Agent({ localAddress, connections: 1, keepAliveTimeout: 300_000 });
    const scraping = new Agent({ localAddress });
    const ask = async (path: string, dispatcher: Agent, headers: Readonly<Record<string, string>>) =>
      (
        await request(keeper.serveUrl + path, {
          dispatcher,
          headers: { 'user-agent': 'Prometheus/3.10.0', ...headers },
        })
      ).body;
    let paths: readonly string[] = [];
    let askedAtMs = Number.NEGATIVE_INFINITY;
    const scrapedAtMs = new Map<string, number>();
    for (; performance.now() < endAtMs; await delay(50)) {
      const nowMs = performance.now();
      if (nowMs - askedAtMs >= SCRAPED_EVERY_MS) {
        askedAtMs = nowMs;
        const refresh = { 'x-prometheus-refresh-interval-seconds': `${SCRAPED_EVERY_MS / 1000}` };
        const listed = (await (await ask('/targets', discovery, refresh)).json()) as readonly Target[];
        paths = listed.map(({ labels }) => labels['__metrics_path__'] ?? '');
      }
      const due = paths.filter((path) => {
        const offsetMs = Number.parseInt(path.slice(-6), 16) % SCRAPED_EVERY_MS;
        const turn = Math.floor((nowMs + offsetMs) / SCRAPED_EVERY_MS);
        if (scrapedAtMs.get(path) === turn) return false;
        scrapedAtMs.set(path, turn);
        return true;
      });
      const scrapeDue = async () => {
        for (let path = due.pop(); path !== undefined; path = due.pop()) {
          const body = Buffer.from(await (await ask(path, scraping, SCRAPE)).arrayBuffer());
          if (gunzipSync(body).toString() !== page) throw new Error('Cannot scrape a kept page');
          scrapesCount++;
        }
      };
      await Promise.all(Array.from({ length: CLIENTS_COUNT }, scrapeDue));
    }
    await Promise.all([discovery.destroy(), scraping.destroy()]);
  }
  const working = Promise.all([handOverOn(), ...Array.from({ length: REPLICAS_COUNT }, (_, index) => scrapeOn(index))]);
  await Promise.race([working, delay(SETTLE_MS)]);
  const before = { cpuSeconds: readCpuSeconds(pid), clientSeconds: readCpuSeconds(process.pid), scrapesCount };
  const watching = setInterval(() => {
    anonymousBytes = Math.max(anonymousBytes, readCost(pid).anonymousBytes);
  }, 100);
  await working;
  clearInterval(watching);
  return {
    cores: (readCpuSeconds(pid) - before.cpuSeconds) / (MINUTE_MS / 1000),
    clientCores: (readCpuSeconds(process.pid) - before.clientSeconds) / (MINUTE_MS / 1000),
    scrapesCount: scrapesCount - before.scrapesCount,
    heldCount,
    listedCount: await keeper.metric('pages_listed'),
    anonymousBytes,
  };
}

/** Hands one page over, of one of ten namespaces: none is refused for its namespace's rate. */
export async function handOverOne(keeper: Keeper, page: string, number: number): Promise<void> {
  const labels = { app: 'shop', team: 'orders', 'batch.kubernetes.io/job-name': `import-${number}` };
  const name = `import-${number}-x7k2p`;
  const ids = { namespace: `shop-${number % 10}`, name, uid: `46d35a29-7b27-46e4-943e-${number}` };
  const pod = { ...ids, ip: '10.1.2.3', node: 'node-1', labels, annotations: { 'prometheus.io/scrape': 'true' } };
  const answer = await keeper.handOver({ head: { pod }, pages: [page] });
  if (answer !== '201 kept') throw new Error(`Cannot hand over: ${answer}`);
}

/** Hands over that many pages as fast as they are taken, lists and scrapes them. */
export async function fill(keeper: Keeper, page: string, pagesCount: number) {
  const { pid } = keeper.child;
  let mostAnonymousBytes = 0;
  const watching = setInterval(() => {
    mostAnonymousBytes = Math.max(mostAnonymousBytes, readCost(pid).anonymousBytes);
  }, 100);
  async function charge(count: number, work: () => Promise<unknown>): Promise<number> {
    const before = readCpuSeconds(pid);
    await work();
    return (readCpuSeconds(pid) - before) / count;
  }
  let handedOverCount = 0;
  async function handOver(): Promise<void> {
    while (handedOverCount < pagesCount) {
      await handOverOne(keeper, page, handedOverCount++);
    }
  }
  const handOverCpuSeconds = await charge(pagesCount, () =>
    Promise.all(Array.from({ length: CLIENTS_COUNT }, handOver)),
  );
  const targetsSeconds: number[] = [];
  let targetsBytes = 0;
  for (let count = 0; count < LISTS_COUNT; count++) {
    const startedAtMs = performance.now();
    targetsBytes = (await (await fetch(`${keeper.serveUrl}/targets`)).arrayBuffer()).byteLength;
    targetsSeconds.push((performance.now() - startedAtMs) / 1000);
  }
  const targets = await keeper.listTargets(60);
  const scrapeCpuSeconds = await charge(SCRAPES_COUNT, async () => {
    for (const { labels } of targets.slice(0, SCRAPES_COUNT)) {
      const { status, text } = await keeper.scrape(labels['__metrics_path__'] ?? '');
      if (status !== 200 || text !== page) throw new Error(`Cannot scrape a kept page: ${status}`);
    }
  });
  clearInterval(watching);
  const medians = { targetsSeconds: findMedian(targetsSeconds), targetsBytes };
  return { mostAnonymousBytes, handOverCpuSeconds, scrapeCpuSeconds, ...medians };
}
