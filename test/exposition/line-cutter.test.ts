import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openLineCutter } from '../../src/exposition/line-cutter.ts';

type Cut = { readonly blocks: readonly string[]; readonly last: string; readonly long: readonly string[] };

/** The blocks of the pieces, what the end brought, and the starts of long lines. */
function cut(pieces: Iterable<Uint8Array>, lineMaxBytes?: number): Cut {
  const blocks: string[] = [];
  const long: string[] = [];
  const cutter = openLineCutter({
    onLines: (lines) => 0 * blocks.push(lines.toString()),
    ...(lineMaxBytes === undefined ? {} : { lineMaxBytes }),
    onLongLine: (start) => long.push(start.toString()),
  });
  for (const piece of pieces) cutter.write(piece);
  const count = blocks.length;
  cutter.end();
  return { blocks: blocks.slice(0, count), last: blocks.slice(count).join('|'), long };
}

test('openLineCutter() gives whole lines, cut anywhere', () => {
  const body = Buffer.from('a\n\r\nlonger line\n\nlast');
  for (let at = 0; at <= body.length; at++) {
    const { blocks, last } = cut([body.subarray(0, at), body.subarray(at)]);
    assert.equal(blocks.join(''), 'a\n\r\nlonger line\n\n', `cut at ${at}`);
    assert.ok(blocks.every((block) => block.endsWith('\n')));
    assert.equal(last, 'last');
  }
});

test('openLineCutter() holds a long line that comes byte by byte, and what follows it', () => {
  const text = `${'xy'.repeat(100_000)}\nab\nc`;
  const bytes = Array.from(Buffer.from(text), (byte) => Uint8Array.of(byte));
  assert.deepEqual(cut(bytes), { blocks: [`${'xy'.repeat(100_000)}\n`, 'ab\n'], last: 'c', long: [] });
});

test('openLineCutter() gives the start of a line beyond the limit, cut anywhere', () => {
  const limit = 70_000;
  for (const [length, isLong] of [
    [limit, false],
    [limit + 1, true],
    [3 * limit, true],
  ] as const) {
    const line = 'x'.repeat(length);
    const body = Buffer.from(`a\n${line}\n${line}\nb\n${line}`);
    for (const size of [1, 999, 65_536, body.length]) {
      const pieces = Array.from({ length: Math.ceil(body.length / size) }, (_, at) =>
        body.subarray(at * size, (at + 1) * size),
      );
      const { blocks, last, long } = cut(pieces, limit);
      const lines = isLong ? [] : [line, line];
      assert.equal(blocks.join(''), ['a', ...lines, 'b', ''].join('\n'), `${length} in pieces of ${size}`);
      assert.equal(last, isLong ? '' : line);
      assert.equal(long.length, isLong ? 3 : 0);
      assert.ok(long.every((start) => start.length > limit && `${line}\n`.startsWith(start)));
    }
  }
});

test('openLineCutter() cuts a large piece into blocks of at most 64 KiB and a line', () => {
  const line = `${'x'.repeat(99)}\n`;
  const { blocks, last } = cut([Buffer.from(line.repeat(10_000))]);
  assert.equal(blocks.join(''), line.repeat(10_000));
  assert.ok(blocks.every((block) => block.length <= 65_636));
  assert.equal(last, '');
});

test('openLineCutter() takes a piece that lies somewhere in its memory', () => {
  assert.deepEqual(cut([new TextEncoder().encode('xxa\nbyy').subarray(2, 5)]), {
    blocks: ['a\n'],
    last: 'b',
    long: [],
  });
});
