// A protobuf push: messages of `io.prometheus.client.MetricFamily`, each behind its length, as families of
// text. Pure. (metrics.proto of prometheus/client_model; protobuf.dev, "Encoding".)

import type { Label } from './lexer.ts';
import { type Grouping, openPushedFamilies, type Points, type PushedBody, type PushedType } from './pushed-families.ts';

/** By the numbers of `MetricType`, with the field of its value in `Metric`. */
const TYPES: readonly (readonly [type: PushedType, field: number])[] = [
  ['counter', 3],
  ['gauge', 2],
  ['summary', 4],
  ['untyped', 5],
  ['histogram', 7],
];
const [LABEL, TIMESTAMP] = [1, 6];
/** Fields of `Histogram` that only native ones have: schema, zero bucket, spans, deltas and counts. */
const NATIVE_MIN_FIELD = 5;
const NATIVE_MAX_FIELD = 14;

/** A message that is cut. */
class CutMessage extends Error {}

type Field = readonly [number: number, value: number | Buffer];
type Families = ReturnType<typeof openPushedFamilies>;

/** Reads a body that was pushed to a group. */
export function readPushedMessages(body: Buffer, grouping: Grouping): PushedBody {
  const families = openPushedFamilies(grouping);
  let hasNative = false;
  try {
    for (let at = 0; at < body.length; ) {
      const [sizeBytes, from] = readVarint(body, at);
      at = from + sizeBytes;
      if (at > body.length) throw new CutMessage();
      hasNative = readFamily(body.subarray(from, at), families) || hasNative;
    }
  } catch (error) {
    if (!(error instanceof CutMessage)) throw error;
    families.refuse('a message of the body is cut, or is no MetricFamily');
  }
  return families.end(hasNative);
}

/** Returns whether one of its histograms is native. */
function readFamily(message: Buffer, families: Families): boolean {
  const fields = readFields(message);
  const name = readText(fields, 1);
  const number = Number(readLast(fields, 3) ?? 0);
  const [type, valueField] = TYPES[number] ?? ['untyped', 0];
  if (valueField === 0) families.refuse(`type ${number} of ${name} is not supported`);
  const family = families.add(name, type);
  family.help = readLast(fields, 2) === undefined ? null : readText(fields, 2);
  let hasNative = false;
  for (const [, value] of fields.filter(([each]) => each === 4)) {
    const metric = readFields(readBytes(value));
    if (readLast(metric, TIMESTAMP) !== undefined) families.reject('pushed metrics must not have timestamps');
    const labels = metric.filter(([each]) => each === LABEL).map(([, label]) => readLabel(readBytes(label)));
    const found = readLast(metric, valueField);
    if (found === undefined) families.reject(`${name} has a metric that is not a ${type}`);
    const point = readFields(found === undefined ? EMPTY : readBytes(found));
    if (type === 'histogram' || type === 'summary') {
      readPoint(point, type, families.findPoints(family, labels), (why) => families.reject(`${name} ${why}`));
      hasNative ||=
        type === 'histogram' && point.some(([each]) => each >= NATIVE_MIN_FIELD && each <= NATIVE_MAX_FIELD);
    } else {
      families.addValue(family, labels, Number(readLast(point, 1) ?? 0));
    }
  }
  return hasNative;
}

const EMPTY = Buffer.alloc(0);

function readPoint(fields: readonly Field[], type: PushedType, points: Points, reject: (why: string) => void): void {
  // A series that comes twice.
  if (points.count > 0 || points.rows.size > 0) reject('was collected before with the same label values');
  const isHistogram = type === 'histogram';
  // Histograms of floats have their counts in field 4.
  const count = (each: readonly Field[]) => Number((isHistogram ? readLast(each, 4) : null) ?? readLast(each, 1) ?? 0);
  points.count = count(fields);
  points.sum = Number(readLast(fields, 2) ?? 0);
  for (const [, row] of fields.filter(([each]) => each === 3)) {
    const parts = readFields(readBytes(row));
    const [bound, value] = isHistogram
      ? [readLast(parts, 2), count(parts)]
      : [readLast(parts, 1), Number(readLast(parts, 2) ?? 0)];
    points.rows.set(Number(bound ?? 0), value);
  }
}

function readLabel(message: Buffer): Label {
  const fields = readFields(message);
  return [readText(fields, 1), readText(fields, 2)];
}

/** The last of a field, as protobuf has it. */
function readLast(fields: readonly Field[], number: number): number | Buffer | undefined {
  return fields.findLast(([each]) => each === number)?.[1];
}

function readText(fields: readonly Field[], number: number): string {
  return readBytes(readLast(fields, number) ?? EMPTY).toString();
}

function readBytes(value: number | Buffer): Buffer {
  if (typeof value === 'number') throw new CutMessage();
  return value;
}

/** @throws CutMessage */
function readFields(message: Buffer): readonly Field[] {
  const fields: Field[] = [];
  for (let at = 0; at < message.length; ) {
    const [tag, from] = readVarint(message, at);
    const wire = tag % 8;
    const [value, to] = wire === 0 ? readVarint(message, from) : readSized(message, wire, from);
    fields.push([Math.floor(tag / 8), value]);
    at = to;
  }
  return fields;
}

function readSized(message: Buffer, wire: number, at: number): readonly [value: number | Buffer, end: number] {
  const [sizeBytes, from] = wire === 2 ? readVarint(message, at) : [{ 1: 8, 5: 4 }[wire] ?? Number.NaN, at];
  const to = from + sizeBytes;
  // Not a number: a wire type that does not exist.
  if (!(to <= message.length)) throw new CutMessage();
  return [wire === 1 ? message.readDoubleLE(from) : message.subarray(from, to), to];
}

/** Beyond 2^53 it is rounded. */
function readVarint(bytes: Buffer, from: number): readonly [value: number, end: number] {
  let value = 0;
  for (let at = from, factor = 1; at < bytes.length && at < from + 10; at++, factor *= 0x80) {
    const byte = bytes[at] as number;
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) return [value, at + 1];
  }
  throw new CutMessage();
}
