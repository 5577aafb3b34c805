// When to observe again: the edges that no transcript reaches.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Limits, Observation } from '../../../src/decide/model.ts';
import { beginSeries } from '../../../src/decide/run/evidence.ts';
import { initialState } from '../../../src/decide/run/facts.ts';
import { findRunEnd, LAST_READ_MS, needsLastRead, nextObserve } from '../../../src/decide/run/pace.ts';
import { EMPTY_HISTORY } from '../../../src/decide/run/scrape-count.ts';
import { NO_SCRAPERS } from '../../../src/decide/serve/scrapers.ts';
import type { Facts, Holding, WatchPhase } from '../../../src/decide/state.ts';
import { DEFAULT_LIMITS, HOLDING, observe as observeAll, POLICY, RUNNING } from '../phases.ts';

const observe = (startedAtMs: number, atMs = startedAtMs) => observeAll([], { startedAtMs, readAtMs: atMs, atMs });

function findNext(phase: WatchPhase, observation: Observation, rest: Partial<Facts & Limits> = {}): number {
  const { facts } = initialState(0);
  const policy = { ...POLICY, limits: { ...DEFAULT_LIMITS, ...rest }, conditions: [] };
  return nextObserve({ facts: { ...facts, ...rest }, phase }, { kind: 'observed', observation }, policy).atMs;
}

test('nextObserve() comes every 500 ms once "done" was seen, or by POLL where that is shorter', () => {
  const done = beginSeries(observe(10_000), EMPTY_HISTORY);
  assert.equal(findNext({ ...RUNNING, done }, observe(10_000)), 10_500);
  assert.equal(findNext({ ...RUNNING, done }, observe(10_000, 10_499)), 10_500);
  assert.equal(findNext({ ...RUNNING, done }, observe(10_000, 10_500)), 11_000);
  assert.equal(findNext({ ...RUNNING, done }, observe(10_000), { pollMs: 200 }), 10_200);
  assert.equal(findNext({ kind: 'waiting', done }, observe(10_000)), 11_000, 'nothing shows that it was alive');
  assert.equal(findNext({ kind: 'waiting', done }, observe(10_000), { wasAliveBefore: true }), 10_500);
  assert.equal(
    findNext({ kind: 'waiting', done: null }, observe(10_000), { terminatedAtMs: 9_000, freshAtMs: 9_000 }),
    10_500,
  );
  assert.equal(findNext(RUNNING, observe(0), { terminatedAtMs: 0, freshAtMs: 0 }), 500);
});

test('nextObserve() comes when the settle time ends, not up to one pace later', () => {
  const done = beginSeries(observe(10_000), EMPTY_HISTORY);
  assert.equal(findNext({ ...RUNNING, done }, observe(10_500), { settleMs: 700 }), 10_700);
  assert.equal(findNext({ ...RUNNING, done }, observe(10_500), { settleMs: 1_200 }), 11_000);
  assert.equal(findNext({ ...RUNNING, done }, observe(10_500), { settleMs: 500 }), 11_000, 'it is over');
});

test('nextObserve() comes at the TTL, and once the hold could end when the wait for answers is over', () => {
  const holding: Holding = { ...HOLDING, mainEndedAtMs: 10_000 };
  const limits = { ttlMs: 20_000 };
  assert.equal(findNext(holding, observe(29_700), limits), 30_000);
  assert.equal(findNext(holding, observe(30_000), limits), 30_000, 'the process stood still over the TTL');
  const waiting = { ...holding, scrapedAtMs: 29_000 };
  assert.equal(findNext(waiting, observe(29_700), limits), 30_000);
  assert.equal(findNext(waiting, observe(30_000), limits), 30_500, 'the TTL has decided');
  assert.equal(findNext(waiting, observe(38_800), limits), 39_000);
  const terminated = { ...limits, terminatedAtMs: 20_000, freshAtMs: 20_000, terminationGraceMs: 12_000 };
  assert.equal(findNext(waiting, observe(31_800), terminated), 32_000);
  assert.equal(findNext(waiting, observe(32_000), terminated), 32_500, 'the grace has decided');
  assert.equal(findNext(waiting, observe(35_700), terminated), 36_000, '4 s after it answers are cut off');
  assert.equal(findNext(waiting, observe(22_900), { ...terminated, terminationGraceMs: 1_500 }), 23_000);
});

