// The snapshot of a source that gives the same again and again, as a Locust does that is gone.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Body, makeWrittenBody } from '../../src/snapshot/body.ts';
import { openSnapshotStore, type Snapshot } from '../../src/snapshot/snapshot.ts';
import { readPieces } from '../support/pieces.ts';

const at = (atMs: number) => ({ atMs, seconds: atMs / 1_000 });

/** Of samples without labels. */
function makeBody(text: string): Body {
  const families = new Set(text.split('\n').map((line) => line.replace(/ .*/, '')));
  families.delete('');
  return makeWrittenBody(families, (push) => push(Buffer.from(text)));
}

async function readText(snapshot: Snapshot | null): Promise<string> {
  return String(await readPieces(snapshot?.body.read() ?? []));
}

test('keep() joins a body of the same format once, however often it is given; it is as new as the newest read', async () => {
  const store = openSnapshotStore(5_000);
  await store.keep(makeBody('a 1\nb 1\n'), at(1), 'renewed');
  const down: Body = { ...makeBody('a 1\n'), type: { format: 'text', contentType: 'text/plain; version=1.0.0' } };
  const joined = await store.keep(down, at(2), 'joined');
  assert.equal(await readText(joined), 'a 1\nb 1\n');
  const again = await store.keep(down, at(3), 'joined');
  assert.equal(again?.body, joined?.body);
  assert.deepEqual([again?.readAt, again?.vanishedAtMs, again?.oldestAtMs], [at(3), new Map([['b', 1]]), 1]);
  assert.equal(await store.newest(), again);
});

test('keep() takes away what was joined when main turns out to be alive, also with the same body', async () => {
  const store = openSnapshotStore(5_000);
  await store.keep(makeBody('a 1\nb 1\n'), at(1), 'renewed');
  const down = makeBody('a 1\n');
  await store.keep(down, at(2), 'joined');
  const alive = await store.keep(down, at(3), 'renewed');
  assert.equal(await readText(alive), 'a 1\n');
  assert.equal(await readText(await store.keep(down, at(4), 'renewed')), 'a 1\n');
});

test('keep() joins with the answer that shows the end what vanished shortly before it', async () => {
  const store = openSnapshotStore(5_000);
  await store.keep(makeBody('a 1\nb 1\n'), at(0), 'renewed');
  await store.keep(makeBody('a 2\n'), at(1_000), 'renewed');
  assert.equal(await readText(await store.keep(makeBody('a 3\n'), at(6_000), 'joined')), 'a 3\nb 1\n');
  await store.keep(makeBody('c 1\n'), at(7_000), 'renewed');
  await store.keep(makeBody('d 1\n'), at(8_000), 'renewed');
  const kept = await readText(await store.keep(makeBody('d 2\n'), at(13_001), 'joined'));
  assert.equal(kept, 'd 2\n', 'c went 5.001 s ago');
});

test('takeVanished() forgets what vanished in a life of main before this one', async () => {
  const store = openSnapshotStore(5_000);
  await store.keep(makeBody('a 1\nb 1\n'), at(0), 'renewed');
  await store.keep(makeBody('a 2\n'), at(1_000), 'renewed');
  await store.takeVanished('forgotten', 1_500);
  await store.keep(makeBody('c 1\n'), at(2_000), 'renewed');
  await store.takeVanished('restored', 2_500);
  assert.equal(await readText(await store.newest()), 'c 1\n');
  const empty = openSnapshotStore(5_000);
  await empty.takeVanished('restored', 1);
  assert.equal(await empty.newest(), null);
});

test('takeVanished() joins again what vanished in the last 5 s, as it last was, and nothing that is there', async () => {
  const store = openSnapshotStore(5_000);
  const keep = async (atMs: number, text: string) => store.keep(makeBody(text), at(atMs), 'renewed');
  await keep(0, 'old 1\nback 1\ntwice 1\na 1\n');
  await keep(900, 'back 2\ntwice 2\na 2\n');
  await keep(1_000, 'twice 3\na 3\n');
  await keep(2_000, 'back 4\na 4\n');
  await keep(3_000, 'back 5\ntwice 5\na 5\n');
  await keep(4_000, 'back 6\na 6\n');
  await store.takeVanished('restored', 6_000);
  assert.equal(await readText(await store.newest()), 'back 6\na 6\ntwice 5\n', 'old went 5.1 s ago');
  await store.takeVanished('restored', 6_000);
  assert.equal(await readText(await store.newest()), 'back 6\na 6\ntwice 5\n');
  const { vanishedAtMs, oldestAtMs } = (await store.newest()) ?? assert.fail();
  assert.deepEqual([vanishedAtMs, oldestAtMs], [new Map([['twice', 3_000]]), 3_000]);
});

test('takeOlder() keeps what only a slow answer had, which a younger read has overtaken', async () => {
  for (const [endedAtMs, expected] of [
    [5_000, 'a 2\nb 1\n'],
    [9_000, 'a 2\n'],
  ] as const) {
    const store = openSnapshotStore(5_000);
    await store.keep(makeBody('a 2\n'), at(3_000), 'renewed');
    await store.takeOlder(makeBody('a 1\nb 1\n'), at(0), 'living');
    assert.equal(await readText(await store.newest()), 'a 2\n');
    await store.takeVanished('restored', endedAtMs);
    assert.equal(await readText(await store.newest()), expected);
  }
});

test('takeOlder() has newer numbers than what was joined for an end that was none', async () => {
  const store = openSnapshotStore(5_000);
  await store.keep(makeBody('a 1\nb 1\n'), at(0), 'renewed');
  await store.keep(makeBody('a 3\n'), at(3_000), 'renewed');
  await store.takeVanished('restored', 3_500);
  await store.takeOlder(makeBody('a 2\nb 2\n'), at(2_000), 'living');
  await store.keep(makeBody('a 4\n'), at(4_000), 'renewed');
  await store.takeVanished('restored', 4_500);
  assert.equal(await readText(await store.newest()), 'a 4\nb 2\n');
});

test('takeOlder() has newer numbers than a page before both: whichever is known first, the newest is served', async () => {
  for (const endedAtMs of [4_500, 5_500]) {
    const store = openSnapshotStore(5_000);
    await store.keep(makeBody('a 1\nb 1\nc 1\n'), at(0), 'renewed');
    await store.keep(makeBody('a 3\n'), at(3_000), 'renewed');
    if (endedAtMs < 5_000) await store.takeVanished('restored', endedAtMs);
    await store.takeOlder(makeBody('a 2\nb 2\n'), at(2_000), endedAtMs < 5_000 ? at(5_000) : 'living');
    if (endedAtMs > 5_000) await store.takeVanished('restored', endedAtMs);
    const { body, vanishedAtMs, oldestAtMs } = (await store.newest()) ?? assert.fail();
    const lines = String(await readPieces(body.read())).split('\n');
    assert.deepEqual(lines.toSorted(), ['', 'a 3', 'b 2', 'c 1'], `the end was known at ${endedAtMs}`);
    assert.deepEqual([vanishedAtMs.get('b'), vanishedAtMs.get('c'), oldestAtMs], [2_000, 0, 0]);
  }
});
