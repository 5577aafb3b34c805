// What a push has without a front: the last whole, readable body, with what has vanished from it since main ended.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MainView } from '../../src/decide/answer.ts';
import type { ExporterReading } from '../../src/observe/condition.ts';
import { openKeeper } from '../../src/send/keep.ts';

const ENDED: MainView = { main: 'ended', wasAlive: true, endedAtMs: 0 };

function reading(up: number): ExporterReading {
  return {
    observation: { kind: 'none' },
    metric: () => ({ kind: 'value', value: up }),
    hasRequests: false,
  };
}

function openScene() {
  const keeper = openKeeper(['locust_up'], () => ({ atMs: 0, seconds: 0 }));
  return {
    keeper,
    take(text: string, up = 1) {
      const tap = keeper.openTap();
      for (const letter of Buffer.from(text)) tap.write(Uint8Array.of(letter));
      tap.end(reading(up));
    },
    async read(): Promise<string | null> {
      // What came is judged in turns of the event loop.
      await new Promise((resolve) => setImmediate(resolve));
      const snapshot = await keeper.newest();
      if (snapshot === null) return null;
      const pieces: Uint8Array[] = [];
      for await (const piece of snapshot.body.read()) pieces.push(piece);
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
  tap.breakOff();
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

test('openKeeper() has a living main as it is: what vanished from it is gone', async () => {
  const { keeper, take, read } = openScene();
  keeper.tell({ main: 'living', wasAlive: true, endedAtMs: null });
  take('a 1\nb 1\n');
  take('a 2\n');
  assert.equal(await read(), 'a 2\n');
});
