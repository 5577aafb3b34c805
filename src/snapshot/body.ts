// One answer of the source, as it comes and afterwards, for many readers, each at its own pace. Never knows
// where it comes from.

import { waitUnless } from '../base/waits.ts';
import { type FilterOptions, openFamilyFilter, openFamilyScan } from '../exposition/families.ts';
import { type Format, type PageType, TEXT_PAGE } from '../exposition/format.ts';
import { type Family, openFamilyReader } from '../exposition/samples.ts';
import { type Chunks, openChunks } from './chunks.ts';

export type Body = {
  readonly type: PageType;
  /** The same for two bodies: so are all their bytes. */
  readonly page: object;
  /** Of the source's bytes, so far. */
  readonly sizeBytes: number;
  /**
   * All pieces; waits for more. Each is valid until the next is asked for. @throws BrokenBody at a cut, or
   * where `signal`, whose reason is a string, comes before the end
   */
  readonly read: (signal?: AbortSignal) => AsyncIterable<Uint8Array>;
  /** Never rejects. */
  readonly ended: Promise<BodyEnd>;
  readonly endsWithLineFeed: boolean;
  /** The families that have a sample, once it is whole; found at the first call. @throws BrokenBody */
  readonly families: () => Promise<ReadonlySet<string>>;
};

/** How a body ended: whole and readable, whole, or cut off. */
export type BodyEnd = { readonly kind: 'whole' } | { readonly kind: 'unreadable' | 'broken'; readonly why: string };

/** A body and its source's side. After the end, `push` and `breakOff` do nothing. */
export type OpenBody = {
  readonly body: Body;
  /** Copies the next piece. */
  readonly push: (piece: Uint8Array) => void;
  /** It is whole, and known to be readable. */
  readonly end: () => void;
  /**
   * It is whole: readers end, and `ended` is what `inspect` finds. Where `before` has the same bytes, takes
   * its end and families instead, and returns true.
   */
  readonly endUnchecked: (before: OpenBody | null, inspect: () => Promise<BodyEnd>) => boolean;
  /** No more will come: readers fail, and what came is forgotten. */
  readonly breakOff: (why: string) => void;
  readonly chunks: Chunks;
};

/** A body that did not come whole; the message says why. */
export class BrokenBody extends Error {}

/** Opens an empty body. */
export function openBody(type: PageType = TEXT_PAGE): OpenBody {
  const chunks = openChunks();
  const ended = Promise.withResolvers<BodyEnd>();
  let lastByte = 0;
  /** No more will come; null: it may. */
  let stop: 'whole' | BrokenBody | null = null;
  let families: Promise<ReadonlySet<string>> | null = null;
  let same: Body | null = null;
  let news = Promise.withResolvers<void>();

  function wake(): void {
    news.resolve();
    news = Promise.withResolvers();
  }
  function push(piece: Uint8Array): void {
    if (stop !== null || piece.length === 0) return;
    lastByte = piece.at(-1) as number;
    chunks.add(piece);
    wake();
  }
  async function* read(signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const { next, end } = chunks.openReader();
    try {
      for (;;) {
        const stopped = stop;
        if (stopped instanceof BrokenBody) throw new BrokenBody(stopped.message);
        if (stopped === null && signal?.aborted) throw new BrokenBody(String(signal.reason));
        const piece = next();
        if (piece !== null) yield piece;
        else if (stopped !== null) return;
        else await waitUnless(news.promise, { signal });
      }
    } finally {
      end();
    }
  }
  async function scanFamilies(): Promise<ReadonlySet<string>> {
    const scan = openFamilyScan(type.format);
    for await (const piece of readInTurns(read())) scan.write(piece);
    return scan.end();
  }

  const body: Body = {
    type,
    get page() {
      return same?.page ?? chunks;
    },
    get sizeBytes() {
      return chunks.sizeBytes();
    },
    get endsWithLineFeed() {
      return lastByte === 0x0a;
    },
    read,
    ended: ended.promise,
    families: () => {
      families ??= same?.families() ?? scanFamilies();
      return families;
    },
  };
  function endUnchecked(before: OpenBody | null, inspect: () => Promise<BodyEnd>): boolean {
    stop = 'whole';
    if (before?.body.type.contentType === type.contentType && chunks.share(before.chunks.list())) same = before.body;
    wake();
    // Not packed before it was looked at.
    ended.resolve(same?.ended ?? inspect().finally(chunks.seal));
    return same !== null;
  }
  return {
    body,
    chunks,
    push,
    end() {
      if (stop === null) endUnchecked(null, () => WHOLE);
    },
    endUnchecked,
    breakOff(why) {
      if (stop !== null) return;
      stop = new BrokenBody(why);
      chunks.clear();
      ended.resolve({ kind: 'broken', why });
      wake();
    },
  };
}

/**
 * A whole body, readable and with a last line feed, that `write` writes at its first read: most polls read
 * none. `families`: those that have a sample.
 */
export function makeWrittenBody(
  families: ReadonlySet<string>,
  write: (push: (piece: Uint8Array) => void) => void,
): Body {
  let written: Body | null = null;
  const writeOnce = (): Body => {
    if (written !== null) return written;
    const { body, push, end } = openBody();
    write(push);
    end();
    written = body;
    return body;
  };
  return {
    type: TEXT_PAGE,
    page: writeOnce,
    get sizeBytes() {
      return writeOnce().sizeBytes;
    },
    endsWithLineFeed: true,
    read: (signal) => writeOnce().read(signal),
    ended: WHOLE,
    families: async () => families,
  };
}

const WHOLE = Promise.resolve({ kind: 'whole' } as const);

/** The pieces, a turn of the event loop after each, so that none blocks. @throws as `pieces` does */
export async function* readInTurns(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    yield piece;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Longer pieces are read in steps of this size. */
const PIECE_BYTES = 8 * 1024;

/** Reads a body piece by piece. @throws as `pieces` does */
export async function* readFamilies(pieces: AsyncIterable<Uint8Array>, format?: Format): AsyncGenerator<Family> {
  const reader = openFamilyReader(format);
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length; at += PIECE_BYTES) yield* reader.write(piece.subarray(at, at + PIECE_BYTES));
  }
  yield* reader.end();
}

/** The pieces without the HELP, TYPE and sample lines of other families. @throws as `pieces` does */
export async function* filterFamilies(
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  isKept: (family: string, isSamples: boolean) => boolean,
  options?: FilterOptions,
): AsyncGenerator<Uint8Array> {
  const filter = openFamilyFilter(isKept, options);
  for await (const piece of pieces) yield* filter.write(piece);
  yield* filter.end();
}
