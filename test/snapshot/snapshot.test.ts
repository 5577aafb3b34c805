// The snapshot of a source that gives the same again and again, as a Locust does that is gone.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Body, makeWrittenBody } from '../../src/snapshot/body.ts';
import { openSnapshotStore, type Snapshot } from '../../src/snapshot/snapshot.ts';

const at = (atMs: number) => ({ atMs, seconds: atMs / 1_000 });

function makeBody(...families: readonly string[]): Body {
  const text = families.map((family) => `${family} 1\n`).join('');
  return makeWrittenBody({ families: new Set(families), write: (push) => push(Buffer.from(text)) });
}

async function readText(snapshot: Snapshot | null): Promise<string> {
  let text = '';
  for await (const piece of snapshot?.body.read() ?? []) text += Buffer.from(piece).toString();
  return text;
}

test('keep() joins a body once, however often it is given; it is as new as the newest read', async () => {
  const store = openSnapshotStore();
  await store.keep(makeBody('a', 'b'), at(1), 'renewed');
  const down = makeBody('a');
  const joined = await store.keep(down, at(2), 'joined');
  assert.equal(await readText(joined), 'a 1\nb 1\n');
  const again = await store.keep(down, at(3), 'joined');
  assert.equal(again?.body, joined?.body);
  assert.deepEqual([again?.readAt, again?.hasVanished], [at(3), true]);
  assert.equal(await store.newest(), again);
});

test('keep() takes away what was joined when main turns out to be alive, also with the same body', async () => {
  const store = openSnapshotStore();
  await store.keep(makeBody('a', 'b'), at(1), 'renewed');
  const down = makeBody('a');
  await store.keep(down, at(2), 'joined');
  const alive = await store.keep(down, at(3), 'renewed');
  assert.equal(await readText(alive), 'a 1\n');
  assert.equal(await readText(await store.keep(down, at(4), 'renewed')), 'a 1\n');
});
