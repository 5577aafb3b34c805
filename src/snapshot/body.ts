// One answer of the source, as it comes and afterwards, for many readers, each at its own pace. Never knows
// where it comes from.

import { onAbort } from '../base/waits.ts';
import { type FilterOptions, openFamilyFilter, openFamilyScan } from '../exposition/families.ts';
import { openReadableCheck, type ReadableCheck } from '../exposition/readable.ts';
import { openChunks } from './chunks.ts';

export type Body = {
  /** Of the source's bytes, so far. */
  readonly sizeBytes: number;
  /** All pieces; waits for more. @throws BrokenBody at a cut, or at `signal`, whose reason is a string */
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
  /** It is whole; returns whether it is readable. */
  readonly end: () => boolean;
  /** No more will come: readers fail, and what came is forgotten. */
  readonly breakOff: (why: string) => void;
};

/** A body that did not come whole; the message says why. */
export class BrokenBody extends Error {}

const READABLE: ReadableCheck = { write() {}, end: () => ({ isReadable: true }) };

/** Opens an empty body. `isReadable`: its source knows that it is, so that it need not be checked. */
export function openBody({ isReadable = false } = {}): OpenBody {
  const chunks = openChunks();
  const check = isReadable ? READABLE : openReadableCheck();
  const ended = Promise.withResolvers<BodyEnd>();
  let lastByte = 0;
  let end: BodyEnd | null = null;
  let families: Promise<ReadonlySet<string>> | null = null;
  const waiting: (() => void)[] = [];

  function settle(how: BodyEnd): void {
    end = how;
    ended.resolve(how);
    wake();
  }
  function wake(): void {
    for (const each of waiting.splice(0)) each();
  }
  async function* read(signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const next = chunks.openReader();
    for (;;) {
      if (signal?.aborted) throw new BrokenBody(String(signal.reason));
      if (end?.kind === 'broken') throw new BrokenBody(end.why);
      const piece = next();
      if (piece !== null) yield piece;
      else if (end !== null) return;
      else await waitForMore(signal);
    }
  }
  async function waitForMore(signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push(resolve);
    const cancel = onAbort(signal, resolve);
    await promise;
    cancel();
  }
  async function scanFamilies(): Promise<ReadonlySet<string>> {
    const scan = openFamilyScan();
    for await (const piece of readInTurns(read())) scan.write(piece);
    return scan.end();
  }

  const body: Body = {
    get sizeBytes() {
      return chunks.sizeBytes();
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
      chunks.add(bytes);
      wake();
    },
    end() {
      if (end !== null) return false;
      const result = check.end();
      chunks.seal();
      settle(result.isReadable ? { kind: 'whole' } : { kind: 'unreadable', why: result.why });
      return result.isReadable;
    },
    breakOff(why) {
      if (end !== null) return;
      chunks.clear();
      settle({ kind: 'broken', why });
    },
  };
}

/** The same body for one reader: until its end `signal` breaks it off, after it nothing does. */
export function limitBody(body: Body, signal: AbortSignal): Body {
  const limit = new AbortController();
  const givenUp = Promise.withResolvers<BodyEnd>();
  const cancel = onAbort(signal, () => {
    limit.abort(signal.reason);
    givenUp.resolve({ kind: 'broken', why: String(signal.reason) });
  });
  body.ended.then(cancel);
  return {
    get sizeBytes() {
      return body.sizeBytes;
    },
    get endsWithLineFeed() {
      return body.endsWithLineFeed;
    },
    read: () => body.read(limit.signal),
    ended: Promise.race([body.ended, givenUp.promise]),
    families: body.families,
  };
}

/** The families that have a sample, and what writes the body: whole, readable, with a last line feed. */
export type BodyWriter = {
  readonly families: ReadonlySet<string>;
  readonly write: (push: (piece: Uint8Array) => void) => void;
};

/** A whole body, written at its first read: most polls read none. */
export function makeWrittenBody({ families, write }: BodyWriter): Body {
  let written: Body | null = null;
  const writeOnce = (): Body => {
    if (written === null) {
      const { body, push, end } = openBody({ isReadable: true });
      write(push);
      end();
      written = body;
    }
    return written;
  };
  return {
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

/** The pieces without the HELP, TYPE and sample lines of other families. @throws as `pieces` does */
export async function* filterFamilies(
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  isKept: (family: string) => boolean,
  options?: FilterOptions,
): AsyncGenerator<Uint8Array> {
  const filter = openFamilyFilter(isKept, options);
  for await (const piece of pieces) yield* filter.write(piece);
  yield* filter.end();
}
