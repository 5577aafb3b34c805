// The protobuf format: messages of `io.prometheus.client.MetricFamily`, each behind its length. Reads fields,
// and checks, lists and removes whole messages by the name they begin with; of a metric it checks only that
// it is whole. Pure; holds one field at most. (metrics.proto of prometheus/client_model; protobuf.dev,
// "Encoding".)

import { decodeUtf8 } from '../base/text.ts';
import type { BodyFilter, BodyReader } from './line-cutter.ts';

/** Longer bodies are not read to their end (BODY_MAX_BYTES). */
const MESSAGE_MAX_BYTES = 64 * 1024 * 1024;
/** As the longest line of text: a field is held until it is whole. */
const FIELD_MAX_BYTES = 1024 * 1024;
const VARINT_MAX_BYTES = 10;
const [VARINT, DOUBLE, DELIMITED, FOUR_BYTES] = [0, 1, 2, 5];
/** Wire types of the fields of `MetricFamily`, from 1 on: name, help, type, metric, unit. */
const FAMILY_WIRES: readonly (number | undefined)[] = [undefined, DELIMITED, DELIMITED, VARINT, DELIMITED, DELIMITED];
const [NAME, HELP, TYPE, METRIC] = [1, 2, 3, 4];
/** Fields of `Metric`, and of each of these. */
const [LABEL, GAUGE, COUNTER, UNTYPED, VALUE] = [1, 2, 3, 5, 1];
/** Of `MetricType`. */
const TYPES_COUNT = 6;
const NOTHING = Buffer.alloc(0);

/** Bytes that are no message. */
export class BrokenMessage extends Error {}

/** Where bytes are read, and the last field that was: its number, wire type, and where its content begins. */
type Cursor = { readonly bytes: Buffer; at: number; field: number; wire: number; from: number; varint: number };

function openCursor(bytes: Buffer): Cursor {
  return { bytes, at: 0, field: 0, wire: 0, from: 0, varint: 0 };
}

/** Reads a number; beyond 2^53 it is rounded. False: the bytes end within it. @throws BrokenMessage */
function readVarint(cursor: Cursor): boolean {
  cursor.varint = 0;
  for (let count = 0, factor = 1; count < VARINT_MAX_BYTES; count++, factor *= 0x80) {
    const byte = cursor.bytes[cursor.at];
    if (byte === undefined) return false;
    cursor.at++;
    cursor.varint += (byte & 0x7f) * factor;
    if (byte < 0x80) return true;
  }
  throw new BrokenMessage('a number of more than 64 bits');
}

/** Reads a field, and passes over its content. False: the bytes end within it. @throws BrokenMessage */
function readField(cursor: Cursor): boolean {
  if (!readVarint(cursor)) return false;
  cursor.wire = cursor.varint % 8;
  cursor.field = Math.floor(cursor.varint / 8);
  cursor.from = cursor.at;
  if (cursor.wire === VARINT) return readVarint(cursor);
  if (cursor.wire === DELIMITED) {
    if (!readVarint(cursor)) return false;
    cursor.from = cursor.at;
    cursor.at += cursor.varint;
  } else if (cursor.wire === DOUBLE) cursor.at += 8;
  else if (cursor.wire === FOUR_BYTES) cursor.at += 4;
  else throw new BrokenMessage(`a field of the unknown type ${cursor.wire}`);
  return cursor.at <= cursor.bytes.length;
}

export type Field = readonly [number: number, value: number | Buffer];

/**
 * The fields of a whole message: numbers, or the bytes of texts, of other messages, and of small numbers.
 * @throws BrokenMessage
 */
export function* listFields(bytes: Buffer): Generator<Field> {
  const cursor = openCursor(bytes);
  while (cursor.at < bytes.length) {
    if (!readField(cursor)) throw new BrokenMessage(CUT);
    const { field, wire, from, at, varint } = cursor;
    if (wire === VARINT) yield [field, varint];
    else yield [field, wire === DOUBLE ? bytes.readDoubleLE(from) : bytes.subarray(from, at)];
  }
}

