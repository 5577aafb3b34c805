import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import {
  addToRoom,
  chooseFormat,
  countHandOver,
  EMPTY_ROOM,
  judgeRoom,
  NOTHING_TAKEN,
  type Room,
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

const LIMITS = { maxBytes: 1_000, maxPages: 10 };
const page = (sizeBytes: number, headBytes = 1) => ({ pagesCount: 1, sizeBytes, headBytes });
const ask = (more: ReturnType<typeof page>, namespace = 'a', replaced = NOTHING_TAKEN) => ({
  namespace,
  more,
  replaced,
});

test('judgeRoom() has a bound for all, and half of it for each namespace', () => {
  const room = addToRoom(addToRoom(EMPTY_ROOM, 'a', page(400), 0), 'b', page(500), 0);
  assert.equal(judgeRoom(room, ask(page(100)), LIMITS), null);
  assert.equal(judgeRoom(room, ask(page(101)), LIMITS), 'full');
  assert.equal(judgeRoom(room, ask(page(1), 'b'), LIMITS), 'namespaceFull');
  assert.equal(judgeRoom(room, ask(page(500), 'b', page(500)), LIMITS), null, 'it replaces its own');
  assert.equal(judgeRoom(room, ask(page(1, 9_000_000), 'c'), LIMITS), 'namespaceFull', 'labels');
  const many = Array.from({ length: 5 }).reduce<Room>((before) => addToRoom(before, 'a', page(1), 0), EMPTY_ROOM);
  assert.equal(judgeRoom(many, ask(page(1)), LIMITS), 'namespaceFull');
  assert.equal(judgeRoom(many, ask(page(1), 'b'), LIMITS), null);
});

test('countHandOver() lets a namespace hand over 1,200 at once, then 20 a second, and forgets those without pages', () => {
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
  room = addToRoom(addToRoom(room, 'a', page(1), 50), 'a', { pagesCount: -1, sizeBytes: -1, headBytes: -1 }, 60_060);
  assert.deepEqual([...room.namespaces.keys()], []);
});

test('chooseFormat() gives each scraper what it got from the pod, else the richest that it takes', () => {
  const [text, open, proto] = [
    { accept: 'mine', contentType: 'text/plain; version=0.0.4', sizeBytes: 10 },
    { accept: 'x', contentType: 'application/openmetrics-text; version=1.0.0', sizeBytes: 20 },
    { accept: 'y', contentType: 'application/vnd.google.protobuf; proto=…', sizeBytes: 30 },
  ];
  const all = [text, open, proto];
  assert.deepEqual(chooseFormat(all, 'mine'), { format: text, fromBytes: 0 });
  assert.deepEqual(chooseFormat(all, RICH_ACCEPT), { format: proto, fromBytes: 30 });
  assert.deepEqual(chooseFormat([text, open], RICH_ACCEPT), { format: open, fromBytes: 10 });
  assert.deepEqual(chooseFormat(all, TEXT_ACCEPT), { format: text, fromBytes: 0 });
  assert.deepEqual(chooseFormat([open], TEXT_ACCEPT), { format: open, fromBytes: 0 });
  assert.throws(() => chooseFormat([], TEXT_ACCEPT), /Bug/);
});
