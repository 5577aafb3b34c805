// A protobuf push: messages of `io.prometheus.client.MetricFamily`, each behind its length, as families of
// text. Pure. (metrics.proto of prometheus/client_model; protobuf.dev, "Encoding".)

import type { FamilyType } from '../../exposition/families.ts';
import { type Grouping, openPushedFamilies, type PushedBody } from './pushed-families.ts';

/** By the numbers of `MetricType`, with the field of its value in `Metric`. */
const TYPES: readonly (readonly [type: FamilyType, field: number])[] = [
  ['counter', 3],
  ['gauge', 2],
  ['summary', 4],
  ['untyped', 5],
  ['histogram', 7],
];
/** Of `Histogram`: schema, zero bucket, spans, deltas and counts. */
const NATIVE_FIELDS = [5, 6, 7, 8, 9, 10, 11, 12, 13, 14];

/** Its fields by their numbers; what is missing is 0, empty or none. */
type Message = {
  readonly has: (field: number) => boolean;
  readonly number: (field: number) => number;
  readonly text: (field: number) => string;
  readonly messages: (field: number) => readonly Message[];
};

type Families = ReturnType<typeof openPushedFamilies>;

/** Reads a body that was pushed to a group. */
export function readPushedMessages(body: Buffer, grouping: Grouping): PushedBody {
  const families = openPushedFamilies(grouping);
  const onCut = () => families.refuse('a message of the body is cut, too long, or no MetricFamily');
  let hasNative = false;
  for (let at = 0; at < body.length && !families.isRefused(); ) {
    const [sizeBytes, from] = readVarint(body, at);
    at = from + sizeBytes;
    if (at > body.length) onCut();
    else hasNative = readFamily(body.subarray(from, at), families, onCut) || hasNative;
  }
  return families.end(hasNative);
}

/** Returns whether one of its histograms is native. */
function readFamily(bytes: Buffer, families: Families, onCut: () => void): boolean {
  // One metric at a time is held: each is an object of 1 KB, and a body has hundreds of thousands.
  const message = readMessage(bytes, onCut, 4);
  const name = message.text(1);
  const [type, valueField] = TYPES[message.number(3)] ?? ['untyped', 0];
  if (valueField === 0) families.refuse(`type ${message.number(3)} of ${name} is not supported`);
  const family = families.add(name, type);
  if (message.has(2)) family.help = message.text(2);
  let hasNative = false;
  for (const [field, bytesOfMetric] of listFields(bytes, onCut)) {
    if (field !== 4) continue;
    const metric = readMessage(bytesOfMetric, onCut);
    const labels = metric.messages(1).map((label) => [label.text(1), label.text(2)] as const);
    const [value] = metric.messages(valueField);
    if (metric.has(6)) families.reject('pushed metrics must not have timestamps');
    if (value === undefined) families.reject(`${name} has a metric that is not a ${type}`);
    else if (type !== 'histogram' && type !== 'summary') families.addValue(family, labels, value.number(1));
    else {
      const points = families.findPoints(family, labels);
      if (points.count > 0 || points.rows.size > 0) families.reject(`${name} has the same label values twice`);
      // Field 4 has the counts of histograms of floats.
      points.count = value.number(4) || value.number(1);
      points.sum = value.number(2);
      for (const row of value.messages(3)) {
        if (type === 'summary') families.addRow(points, row.number(1), row.number(2));
        else families.addRow(points, row.number(2), row.number(4) || row.number(1));
      }
      hasNative ||= type === 'histogram' && NATIVE_FIELDS.some(value.has);
    }
    if (families.isRefused()) break;
  }
  return hasNative;
}

/** Of a message that is held: of labels or buckets no metric has as many. */
const FIELDS_MAX_COUNT = 10_000;

type Field = readonly [number: number, value: number | Buffer];
/** Reads a message but for one of its fields. */
function readMessage(bytes: Buffer | number, onCut: () => void, leftOut?: number): Message {
  const listed: Field[] = [];
  for (const each of listFields(bytes, onCut)) {
    if (each[0] !== leftOut && listed.push(each) > FIELDS_MAX_COUNT) break;
  }
  if (listed.length > FIELDS_MAX_COUNT) onCut();
  const list = (wanted: number) => listed.flatMap(([field, value]) => (field === wanted ? [value] : []));
  return {
    has: (field) => list(field).length > 0,
    number: (field) => Number(list(field).at(-1) ?? 0),
    text: (field) => (list(field).at(-1) ?? '').toString(),
    messages: (field) => list(field).map((value) => readMessage(value, onCut)),
  };
}

/** `onCut`: it is a number, or a field ends beyond the message; those before it count. */
function* listFields(bytes: Buffer | number, onCut: () => void): Generator<Field> {
  if (typeof bytes === 'number') return onCut();
  for (let at = 0; at < bytes.length; ) {
    const [tag, from] = readVarint(bytes, at);
    const [value, to] = readValue(bytes, tag % 8, from);
    if (to > bytes.length) onCut();
    yield [Math.floor(tag / 8), value];
    at = to;
  }
}

/** Of wire types: a double, and four bytes. */
const SIZES: Readonly<Record<number, number>> = { 1: 8, 5: 4 };

/** Ends beyond all bytes where there is no value. */
function readValue(bytes: Buffer, wire: number, at: number): readonly [value: number | Buffer, end: number] {
  if (wire === 0) return readVarint(bytes, at);
  const [sizeBytes, from] = wire === 2 ? readVarint(bytes, at) : [SIZES[wire] ?? Number.POSITIVE_INFINITY, at];
  const to = from + sizeBytes;
  return [wire === 1 && to <= bytes.length ? bytes.readDoubleLE(from) : bytes.subarray(from, to), to];
}

/** Beyond 2^53 it is rounded. */
function readVarint(bytes: Buffer, from: number): readonly [value: number, end: number] {
  let value = 0;
  for (let at = from, factor = 1; at < bytes.length && at < from + 10; at++, factor *= 0x80) {
    const byte = bytes[at] as number;
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) return [value, at + 1];
  }
  return [0, Number.POSITIVE_INFINITY];
}