/** The messages of a whole body. @throws BrokenMessage */
export function* listMessages(body: Buffer): Generator<Buffer> {
  const cursor = openCursor(body);
  while (cursor.at < body.length) {
    const isWhole = readVarint(cursor);
    const from = cursor.at;
    cursor.at += cursor.varint;
    if (!isWhole || cursor.at > body.length) throw new BrokenMessage(CUT);
    yield body.subarray(from, cursor.at);
  }
}

const CUT = 'the last message is cut';

/** Gets each metric of this family, a message that changes afterwards. */
export type WantedMetric = { readonly family: string; readonly take: (metric: Buffer) => void };

/** The number of a gauge, counter or untyped metric; null: it has none, or labels. @throws BrokenMessage */
export function readNumber(metric: Buffer): number | null {
  const fields = [...listFields(metric)];
  if (fields.some(([field]) => field === LABEL)) return null;
  const values = fields.flatMap(([field, value]) =>
    [GAUGE, COUNTER, UNTYPED].includes(field) && typeof value !== 'number' ? [...listFields(value)] : [],
  );
  const number = values.find(([field]) => field === VALUE)?.[1];
  return typeof number === 'number' ? number : null;
}

/** Gets the messages of a body; `at`: where in the bytes that came last. */
type MessageSink = {
  /** The message begins, with its length, at `at`. */
  readonly onName?: (name: string, at: number) => void;
  readonly wanted?: WantedMetric;
  /** It ends before `at`; `family`: its name if it has a metric. */
  readonly onEnd: (at: number, family: string | null) => void;
  /** Bytes were read up to `at`; what follows comes again. */
  readonly onRead?: (at: number) => void;
};

/**
 * Walks the messages of a body, until one is broken: `write` returns its bytes, with what was held; `end`
 * says why.
 */
function openMessageWalk({ onName, wanted, onEnd, onRead }: MessageSink): BodyReader<Buffer, string | null> {
  /** A field that is not whole; if it is the first of a message, behind its length. */
  let held = NOTHING;
  let leftBytes = 0;
  let family = { name: '', hasMetric: false, fault: null as string | null };
  let why: string | null = null;

  /** False: the bytes end within it. */
  function readWithin(cursor: Cursor, messageBytes: number): boolean {
    const start = cursor.at;
    const isWhole = readField(cursor);
    const sizeBytes = cursor.at - start;
    if (sizeBytes > messageBytes) throw new BrokenMessage('a field beyond the end of its message');
    if (sizeBytes > FIELD_MAX_BYTES) throw new BrokenMessage(`a field of more than ${FIELD_MAX_BYTES} bytes`);
    return isWhole;
  }
  function beginFamily({ bytes, from, at, field, wire }: Cursor, start: number): void {
    if (field !== NAME || wire !== DELIMITED) throw new BrokenMessage('a message that does not begin with its name');
    const name = decodeUtf8(bytes.subarray(from, at)) ?? '';
    family = { name, hasMetric: false, fault: name === '' ? 'a metric without a name in UTF-8' : null };
    onName?.(name, start);
  }
  function goOn({ bytes, from, at, field, wire, varint }: Cursor): void {
    if (field === 0 || wire !== (FAMILY_WIRES[field] ?? wire))
      throw new BrokenMessage(`a field ${field} of the type ${wire}`);
    if (field === METRIC) {
      family.hasMetric = true;
      if (family.name === wanted?.family) wanted.take(bytes.subarray(from, at));
    } else if (field === TYPE && varint >= TYPES_COUNT) family.fault ??= `the metric type ${varint}`;
    else if (field === HELP && decodeUtf8(bytes.subarray(from, at)) === null)
      family.fault ??= 'a help that is not UTF-8';
  }
  /** Returns where the field begins that is not whole. */
  function walk(bytes: Buffer): number {
    const cursor = openCursor(bytes);
    for (;;) {
      const start = cursor.at;
      const isFirst = leftBytes === 0;
      if (start === bytes.length || (isFirst && !readVarint(cursor))) return start;
      const messageBytes = isFirst ? cursor.varint : leftBytes;
      if (messageBytes > MESSAGE_MAX_BYTES) throw new BrokenMessage(`a message of ${messageBytes} bytes`);
      if (messageBytes === 0) continue;
      const from = cursor.at;
      if (!readWithin(cursor, messageBytes)) return start;
      if (isFirst) beginFamily(cursor, start);
      else goOn(cursor);
      leftBytes = messageBytes - (cursor.at - from);
      if (leftBytes > 0) continue;
      if (family.hasMetric && family.fault !== null) throw new BrokenMessage(family.fault);
      onEnd(cursor.at, family.hasMetric ? family.name : null);
    }
  }

  return {
    write(chunk) {
      const bytes = join(held, chunk);
      held = NOTHING;
      if (why !== null) return bytes;
      try {
        const at = walk(bytes);
        onRead?.(at);
        held = Buffer.from(bytes.subarray(at));
      } catch (error) {
        if (!(error instanceof BrokenMessage)) throw error;
        why = error.message;
      }
      return bytes;
    },
    end: () => why ?? (held.length > 0 || leftBytes > 0 ? CUT : null),
  };
}

