// One answer of the source, as it comes and afterwards: many readers, each at its own pace, and never one raw in memory for long.
// Knows nothing of where it comes from, and who reads it.
//
// Buffers that live for as long as a read takes would pile up: V8 frees young ones at once and old ones seldom. So the bytes are
// copied into a few that are used again and again, and are packed in these; what is kept is a tenth.

import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { waitWithin } from '../base/waits.ts';
import { openFamilyScan } from '../exposition/families.ts';
import { openReadableCheck, type ReadableCheck } from '../exposition/readable.ts';
import { readInTurns } from './in-turns.ts';

export type Body = {
  /** Of the source's bytes, so far. */
  readonly sizeBytes: number;
  /**
   * The pieces in order, from the first on; waits for more while it grows.
   *
   * @throws BrokenBody where the source broke off, or `signal` came, whose reason is a string.
   */
  readonly read: (signal?: AbortSignal) => AsyncIterable<Uint8Array>;
  /** Whole, or broken; never rejects. */
  readonly ended: Promise<BodyEnd>;
  /** Its last byte is a line feed. */
  readonly endsWithLineFeed: boolean;
  /** The families that have a sample, once it is whole; found when first asked for. @throws BrokenBody as `read` does. */
  readonly families: () => Promise<ReadonlySet<string>>;
};

/** How a body ended; `why` is empty where it is readable. */
export type BodyEnd =
  | { readonly kind: 'whole'; readonly isReadable: boolean; readonly why: string }
  | { readonly kind: 'broken'; readonly why: string };

/** A body, and what only its source may do. */
export type OpenBody = {
  readonly body: Body;
  /** Takes the next piece, which is copied. After the end it takes nothing. */
  readonly push: (piece: Uint8Array) => void;
  /** It is whole: whether it is readable. */
  readonly end: () => boolean;
  /** It stays a part: who reads it learns of it, and what came is forgotten. */
  readonly breakOff: (why: string) => void;
};

/** A body that is no whole one; its message says why. */
export class BrokenBody extends Error {}

/** What is packed at once. Every call of zlib leaves behind some 10 KB that V8 frees late: few calls. */
const CHUNK_BYTES = 256 * 1024;
/** The most that a reader is handed at once. */
const PIECE_BYTES = 64 * 1024;
/** zlib's buffers; the last one of each call is freed late as well. */
const ZLIB_BYTES = 16 * 1024;
/** What a call of zlib leaves behind beside them (measured, Node 24.21). */
const CALL_BYTES = 10 * 1024;
/** V8 waits for some 24 MB of this before it looks for it: here it is told to after so many. */
const LEFT_MAX_BYTES = 2 * 1024 * 1024;
/** Whole chunks of a growing body that wait to be packed: a reader that keeps up has them as they came. Beyond it the source waits. */
const UNPACKED_MAX_COUNT = 2;

type Chunk = {
  sizeBytes: number;
  /** As they came, or packed. */
  bytes: Buffer;
  isPacked: boolean;
};

const READABLE: ReadableCheck = { write() {}, end: () => ({ isReadable: true }) };

/** Buffers of packed chunks, for the next ones. */
const spare: Buffer[] = [];

