// Reads what a sender of remote write 1.0 sends; test/pods/push-receivers.test.ts has what a real Prometheus
// reads.

import { listFields } from '../../../src/exposition/protobuf-messages.ts';

/** All values of a field of a message, in order. */
function pick(message: unknown, wanted: number): readonly unknown[] {
  return [...listFields(message as Buffer)].flatMap(([number, value]) => (number === wanted ? [value] : []));
}

const text = (message: unknown, wanted: number) => String(pick(message, wanted)[0] ?? '');
const count = (message: unknown, wanted: number) => pick(message, wanted)[0] ?? 0;

/** Reads a request's body. @throws where it is not one. */
export function readWriteRequest(body: Uint8Array) {
  const request = unpackSnappy(Buffer.from(body));
  return {
    series: pick(request, 1).map((each) => ({
      labels: pick(each, 1).map((label) => [text(label, 1), text(label, 2)] as const),
      samples: pick(each, 2).map((sample) => ({ value: count(sample, 1), timestampMs: count(sample, 2) })),
    })),
    metadata: pick(request, 3).map((each) => ({ type: count(each, 1), family: text(each, 2), help: text(each, 4) })),
  };
}

/** google/snappy, format_description.txt. */
export function unpackSnappy(block: Buffer): Buffer {
  let at = 0;
  const next = () => block.readUInt8(at++);
  let length = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = next();
    length += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) break;
  }
  const unpacked = Buffer.alloc(length);
  let to = 0;
  const readLittle = (byteCount: number) => {
    const value = block.readUIntLE(at, byteCount);
    at += byteCount;
    return value;
  };
  while (at < block.length) {
    const tag = next();
    const upper = tag >> 2;
    if ((tag & 3) === 0) {
      const count = (upper < 60 ? upper : readLittle(upper - 59)) + 1;
      block.copy(unpacked, to, at, at + count);
      at += count;
      to += count;
      continue;
    }
    const [count, offset] =
      (tag & 3) === 1
        ? [((tag >> 2) & 7) + 4, (tag >> 5) * 256 + next()]
        : [upper + 1, readLittle((tag & 3) === 2 ? 2 : 4)];
    for (let copied = 0; copied < count; copied++, to++) unpacked[to] = unpacked.readUInt8(to - offset);
  }
  if (to !== length) throw new Error(`Cannot unpack a block: ${to} bytes instead of ${length}`);
  return unpacked;
}
