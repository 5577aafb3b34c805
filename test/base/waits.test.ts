import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUnless } from '../../src/base/waits.ts';

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
