// The folder of the keeper: a file for each pod's page, whole or not there. Never decides what is kept.
//
// A file is the page in every format, each packed by gzip as it is served; then a line of JSON, which tells
// whose it is, and the size and SHA-256 of each; then the SHA-256 of that line, its length, and the format.

import { createHash, randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { HandOver } from '../decide/keep/targets.ts';
import { compress } from '../snapshot/packing.ts';

const FORMAT = Buffer.from('lastscrape page 1\n');
const LENGTH_BYTES = 4;
const FOOTER_BYTES = 32 + LENGTH_BYTES + FORMAT.length;
/** More than a line may have; most files are read at once. */
const TAIL_BYTES = 64 * 1024;
const SUFFIX = '.page';
/** What a file is called that cannot be read back. */
const CORRUPT_SUFFIX = '.corrupt';

/** A page in one format, as it is in the file. */
type Packed = { readonly packedBytes: number; readonly checksum: string };
/** A hand-over that is kept. */
export type Kept = HandOver & { readonly takenAtSeconds: number };
/** The same in a file. `packed`: of each format. */
type Line = Kept & { readonly packed: readonly Packed[] };

/** It is not what was written. */
export type Corrupt = { readonly kind: 'corrupt'; readonly why: string };
/** What is in the folder. */
export type Found = { readonly kind: 'page'; readonly kept: Line; readonly sizeBytes: number };

/** A file that is open, and was whole when it was opened. */
export type OpenPage = Found &
  AsyncDisposable & {
    /** The page in that format, packed; a piece is valid until the next. @throws where it cannot be read */
    readonly read: (index: number) => AsyncGenerator<Uint8Array>;
  };

/** A file that is on the disk, and not yet in place: it is deleted unless it is put there. */
type Written = AsyncDisposable & {
  /** @throws what the file system throws */
  readonly place: () => Promise<void>;
};

export type Store = Awaited<ReturnType<typeof openStore>>;

/** Opens the folder, and makes it where it is missing. @throws what the file system throws */
export async function openStore(folder: string) {
  await mkdir(folder, { recursive: true });
  // Two keepers in one folder must not write one file.
  const makeTemporaryPath = () => join(folder, `.${randomUUID()}.tmp`);
  const pagePath = (key: string) => join(folder, key + SUFFIX);
  const list = async (suffix: string) => (await readdir(folder)).filter((each) => each.endsWith(suffix)).sort();
  // What a process that was killed left behind; and whether the folder can be written at all.
  for (const name of await list('.tmp')) await unlink(join(folder, name));
  const emptyPath = makeTemporaryPath();
  await (await open(emptyPath, 'w')).close();
  await unlink(emptyPath);

  return {
    listKeys: async () => (await list(SUFFIX)).map((name) => basename(name, SUFFIX)),
    /**
     * Writes a file, which is not in place yet. `pages` gives the next that many bytes; `onSize` gets the
     * size of the file so far. @throws what these and the file system throw; then nothing has changed
     */
    async write(
      kept: Kept,
      pages: (sizeBytes: number) => AsyncIterable<Uint8Array>,
      onSize: (sizeBytes: number) => void,
    ): Promise<Written> {
      const path = makeTemporaryPath();
      const discard = () => unlink(path).catch(() => {});
      try {
        await writeFile(path, kept, pages, onSize);
        return { [Symbol.asyncDispose]: discard, place: () => rename(path, pagePath(nameKey(kept.pod))) };
      } catch (error) {
        await discard();
        throw error;
      }
    },
    /** What was put in place is there after a crash from now on. @throws what the file system throws */
    async sync(): Promise<void> {
      await using handle = await open(folder, 'r');
      await handle.sync();
    },
    /** Whose page a file is, which is not checked itself. @throws what the file system throws */
    async inspect(key: string): Promise<Found | Corrupt> {
      await using handle = await open(pagePath(key), 'r');
      return await readLine(handle);
    },
    /** Opens a page, and checks all of it. @throws what the file system throws */
    async open(key: string): Promise<OpenPage | Corrupt> {
      await using opened = new AsyncDisposableStack();
      const page = await openPage(opened.use(await open(pagePath(key), 'r')));
      if (page.kind === 'corrupt') return page;
      const kept = opened.move();
      return { ...page, [Symbol.asyncDispose]: () => kept.disposeAsync() };
    },
    /** Forgets a page. Never rejects: what stays is read back at the next start. */
    remove: (key: string): Promise<void> => unlink(pagePath(key)).catch(() => {}),
    /**
     * Gives a page another name, under which it is not read back, and deletes what has such names beyond that
     * size. @throws what the file system throws
     */
    async setAside(key: string, maxBytes: number): Promise<string> {
      const path = pagePath(key) + CORRUPT_SUFFIX;
      await rename(pagePath(key), path);
      let sizeBytes = (await stat(path)).size;
      for (const other of (await list(CORRUPT_SUFFIX)).map((name) => join(folder, name))) {
        if (other !== path) sizeBytes += (await stat(other)).size;
        if (other !== path && sizeBytes > maxBytes) await unlink(other);
      }
      return path;
    },
  };
}

/** By what the page of a pod is known. */
export function nameKey({ namespace, name, uid }: HandOver['pod']): string {
  return createHash('sha256').update(`${namespace}/${name}/${uid}`).digest('hex').slice(0, 32);
}

async function writeFile(
  path: string,
  kept: Kept,
  pages: (sizeBytes: number) => AsyncIterable<Uint8Array>,
  onSize: (sizeBytes: number) => void,
): Promise<void> {
  await using handle = await open(path, 'w', 0o600);
  let sizeBytes = FOOTER_BYTES;
  async function write(bytes: Uint8Array): Promise<void> {
    onSize(sizeBytes + bytes.length);
    for (let at = 0; at < bytes.length; ) at += (await handle.write(bytes, at)).bytesWritten;
    sizeBytes += bytes.length;
  }
  const packed: Packed[] = [];
  for (const format of kept.formats) {
    const checksum = createHash('sha256');
    const beforeBytes = sizeBytes;
    for await (const piece of compress(pages(format.sizeBytes), 'gzip')) {
      checksum.update(piece);
      await write(piece);
    }
    packed.push({ packedBytes: sizeBytes - beforeBytes, checksum: checksum.digest('hex') });
  }
  const line = Buffer.from(JSON.stringify({ ...kept, packed } satisfies Line));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32LE(line.length);
  await write(line);
  await write(Buffer.concat([createHash('sha256').update(line).digest(), length, FORMAT]));
  await handle.sync();
}

/** Reads a file's line; `tail`: the last bytes of the file. */
async function readLine(handle: FileHandle): Promise<(Found & { readonly tail: Buffer }) | Corrupt> {
  const { size } = await handle.stat();
  const corrupt = (why: string) => ({ kind: 'corrupt', why }) as const;
  const tail = Buffer.allocUnsafeSlow(Math.min(TAIL_BYTES, size));
  await readWhole(handle, tail, size - tail.length);
  const endAt = tail.length - FOOTER_BYTES;
  if (endAt < 0 || !tail.subarray(-FORMAT.length).equals(FORMAT)) return corrupt('it is cut off, or of another format');
  const startAt = endAt - tail.readUInt32LE(tail.length - FORMAT.length - LENGTH_BYTES);
  const bytes = tail.subarray(Math.max(0, startAt), endAt);
  const checksum = tail.subarray(endAt, endAt + 32);
  if (!createHash('sha256').update(bytes).digest().equals(checksum)) return corrupt('the checksum of its end is wrong');
  const kept: Line = JSON.parse(bytes.toString());
  const sizeBytes = kept.packed.reduce((sum, { packedBytes }) => sum + packedBytes, bytes.length + FOOTER_BYTES);
  if (sizeBytes !== size) return corrupt(`it has ${size} bytes, not ${sizeBytes}`);
  return { kind: 'page', kept, sizeBytes, tail };
}

async function openPage(handle: FileHandle): Promise<Omit<OpenPage, typeof Symbol.asyncDispose> | Corrupt> {
  const found = await readLine(handle);
  if (found.kind === 'corrupt') return found;
  const { tail, ...page } = found;
  const { packed } = page.kept;
  async function* read(index: number): AsyncGenerator<Uint8Array> {
    const from = packed.slice(0, index).reduce((sum, { packedBytes }) => sum + packedBytes, 0);
    const wantedBytes = packed[index]?.packedBytes ?? 0;
    const inTail = from - (page.sizeBytes - tail.length);
    if (inTail >= 0) return yield tail.subarray(inTail, inTail + wantedBytes);
    for (let at = 0; at < wantedBytes; at += TAIL_BYTES) {
      const piece = Buffer.allocUnsafe(Math.min(TAIL_BYTES, wantedBytes - at));
      await readWhole(handle, piece, from + at);
      yield piece;
    }
  }
  for (const [index, { checksum }] of packed.entries()) {
    const hash = createHash('sha256');
    for await (const piece of read(index)) hash.update(piece);
    if (hash.digest('hex') !== checksum) return { kind: 'corrupt', why: `the checksum of page ${index + 1} is wrong` };
  }
  return { ...page, read };
}

async function readWhole(handle: FileHandle, into: Buffer, from: number): Promise<void> {
  for (let at = 0; at < into.length; ) {
    const { bytesRead } = await handle.read(into, at, into.length - at, from + at);
    if (bytesRead === 0) throw new Error('the file became shorter');
    at += bytesRead;
  }
}
