import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findReadMove, OWN_READ_MS, SILENT_READ_MS } from '../../src/decide/reads.ts';

/** `own`: nobody shares it; `header`: it has come; since 1 s, or 5 s. */
function read(text: string) {
  return {
    begunAtMs: text.includes('old') ? 1_000 : 5_000,
    hasBegun: text.includes('header'),
    isOwn: text.includes('own'),
  };
}

const BEGIN = { kind: 'begin', atMs: Number.NEGATIVE_INFINITY };
const beside = (begunAtMs: number) => ({ kind: 'begin', atMs: begunAtMs + SILENT_READ_MS });

for (const [what, texts, options, expected] of [
  ['nothing is read', [], {}, BEGIN],
  ['another scrape is read', ['old'], {}, beside(1_000)],
  ['another scrape has its header', ['old header'], {}, null],
  ['two are read', ['old', 'new'], {}, null],
  ['an own read goes on', ['old own'], {}, 0],
  ['an own read with its header goes on', ['old own header'], {}, 0],
  ['an own read goes on beside one that hangs', ['old', 'new own'], {}, 1],
  ['one hangs beside an own read', ['old own', 'new'], {}, 0],
  ['two own reads go on', ['old own', 'new own'], {}, 1],
  ['an own read has its time', ['old own'], { hasGivenWay: true }, beside(1_000)],
  ['an own read has its time, and its header', ['old own header'], { hasGivenWay: true }, null],
  ['an own read has its time beside one that hangs', ['old', 'new own'], { hasGivenWay: true }, null],
  ['two own reads go on, and one has its time', ['old own', 'new own'], { hasGivenWay: true }, 1],
  ['only a poll waits', ['old own'], { isForScrape: false }, beside(1_000)],
  ['only a poll waits, for two', ['old own', 'new own'], { isForScrape: false }, null],
] as const) {
  test(`findReadMove() where ${what}`, () => {
    const reads = texts.map(read);
    const move = findReadMove(reads, { isForScrape: true, hasGivenWay: false, ...options });
    const yielding = typeof expected === 'number' ? reads[expected] : undefined;
    if (yielding === undefined) assert.deepEqual(move, expected);
    else assert.deepEqual(move, { kind: 'giveWay', atMs: yielding.begunAtMs + OWN_READ_MS, read: yielding });
  });
}
