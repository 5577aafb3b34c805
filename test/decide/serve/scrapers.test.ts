// Who scrapes, how often, and what has been taken: the cases that no transcript reaches.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FrontObservation, Limits } from '../../../src/decide/model.ts';
import {
  addRequest,
  addScrape,
  addStandstill,
  type FrontFacts,
  findInterval,
  findLiving,
  findSilence,
  findTakenAtMs,
  isScraper,
  judgeTurnout,
  NO_SCRAPERS,
  nameScraper,
  SCRAPER_AGENTS,
  SCRAPERS_MAX_COUNT,
  type ServedScrape,
} from '../../../src/decide/serve/scrapers.ts';
import { DEFAULT_LIMITS, scrapeBy } from '../phases.ts';

const LIMITS: Limits = { ...DEFAULT_LIMITS, scrapesWantedCount: 'auto' };

const UNSEEN: FrontObservation = { answeredAtMs: null, inFlightCount: 0 };

function addAll(scrapes: readonly ServedScrape[], seen: Partial<FrontObservation> = {}): FrontFacts {
  const front = scrapes.reduce((facts, scrape) => addScrape(facts, scrape), NO_SCRAPERS);
  return { ...front, seen: { ...UNSEEN, ...seen } };
}

const listIds = ({ scrapers }: FrontFacts) => scrapers.map(({ id }) => id);

test('addScrape() distinguishes scrapers by address, and by User-Agent', () => {
  const front = addAll([
    scrapeBy('a', 0),
    scrapeBy('b', 1),
    scrapeBy('a', 2, { agent: 'vmagent', connection: 2 }),
    scrapeBy('a', 3),
  ]);
  assert.deepEqual(
    front.scrapers.map((scraper) => [scraper.id, nameScraper(scraper), scraper.firstAtMs, scraper.lastAtMs]),
    [
      [1, 'a Prometheus', 0, 3],
      [2, 'b Prometheus', 1, 1],
      [3, 'a vmagent', 2, 2],
    ],
  );
  assert.deepEqual([front.knownCount, front.scrapesCount], [3, 4]);
});

test('addScrape() guesses an unknown interval from the others', () => {
  const two = [scrapeBy('a', 0), scrapeBy('a', 4_000, { connection: 2, openConnections: [1] })];
  const takes = (front: FrontFacts, atMs: number) =>
    addScrape(front, scrapeBy('a', atMs, { connection: 9 })).scrapers.find(({ connection }) => connection === 9);
  assert.equal(takes(addAll(two), 10_000)?.id, 1, 'nothing is known: the one that was silent for longest');
  const third = scrapeBy('a', 10_000, { openConnections: [2] });
  assert.deepEqual([takes(addAll([...two, third]), 13_900)?.id, takes(addAll([...two, third]), 20_100)?.id], [2, 1]);
});

test('findInterval() is the median of the newest nine gaps, the longer one of two in the middle', () => {
  const findAfter = (...timesMs: readonly number[]) => {
    const [scraper] = addAll(timesMs.map((atMs) => scrapeBy('a', atMs))).scrapers;
    assert.ok(scraper !== undefined);
    return findInterval(scraper);
  };
  assert.deepEqual([findAfter(0), findAfter(0, 15_000)], [null, 15_000]);
  assert.deepEqual([findAfter(0, 1), findAfter(0, 15_000, 45_000)], [1, 30_000]);
  assert.equal(findAfter(0, 15_000, 45_000, 60_000), 15_000);
  assert.equal(findAfter(0, 0, 0), null, 'two at the same moment show none');
  assert.equal(findAfter(10, 5, 1_010), 1_000, 'nor does one that began earlier, and took longer');
  const fast = Array.from({ length: 9 }, (_, index) => index * 1_000);
  const slow = Array.from({ length: 5 }, (_, index) => 8_000 + (index + 1) * 60_000);
  assert.deepEqual([findAfter(...fast, ...slow.slice(0, 4)), findAfter(...fast, ...slow)], [1_000, 60_000]);
});

const listLiving = ({ scrapers }: FrontFacts, nowMs: number) =>
  findLiving(scrapers, nowMs, LIMITS)
    .map(({ address }) => address)
    .join('');

