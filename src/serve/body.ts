// One answer of the source, as it comes and afterwards: many readers, each at its own pace, and never a large one raw in memory.
// Knows nothing of where it comes from, and who reads it.

import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { openFamilyScan } from '../wire/families.ts';
import { openReadableCheck } from '../wire/readable.ts';
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
  /** Takes the next piece, which must not change any more. After the end it takes nothing. */
  readonly push: (piece: Uint8Array) => void;
  readonly end: () => void;
  /** It stays a part: who reads it learns of it, and what came is forgotten. */
  readonly breakOff: (why: string) => void;
};

/** A body that is no whole one; its message says why. */
export class BrokenBody extends Error {}

/** What is packed at once, and handed to a reader at once. */
const CHUNK_BYTES = 64 * 1024;
/** zlib takes no smaller one for its output (Node documentation, "zlib", Z_MIN_CHUNK). */
const CHUNK_MIN_BYTES = 64;
/** A smaller body stays raw: most are, and are read once or twice. */
export const RAW_MAX_BYTES = 1024 * 1024;
/** So much of a larger one waits to be packed; beyond it the source waits. A socket is read 2 MiB at a time (libuv, uv__read). */
const UNPACKED_MAX_BYTES = 2 * RAW_MAX_BYTES;

type Chunk = {
  sizeBytes: number;
  /** Empty once packed. */
  pieces: Uint8Array[];
  packed: Uint8Array | null;
};

/** Opens a body that has no bytes yet. */
export function openBody(): OpenBody {
  let chunks: Chunk[] = [];
  let sizeBytes = 0;
  let lastByte = 0;
  let packedCount = 0;
  let unpackedBytes = 0;
  let isPacking = false;
  let end: BodyEnd | null = null;
  let families: Promise<ReadonlySet<string>> | null = null;
  let waiting: (() => void)[] = [];
  const check = openReadableCheck();
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
    let chunk = chunks.at(-1);
    if (chunk === undefined || chunk.sizeBytes >= CHUNK_BYTES) {
      chunk = { sizeBytes: 0, pieces: [], packed: null };
      chunks.push(chunk);
    }
    chunk.pieces.push(piece);
    chunk.sizeBytes += piece.length;
    sizeBytes += piece.length;
    unpackedBytes += piece.length;
  }
  /** Packs the first chunk that is not and that nothing is added to any more; false: there is none. */
  function packNext(): boolean {
    const chunk = chunks[packedCount];
    if (chunk === undefined || !isSettled(packedCount)) return false;
    chunk.packed = pack(joinPieces(chunk.pieces));
    chunk.pieces = [];
    packedCount++;
    unpackedBytes -= chunk.sizeBytes;
    return true;
  }
  function isSettled(index: number): boolean {
    return end !== null || index < chunks.length - 1;
  }
  /** One chunk a turn of the event loop, so that nobody waits for long. */
  function packInTurns(): void {
    if (isPacking || sizeBytes <= RAW_MAX_BYTES) return;
    isPacking = true;
    const packOne = () => {
      isPacking = packNext();
      if (isPacking) setImmediate(packOne);
    };
    setImmediate(packOne);
  }
  async function* read(signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    let index = 0;
    let offset = 0;
    for (;;) {
      if (signal?.aborted) throw new BrokenBody(String(signal.reason));
      if (end?.kind === 'broken') throw new BrokenBody(end.why);
      const chunk = chunks[index];
      if (chunk !== undefined && offset < chunk.sizeBytes) {
        const piece = readChunk(chunk, offset);
        offset += piece.length;
        yield piece;
      } else if (chunk !== undefined && isSettled(index)) {
        index++;
        offset = 0;
      } else {
        if (end !== null) return;
        await waitForMore(signal);
      }
    }
  }
  async function waitForMore(signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push(resolve);
    const onAbort = () => resolve();
    signal?.addEventListener('abort', onAbort);
    await promise;
    signal?.removeEventListener('abort', onAbort);
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
      for (let at = 0; at < bytes.length; at += CHUNK_BYTES) add(bytes.subarray(at, at + CHUNK_BYTES));
      while (unpackedBytes > UNPACKED_MAX_BYTES && packNext());
      packInTurns();
      wake();
    },
    end() {
      if (end !== null) return;
      const result = check.end();
      settle({ kind: 'whole', isReadable: result.isReadable, why: result.isReadable ? '' : result.why });
      packInTurns();
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

/** All that has come of it from `offset` on, which is where a piece begins. */
function readChunk({ sizeBytes, pieces, packed }: Chunk, offset: number): Uint8Array {
  if (packed !== null)
    return inflateRawSync(packed, { chunkSize: Math.max(sizeBytes, CHUNK_MIN_BYTES) }).subarray(offset);
  let first = pieces.length;
  let from = sizeBytes;
  while (from > offset) from -= pieces[--first]?.length ?? 0;
  return joinPieces(pieces.slice(first));
}

function joinPieces(pieces: readonly Uint8Array[]): Uint8Array {
  const [only] = pieces;
  return only !== undefined && pieces.length === 1 ? only : Buffer.concat(pieces);
}

/** Level 1: a sixth of the time of the default for nearly the same. The copy is as long as it must be: zlib's own has room. */
function pack(raw: Uint8Array): Uint8Array {
  const packed = deflateRawSync(raw, { level: 1, chunkSize: CHUNK_BYTES });
  const copy = Buffer.allocUnsafeSlow(packed.length);
  packed.copy(copy);
  return copy;
}