test('findRunEnd() waits for an end that is being settled, and for none that came when main had run for too long', () => {
  const { facts } = initialState(0);
  const limits = { ...DEFAULT_LIMITS, runTimeoutMs: 60_000, settleMs: 3_000 };
  const findEnd = (endedAtMs: number) => {
    const done = beginSeries(observe(endedAtMs), EMPTY_HISTORY);
    return findRunEnd({ ...facts, aliveSinceMs: 1_000 }, { ...RUNNING, done }, limits);
  };
  assert.equal(findRunEnd({ ...facts, aliveSinceMs: 1_000 }, RUNNING, limits), 61_000);
  assert.equal(findEnd(10_000), 61_000, 'long settled');
  assert.deepEqual([findEnd(60_999), findEnd(61_000)], [63_999, 61_000]);
  assert.equal(findRunEnd(facts, RUNNING, limits), Number.POSITIVE_INFINITY);
  const endless = { ...limits, runTimeoutMs: 0 };
  assert.equal(findRunEnd({ ...facts, aliveSinceMs: 1_000 }, RUNNING, endless), Number.POSITIVE_INFINITY);
});

/** Main ended at 100 s; `limits` and `facts` as given. */
function findLast(
  { terminatedAtMs = null, freshAtMs = null }: Partial<Facts>,
  limits: Partial<Limits>,
  hasFront = true,
  answeredAtMs: number | null = null,
) {
  const policy = { ...POLICY, front: hasFront ? { port: 9_469 } : null, limits: { ...DEFAULT_LIMITS, ...limits } };
  const front = { ...NO_SCRAPERS, seen: { answeredAtMs, inFlightCount: 0 } };
  const state = { facts: { ...initialState(0).facts, terminatedAtMs, freshAtMs, front }, phase: HOLDING };
  const { next } = { next: nextObserve(state, { kind: 'observed', observation: observe(103_000) }, policy) };
  assert.equal(next.isFresh, needsLastRead(state, policy));
  return next.isFresh ? [next.atMs, next.readByMs] : null;
}

test('nextObserve() reads once more, at once, at the signal and at an end that is not held for', () => {
  const inTime = 103_000 + LAST_READ_MS;
  assert.deepEqual(findLast({}, { ttlMs: 0 }), [103_000, inTime]);
  assert.deepEqual(findLast({ freshAtMs: 99_999 }, { scrapesWantedCount: 0 }), [103_000, inTime]);
  assert.equal(findLast({ freshAtMs: 100_000 }, { scrapesWantedCount: 0 }), null);
  assert.deepEqual(findLast({ freshAtMs: 99_999, terminatedAtMs: 102_000 }, { ttlMs: 0 }), [103_000, inTime]);
  const second = findLast({ freshAtMs: 100_000, terminatedAtMs: 102_000 }, { ttlMs: 0 });
  assert.deepEqual(second, [103_000, 104_000], 'shortly, after one in whose middle the signal came');
  const short = { ttlMs: 0, terminationGraceMs: 3_000 };
  assert.deepEqual(findLast({ terminatedAtMs: 102_000 }, short), [103_000, 105_000], 'within the grace');
  assert.deepEqual(findLast({}, {}), [103_000, 190_000], 'nothing was kept');
  const kept = findLast({ terminatedAtMs: 102_000 }, {}, true, 99_000);
  assert.deepEqual(kept, [103_000, 103_000], 'what is kept is shown meanwhile, which may end the hold');
  assert.equal(findLast({}, {}, false), null, 'held, and every observation reads');
});
