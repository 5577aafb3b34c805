import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PENDING_MAX_COUNT, prepareThreadCall } from '../../src/base/thread-call.ts';

const LONG_MS = 60_000;
const ENDED = { timeoutMs: LONG_MS, signal: AbortSignal.abort('interrupted') };

/** A call that returns when the test says so, and counts how often it was begun. */
function openCall() {
  const begun: ((value: string) => void)[] = [];
  const call = prepareThreadCall(() => new Promise<string>((resolve) => begun.push(resolve)));
  return { call, begun };
}

test('a call that returns is made again each time', async () => {
  const { call, begun } = openCall();
  for (const value of ['a', 'b']) {
    const result = call({ timeoutMs: LONG_MS });
    begun.at(-1)?.(value);
    assert.deepEqual(await result, { kind: 'returned', value });
  }
  assert.equal(begun.length, 2);
});

test('a call that hangs is made once for all who wait, and its late answer is used once', async () => {
  const { call, begun } = openCall();
  assert.deepEqual(await call({ timeoutMs: 1 }), { kind: 'pending', why: 'timed out' });
  assert.deepEqual(await call(ENDED), { kind: 'pending', why: 'interrupted' });
  const controller = new AbortController();
  const waiting = call({ timeoutMs: LONG_MS, signal: controller.signal });
  controller.abort('the time is up');
  assert.deepEqual(await waiting, { kind: 'pending', why: 'the time is up' });
  assert.equal(begun.length, 1);
  const [first, second] = [call({ timeoutMs: LONG_MS }), call({ timeoutMs: LONG_MS })];
  begun[0]?.('late');
  assert.deepEqual(await first, { kind: 'returned', value: 'late' });
  assert.deepEqual(await second, { kind: 'returned', value: 'late' });
  assert.equal(begun.length, 1);
  assert.deepEqual(await call(ENDED), { kind: 'pending', why: 'interrupted' });
  assert.equal(begun.length, 2, 'the next one begins again');
  begun[1]?.('end');
  assert.equal((await call({ timeoutMs: LONG_MS })).kind, 'returned');
});

test('an answer that came while no one waited is old: the call is repeated, and the answer serves once if that hangs', async () => {
  const { call, begun } = openCall();
  await call(ENDED);
  begun[0]?.('late');
  await Promise.resolve();
  const fresh = call({ timeoutMs: LONG_MS });
  assert.equal(begun.length, 2);
  begun[1]?.('fresh');
  assert.deepEqual(await fresh, { kind: 'returned', value: 'fresh' });
  await call(ENDED);
  begun[2]?.('late again');
  await Promise.resolve();
  assert.deepEqual(await call({ timeoutMs: 1 }), { kind: 'returned', value: 'late again' });
  assert.deepEqual(await call({ timeoutMs: 1 }), { kind: 'pending', why: 'timed out' });
  assert.equal(begun.length, 4);
});

test('calls that hang leave a thread of libuv to the others', async () => {
  const hanging = Array.from({ length: PENDING_MAX_COUNT }, openCall);
  for (const { call } of hanging) await call(ENDED);
  const other = openCall();
  assert.deepEqual(await other.call({ timeoutMs: LONG_MS }), {
    kind: 'pending',
    why: `${PENDING_MAX_COUNT} other calls hang`,
  });
  assert.equal(other.begun.length, 0);
  hanging[0]?.begun[0]?.('late');
  await hanging[0]?.call({ timeoutMs: LONG_MS });
  const result = other.call({ timeoutMs: LONG_MS });
  other.begun[0]?.('a');
  assert.deepEqual(await result, { kind: 'returned', value: 'a' });
  for (const { begun } of hanging) begun[0]?.('late');
});