test('addStandstill() is no silence, but for what came before it, and no interval', () => {
  const scrapes = [scrapeBy('a', 0), scrapeBy('a', 10_000), scrapeBy('b', 5_000), scrapeBy('b', 15_000)];
  // The pause that should have ended at 40 s began at 20 s.
  const before = { ...addAll(scrapes), observedAtMs: 20_000 };
  // One came while it lasted, and was read within it.
  const deaf = addStandstill(addRequest(before, scrapeBy('b', 50_000)).front, { knownFromMs: 40_000, toMs: 60_000 });
  const silences = deaf.scrapers.map((scraper) => findSilence(scraper, 61_000));
  assert.deepEqual(silences, [11_000, 1_000]);
  assert.deepEqual([listLiving(deaf, 75_000), listLiving(deaf, 75_001)], ['ab', 'b']);
  const heard = addStandstill({ ...before, observedAtMs: 12_000 }, { knownFromMs: 40_000, toMs: 60_000 });
  const heardSilences = heard.scrapers.map((scraper) => findSilence(scraper, 61_000));
  assert.deepEqual(heardSilences, [6_000, 1_000], 'it ran at 15 s');
  const again = addRequest(deaf, scrapeBy('a', 62_000)).front;
  assert.deepEqual([again.scrapers[0]?.gapsMs, again.scrapers[0]?.deafMs], [[10_000], 0], 'it shows no interval');
  const served = addScrape(deaf, scrapeBy('a', 10_000));
  assert.equal(served.scrapers[0]?.deafMs, 40_000, 'an answer to the request before is no news of its scraper');
});

test('addScrape() remembers 64 scrapers, and forgets the one that was silent for longest', () => {
  const many = addAll(Array.from({ length: SCRAPERS_MAX_COUNT }, (_, index) => scrapeBy(`a${index}`, index)));
  const again = addScrape(many, scrapeBy('a0', 100));
  assert.equal(again.scrapers.length, 64, 'one that is known makes no other forgotten');
  const full = addScrape(again, scrapeBy('b', 101));
  assert.equal(full.scrapers.length, 64);
  assert.deepEqual([listIds(full).includes(1), listIds(full).includes(2), full.knownCount], [true, false, 65]);
  const ids = listIds(full);
  assert.deepEqual(
    ids,
    listIds(full).toSorted((a, b) => a - b),
  );
});

test('addScrape() remembers a thousand scrapes, and counts more', () => {
  const front = addAll(Array.from({ length: 1_001 }, (_, index) => scrapeBy('a', index)));
  assert.deepEqual([front.taken.length, front.taken[0]?.startedAtMs, front.scrapesCount], [1_000, 1, 1_001]);
});

test('addScrape() keeps what the newest scrape got, by when its request came', () => {
  const slow = scrapeBy('b', 5, { served: 'live', readAtMs: 5 });
  const front = addAll([scrapeBy('a', 9, { served: 'snapshot', readAtMs: 3 }), slow]);
  assert.deepEqual(front.last, { startedAtMs: 9, served: 'snapshot', readAtMs: 3 });
  assert.equal(addScrape(front, scrapeBy('b', 9, { served: 'joined' })).last?.served, 'joined');
});

/** Judges what was taken since an end at 100 s. */
const judge = (front: FrontFacts, nowMs = 101_000, limits = LIMITS) =>
  judgeTurnout(front, { endedAtMs: 100_000, nowMs, limits });

test('judgeTurnout() counts what got the snapshot since the source refused, until a read succeeds', () => {
  const refused = scrapeBy('a', 99_000, { served: 'snapshot', isByRefusal: true, readAtMs: 98_000 });
  const seenAfter = (answeredAtMs: number | null) => judge(addAll([refused], { answeredAtMs })).seenCount;
  assert.deepEqual([seenAfter(null), seenAfter(98_000)], [1, 1]);
  assert.equal(seenAfter(99_000), 0, 'the same moment says nothing');
  assert.equal(seenAfter(99_500), 0);
});

test('judgeTurnout() counts no page from before the newest push', () => {
  const pushes = { takenCount: 1, refusedCount: 0, droppedCount: 0, why: '' };
  const seenAfter = (changedAtMs: number) =>
    judge(addAll([scrapeBy('a', 105_000)], { pushes: { ...pushes, changedAtMs } })).seenCount;
  assert.deepEqual([seenAfter(104_999), seenAfter(105_000)], [1, 0]);
});

