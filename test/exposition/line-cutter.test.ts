import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openLineCutter } from '../../src/exposition/line-cutter.ts';

/** The blocks of the pieces, and what is left. */
function cut(pieces: readonly Uint8Array[]): { blocks: string[]; pending: string } {
  const blocks: string[] = [];
  const cutter = openLineCutter((lines) => blocks.push(lines.toString()));
  for (const piece of pieces) cutter.write(piece);
  return { blocks, pending: cutter.takePending().toString() };
}

test('openLineCutter() gives whole lines, cut anywhere', () => {
  const body = Buffer.from('a\n\r\nlonger line\n\nlast');
  for (let at = 0; at <= body.length; at++) {
    const { blocks, pending } = cut([body.subarray(0, at), body.subarray(at)]);
    assert.equal(blocks.join(''), 'a\n\r\nlonger line\n\n', `cut at ${at}`);
    assert.ok(blocks.every((block) => block.endsWith('\n')));
    assert.equal(pending, 'last');
  }
});

test('openLineCutter() holds a long line that comes byte by byte, and forgets what was taken', () => {
  const blocks: string[] = [];
  const cutter = openLineCutter((lines) => blocks.push(lines.toString()));
  for (let count = 0; count < 200_000; count++) cutter.write(Buffer.from(count % 2 === 0 ? 'x' : 'y'));
  assert.equal(cutter.pendingBytes, 200_000);
  assert.equal(cutter.takePending().toString(), 'xy'.repeat(100_000));
  assert.equal(cutter.pendingBytes, 0);
  cutter.write(Buffer.from('a'));
  cutter.write(Buffer.from('b\nc'));
  assert.deepEqual(blocks, ['ab\n']);
  assert.equal(cutter.takePending().toString(), 'c');
});

test('openLineCutter() cuts a large piece into blocks of at most 64 KiB and a line', () => {
  const line = `${'x'.repeat(99)}\n`;
  const { blocks, pending } = cut([Buffer.from(line.repeat(10_000))]);
  assert.equal(blocks.join(''), line.repeat(10_000));
  assert.ok(blocks.every((block) => block.length <= 65_636));
  assert.equal(pending, '');
});

test('openLineCutter() takes a piece that lies somewhere in its memory', () => {
  assert.deepEqual(cut([new TextEncoder().encode('xxa\nbyy').subarray(2, 5)]), { blocks: ['a\n'], pending: 'b' });
});
