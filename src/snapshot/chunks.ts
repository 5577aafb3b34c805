// The bytes of one answer, packed once they have come, or earlier where they are many. Never knows what they
// mean. V8 frees young buffers at once and old ones seldom: so the bytes are copied into a few buffers that
// are used again, and deflated from there to a tenth.

import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib';

/** What is packed at once: few calls of zlib, since each leaves `CALL_BYTES`. */
const CHUNK_BYTES = 256 * 1024;
/** zlib's buffers; the last one of each call is freed late as well. */
const ZLIB_BYTES = 16 * 1024;
/** What a call of zlib leaves in addition (measured, Node 24.21). */
const CALL_BYTES = 10 * 1024;
/** V8 by itself would collect this garbage after some 24 MB. */
const GARBAGE_MAX_BYTES = 2 * 1024 * 1024;
/** Unpacked chunks kept at the tail while bytes come: 4 MB, so that most answers leave as they come. */
const UNPACKED_MAX_COUNT = 16;
/** A whole answer that is no longer is copied, not packed. */
const UNPACKED_MAX_BYTES = 128 * 1024;

/** Bytes as they came. They are used again when neither a chunk nor a reader has them. */
type Raw = { readonly bytes: Buffer; usersCount: number };
/** `raw` null: it is packed, or copied, into `bytes`. */
type Chunk = { sizeBytes: number; bytes: Buffer; raw: Raw | null; isPacked: boolean; checksum: number };

/** The bytes of one answer. */
export type Chunks = {
  readonly sizeBytes: () => number;
  /** Copies the next piece; not after `seal` or `share`. */
  readonly add: (piece: Uint8Array) => void;
  /** Nothing is added any more: packs the rest, one chunk a turn of the event loop. */
  readonly seal: () => void;
  /**
   * Nothing is added any more, and `others` are sealed: takes them if their bytes are the same, by their
   * checksums, of which two collide once in 4 billion. Returns whether they are.
   */
  readonly share: (others: Chunk[]) => boolean;
  readonly list: () => Chunk[];
  readonly clear: () => void;
  /**
   * Reads from the first byte on: the next piece, which is valid until the next call of either; null: no more
   * for now. `end` may be called again.
   */
  readonly openReader: () => { readonly next: () => Uint8Array | null; readonly end: () => void };
};

/** Buffers of packed chunks, for the next ones. */
const spare: Buffer[] = [];

function giveBack(raw: Raw): void {
  raw.usersCount--;
  if (raw.usersCount > 0) return;
  if (spare.length < UNPACKED_MAX_COUNT) spare.push(raw.bytes);
  else countGarbage(CHUNK_BYTES);
}

function dropRaw(chunk: Chunk): void {
  if (chunk.raw !== null) giveBack(chunk.raw);
  chunk.raw = null;
}

/** Opens it empty. */
export function openChunks(): Chunks {
  let chunks: Chunk[] = [];
  let sizeBytes = 0;
  let packedCount = 0;
  let isSealed = false;

  function add(piece: Uint8Array): void {
    for (let at = 0; at < piece.length; ) {
      let chunk = chunks.at(-1);
      if (chunk === undefined || chunk.sizeBytes === CHUNK_BYTES) {
        while (chunks.length - packedCount > UNPACKED_MAX_COUNT && packNext());
        const bytes = spare.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES);
        chunk = { sizeBytes: 0, bytes, raw: { bytes, usersCount: 1 }, isPacked: false, checksum: 0 };
        chunks.push(chunk);
      }
      const part = piece.subarray(at, at + CHUNK_BYTES - chunk.sizeBytes);
      chunk.bytes.set(part, chunk.sizeBytes);
      chunk.checksum = crc32(part, chunk.checksum);
      chunk.sizeBytes += part.length;
      at += part.length;
    }
    sizeBytes += piece.length;
  }
  /** Packs the first unpacked chunk that is complete; false: there is none. */
  function packNext(): boolean {
    const chunk = chunks[packedCount];
    if (chunk === undefined || !isComplete(packedCount)) return false;
    const bytes = chunk.bytes.subarray(0, chunk.sizeBytes);
    chunk.isPacked = sizeBytes > UNPACKED_MAX_BYTES;
    chunk.bytes = chunk.isPacked ? pack(bytes) : copy(bytes);
    if (!chunk.isPacked) countGarbage(bytes.length);
    dropRaw(chunk);
    packedCount++;
    return true;
  }
  /** Not those of another, which are shared. */
  function dropAllRaw(): void {
    chunks.slice(packedCount).forEach(dropRaw);
  }
  function isComplete(index: number): boolean {
    return isSealed || index < chunks.length - 1;
  }
  function packInTurns(): void {
    setImmediate(() => {
      if (packNext()) packInTurns();
    });
  }

  return {
    sizeBytes: () => sizeBytes,
    add,
    seal() {
      isSealed = true;
      packInTurns();
    },
    share(others) {
      const isSame = others.length === chunks.length && chunks.every((chunk, index) => isAlike(chunk, others[index]));
      if (!isSame) return false;
      dropAllRaw();
      chunks = others;
      packedCount = chunks.length;
      return true;
    },
    list: () => chunks,
    clear() {
      dropAllRaw();
      chunks = [];
    },
    openReader: () => openReader(() => chunks),
  };
}

function openReader(list: () => readonly Chunk[]) {
  let at = 0;
  let held: Raw | null = null;
  function end(): void {
    if (held !== null) giveBack(held);
    held = null;
  }
  return {
    next(): Uint8Array | null {
      end();
      const chunk = list()[Math.floor(at / CHUNK_BYTES)];
      const from = at % CHUNK_BYTES;
      if (chunk === undefined || chunk.sizeBytes === from) return null;
      at += chunk.sizeBytes - from;
      held = chunk.raw;
      if (held !== null) held.usersCount++;
      const bytes = chunk.isPacked ? unpack(chunk.bytes) : chunk.bytes;
      return bytes.subarray(from, chunk.sizeBytes);
    },
    end,
  };
}

function isAlike(one: Chunk, other: Chunk | undefined): boolean {
  return one.sizeBytes === other?.sizeBytes && one.checksum === other.checksum;
}

/** Level 1: a sixth of the time of the default for nearly the same size. */
function pack(raw: Buffer): Buffer {
  const packed = copy(deflateRawSync(raw, { level: 1, chunkSize: ZLIB_BYTES }));
  // What zlib returned, and the page that this one replaces sooner or later.
  countGarbage(ZLIB_BYTES + CALL_BYTES + 2 * packed.length);
  return packed;
}

function unpack(packed: Buffer): Buffer {
  const raw = inflateRawSync(packed, { chunkSize: ZLIB_BYTES });
  countGarbage(ZLIB_BYTES + CALL_BYTES + raw.length);
  return raw;
}

let garbageBytes = 0;

/** Counts buffers that are garbage now or soon, and collects them if many; needs the binary's flags. */
export function countGarbage(bytes: number): void {
  garbageBytes += bytes;
  if (garbageBytes < GARBAGE_MAX_BYTES) return;
  garbageBytes = 0;
  setImmediate(() => globalThis.gc?.());
}

function copy(bytes: Buffer): Buffer {
  const copied = Buffer.allocUnsafeSlow(bytes.length);
  copied.set(bytes);
  return copied;
}
