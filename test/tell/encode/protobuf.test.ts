import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeBytes, encodeDouble, encodeInt64, encodeUtf8, encodeVarint } from '../../../src/tell/encode/protobuf.ts';

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

test('encodeDouble() writes the lowest byte first, and one NaN for all, which is not that of a series that has ended', () => {
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
