import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findReadMove, OWN_READ_MS, SILENT_READ_MS } from '../../src/decide/pace.ts';

/** `own`: no scrape shares it; `header`: it has come; `gave`: one before it gave way; since 1 s, or 5 s. */
function read(text: string) {
  return {
    begunAtMs: text.includes('old') ? 1_000 : 5_000,
    hasBegun: text.includes('header'),
    isOwn: text.includes('own'),
    isLast: text.includes('last'),
    hasGivenWay: text.includes('gave'),
  };
}

const BEGIN = { kind: 'begin', atMs: Number.NEGATIVE_INFINITY };
const beside = (begunAtMs: number) => ({ kind: 'begin', atMs: begunAtMs + SILENT_READ_MS });

for (const [what, texts, expected, need = 'scrape'] of [
  ['nothing is read', [], BEGIN],
  ['another scrape is read', ['old'], beside(1_000)],
  ['another scrape has its header', ['old header'], null],
  ['two are read', ['old', 'new'], null],
  ['an own read goes on', ['old own'], 0],
  ['an own read with its header goes on', ['old own header'], 0],
  ['an own read goes on beside one that hangs', ['old', 'new own'], 1],
  ['one hangs beside an own read', ['old own', 'new'], 0],
  ['two own reads go on', ['old own', 'new own'], 1],
  ['an own read has its time', ['old own gave'], beside(1_000)],
  ['an own read has its time, and its header', ['old own gave header'], null],
  ['an own read has its time beside one that hangs', ['old', 'new own gave'], null],
  ['two own reads go on, and one has its time', ['old own gave', 'new own gave'], 1],
  ['two own reads go on, and the newer one has its time', ['old own', 'new own gave'], 0],
  ['only a poll waits', ['old own'], beside(1_000), 'poll'],
  ['only a poll waits, for two', ['old own', 'new own'], null, 'poll'],
  ['the last numbers wait for an own read', ['old own gave header'], 0, 'last'],
  ['the last numbers wait for a scrape', ['old header'], beside(1_000), 'last'],
  ['the last numbers wait for two scrapes', ['old', 'new'], null, 'last'],
  ['the last numbers wait for those of another format', ['old own last header'], beside(1_000), 'last'],
  ['the last numbers are read, and a scrape waits', ['old own last'], 0],
] as const) {
  test(`findReadMove() where ${what}`, () => {
    const reads = texts.map(read);
    const move = findReadMove(reads, need);
    const yielding = typeof expected === 'number' ? reads[expected] : undefined;
    if (yielding === undefined) assert.deepEqual(move, expected);
    else assert.deepEqual(move, { kind: 'giveWay', atMs: yielding.begunAtMs + OWN_READ_MS, read: yielding });
  });
}
