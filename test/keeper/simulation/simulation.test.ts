import assert from 'node:assert/strict';
import { test } from 'node:test';
import { simulateMany, tellRun } from '../../front/simulation/simulate.ts';

/** Some seconds; `npm run simulate -- keeper` has 10,000. */
const RUNS_COUNT = 300;
const TIMEOUT_MS = 600_000;

test('no hand-over is lost, mixed up, kept for ever or listed beside a pod that lives', async () => {
  const { runsCount, failures } = await simulateMany('keeper', RUNS_COUNT, TIMEOUT_MS);
  const [first] = failures;
  assert.equal(first, undefined, first && (await tellRun('keeper', first.seed)));
  assert.equal(runsCount, RUNS_COUNT);
});

test('a run of the keeper is the same each time', async () => {
  assert.equal(await tellRun('keeper', 7), await tellRun('keeper', 7));
});
