// What a keeper costs, full and at work, and how long a pod takes to hand over (`npm run bench -- --keeper`).

import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Keeper, startKeeper } from '../keeper/keeper.ts';
import { CLIENTS_COUNT, fill, measureWork, type Work } from '../keeper/workload.ts';
import { makeFolder } from '../support/folder.ts';
import { findFreePort } from '../support/listen.ts';
import { type Budget, ratio, writeTable } from './budgets.ts';
import { findMedian } from './median.ts';
import { type Cost, readCost } from './process-cost.ts';
import { discard, openRunner, type Runner, SMALL_BYTES, stop, WARM_UP_SECONDS, watchEnv } from './runner.ts';
import type { Subject } from './subject.ts';

/** How much; the short form of the bench has less of all. */
export type KeeperPlan = {
  readonly subject: Subject;
  readonly pagesCount: number;
  readonly exitsCount: number;
};

/** For so long a keeper waits for who may ask yet; then its minute of work begins. */
const AGE_MS = 300_000;

/** What `measureKeeper` found. Times in seconds. */
export type KeeperFigures = {
  readonly pagesCount: number;
  readonly idle: Cost;
  readonly front: Cost;
  /** The most while all was handed over, listed and scraped. */
  readonly mostAnonymousBytes: number;
  readonly handOverCpuSeconds: number;
  readonly scrapeCpuSeconds: number;
  readonly work: Work;
  readonly targetsSeconds: number;
  readonly targetsBytes: number;
  readonly restartSeconds: number;
  /** From SIGTERM to the exit, handed over and with nothing to wait for. */
  readonly exits: { readonly handedOver: readonly number[]; readonly plain: readonly number[] };
};

/** Measures everything, one part after the other. `early`: a keeper as old as this process. */
export async function measureKeeper(
  { subject, pagesCount, exitsCount }: KeeperPlan,
  early?: Keeper,
): Promise<KeeperFigures> {
  await using runner = openRunner();
  const command = subject.binary === undefined ? subject.command : [runner.copy(subject.binary, 'lastscrape')];
  const bornAtMs = early === undefined ? performance.now() : 0;
  const working = early ?? (await startKeeper({}, { command }));
  process.stderr.write('keeper: exits\n');
  const exits = await timeExits(runner, command, exitsCount);
  process.stderr.write('keeper: pages\n');
  const exposition = await runner.openExposition(SMALL_BYTES);
  const frontEnv = { ...watchEnv(exposition), LASTSCRAPE_FRONT: `127.0.0.1:${await findFreePort()}` };
  const watcher = discard(runner.start(command, frontEnv));
  const env = { LASTSCRAPE_KEEPER_PAGES: `${pagesCount * 2}` };
  const keeper = await startKeeper(env, { command });
  await delay(WARM_UP_SECONDS * 1000);
  const page = await (await fetch(`${exposition.url}/metrics`)).text();
  const [idle, front] = [readCost(keeper.child.pid), readCost(watcher.pid)];
  await stop(watcher);
  await exposition.stop();
  process.stderr.write('keeper: a minute of work\n');
  await delay(Math.max(1, bornAtMs + AGE_MS - performance.now()));
  const work = await measureWork(working, page);
  await working[Symbol.asyncDispose]();
  process.stderr.write('keeper: as fast as it can\n');
  const full = await fill(keeper, page, pagesCount);
  await keeper[Symbol.asyncDispose]();
  const startedAtMs = performance.now();
  await using again = await startKeeper(env, { ...keeper, command });
  const restartSeconds = (performance.now() - startedAtMs) / 1000;
  if ((await again.metric('pages')) !== pagesCount) throw new Error('Cannot measure: pages are missing');
  return { pagesCount, idle, front, exits, work, restartSeconds, ...full };
}

