import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openWallTime, waitUnless } from '../../src/base/waits.ts';

const NEVER = new Promise<string>(() => {});

test('waitUnless() gives what the work gives, where it ends first', async () => {
  const { signal } = new AbortController();
  assert.equal(await waitUnless(Promise.resolve('done'), { signal }), 'done');
  assert.equal(await waitUnless(Promise.resolve('done'), { signal, timeoutMs: 600_000 }), 'done');
  await assert.rejects(
    waitUnless(Promise.reject(new Error('Bug: broken')), { signal, timeoutMs: 600_000 }),
    /Bug: broken/,
  );
});

test('waitUnless() ends at the signal, also one that came before, and at the limit', async () => {
  const controller = new AbortController();
  const waiting = waitUnless(NEVER, { signal: controller.signal, timeoutMs: 600_000 });
  controller.abort();
  assert.equal(await waiting, null);
  assert.equal(await waitUnless(NEVER, { signal: controller.signal }), null);
  assert.equal(await waitUnless(NEVER, { timeoutMs: 1 }), null);
});

test('waitUnless() swallows what fails after the wait', async () => {
  const controller = new AbortController();
  let fail = (_: Error): void => {};
  const work = new Promise<never>((_, reject) => {
    fail = reject;
  });
  const waiting = waitUnless(work, { signal: controller.signal });
  controller.abort();
  assert.equal(await waiting, null);
  fail(new Error('too late'));
  await new Promise((resolve) => setImmediate(resolve));
});

test('an instant keeps its time while the clocks are read at fractions of a millisecond', () => {
  const clocks = { monotonicMs: 1_000.9, startedAtMs: 1_700_000_000_000 };
  const toWallMs = openWallTime({
    nowMs: () => clocks.monotonicMs,
    wallMs: () => Math.floor(clocks.startedAtMs + clocks.monotonicMs),
  });
  const seen = new Set<number>();
  for (const moreMs of [0, 0.1, 0.25, 0.5, 0.75, 0.99, 1, 5_000.3, 86_400_000.7]) {
    clocks.monotonicMs = 1_000.9 + moreMs;
    seen.add(toWallMs(900.4));
  }
  assert.deepEqual([...seen], [1_700_000_000_900]);
});

test('an instant has another time once the clock was set', () => {
  const clocks = { nowMs: 5_000, wallMs: 1_000_000 };
  const toWallMs = openWallTime({ nowMs: () => clocks.nowMs, wallMs: () => clocks.wallMs });
  assert.equal(toWallMs(4_000), 999_000);
  clocks.nowMs += 1_000;
  clocks.wallMs += 3_601_000;
  assert.equal(toWallMs(4_000), 4_599_000);
  clocks.nowMs += 1_000;
  clocks.wallMs += 1_050;
  assert.equal(toWallMs(4_000), 4_599_000);
});
