import assert from 'node:assert/strict';
import { test } from 'node:test';
import { simulateMany, tellRun } from './simulate.ts';

/** In about three minutes on two processors that have nothing else to do. */
const RUNS_COUNT = 100_000;
/** Fewer on a busy machine: a file of tests has 15 minutes. */
const TIMEOUT_MS = 600_000;

test('no run of the front loses a number, goes back, miscounts, holds too long or reports wrongly', async (t) => {
  const { runsCount, failures } = await simulateMany(RUNS_COUNT, TIMEOUT_MS);
  t.diagnostic(`${runsCount} runs`);
  const [first, ...others] = failures;
  const story = first === undefined ? '' : await tellRun(first.seed);
  const more = others.map(({ seed, faults }) => `seed ${seed}: ${faults[0]}`);
  assert.equal(first, undefined, [story, ...more, 'npm run simulate -- seed SEED tells one'].join('\n'));
});

test('a run is the same each time', async () => {
  assert.equal(await tellRun(7), await tellRun(7));
});
