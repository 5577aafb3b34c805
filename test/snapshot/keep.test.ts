// What a push has without a front: the last whole, readable body, with what has vanished from it since main ended.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MainView } from '../../src/decide/main-view.ts';
import type { ExporterReading } from '../../src/observe/condition-kind.ts';
import { openKeeper } from '../../src/snapshot/keep.ts';

const ENDED: MainView = { main: 'ended', wasAlive: true, endedAtMs: 0 };

const LIVING: MainView = { main: 'living', wasAlive: true, endedAtMs: null };
const ENDING: MainView = { main: 'ending', wasAlive: true, endedAtMs: null };
const NO_TOTALS = { requests: null, failures: null, users: null };

function reading(up: number, finishedCount: number | null = null): ExporterReading {
  const scrapes = finishedCount === null ? null : { finishedCount, inFlightCount: 1 };
  return {
    observation: { kind: 'answered', scrapes, totals: NO_TOTALS },
    metric: (name) => ({ kind: 'value', value: name === 'locust_up' ? up : 1 }),
    hasRequests: false,
  };
}

function openScene(metricNames: readonly string[] = ['locust_up']) {
  const keeper = openKeeper(metricNames, () => ({ atMs: 0, seconds: 0 }));
  return {
    keeper,
    take(text: string, up = 1, finishedCount: number | null = null, mayBeCut?: boolean) {
      const tap = keeper.openTap();
      for (const letter of Buffer.from(text)) tap.write(Uint8Array.of(letter));
      tap.end({ ...reading(up, finishedCount), ...(mayBeCut !== undefined && { mayBeCut }) });
    },
    async read(): Promise<string | null> {
      // What came is judged in turns of the event loop.
      await new Promise((resolve) => setImmediate(resolve));
      const snapshot = await keeper.newest();
      if (snapshot === null) return null;
      const pieces: Uint8Array[] = [];
      for await (const piece of snapshot.body.read()) pieces.push(Uint8Array.from(piece));
      return Buffer.concat(pieces).toString();
    },
  };
}

test('openKeeper() has nothing before the first answer, then the newest one', async () => {
  const { take, read } = openScene();
  assert.equal(await read(), null);
  take('locust_up 1\na 1\n');
  take('locust_up 1\na 2\n');
  assert.equal(await read(), 'locust_up 1\na 2\n');
});

test('openKeeper() leaves out what is a part, unreadable or empty', async () => {
  const { keeper, take, read } = openScene();
  take('a 1\n');
  const tap = keeper.openTap();
  tap.write(Buffer.from('a 2\n'));
  tap.breakOff(false);
  take('<html>busy</html>');
  take('');
  assert.equal(await read(), 'a 1\n');
});

test('openKeeper() keeps what vanishes with main: where an answer shows the end, and once it is known', async () => {
  const shown = openScene();
  shown.keeper.tell({ main: 'living', wasAlive: true, endedAtMs: null });
  shown.take('locust_up 1\nlocust_users 5\n');
  shown.take('locust_up 0\n', 0);
  assert.equal(await shown.read(), 'locust_up 0\nlocust_users 5\n');
  const known = openScene();
  known.take('locust_up 1\nlocust_users 5\n');
  known.keeper.tell(ENDED);
  known.take('locust_up 1\n');
  assert.equal(await known.read(), 'locust_up 1\nlocust_users 5\n');
});

test('openKeeper() keeps what vanishes with main where another condition shows the end by the same poll', async () => {
  const { keeper, take, read } = openScene();
  keeper.tell(LIVING);
  take('a 1\nb 1\n');
  keeper.tell(LIVING);
  take('a 2\n');
  keeper.tell(ENDING);
  assert.equal(await read(), 'a 2\nb 1\n');
});

test('openKeeper() keeps what vanished shortly before the end was known, though no poll has answered since', async () => {
  const { keeper, take, read } = openScene();
  keeper.tell(LIVING);
  take('a 1\nb 1\n');
  keeper.tell(LIVING);
  take('a 2\n');
  keeper.tell(LIVING);
  assert.equal(await read(), 'a 2\n');
  keeper.openTap().breakOff(true);
  keeper.tell(ENDED);
  assert.equal(await read(), 'a 2\nb 1\n');
});

