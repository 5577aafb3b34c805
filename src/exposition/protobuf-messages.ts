// The protobuf format: messages of `io.prometheus.client.MetricFamily`, each behind its length. Checks, lists
// and removes whole messages by the name they begin with; looks no deeper than their own fields. Pure; holds
// the start of one message. (metrics.proto of prometheus/client_model; protobuf.dev, "Encoding".)

import { openByteBuffer } from '../base/byte-buffer.ts';
import type { BodyFilter, BodyReader } from './line-cutter.ts';

/** A longer body is not read to its end anyway (BODY_MAX_BYTES). */
const MESSAGE_MAX_BYTES = 64 * 1024 * 1024;
/** Of a metric's name; the longest label values that were seen are shorter. */
const NAME_MAX_BYTES = 64 * 1024;
/** A varint of 64 bits. */
const VARINT_MAX_BYTES = 10;
/** The first field, `name`, length-delimited: every encoder writes fields by their numbers. */
const NAME_TAG = (1 << 3) | 2;
/** The field `metric`, length-delimited. */
const METRIC_TAG = (4 << 3) | 2;
const [VARINT, FIXED64, DELIMITED, FIXED32] = [0, 1, 2, 5];

/** Gets the messages of a body; `at`: where in the chunk. */
type MessageSink = {
  /** The name has been read. */
  readonly onName: (name: string) => void;
  /** The message ends before `at`; `hasMetric`: it has at least one. */
  readonly onEnd: (hasMetric: boolean, at: number) => void;
};

/** What the next bytes are. */
type Part = 'length' | 'tag' | 'varint' | 'nameLength' | 'fieldLength' | 'name' | 'rest';

/** Walks the messages of a body, until they are broken: `write` is false then, and `end` says why. */
function openMessageWalk({ onName, onEnd }: MessageSink): BodyReader<boolean, string | null> {
  let why: string | null = null;
  let part: Part = 'length';
  /** What is left of the field whose bytes come. */
  let fieldBytes = 0;
  const message = { leftBytes: 0, hasName: false, hasMetric: false };
  const name = openByteBuffer(NAME_MAX_BYTES);
  const varint = openVarint();

  /** Takes one byte of a varint, and the varint if it was the last. */
  function takeByte(byte: number): void {
    if (part !== 'length' && --message.leftBytes < 0) why = 'a field beyond the end of its message';
    const value = varint.take(byte);
    if (value !== null) takeVarint(value);
    else if (varint.sizeBytes() === VARINT_MAX_BYTES) why = 'a number of more than 64 bits';
  }
  function takeVarint(value: number): void {
    if (why !== null) return;
    if (part === 'length') beginMessage(value);
    else if (part === 'tag') takeTag(value);
    else if (part === 'varint') part = 'tag';
    else beginField(value, part === 'nameLength');
  }
  function beginMessage(sizeBytes: number): void {
    if (sizeBytes === 0 || sizeBytes > MESSAGE_MAX_BYTES) why = `a message of ${sizeBytes} bytes`;
    Object.assign(message, { leftBytes: sizeBytes, hasName: false, hasMetric: false });
    part = 'tag';
  }
  function takeTag(tag: number): void {
    const isName = !message.hasName && tag === NAME_TAG;
    message.hasMetric ||= tag === METRIC_TAG;
    const wire = tag % 8;
    if (!message.hasName && !isName) why = 'a message that does not begin with its name';
    else if (wire === DELIMITED) part = isName ? 'nameLength' : 'fieldLength';
    else if (wire === VARINT) part = 'varint';
    else if (wire === FIXED64) beginField(8, false);
    else if (wire === FIXED32) beginField(4, false);
    else why = `a field of the unknown type ${wire}`;
  }
  function beginField(sizeBytes: number, isName: boolean): void {
    fieldBytes = sizeBytes;
    message.leftBytes -= sizeBytes;
    part = isName ? 'name' : 'rest';
    if (message.leftBytes < 0) why = 'a field beyond the end of its message';
    else if (isName && (sizeBytes === 0 || sizeBytes > NAME_MAX_BYTES)) why = `a name of ${sizeBytes} bytes`;
    else if (sizeBytes === 0) part = 'tag';
  }
  function endField(): void {
    if (part === 'name') {
      message.hasName = true;
      onName(name.take().toString());
    }
    part = 'tag';
  }

  return {
    write(chunk) {
      for (let at = 0; at < chunk.length && why === null; ) {
        if (part === 'name' || part === 'rest') {
          const end = Math.min(chunk.length, at + fieldBytes);
          if (part === 'name') name.append(chunk.subarray(at, end));
          fieldBytes -= end - at;
          at = end;
          if (fieldBytes === 0) endField();
        } else {
          takeByte(chunk[at++] as number);
        }
        if (part !== 'tag' || message.leftBytes > 0 || varint.sizeBytes() > 0 || why !== null) continue;
        part = 'length';
        onEnd(message.hasMetric, at);
      }
      return why === null;
    },
    end() {
      if (part !== 'length' || varint.sizeBytes() > 0) why ??= 'the last message is cut';
      return why;
    },
  };
}

/** Reads varints byte by byte. */
function openVarint() {
  let value = 0;
  let factor = 1;
  let sizeBytes = 0;
  return {
    /** Of the one that has begun. */
    sizeBytes: () => sizeBytes,
    /** The varint, with its last byte. */
    take(byte: number): number | null {
      value += (byte & 0x7f) * factor;
      factor *= 0x80;
      sizeBytes += 1;
      if (byte >= 0x80) return null;
      const taken = value;
      value = 0;
      factor = 1;
      sizeBytes = 0;
      return taken;
    },
  };
}

/** Finds out whether a body ends with a message, by their lengths alone. */
export function openMessageEnds(): BodyReader<void, boolean> {
  let leftBytes = 0;
  const varint = openVarint();
  return {
    write(chunk) {
      for (let at = 0; at < chunk.length; ) {
        const count = Math.min(leftBytes, chunk.length - at);
        leftBytes -= count;
        at += count;
        if (count === 0) leftBytes = varint.take(chunk[at++] as number) ?? 0;
      }
    },
    end: () => leftBytes === 0 && varint.sizeBytes() === 0,
  };
}

/** Opens the check of one body: every message is whole, and one has a metric; else its end says why. */
export function openMessageCheck(): BodyReader<unknown, string | null> {
  let hasAny = false;
  const walk = openMessageWalk({
    onName() {},
    onEnd(hasMetric) {
      hasAny ||= hasMetric;
    },
  });
  return { write: walk.write, end: () => walk.end() ?? (hasAny ? null : 'no sample') };
}

/** Opens the scan of one body; its end returns the names of the messages that have a metric. */
export function openMessageScan(): BodyReader<unknown, ReadonlySet<string>> {
  const families = new Set<string>();
  let newest = '';
  const walk = openMessageWalk({
    onName(name) {
      newest = name;
    },
    onEnd(hasMetric) {
      if (hasMetric) families.add(newest);
    },
  });
  return { write: walk.write, end: () => families };
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
    onEnd(_, at) {
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
