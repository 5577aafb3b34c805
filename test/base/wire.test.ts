import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeBytes, encodeDouble, encodeInt64, encodeUtf8, encodeVarint, packSnappy } from '../../src/base/wire.ts';
import { unpackSnappy } from '../tell/receivers/write-request.ts';

function hex(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('hex');
}

// Of protobuf.dev, "Encoding", and the edges of a byte, of 32 and of 53 bits.
const VARINTS: readonly (readonly [number, string])[] = [
  [0, '00'],
  [1, '01'],
  [127, '7f'],
  [128, '8001'],
  [150, '9601'],
  [2 ** 31, '8080808008'],
  [2 ** 32 + 5, '8580808010'],
  [1_700_000_000_000, '80d095ffbc31'],
  [Number.MAX_SAFE_INTEGER, 'ffffffffffffff0f'],
];

test('encodeVarint() and encodeInt64() write seven bits a byte, the lowest first', () => {
  for (const [value, bytes] of VARINTS) {
    assert.equal(hex(encodeVarint(value)), bytes, String(value));
    assert.equal(hex(encodeInt64(value)), bytes, String(value));
  }
});

test('encodeInt64() writes a negative number in ten bytes', () => {
  assert.equal(hex(encodeInt64(-1)), 'ffffffffffffffffff01');
  assert.equal(hex(encodeInt64(-2)), 'feffffffffffffffff01');
  assert.equal(hex(encodeInt64(-(2 ** 63))), '80808080808080808001');
});

test('encodeDouble() writes the lowest byte first, and one NaN for all, which is not the stale marker', () => {
  assert.equal(hex(encodeDouble(1)), '000000000000f03f');
  assert.equal(hex(encodeDouble(Number.NEGATIVE_INFINITY)), '000000000000f0ff');
  const stale = Buffer.from('020000000000f07f', 'hex').readDoubleLE();
  for (const nan of [Number.NaN, stale]) assert.equal(hex(encodeDouble(nan)), '010000000000f87f');
});

test('encodeBytes() and encodeUtf8() count bytes, not letters', () => {
  assert.equal(hex(encodeBytes(encodeUtf8('testing'))), '0774657374696e67');
  assert.equal(hex(encodeBytes(encodeUtf8('ä€😀'))), '09c3a4e282acf09f9880');
  assert.equal(hex(encodeBytes('x'.repeat(127))).slice(0, 4), '7f78');
  assert.equal(hex(encodeBytes('x'.repeat(128))).slice(0, 6), '800178');
  assert.equal(hex(encodeBytes('x'.repeat(200))).slice(0, 4), 'c801');
});

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
