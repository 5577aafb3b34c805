import assert from 'node:assert/strict';
import { test } from 'node:test';
import { packSnappy } from '../../../src/tell/encode/snappy.ts';
import { unpackSnappy } from './write-request.ts';

test('packSnappy() writes what unpacks to the same bytes, whatever their number', () => {
  for (const length of [0, 1, 60, 127, 128, 65_535, 65_536, 65_537, 200_000, 2 ** 21]) {
    const bytes = Buffer.from(Array.from({ length }, (_, index) => (index * 7) % 251));
    assert.deepEqual([...packSnappy(Buffer.alloc(127)).subarray(0, 4)], [127, 0xf4, 126, 0]);
    const block = Buffer.from(packSnappy(bytes));
    assert.ok(unpackSnappy(block).equals(bytes), `${length} bytes`);
  }
});

test('packSnappy() writes literals of at most 64 KiB', () => {
  assert.deepEqual(Buffer.from(packSnappy(Buffer.from('abc'))).toString('hex'), '03f40200616263');
  const block = Buffer.from(packSnappy(Buffer.alloc(65_537)));
  assert.equal(block.subarray(0, 6).toString('hex'), '818004f4ffff');
  assert.equal(block.subarray(-4).toString('hex'), 'f4000000');
});
