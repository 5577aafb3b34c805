// Snappy's block format without compression: literals only, which every decoder takes (google/snappy,
// format_description.txt). Remote write demands Snappy; compressing in plain JavaScript would cost more than
// it gains. Pure.

/** Bytes of one literal: compressors write no longer ones, so decoders may never have met one. */
const LITERAL_BYTES = 64 * 1024;
/** The tag of a literal whose length follows in two bytes. */
const TAG = 61 << 2;
const HEAD_BYTES = 3;

/** Packs bytes into a block. */
export function packSnappy(bytes: Uint8Array): Uint8Array {
  const length = encodeLength(bytes.length);
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

/** Encodes a length as a varint: seven bits a byte, the lowest first. */
function encodeLength(length: number): Buffer {
  const bytes: number[] = [];
  let rest = length;
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
}
