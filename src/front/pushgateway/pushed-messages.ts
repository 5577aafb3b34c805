// A protobuf push: messages of `io.prometheus.client.MetricFamily`, each behind its length, as families of
// text. Pure. (metrics.proto of prometheus/client_model.)

import type { FamilyType } from '../../exposition/families.ts';
import { BrokenMessage, type Field, listFields, listMessages } from '../../exposition/protobuf-messages.ts';
import { type Grouping, openPushedFamilies, type PushedBody } from './pushed-families.ts';

/** By the numbers of `MetricType`, with the field of its value in `Metric`. */
const TYPES: readonly (readonly [type: FamilyType, field: number])[] = [
  ['counter', 3],
  ['gauge', 2],
  ['summary', 4],
  ['untyped', 5],
  ['histogram', 7],
  // A gauge histogram, which text has not.
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
  let hasNative = false;
  try {
    for (const message of listMessages(body)) {
      hasNative = readFamily(message, families) || hasNative;
      if (families.isRefused()) break;
    }
  } catch (error) {
    if (!(error instanceof BrokenMessage)) throw error;
    families.refuse('a message of the body is cut, too long, or no MetricFamily');
  }
  return families.end(hasNative);
}

/** Returns whether one of its histograms is native. @throws BrokenMessage */
function readFamily(bytes: Buffer, families: Families): boolean {
  // One metric at a time is held: each is an object of 1 KB, and a body has hundreds of thousands.
  const message = readMessage(bytes, 4);
  const name = message.text(1);
  const [type, valueField] = TYPES[message.number(3)] ?? [];
  // Pushgateway takes it, and its page breaks off there.
  if (name === '' || type === undefined || valueField === undefined) return false;
  const family = families.add(name, type);
  if (message.has(2)) family.help = message.text(2);
  let hasNative = false;
  for (const [field, bytesOfMetric] of listFields(bytes)) {
    if (field !== 4) continue;
    const metric = readMessage(bytesOfMetric);
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

/** Reads a message but for one of its fields. @throws BrokenMessage */
function readMessage(bytes: Buffer | number, leftOut?: number): Message {
  if (typeof bytes === 'number') throw new BrokenMessage();
  const listed: Field[] = [];
  for (const each of listFields(bytes)) {
    if (each[0] !== leftOut && listed.push(each) > FIELDS_MAX_COUNT) throw new BrokenMessage();
  }
  const list = (wanted: number) => listed.flatMap(([field, value]) => (field === wanted ? [value] : []));
  return {
    has: (field) => list(field).length > 0,
    number: (field) => Number(list(field).at(-1) ?? 0),
    text: (field) => (list(field).at(-1) ?? '').toString(),
    messages: (field) => list(field).map((value) => readMessage(value)),
  };
}