test('openKeeper() keeps what vanished shortly before a refusal', async () => {
  const { keeper, take, read } = openScene();
  keeper.tell(LIVING);
  take('a 1\nb 1\n');
  keeper.tell(LIVING);
  take('a 2\n');
  keeper.tell(LIVING);
  assert.equal(await read(), 'a 2\n');
  keeper.openTap().breakOff(true);
  assert.equal(await read(), 'a 2\nb 1\n');
});

test('openKeeper() keeps the older one where one that may be cut lacks a family, until it is confirmed', async () => {
  const { take, read } = openScene();
  take('a 1\nb 1\n');
  take('a 2\n', 1, null, true);
  assert.equal(await read(), 'a 1\nb 1\n');
  take('a 3\n', 1, null, true);
  assert.equal(await read(), 'a 3\n');
});

test('newest() asks once more where the last answer may be cut: the next poll will not come', async () => {
  const { keeper, take, read } = openScene();
  let askedCount = 0;
  const ask = (text: string) => async () => {
    askedCount++;
    take(text, 1, null, true);
  };
  take('a 1\nb 1\nc 1\n');
  await keeper.newest(ask(''));
  take('a 2\nb 2\n', 1, null, true);
  await keeper.newest(ask('a 3\n'));
  assert.equal(await read(), 'a 1\nb 1\nc 1\n', 'cut twice');
  take('a 4\nb 4\n', 1, null, true);
  await keeper.newest(ask('a 4\nb 4\n'));
  assert.equal(await read(), 'a 4\nb 4\n');
  assert.equal(askedCount, 2);
});

test('openKeeper() does not believe an exporter that restarted after the end', async () => {
  const counted = openScene();
  counted.keeper.tell(ENDING);
  counted.take('a 7\n', 1, 100);
  counted.take('a 0\n', 1, 1);
  counted.keeper.tell(ENDED);
  counted.take('a 0\n', 1, 2);
  assert.equal(await counted.read(), 'a 7\n');
  const refused = openScene();
  refused.keeper.tell(LIVING);
  refused.take('a 7\n');
  refused.keeper.openTap().breakOff(true);
  refused.keeper.tell(ENDING);
  refused.take('a 0\n');
  assert.equal(await refused.read(), 'a 7\n');
});

for (const [how, finishedCount] of [
  ['goes on', 102],
  ['was restarted as well', 1],
] as const) {
  test(`openKeeper() forgets the life before with the first answer of a main that is alive again, where its exporter ${how}`, async () => {
    const { keeper, take, read } = openScene();
    keeper.tell(LIVING);
    take('a 7\ngone 7\n', 1, 100);
    keeper.tell(ENDED);
    take('a 8\n', 0, 101);
    keeper.tell(ENDED);
    await read();
    take('a 1\n', 1, finishedCount);
    keeper.tell(LIVING);
    assert.equal(await read(), 'a 1\n');
    take('a 2\n', 0, finishedCount + 1);
    keeper.tell(ENDED);
    assert.equal(await read(), 'a 2\n');
  });
}

test('openKeeper() leaves out what came while a long one was joined, except the newest: no one waits for many', async () => {
  const { keeper, take, read } = openScene();
  keeper.tell(ENDED);
  take('a 0\ngone 7\n');
  for (let index = 0; index < 20; index++) take(`a ${index}\nb${index} 1\n`);
  keeper.tell(ENDED);
  assert.equal(await read(), 'a 19\nb19 1\ngone 7\n');
});

test('openKeeper() takes one that restarted while main lives, and one that comes up after the end', async () => {
  const { keeper, take, read } = openScene();
  keeper.tell(LIVING);
  take('a 7\n', 1, 100);
  keeper.openTap().breakOff(true);
  keeper.tell(LIVING);
  take('a 1\n', 1, 1);
  take('a 2\n', 1, 2);
  keeper.tell(ENDED);
  assert.equal(await read(), 'a 2\n');
  const late = openScene();
  late.keeper.tell(ENDED);
  late.keeper.openTap().breakOff(true);
  late.keeper.tell(ENDED);
  late.take('a 1\n');
  assert.equal(await late.read(), 'a 1\n');
});
