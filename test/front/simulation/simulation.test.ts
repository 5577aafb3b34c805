import assert from 'node:assert/strict';
import { test } from 'node:test';
import { simulateMany, tellRun } from './simulate.ts';

/** In a minute or two on two processors. */
const RUNS_COUNT = 100_000;

test('no run of the front loses a number, goes back, miscounts, holds too long or reports wrongly', async () => {
  const [first, ...others] = await simulateMany(RUNS_COUNT);
  const story = first === undefined ? '' : await tellRun(first.seed);
  const more = others.map(({ seed, faults }) => `seed ${seed}: ${faults[0]}`);
  assert.equal(first, undefined, [story, ...more, 'npm run simulate -- seed SEED tells one'].join('\n'));
});

test('a run is the same each time', async () => {
  assert.equal(await tellRun(7), await tellRun(7));
});
