// A keeper that is killed again and again, at random moments of hand-overs, scrapes and its own start: what was
// answered with 201 is there afterwards, and no page is served that is not whole, also beside files that were torn.
// CI_FULL=1: 300 times; LASTSCRAPE_TEST_KILLS: how often.

import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { readTestVariable } from '../support/programs.ts';
import { type Keeper, readPages, spawnKeeper, startKeeper } from './keeper.ts';

const KILLS_COUNT = Number(
  readTestVariable('LASTSCRAPE_TEST_KILLS') ?? (readTestVariable('CI_FULL') === '1' ? 300 : 6),
);
const PODS_COUNT = 12;
/** Clients that hand over at the same time. */
const CLIENTS_COUNT = 4;

/** A page that shows whether it is whole, and of which hand-over it is; random letters do not pack. */
function writePage(version: number): string {
  const filler = Array.from(
    { length: randomInt(1, 40) },
    () => `# ${randomBytes(randomInt(1, 4_000)).toString('hex')}\n`,
  );
  return `begin ${version}\n${filler.join('')}end ${version}\n`;
}

function readVersion(page: string): number | null {
  const [, begin, end] = /^begin (\d+)\n(?:# [0-9a-f]*\n)*end (\d+)\n$/.exec(page) ?? [];
  return begin === undefined || begin !== end ? null : Number(begin);
}

test(`nothing that was answered with 201 is lost, and nothing is served half, in ${KILLS_COUNT} kills`, {
  timeout: 3_600_000,
}, async () => {
  /** The newest hand-over of each pod that was answered with 201, and the newest that was begun. */
  const kept = new Map<string, number>();
  const begun = new Map<string, number>();
  let version = 0;
  let keeper: Keeper | null = null;
  let tornCount = 0;

  /** @returns whether it was answered */
  async function handOver(to: Keeper, client: number): Promise<boolean> {
    // Each pod hands over by one client: its own hand-overs are in order.
    const name = `pod-${client + CLIENTS_COUNT * randomInt(PODS_COUNT / CLIENTS_COUNT)}`;
    version++;
    const own = version;
    begun.set(name, own);
    const answer = await to.handOver({ name, pages: [writePage(own)] }).catch(() => null);
    if (answer === null) return false;
    assert.equal(answer, '201 kept');
    kept.set(name, own);
    return true;
  }
  async function handOverOn(to: Keeper, client: number): Promise<void> {
    while (await handOver(to, client));
  }
  async function scrapeOn(from: Keeper): Promise<void> {
    for (;;) {
      const pages = await readPages(from).catch(() => null);
      if (pages === null) return;
      for (const [name, page] of Object.entries(pages))
        assert.notEqual(readVersion(page), null, `${name} ${page.slice(0, 80)}`);
    }
  }

  // Where it fails, the keeper ends, and so do its clients.
  await using _end = { [Symbol.asyncDispose]: async () => keeper?.[Symbol.asyncDispose]() };
  for (let round = 0; round <= KILLS_COUNT; round++) {
    const startedAtMs = performance.now();
    keeper = await startKeeper({}, keeper ?? undefined);
    const startMs = performance.now() - startedAtMs;
    const pages = await readPages(keeper);
    for (const [name, least] of kept) {
      const found = readVersion(pages[name] ?? '');
      assert.notEqual(found, null, `${name} after kill ${round}: ${(pages[name] ?? 'missing').slice(0, 80)}`);
      assert.ok(Number(found) >= least && Number(found) <= Number(begun.get(name)), `${name}: ${found} of ${least}`);
      kept.set(name, Number(found));
    }
    assert.ok((await keeper.metric('corrupt_total')) <= tornCount, 'only what was torn here');
    assert.deepEqual(
      readdirSync(keeper.folder).filter((name) => TORN.test(name) && name.endsWith('.page')),
      [],
    );
    if (round === KILLS_COUNT) break;
    const running = keeper;
    const { child, folder } = running;
    const begunAtMs = performance.now();
    assert.ok(await handOver(running, 0));
    // As long as some of them take here: a busy machine may need a second for each.
    const atMostMs = 400 + 4 * Math.ceil(performance.now() - begunAtMs);
    const working = [
      scrapeOn(running),
      ...Array.from({ length: CLIENTS_COUNT }, (_, client) => handOverOn(running, client)),
    ];
    await delay(randomInt(atMostMs));
    process.kill(child.pid, 'SIGKILL');
    await child.exited;
    await Promise.all(working);
    writeFileSync(join(folder, `.${round}.tmp`), randomBytes(randomInt(1, 2_000)));
    tornCount = tearPage(folder, round);
    if (randomInt(3) === 0) await killStart(running, startMs);
  }
});

/** How copies of pages are named that were cut off. */
const TORN = /^torn/;

/** Cuts a copy of a page off, as a disk may that lost its power. @returns how many, which is at most one */
function tearPage(folder: string, round: number): number {
  const [page] = readdirSync(folder).filter((name) => name.endsWith('.page') && !TORN.test(name));
  if (page === undefined) return 0;
  const bytes = readFileSync(join(folder, page));
  writeFileSync(join(folder, `torn-${round}.page`), bytes.subarray(0, randomInt(bytes.length)));
  return 1;
}

/** Another that is killed while it starts; the second half of its time it cleans up and reads back. */
async function killStart(at: Keeper, startMs: number): Promise<void> {
  const { child } = await spawnKeeper({}, at);
  await delay(startMs * (0.5 + Math.random() / 2));
  process.kill(child.pid, 'SIGKILL');
  await child.exited;
}
