// The bytes of one answer, packed as they come. Never knows what they mean. V8 frees young buffers at once
// and old ones seldom: so the bytes are copied into a few buffers that are used again, and deflated from
// there to a tenth.

import { deflateRawSync, inflateRawSync } from 'node:zlib';

/** What is packed at once: few calls of zlib, since each leaves `CALL_BYTES`. */
const CHUNK_BYTES = 256 * 1024;
/** The longest piece that a reader gets. */
const PIECE_BYTES = 64 * 1024;
/** zlib's buffers; the last one of each call is freed late as well. */
const ZLIB_BYTES = 16 * 1024;
/** What a call of zlib leaves in addition (measured, Node 24.21). */
const CALL_BYTES = 10 * 1024;
/** V8 by itself would collect this garbage after some 24 MB. */
const GARBAGE_MAX_BYTES = 2 * 1024 * 1024;
/** Unpacked chunks kept at the tail, so that a fast reader need not inflate them. */
const UNPACKED_MAX_COUNT = 2;

type Chunk = { sizeBytes: number; bytes: Buffer; isPacked: boolean };

/** Buffers of packed chunks, for the next ones. */
const spare: Buffer[] = [];

/** Opens it empty. */
export function openChunks() {
  let chunks: Chunk[] = [];
  let sizeBytes = 0;
  let packedCount = 0;
  let isSealed = false;

  /** Copies the next piece; not after `seal`. */
  function add(piece: Uint8Array): void {
    for (let at = 0; at < piece.length; ) {
      let chunk = chunks.at(-1);
      if (chunk === undefined || chunk.sizeBytes === CHUNK_BYTES) {
        while (chunks.length - packedCount > UNPACKED_MAX_COUNT && packNext());
        chunk = { sizeBytes: 0, bytes: spare.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES), isPacked: false };
        chunks.push(chunk);
      }
      const part = piece.subarray(at, at + CHUNK_BYTES - chunk.sizeBytes);
      chunk.bytes.set(part, chunk.sizeBytes);
      chunk.sizeBytes += part.length;
      at += part.length;
    }
    sizeBytes += piece.length;
  }
  /** Packs the first unpacked chunk that is complete; false: there is none. */
  function packNext(): boolean {
    const chunk = chunks[packedCount];
    if (chunk === undefined || !isComplete(packedCount)) return false;
    const { bytes } = chunk;
    chunk.bytes = pack(bytes.subarray(0, chunk.sizeBytes));
    chunk.isPacked = true;
    if (spare.length < UNPACKED_MAX_COUNT) spare.push(bytes);
    packedCount++;
    return true;
  }
  function isComplete(index: number): boolean {
    return isSealed || index < chunks.length - 1;
  }
  function packInTurns(): void {
    setImmediate(() => {
      if (packNext()) packInTurns();
    });
  }
  /** Each call of what it returns gives the next piece, from the first on; null: no more for now. */
  function openReader(): () => Uint8Array | null {
    let index = 0;
    let offset = 0;
    let unpacked: Buffer | null = null;
    return () => {
      let chunk = chunks[index];
      if (chunk?.sizeBytes === offset && isComplete(index)) {
        chunk = chunks[++index];
        offset = 0;
        unpacked = null;
      }
      if (chunk === undefined || chunk.sizeBytes === offset) return null;
      const from = offset;
      offset = Math.min(from + PIECE_BYTES, chunk.sizeBytes);
      if (!chunk.isPacked) return copy(chunk.bytes.subarray(from, offset));
      unpacked ??= unpack(chunk.bytes);
      return unpacked.subarray(from, offset);
    };
  }

  return {
    sizeBytes: () => sizeBytes,
    add,
    /** Nothing is added any more: packs the rest, one chunk a turn of the event loop. */
    seal(): void {
      isSealed = true;
      packInTurns();
    },
    clear(): void {
      chunks = [];
    },
    openReader,
  };
}

/** Level 1: a sixth of the time of the default for nearly the same size. */
function pack(raw: Buffer): Buffer {
  const packed = copy(deflateRawSync(raw, { level: 1, chunkSize: ZLIB_BYTES }));
  countGarbage(ZLIB_BYTES + CALL_BYTES + packed.length);
  return packed;
}

function unpack(packed: Buffer): Buffer {
  countGarbage(ZLIB_BYTES + CALL_BYTES);
  return inflateRawSync(packed, { chunkSize: ZLIB_BYTES });
}

let garbageBytes = 0;

/** Counts buffers that are garbage now or soon, and collects them if many; needs the binary's flags. */
export function countGarbage(bytes: number): void {
  garbageBytes += bytes;
  if (garbageBytes < GARBAGE_MAX_BYTES) return;
  garbageBytes = 0;
  setImmediate(() => globalThis.gc?.());
}

/** In a buffer of exactly that length. */
function copy(bytes: Buffer): Buffer {
  const copied = Buffer.allocUnsafeSlow(bytes.length);
  copied.set(bytes);
  return copied;
}
