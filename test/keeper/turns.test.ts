import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { openTurns } from '../../src/keeper/turns.ts';

const STAYS = new AbortController().signal;

/** Turns whose work runs until the test ends it; `begun`: clients in the order of their turns. */
function openHeldTurns(limits: Parameters<typeof openTurns>[0]) {
  const turns = openTurns(limits);
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  async function settle(): Promise<void> {
    for (let passes = 0; passes < 2; passes++) await new Promise((resolve) => setImmediate(resolve));
  }
  return {
    begun,
    run(client: string, gone: AbortSignal = STAYS): Promise<void> {
      return turns.run(client, gone, () => {
        begun.push(client);
        return new Promise<void>((resolve) => ends.push(resolve));
      });
    },
    async end(): Promise<void> {
      ends.shift()?.();
      await settle();
    },
    settle,
  };
}

test('openTurns() runs so much in all, and of one client, and gives the next turn to who has least', async () => {
  const { run, end, begun, settle } = openHeldTurns({ maxCount: 3, ofOneMaxCount: 2 });
  for (const client of ['a', 'a', 'a', 'a', 'b', 'b', 'c']) void run(client);
  await settle();
  assert.deepEqual(begun, ['a', 'a', 'b']);
  await end();
  assert.equal(begun.at(-1), 'c', 'before those that came first and have one');
  await end();
  assert.equal(begun.at(-1), 'a');
  await end();
  assert.equal(begun.at(-1), 'b');
});

test('openTurns() begins work that waits for nothing in turn with what else is due', async () => {
  const { run } = openTurns({ maxCount: 4, ofOneMaxCount: 4 });
  let endedCount = 0;
  for (let count = 0; count < 100; count++) void run('a', STAYS, async () => void endedCount++);
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
  assert.ok(endedCount < 20, `${endedCount} have ended`);
});

test('openTurns() does not look at all that wait for a turn, since that may be every page', {
  timeout: 60_000,
}, async () => {
  const { run } = openTurns({ maxCount: 1, ofOneMaxCount: 1 });
  const all = Array.from({ length: 50_000 }, (_, index) => run('a', undefined, async () => index));
  assert.equal((await Promise.all(all)).length, 50_000);
});

test('openTurns() leaves out who has gone before its turn, and goes on after work that failed', async () => {
  const { run, end, begun, settle } = openHeldTurns({ maxCount: 1, ofOneMaxCount: 1 });
  const gone = new AbortController();
  void run('a');
  const left = assert.rejects(run('b', gone.signal), /hung up/);
  void run('c');
  gone.abort(new Error('hung up'));
  await left;
  await settle();
  await end();
  assert.deepEqual(begun, ['a', 'c']);
  await assert.rejects(run('d', AbortSignal.abort(new Error('hung up'))), /hung up/);
  const turns = openTurns({ maxCount: 1, ofOneMaxCount: 1 });
  const stays = new AbortController().signal;
  await assert.rejects(
    turns.run('a', stays, () => Promise.reject(new Error('no'))),
    /no/,
  );
  assert.equal(await turns.run('a', stays, async () => 1), 1);
  // A connection may ask for any number.
  assert.deepEqual(getEventListeners(stays, 'abort'), []);
});