/** Opens a body that has no bytes yet. `isReadable`: its source knows that it is, so that nobody has to look. */
export function openBody({ isReadable = false } = {}): OpenBody {
  let chunks: Chunk[] = [];
  let sizeBytes = 0;
  let lastByte = 0;
  let packedCount = 0;
  let end: BodyEnd | null = null;
  let families: Promise<ReadonlySet<string>> | null = null;
  let waiting: (() => void)[] = [];
  const check = isReadable ? READABLE : openReadableCheck();
  const ended = Promise.withResolvers<BodyEnd>();

  function settle(how: BodyEnd): void {
    end = how;
    ended.resolve(how);
    wake();
  }
  function wake(): void {
    const woken = waiting;
    waiting = [];
    for (const each of woken) each();
  }
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
  /** Packs the first chunk that is not and that nothing is added to any more; false: there is none. */
  function packNext(): boolean {
    const chunk = chunks[packedCount];
    if (chunk === undefined || !isSettled(packedCount)) return false;
    const { bytes } = chunk;
    chunk.bytes = pack(bytes.subarray(0, chunk.sizeBytes));
    chunk.isPacked = true;
    if (spare.length < UNPACKED_MAX_COUNT) spare.push(bytes);
    packedCount++;
    return true;
  }
  function isSettled(index: number): boolean {
    return end !== null || index < chunks.length - 1;
  }
  /** What is left at the end: one chunk a turn of the event loop, so that nobody waits for long. */
  function packInTurns(): void {
    const packOne = () => {
      if (packNext()) setImmediate(packOne);
    };
    setImmediate(packOne);
  }
  async function* read(signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    let index = 0;
    let offset = 0;
    let unpacked: Buffer | null = null;
    const readPiece = ({ sizeBytes, bytes, isPacked }: Chunk, from: number) => {
      const to = Math.min(from + PIECE_BYTES, sizeBytes);
      if (!isPacked) return copy(bytes.subarray(from, to));
      unpacked ??= unpack(bytes);
      return unpacked.subarray(from, to);
    };
    for (;;) {
      if (signal?.aborted) throw new BrokenBody(String(signal.reason));
      if (end?.kind === 'broken') throw new BrokenBody(end.why);
      const chunk = chunks[index];
      if (chunk !== undefined && offset < chunk.sizeBytes) {
        const piece = readPiece(chunk, offset);
        offset += piece.length;
        yield piece;
      } else if (chunk !== undefined && isSettled(index)) {
        index++;
        offset = 0;
        unpacked = null;
      } else {
        if (end !== null) return;
        await waitForMore(signal);
      }
    }
  }
  function waitForMore(signal: AbortSignal | undefined): Promise<void> {
    return waitWithin<void>(
      { signal },
      () => {},
      (end) => waiting.push(end),
    );
  }
  async function scanFamilies(): Promise<ReadonlySet<string>> {
    const scan = openFamilyScan();
    for await (const piece of readInTurns(read())) scan.write(piece);
    return scan.end();
  }

  const body: Body = {
    get sizeBytes() {
      return sizeBytes;
    },
    get endsWithLineFeed() {
      return lastByte === 0x0a;
    },
    read,
    ended: ended.promise,
    families: () => {
      families ??= scanFamilies();
      return families;
    },
  };
  return {
    body,
    push(bytes) {
      if (end !== null || bytes.length === 0) return;
      check.write(bytes);
      lastByte = bytes.at(-1) as number;
      add(bytes);
      wake();
    },
    end() {
      if (end !== null) return false;
      const result = check.end();
      settle({ kind: 'whole', isReadable: result.isReadable, why: result.isReadable ? '' : result.why });
      packInTurns();
      return result.isReadable;
    },
    breakOff(why) {
      if (end !== null) return;
      chunks = [];
      settle({ kind: 'broken', why });
    },
  };
}

/** The same body for one reader: until its end `signal` breaks it off, and after it nothing does. */
export function limitBody(body: Body, signal: AbortSignal): Body {
  const limit = new AbortController();
  const giveUp = () => limit.abort(signal.reason);
  const givenUp = new Promise<BodyEnd>((resolve) => {
    limit.signal.addEventListener('abort', () => resolve({ kind: 'broken', why: String(limit.signal.reason) }));
  });
  if (signal.aborted) giveUp();
  signal.addEventListener('abort', giveUp);
  body.ended.then(() => signal.removeEventListener('abort', giveUp));
  return {
    get sizeBytes() {
      return body.sizeBytes;
    },
    get endsWithLineFeed() {
      return body.endsWithLineFeed;
    },
    read: () => body.read(limit.signal),
    ended: Promise.race([body.ended, givenUp]),
    families: body.families,
  };
}

/** Level 1: a sixth of the time of the default for nearly the same. */
function pack(raw: Buffer): Buffer {
  const packed = copy(deflateRawSync(raw, { level: 1, chunkSize: ZLIB_BYTES }));
  leave(ZLIB_BYTES + CALL_BYTES + packed.length);
  return packed;
}

function unpack(packed: Buffer): Buffer {
  leave(ZLIB_BYTES + CALL_BYTES);
  return inflateRawSync(packed, { chunkSize: ZLIB_BYTES });
}

let leftBytes = 0;

/** Counts buffers that are garbage now or soon, and has them collected when that is much; only the binary's flags allow it. */
export function leave(bytes: number): void {
  leftBytes += bytes;
  if (leftBytes < LEFT_MAX_BYTES) return;
  leftBytes = 0;
  setImmediate(() => globalThis.gc?.());
}

/** In a buffer of its own that is as long as it must be. */
function copy(bytes: Buffer): Buffer {
  const copied = Buffer.allocUnsafeSlow(bytes.length);
  copied.set(bytes);
  return copied;
}
