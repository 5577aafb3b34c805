import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REST_FACTORS } from '../../src/decide/serve/budget.ts';
import type { ExporterReading } from '../../src/observe/condition-kind.ts';
import { makeFailedReading, NOT_READ } from '../../src/observe/exporter.ts';
import { openExporterReads } from '../../src/observe/exporter-reads.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const SIGNAL = new AbortController().signal;
const ANSWERED: ExporterReading = {
  ...NOT_READ,
  observation: { kind: 'answered', scrapes: null, totals: { requests: null, failures: null, users: null } },
};

/** Looks every second; the times of the looks that read a page, which takes 50 ms. */
async function look(count: number, { endsAtMs = Number.POSITIVE_INFINITY, freshAtMs = -1, reading = ANSWERED } = {}) {
  const clock = new VirtualClock();
  const read = () => new Promise<ExporterReading>((resolve) => clock.after(50, () => resolve(reading)));
  const reads = openExporterReads({ read }, { clock, pollMs: 1_000, restFactor: REST_FACTORS.usual });
  const atMs: number[] = [];
  for (let nowMs = 0; nowMs < count * 1_000; nowMs += 1_000) {
    if (nowMs === endsAtMs) reads.takeView({ main: 'ending', wasAlive: true, endedAtMs: null });
    const shown = await clock.run(reads.observe(SIGNAL, nowMs === freshAtMs));
    if (shown !== NOT_READ) atMs.push(nowMs);
    await clock.run(new Promise<void>((resolve) => clock.after(nowMs + 1_000 - clock.nowMs(), () => resolve())));
  }
  assert.equal(clock.timerCount, 0, 'nothing is read between two observations');
  return atMs;
}

test('observe() reads for 1 % of the time while main lives, and at each look from its end on', async () => {
  assert.deepEqual(await look(20, { endsAtMs: 17_000 }), [0, 6_000, 12_000, 17_000, 18_000, 19_000]);
});

test('observe() reads at once what must be newest, which the next read counts', async () => {
  assert.deepEqual(await look(14, { freshAtMs: 3_000 }), [0, 3_000, 9_000]);
});

test('observe() asks one that fails less often', async () => {
  assert.deepEqual(await look(12, { reading: makeFailedReading('HTTP 500', true) }), [0, 6_000]);
});

test('observe() reads again after a look at the end of main, just as a read became due', async () => {
  const clock = new VirtualClock();
  const read = () => new Promise<ExporterReading>((resolve) => clock.after(10, () => resolve(ANSWERED)));
  const reads = openExporterReads({ read }, { clock, pollMs: 1_000, restFactor: REST_FACTORS.usual });
  const observe = (isFresh = false) => clock.run(reads.observe(SIGNAL, isFresh));
  assert.equal(await observe(), ANSWERED);
  clock.advance(999);
  assert.equal(await observe(), NOT_READ);
  clock.advance(1);
  assert.equal(await observe(true), ANSWERED);
  clock.advance(1_000);
  assert.equal(await observe(), ANSWERED);
});
