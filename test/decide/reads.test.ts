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
  ['another scrape has its header', ['old header'], null],
  ['two are read', ['old', 'new'], null],
  ['two own reads go on, and the newer one has its time', ['old own', 'new own gave'], 0],
  ['only a poll waits', ['old own'], beside(1_000), 'poll'],
  ['the last numbers wait for those of another format', ['old own last header'], beside(1_000), 'last'],
] as const) {
  test(`findReadMove() where ${what}`, () => {
    const reads = texts.map(read);
    const move = findReadMove(reads, need);
    const yielding = typeof expected === 'number' ? reads[expected] : undefined;
    if (yielding === undefined) assert.deepEqual(move, expected);
    else assert.deepEqual(move, { kind: 'giveWay', atMs: yielding.begunAtMs + OWN_READ_MS, read: yielding });
  });
}
