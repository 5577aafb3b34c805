// Reads what a sender of remote write 1.0 sends, the slow, obvious way, with no code of src/; proven on a
// real Prometheus's requests (test/pods/push-receivers.test.ts).

/** A series as sent, with one sample or more. */
export type WrittenSeries = {
  readonly labels: readonly (readonly [name: string, value: string])[];
  readonly samples: readonly { readonly value: number; readonly bits: string; readonly timestampMs: number }[];
};

export type WrittenMetadata = { readonly type: number; readonly family: string; readonly help: string };

export type WriteRequest = {
  readonly series: readonly WrittenSeries[];
  readonly metadata: readonly WrittenMetadata[];
};

/** Reads a request's body. @throws where it is not one. */
export function readWriteRequest(body: Uint8Array): WriteRequest {
  const series: WrittenSeries[] = [];
  const metadata: WrittenMetadata[] = [];
  for (const { number, bytes } of readMessage(unpackSnappy(Buffer.from(body)))) {
    if (number === 1) series.push(readSeries(bytes));
    else if (number === 3) metadata.push(readMetadata(bytes));
    else throw new Error(`Cannot read a write request: it has a field ${number}`);
  }
  return { series, metadata };
}

function readSeries(message: Buffer): WrittenSeries {
  const fields = [...readMessage(message)];
  return {
    labels: fields
      .filter(({ number }) => number === 1)
      .map(({ bytes }) => {
        const [name, value] = [...readMessage(bytes)];
        return [name?.bytes.toString() ?? '', value?.bytes.toString() ?? ''];
      }),
    samples: fields
      .filter(({ number }) => number === 2)
      .map(({ bytes }) => {
        const sample = [...readMessage(bytes)];
        const double = sample.find(({ number }) => number === 1)?.bytes ?? Buffer.alloc(8);
        return {
          value: double.readDoubleLE(),
          bits: double.readBigUInt64LE().toString(16),
          timestampMs: Number(BigInt.asIntN(64, sample.find(({ number }) => number === 2)?.varint ?? 0n)),
        };
      }),
  };
}

function readMetadata(message: Buffer): WrittenMetadata {
  const fields = [...readMessage(message)];
  const find = (wanted: number) => fields.find(({ number }) => number === wanted);
  return {
    type: Number(find(1)?.varint ?? 0n),
    family: find(2)?.bytes.toString() ?? '',
    help: find(4)?.bytes.toString() ?? '',
  };
}

type Field = { readonly number: number; readonly bytes: Buffer; readonly varint: bigint };

/** protobuf.dev, "Encoding". */
function* readMessage(message: Buffer): Generator<Field> {
  let at = 0;
  const readVarint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(readVarint());
    const [number, wireType] = [tag >> 3, tag & 7];
    let bytes: Buffer = Buffer.alloc(0);
    let varint = 0n;
    if (wireType === 0) varint = readVarint();
    else {
      const length = wireType === 1 ? 8 : Number(readVarint());
      if (wireType !== 1 && wireType !== 2) throw new Error(`Cannot read a message: wire type ${wireType}`);
      if (at + length > message.length) throw new Error('Cannot read a message: it ends within a field');
      bytes = message.subarray(at, at + length);
      at += length;
    }
    yield { number, bytes, varint };
  }
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