/** Pods that get SIGTERM, one after the other: handed over, and with a hold of 0 s in turn. */
async function timeExits(runner: Runner, command: readonly string[], count: number) {
  const exposition = await runner.openExposition(SMALL_BYTES);
  await using keeper = await startKeeper({}, { command });
  const folder = makeFolder();
  writeFileSync(join(folder, 'labels'), 'app="shop"');
  const ways = {
    handedOver: { LASTSCRAPE_HAND_OVER: new URL(keeper.handOverUrl).origin, LASTSCRAPE_HAND_OVER_FOLDER: folder },
    plain: { LASTSCRAPE_TTL: '0' },
  };
  const exits = { handedOver: [] as number[], plain: [] as number[] };
  for (let turn = 0; turn < count; turn++) {
    for (const way of ['handedOver', 'plain'] as const) {
      const port = await findFreePort();
      const { child, exited } = discard(
        runner.start(command, {
          ...watchEnv(exposition),
          LASTSCRAPE_DONE_WHEN: 'sigterm',
          LASTSCRAPE_FRONT: `127.0.0.1:${port}`,
          ...{ POD_NAME: `pod-${turn}`, POD_NAMESPACE: 'shop', POD_UID: `uid-${turn}` },
          ...ways[way],
        }),
      );
      while ((await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => null))?.ok !== true) await delay(20);
      // What a scrape leaves to do is done by then.
      await delay(300);
      const startedAtMs = performance.now();
      child.kill('SIGTERM');
      await exited;
      exits[way].push((performance.now() - startedAtMs) / 1000);
    }
  }
  const keptCount = await keeper.metric('handed_over_total');
  if (keptCount !== count) throw new Error(`Cannot measure: ${keptCount} of ${count} handed over`);
  await exposition.stop();
  return exits;
}

const MEBIBYTE = 2 ** 20;

/** The table, with its heading and what it means. */
export function writeKeeperTable(figures: KeeperFigures): string {
  const { pagesCount, idle, front, exits, mostAnonymousBytes } = figures;
  const milliseconds = (seconds: number) => `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  const mebibytes = (bytes: number) => `${(bytes / MEBIBYTE).toFixed(1)} MiB`;
  return [
    '### The keeper',
    writeTable(
      ['', 'measured'],
      [
        ['SIGTERM to exit, handed over: median', milliseconds(findMedian(exits.handedOver))],
        [`the same: worst of ${exits.handedOver.length}`, milliseconds(Math.max(...exits.handedOver))],
        ['SIGTERM to exit, with a hold of 0 s: median', milliseconds(findMedian(exits.plain))],
        ['anonymous memory, idle', mebibytes(idle.anonymousBytes)],
        ['the same of lastscrape with a front', mebibytes(front.anonymousBytes)],
        [`the most, with ${pagesCount} pages taken, listed and scraped`, mebibytes(mostAnonymousBytes)],
        [
          `a minute with 1000 hand-overs and ${figures.work.scrapesCount} scrapes by two Prometheus: cores`,
          figures.work.cores.toFixed(2),
        ],
        [
          `the same: anonymous memory, ${figures.work.listedCount} pages listed`,
          mebibytes(figures.work.anonymousBytes),
        ],
        ['CPU time of a hand-over', milliseconds(figures.handOverCpuSeconds)],
        ['CPU time of a scrape, packed', milliseconds(figures.scrapeCpuSeconds)],
        [
          `/targets of ${pagesCount} (${(figures.targetsBytes / 1e6).toFixed(0)} MB)`,
          milliseconds(figures.targetsSeconds),
        ],
        [`restart with ${pagesCount} pages`, `${figures.restartSeconds.toFixed(1)} s`],
      ],
    ),
    `On ${process.platform} ${process.arch}, ${cpus().length} cores, pages of 50 KB, ${CLIENTS_COUNT} clients that hand over without a pause. ` +
      'Tokens are not checked.',
  ].join('\n\n');
}

export function listKeeperBudgets(figures: KeeperFigures): readonly Budget[] {
  const { idle, front, exits, pagesCount, work, mostAnonymousBytes } = figures;
  const absolute = { digits: 2, isJudged: false };
  const judged = { digits: 2, isJudged: true };
  const most = mostAnonymousBytes / MEBIBYTE;
  const atWork = 'cores at 1,000 hand-overs a minute, each scraped by two Prometheus every 15 s';
  return [
    ratio('idle, anonymous memory / lastscrape with a front', 1.1, idle.anonymousBytes, front.anonymousBytes),
    { name: `anonymous memory with ${pagesCount} pages (MiB)`, most: 64, measured: most, ...judged },
    { name: atWork, most: 0.2, measured: work.cores, ...absolute },
    ratio('the same / what its clients take', 1.5, work.cores, work.clientCores),
    { name: `/targets of ${pagesCount} (s)`, most: 1, measured: figures.targetsSeconds, ...absolute },
    { name: 'SIGTERM to exit, median (s)', most: 0.3, measured: findMedian(exits.handedOver), ...absolute },
    { name: 'SIGTERM to exit, worst (s)', most: 0.5, measured: Math.max(...exits.handedOver), ...absolute },
    ratio('SIGTERM to exit, handed over / hold of 0 s', 3, findMedian(exits.handedOver), findMedian(exits.plain)),
  ];
}
