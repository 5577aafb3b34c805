import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openByteWriter } from '../../../src/tell/encode/byte-writer.ts';

test('openByteWriter() puts texts together, in the encoding that it was opened with', () => {
  for (const encoding of ['utf8', 'latin1'] as const) {
    const writer = openByteWriter(encoding);
    writer.write('a');
    writer.write('é');
    const expected = Buffer.from('aé', encoding);
    assert.equal(writer.sizeBytes, expected.length);
    assert.deepEqual(writer.take(), expected);
    assert.equal(writer.sizeBytes, 0);
  }
});

test('openByteWriter() takes any length, and what was taken stays as it is', () => {
  const writer = openByteWriter('utf8');
  writer.write('x');
  writer.write('ä'.repeat(500_000));
  writer.write('y');
  const taken = writer.take();
  writer.write('z'.repeat(10));
  assert.equal(taken.toString(), `x${'ä'.repeat(500_000)}y`);
  assert.equal(writer.take().toString(), 'z'.repeat(10));
});