function join(held: Buffer, chunk: Uint8Array): Buffer {
  if (held.length > 0) return Buffer.concat([held, chunk]);
  return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
}

/** Finds out whether a body ends with a message, by their lengths alone. */
export function openMessageEnds(): BodyReader<unknown, boolean> {
  let leftBytes = 0;
  /** Of a length that has begun; with the factor 1 none has. */
  let [length, factor] = [0, 1];
  return {
    write(chunk) {
      for (let at = 0; at < chunk.length; ) {
        const passedBytes = Math.min(leftBytes, chunk.length - at);
        at += passedBytes;
        leftBytes -= passedBytes;
        const byte = chunk[at++];
        if (byte === undefined) return;
        length += (byte & 0x7f) * factor;
        factor *= 0x80;
        if (byte < 0x80) [leftBytes, length, factor] = [length, 0, 1];
      }
    },
    end: () => factor === 1 && leftBytes === 0,
  };
}

/**
 * Opens the check of one body: every message is whole, and names and helps are texts; else its end says why.
 */
export function openMessageCheck(wanted?: WantedMetric): BodyReader<unknown, string | null> {
  return openMessageWalk({ ...(wanted && { wanted }), onEnd() {} });
}

/** Opens the scan of one body; its end returns the names of the messages that have a metric. */
export function openMessageScan(): BodyReader<unknown, ReadonlySet<string>> {
  const families = new Set<string>();
  const { write } = openMessageWalk({
    onEnd(_, family) {
      if (family !== null) families.add(family);
    },
  });
  return { write, end: () => families };
}

/** Opens the filter of one body: returns the messages that are kept; nothing after one that is broken. */
export function openMessageFilter(isKept: (family: string) => boolean): BodyFilter {
  let isWanted = false;
  /** Where the message that has begun, or what came last of it, begins. */
  let from = 0;
  let kept: (readonly [from: number, to: number])[] = [];

  function take(to: number): void {
    if (isWanted && to > from) kept.push([from, to]);
    from = to;
  }
  const walk = openMessageWalk({
    onName(name, at) {
      isWanted = isKept(name);
      from = at;
    },
    onEnd(at) {
      take(at);
      isWanted = false;
    },
    onRead: take,
  });
  return {
    write(chunk) {
      from = 0;
      kept = [];
      const bytes = walk.write(chunk);
      return kept.map(([start, end]) => bytes.subarray(start, end));
    },
    end: () => [],
  };
}
