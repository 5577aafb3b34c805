import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settleBefore } from '../src/settle.ts';

const NEVER = new Promise<string>(() => {});

test('settleBefore() gives what the work gives, where it ends first', async () => {
  const { signal } = new AbortController();
  assert.equal(await settleBefore(Promise.resolve('done'), signal), 'done');
  assert.equal(await settleBefore(Promise.resolve('done'), signal, 600_000), 'done');
  await assert.rejects(settleBefore(Promise.reject(new Error('Bug: broken')), signal, 600_000), /Bug: broken/);
});

test('settleBefore() ends at the signal, also one that came before, and at the limit', async () => {
  const controller = new AbortController();
  const waiting = settleBefore(NEVER, controller.signal, 600_000);
  controller.abort();
  assert.equal(await waiting, null);
  assert.equal(await settleBefore(NEVER, controller.signal), null);
  assert.equal(await settleBefore(NEVER, new AbortController().signal, 1), null);
});

test('settleBefore() swallows what fails after the wait', async () => {
  const controller = new AbortController();
  let fail = (_: Error): void => {};
  const work = new Promise<never>((_, reject) => {
    fail = reject;
  });
  const waiting = settleBefore(work, controller.signal);
  controller.abort();
  assert.equal(await waiting, null);
  fail(new Error('too late'));
  await new Promise((resolve) => setImmediate(resolve));
});
