import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import {
  changeRoom,
  chooseFormat,
  countHandOver,
  EMPTY_ROOM,
  judgeRoom,
  NOTHING_TAKEN,
  type Room,
  sweepRoom,
  type Taken,
} from '../../../src/decide/keep/keep.ts';
import { RICH_ACCEPT, TEXT_ACCEPT } from '../../../src/decide/serve/pages.ts';
import { playKeeper } from './keep-transcript.ts';

const folder = new URL('../../../fixtures/transcripts/keeper/', import.meta.url);

for (const transcript of readdirSync(folder).filter((file) => file.endsWith('.txt'))) {
  test(`advancePage() follows ${transcript.replace('.txt', '')}`, () => {
    const text = readFileSync(new URL(transcript, folder), 'utf8');
    assert.equal(playKeeper(text), text);
  });
}

// A sixteenth of the bytes is for files that cannot be read back.
const LIMITS = { maxBytes: 1_600, maxPages: 10 };
const page = (sizeBytes: number, more: Partial<Taken> = {}) => ({
  ...NOTHING_TAKEN,
  pagesCount: 1,
  sizeBytes,
  ...more,
});
const add = (room: Room, namespace: string, to: Taken) => changeRoom(room, { namespace, to });
const judge = (room: Room, to: Taken, namespace = 'a', from = NOTHING_TAKEN) =>
  judgeRoom(room, { namespace, from, to }, LIMITS);

test('judgeRoom() has a bound for all, and half of it for each namespace', () => {
  const room = add(add(EMPTY_ROOM, 'a', page(650)), 'b', page(750));
  assert.equal(judge(room, page(100)), null);
  assert.equal(judge(room, page(101)), 'full');
  assert.equal(judge(room, page(1), 'b'), 'namespaceFull');
  assert.equal(judge(room, page(750), 'b', page(750)), null, 'it grows');
  assert.equal(judge(room, page(1, { headBytes: 9_000_000 }), 'c'), 'namespaceFull', 'labels');
  const many = Array.from({ length: 5 }).reduce<Room>((before) => add(before, 'a', page(1)), EMPTY_ROOM);
  assert.equal(judge(many, page(1)), 'namespaceFull');
  assert.equal(judge(many, page(1), 'b'), null);
});

test('judgeRoom() bounds what the pages of a namespace unpack to', () => {
  const most = (LIMITS.maxBytes * 16) / 2;
  const room = add(EMPTY_ROOM, 'a', page(1, { plainBytes: most - 10 }));
  assert.equal(judge(room, page(1, { plainBytes: 10 })), null);
  assert.equal(judge(room, page(1, { plainBytes: 11 })), 'namespaceFull');
  assert.equal(judge(room, page(1, { plainBytes: 11 }), 'b'), null);
});

test('changeRoom() gives back what it took', () => {
  const room = add(EMPTY_ROOM, 'a', page(10, { plainBytes: 3, headBytes: 2 }));
  const after = changeRoom(room, { namespace: 'a', from: page(10, { plainBytes: 3, headBytes: 2 }) });
  assert.deepEqual(after.taken, NOTHING_TAKEN);
  assert.deepEqual(after.shares.get('a')?.taken, NOTHING_TAKEN);
});

test('countHandOver() lets a namespace hand over 1,200 at once, then 20 a second', () => {
  let room: Room = EMPTY_ROOM;
  const count = (atMs: number) => {
    const next = countHandOver(room, 'a', atMs);
    if (typeof next === 'string') return next;
    room = next;
    return null;
  };
  for (let index = 0; index < 1_200; index++) assert.equal(count(0), null);
  assert.equal(count(0), 'tooOften');
  assert.equal(count(49), 'tooOften');
  assert.equal(count(50), null);
  assert.equal(count(20), 'tooOften', 'a clock that goes back gives nothing');
});

test('sweepRoom() forgets namespaces without pages that may hand over as often as any other', () => {
  const begin = (room: Room, namespace: string) => countHandOver(room, namespace, 0) as Room;
  const room = begin(begin(add(EMPTY_ROOM, 'kept', page(1)), 'refused'), 'kept');
  assert.deepEqual([...sweepRoom(room, 49).shares.keys()], ['kept', 'refused']);
  assert.deepEqual([...sweepRoom(room, 50).shares.keys()], ['kept']);
});

test('chooseFormat() gives each scraper what it got from the pod, else the richest that it takes', () => {
  const [text, open, proto] = [
    { accept: 'mine', contentType: 'text/plain; version=0.0.4', sizeBytes: 10 },
    { accept: 'x', contentType: 'application/openmetrics-text; version=1.0.0', sizeBytes: 20 },
    { accept: 'y', contentType: 'application/vnd.google.protobuf; proto=…', sizeBytes: 30 },
  ];
  const all = [text, open, proto];
  assert.equal(chooseFormat(all, 'mine'), 0);
  assert.equal(chooseFormat(all, RICH_ACCEPT), 2);
  assert.equal(chooseFormat([text, open], RICH_ACCEPT), 1);
  assert.equal(chooseFormat(all, TEXT_ACCEPT), 0);
  assert.equal(chooseFormat([open], TEXT_ACCEPT), 0);
});
