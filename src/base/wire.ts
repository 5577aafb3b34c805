// The encodings of remote write and of protobuf pages. Protocol buffers (protobuf.dev, "Encoding") as strings
// of one letter per byte: V8 joins and copies those natively; a loop over bytes costs 100 ns a step. Pure.

/** One letter per byte: U+0000 to U+00FF. */
export type ByteText = string;

const LETTERS: readonly string[] = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte));
const BEYOND_ASCII = /[^\0-\x7f]/;
const DOUBLE = Buffer.alloc(8);
/** Prometheus's `NormalNaN` (model/value); another NaN, 0x7ff0000000000002, marks a series as stale. */
const NAN: ByteText = '\x01\0\0\0\0\0\xf8\x7f';

/** An integer from 0 to 2^53. */
export function encodeVarint(value: number): ByteText {
  let text = '';
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) text += LETTERS[(rest % 0x80) | 0x80];
  return text + LETTERS[rest];
}

/** An integer of either sign, as int64: ten bytes if negative. */
export function encodeInt64(value: number): ByteText {
  if (value >= 0) return encodeVarint(value);
  let text = '';
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest >= 0x80n; rest >>= 7n) text += LETTERS[Number(rest & 0x7fn) | 0x80];
  return text + LETTERS[Number(rest)];
}

export function encodeDouble(value: number): ByteText {
  if (Number.isNaN(value)) return NAN;
  DOUBLE.writeDoubleLE(value);
  return DOUBLE.toString('latin1');
}

/** The bytes of a text. */
export function encodeUtf8(text: string): ByteText {
  return BEYOND_ASCII.test(text) ? Buffer.from(text).toString('latin1') : text;
}

/** A length-delimited value: string, bytes or nested message, without the tag of the field. */
export function encodeBytes(bytes: ByteText): ByteText {
  return (bytes.length < 0x80 ? LETTERS[bytes.length] : encodeVarint(bytes.length)) + bytes;
}

/** Bytes of one literal: compressors write no longer ones, so decoders may never have met one. */
const LITERAL_BYTES = 64 * 1024;
/** The tag of a literal whose length follows in two bytes. */
const TAG = 61 << 2;
const HEAD_BYTES = 3;

/**
 * Packs bytes into a block of Snappy without compression: literals only, which every decoder takes
 * (google/snappy, format_description.txt). Compressing in plain JavaScript would cost more than it gains.
 */
export function packSnappy(bytes: Uint8Array): Uint8Array {
  const length = Buffer.from(encodeVarint(bytes.length), 'latin1');
  const literalCount = Math.ceil(bytes.length / LITERAL_BYTES);
  const block = Buffer.alloc(length.length + literalCount * HEAD_BYTES + bytes.length);
  let at = length.copy(block);
  for (let from = 0; from < bytes.length; from += LITERAL_BYTES) {
    const literal = bytes.subarray(from, from + LITERAL_BYTES);
    at = block.writeUInt8(TAG, at);
    at = block.writeUInt16LE(literal.length - 1, at);
    block.set(literal, at);
    at += literal.length;
  }
  return block;
}