test('findTakenAtMs() is what the last of the living scrapers has taken', () => {
  const find = (...scrapes: readonly ServedScrape[]) => findTakenAtMs(addAll(scrapes), 30_000, LIMITS);
  const a = [scrapeBy('a', 0), scrapeBy('a', 10_000)];
  assert.equal(find(), Number.NEGATIVE_INFINITY, 'it may still come');
  assert.equal(find(...a, scrapeBy('a', 20_000, { readAtMs: 19_000 })), 19_000);
  assert.equal(find(...a, scrapeBy('b', 12_000), scrapeBy('a', 20_000)), 12_000);
  const waiting = addRequest(addAll(a), scrapeBy('b', 20_000)).front;
  assert.equal(findTakenAtMs(waiting, 30_000, LIMITS), Number.NEGATIVE_INFINITY, 'b has got nothing yet');
  assert.equal(findTakenAtMs(addAll(a), 40_000, LIMITS), Number.NEGATIVE_INFINITY, 'a no longer lives');
});

test('judgeTurnout() waits with auto for every scraper from before the end that lives', () => {
  const before = [scrapeBy('a', 80_000), scrapeBy('b', 85_000), scrapeBy('a', 90_000), scrapeBy('b', 95_000)];
  const show = (front: FrontFacts, nowMs?: number) => {
    const { wantedCount, cameCount, isReached, givenUp } = judge(front, nowMs);
    return [wantedCount, cameCount, isReached, givenUp.map(({ address }) => address).join()];
  };
  assert.deepEqual(show(addAll(before)), [2, 0, false, '']);
  assert.deepEqual(show(addAll([...before, scrapeBy('a', 100_500)])), [2, 1, false, '']);
  const newcomer = scrapeBy('c', 100_700);
  assert.deepEqual(show(addAll([...before, newcomer])), [2, 0, false, ''], 'a newcomer stands in for no other');
  const both = [...before, scrapeBy('a', 100_500), scrapeBy('b', 100_600)];
  assert.deepEqual(show(addAll([...both, newcomer])), [2, 2, true, '']);
  assert.deepEqual(show(addAll([...before, scrapeBy('a', 100_500)]), 120_001), [1, 1, true, 'b']);
  assert.deepEqual(show(addAll(before), 120_001), [1, 0, false, 'a,b'], 'no one is left, and no one has come');
  assert.deepEqual(show(addAll([...before, newcomer]), 120_001), [1, 1, true, 'a,b']);
  assert.deepEqual(show(addAll([newcomer, scrapeBy('d', 100_800)])), [1, 1, true, '']);
  assert.deepEqual(show(addAll([])), [1, 0, false, '']);
});

test('judgeTurnout() takes one that came first at the very end for one from before it', () => {
  assert.equal(judge(addAll([scrapeBy('a', 100_000), scrapeBy('b', 100_500)])).isReached, false);
  assert.equal(judge(addAll([scrapeBy('a', 100_001)])).isReached, true);
});

test('nameScraper() is address and User-Agent, or the address alone', () => {
  const [scraper] = addAll([scrapeBy('a', 0, { agent: '' })]).scrapers;
  assert.ok(scraper !== undefined);
  assert.equal(nameScraper(scraper), 'a');
});

/** Who counts; the first five are rows of the table. */
const REQUESTS: readonly (readonly [isCounted: boolean, agent: string, hasTimeoutHeader?: boolean])[] = [
  [true, 'Datadog Agent/7.53.0'],
  [true, 'Telegraf/1.30.0 Go/1.22.2'],
  [true, 'Netdata go.d.plugin/v2.1.0'],
  [true, 'Vector/0.39.0 (x86_64-unknown-linux-gnu)'],
  [true, 'Elastic-Metricbeat/8.14.0 (linux; amd64; abc; 2024-05-31)'],
  [true, '', true],
  [true, 'curl/8.5.0', true],
  [false, ''],
  [false, 'curl/8.5.0'],
  [false, 'kube-probe/1.36'],
  [false, 'Go-http-client/1.1'],
  [false, 'Mozilla/5.0'],
  [false, 'x Datadog Agent/7'],
  [false, 'lastscrape/0.1.0'],
];

test('isScraper() goes by the header of a scrape, or by the beginning of a User-Agent of the table', () => {
  for (const [isCounted, agent, hasTimeoutHeader = false] of REQUESTS) {
    assert.equal(isScraper({ hasTimeoutHeader, agent }), isCounted, agent);
  }
  assert.equal(SCRAPER_AGENTS.length, 5, 'every row has an example');
});
