import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openByteBuffer } from '../../src/base/byte-buffer.ts';

test('openByteBuffer() puts bytes and texts together, in any encoding', () => {
  for (const encoding of ['utf8', 'latin1'] as const) {
    const buffer = openByteBuffer();
    buffer.append(Buffer.from('a'));
    buffer.write('é', encoding);
    const expected = Buffer.from('aé', encoding);
    assert.equal(buffer.sizeBytes, expected.length);
    assert.deepEqual(buffer.take(), expected);
    assert.equal(buffer.sizeBytes, 0);
  }
});

test('openByteBuffer() takes any length, and what was taken stays as it is', () => {
  const buffer = openByteBuffer();
  buffer.write('x');
  buffer.write('ä'.repeat(500_000));
  buffer.write('y');
  const taken = buffer.take();
  buffer.write('z'.repeat(10));
  assert.equal(taken.toString(), `x${'ä'.repeat(500_000)}y`);
  assert.equal(buffer.take().toString(), 'z'.repeat(10));
});

test('openByteBuffer() keeps no buffer beyond its limit, and what was taken stays as it is', () => {
  const buffer = openByteBuffer(10);
  for (const text of ['a'.repeat(100), 'b', 'c'.repeat(9), '']) {
    for (const letter of text) buffer.write(letter);
    assert.equal(buffer.take().toString(), text);
  }
});
