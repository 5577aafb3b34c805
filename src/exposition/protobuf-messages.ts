// The protobuf format: messages of `io.prometheus.client.MetricFamily`, each behind its length. Checks, lists
// and removes whole messages by the name they begin with; looks no deeper than their own fields. Pure; holds
// the start of one message. (metrics.proto of prometheus/client_model; protobuf.dev, "Encoding".)

import { openByteBuffer } from '../base/byte-buffer.ts';
import type { BodyFilter, BodyReader } from './line-cutter.ts';

/** Longer bodies are not read to their end (BODY_MAX_BYTES). */
const MESSAGE_MAX_BYTES = 64 * 1024 * 1024;
/** Of a metric's name; the longest label values that were seen are shorter. */
const NAME_MAX_BYTES = 64 * 1024;
/** A varint of 64 bits. */
const VARINT_MAX_BYTES = 10;
/** The first field, `name`, length-delimited: every encoder writes fields by their numbers. */
const NAME_TAG = (1 << 3) | 2;
/** The field `metric`, length-delimited. */
const METRIC_TAG = (4 << 3) | 2;
const [VARINT, DELIMITED] = [0, 2];
/** By wire type, what follows the tag and a varint. */
const FIXED_BYTES: Readonly<Record<number, number>> = { [VARINT]: 0, 1: 8, 5: 4 };

const CUT = 'the last message is cut';

/** Where a body is read. */
type Cursor = { chunk: Uint8Array; at: number; beforeBytes: number };
/** Yields where it needs the next chunk: why the body is broken if none comes; null: it is not. */
type Steps<Read> = Generator<string | null, Read>;

function* readVarint(cursor: Cursor): Steps<number> {
  let value = 0;
  for (let count = 0; count < VARINT_MAX_BYTES; count++) {
    while (cursor.at === cursor.chunk.length) yield CUT;
    const byte = cursor.chunk[cursor.at++] as number;
    value += (byte & 0x7f) * 0x80 ** count;
    if (byte < 0x80) return value;
  }
  return yield* stop('a number of more than 64 bits');
}

/** Reads a field; `take` gets it piece by piece. */
function* passField(cursor: Cursor, sizeBytes: number, take?: (piece: Uint8Array) => void): Steps<void> {
  for (let leftBytes = sizeBytes; leftBytes > 0; ) {
    while (cursor.at === cursor.chunk.length) yield CUT;
    const end = Math.min(cursor.at + leftBytes, cursor.chunk.length);
    take?.(cursor.chunk.subarray(cursor.at, end));
    leftBytes -= end - cursor.at;
    cursor.at = end;
  }
}

function* stop(why: string): Steps<never> {
  for (;;) yield why;
}

/** Walks the messages of a body, until they are broken: `write` is false then, and `end` says why. */
function openWalk(readMessage: (cursor: Cursor) => Steps<void>): BodyReader<boolean, string | null> {
  const cursor: Cursor = { chunk: new Uint8Array(0), at: 0, beforeBytes: 0 };
  let why: string | null = null;
  function* walk(): Steps<never> {
    for (;;) {
      while (cursor.at === cursor.chunk.length) yield null;
      yield* readMessage(cursor);
    }
  }
  const steps = walk();
  return {
    write(chunk) {
      cursor.beforeBytes += cursor.chunk.length;
      cursor.chunk = chunk;
      cursor.at = 0;
      why = steps.next().value;
      return why === null || why === CUT;
    },
    end: () => why,
  };
}

/** Gets the messages of a body; `at`: where in the chunk. */
type MessageSink = {
  /** The name has been read. */
  readonly onName?: (name: string) => void;
  /** The message ends before `at`; `family`: its name if it has a metric. */
  readonly onEnd: (at: number, family: string | null) => void;
};

function openMessageWalk({ onName, onEnd }: MessageSink): BodyReader<boolean, string | null> {
  const held = openByteBuffer(NAME_MAX_BYTES);
  return openWalk(function* (cursor) {
    const sizeBytes = yield* readVarint(cursor);
    if (sizeBytes === 0 || sizeBytes > MESSAGE_MAX_BYTES) yield* stop(`a message of ${sizeBytes} bytes`);
    const endBytes = cursor.beforeBytes + cursor.at + sizeBytes;
    const findLeft = () => endBytes - cursor.beforeBytes - cursor.at;
    let name = '';
    let hasMetric = false;
    while (findLeft() > 0) {
      const tag = yield* readVarint(cursor);
      if (name === '' && tag !== NAME_TAG) yield* stop('a message that does not begin with its name');
      const fieldBytes = yield* readFieldSize(cursor, tag % 8);
      if (fieldBytes > findLeft()) yield* stop('a field beyond the end of its message');
      hasMetric ||= tag === METRIC_TAG;
      if (name !== '') {
        yield* passField(cursor, fieldBytes);
        continue;
      }
      if (fieldBytes === 0 || fieldBytes > NAME_MAX_BYTES) yield* stop(`a name of ${fieldBytes} bytes`);
      yield* passField(cursor, fieldBytes, held.append);
      name = held.take().toString();
      onName?.(name);
    }
    onEnd(cursor.at, hasMetric ? name : null);
  });
}

/** How many bytes of a field of this wire type follow. */
function* readFieldSize(cursor: Cursor, wire: number): Steps<number> {
  if (wire === DELIMITED) return yield* readVarint(cursor);
  if (wire === VARINT) yield* readVarint(cursor);
  return FIXED_BYTES[wire] ?? (yield* stop(`a field of the unknown type ${wire}`));
}

/** Finds out whether a body ends with a message, by their lengths alone. */
export function openMessageEnds(): BodyReader<unknown, boolean> {
  const { write, end } = openWalk(function* (cursor) {
    yield* passField(cursor, yield* readVarint(cursor));
  });
  return { write, end: () => end() === null };
}

/** Opens the check of one body: every message is whole, and one has a metric; else its end says why. */
export function openMessageCheck(): BodyReader<unknown, string | null> {
  let hasAny = false;
  const { write, end } = openMessageWalk({
    onEnd(_, family) {
      hasAny ||= family !== null;
    },
  });
  return { write, end: () => end() ?? (hasAny ? null : 'no sample') };
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
  /** Of the message that has begun, before its name was read. */
  const held = openByteBuffer(NAME_MAX_BYTES);
  let kept: Uint8Array[] = [];
  /** Whether the message that has begun is kept; null: its name is not known yet. */
  let isWanted: boolean | null = null;
  let chunk: Uint8Array = new Uint8Array(0);
  /** Where the rest of the message begins in the chunk. */
  let from = 0;

  function take(to: number): void {
    if (isWanted === null) held.append(chunk.subarray(from, to));
    else if (isWanted && to > from) kept.push(chunk.subarray(from, to));
    from = to;
  }
  const walk = openMessageWalk({
    onName(name) {
      isWanted = isKept(name);
      const start = held.take();
      if (isWanted && start.length > 0) kept.push(start);
    },
    onEnd(at) {
      take(at);
      isWanted = null;
    },
  });
  return {
    write(piece) {
      chunk = piece;
      from = 0;
      if (walk.write(piece)) take(piece.length);
      const pieces = kept;
      kept = [];
      return pieces;
    },
    end: () => [],
  };
}
