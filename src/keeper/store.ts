// The folder of the keeper: a file for each pod's page, whole or not there. Never decides what is kept.
//
// A file is the page in every format, each packed by gzip as it is served; then a line of JSON: whose it is,
// the size of each, and the SHA-256 of all; then the SHA-256 of that line, its length, and the format.

import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readdir, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { close, open as openFile, read, stat } from '../base/files.ts';
import type { HandOver } from '../decide/keep/targets.ts';
import { compress } from '../snapshot/packing.ts';

const FORMAT = Buffer.from('lastscrape page 2\n');
const LENGTH_BYTES = 4;
const FOOTER_BYTES = 32 + LENGTH_BYTES + FORMAT.length;
/** More than a line may have; most files are read at once. */
const PIECE_BYTES = 64 * 1024;
const SUFFIX = '.page';
/** What a file is called that cannot be read back. */
const CORRUPT_SUFFIX = '.corrupt';

/** A hand-over that is kept. */
export type Kept = HandOver & { readonly takenAtSeconds: number };
/** The same in a file. `packedBytes`: the size of each format there; `checksum`: of all these. */
type Line = Kept & { readonly packedBytes: readonly number[]; readonly checksum: string };

/** A file is not what was written. */
export class CorruptPage extends Error {}

/** What is in a file. */
type Found = { readonly kept: Line; readonly sizeBytes: number };

/** A file that is open, and was whole when it was opened. */
export type OpenPage = Found &
  AsyncDisposable & {
    /** The page in that format, packed. @throws where it cannot be read */
    readonly read: (index: number) => AsyncGenerator<Uint8Array>;
  };

/** A file that is on the disk, and not yet in place: it is deleted unless it is put there. */
export type Written = AsyncDisposable & {
  /** @throws what the file system throws */
  readonly place: () => Promise<void>;
};

export type Store = Awaited<ReturnType<typeof openStore>>;

/** Opens the folder. `isCheck`: nothing of it is removed. @throws what the file system throws */
export async function openStore(folder: string, isCheck = false) {
  await mkdir(folder, { recursive: true });
  // Two keepers in one folder must not write one file.
  const makeTemporaryPath = () => join(folder, `.${randomUUID()}.tmp`);
  const pagePath = (key: string) => join(folder, key + SUFFIX);
  const list = async (suffix: string) => (await readdir(folder)).filter((each) => each.endsWith(suffix)).sort();
  // What a process that was killed left behind; and whether the folder can be written at all.
  if (!isCheck) for (const name of await list('.tmp')) await unlink(join(folder, name));
  const emptyPath = makeTemporaryPath();
  await (await open(emptyPath, 'w')).close();
  await unlink(emptyPath);

  return {
    listKeys: async () => (await list(SUFFIX)).map((name) => name.slice(0, -SUFFIX.length)),
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
      await using opened = new AsyncDisposableStack();
      opened.defer(() => unlink(path).catch(() => {}));
      await writeFile(path, kept, pages, onSize);
      const written = opened.move();
      const place = () => rename(path, pagePath(nameKey(kept)));
      return { place, [Symbol.asyncDispose]: () => written.disposeAsync() };
    },
    /** What was put in place is there after a crash from now on. @throws what the file system throws */
    async sync(): Promise<void> {
      await using handle = await open(folder, 'r');
      await handle.sync();
    },
    /** Whose page a file is; the page is not checked. @throws CorruptPage, or what the file system throws */
    async inspect(key: string): Promise<Found> {
      const { size } = await stat(pagePath(key));
      const fd = await openFile(pagePath(key), 'r');
      return readLine(fd, size).finally(() => close(fd));
    },
    /** Opens a page of that size, and checks it. @throws CorruptPage, or what the file system throws */
    async open(key: string, sizeBytes: number): Promise<OpenPage> {
      const fd = await openFile(pagePath(key), 'r');
      try {
        return { ...(await openPage(fd, sizeBytes)), [Symbol.asyncDispose]: () => close(fd) };
      } catch (error) {
        await close(fd);
        throw error;
      }
    },
    /**
     * Gives a page a name under which it is not read back, and deletes what has such names beyond that size.
     * @throws what the file system throws
     */
    async setAside(key: string, maxBytes: number): Promise<string> {
      const path = pagePath(key) + CORRUPT_SUFFIX;
      if (isCheck) return path;
      await rename(pagePath(key), path);
      let { size: sizeBytes } = await stat(path);
      for (const other of (await list(CORRUPT_SUFFIX)).map((name) => join(folder, name))) {
        if (other !== path) sizeBytes += (await stat(other)).size;
        if (other !== path && sizeBytes > maxBytes) await unlink(other);
      }
      return path;
    },
    /** Forgets a page. Never rejects: what stays is read back at the next start. */
    remove: async (key: string): Promise<void> => (isCheck ? undefined : unlink(pagePath(key)).catch(() => {})),
  };
}

/** By what a page is known: a pod may have two fronts. */
export function nameKey({ pod: { namespace, name, uid }, target: { port } }: Pick<HandOver, 'pod' | 'target'>): string {
  return createHash('sha256').update(`${namespace}/${name}/${uid}/${port}`).digest('hex').slice(0, 32);
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
    sizeBytes += bytes.length;
    onSize(sizeBytes);
    await handle.writeFile(bytes);
  }
  const checksum = createHash('sha256');
  const packedBytes: number[] = [];
  for (const format of kept.formats) {
    const before = sizeBytes;
    for await (const piece of compress(pages(format.sizeBytes), 'gzip')) {
      checksum.update(piece);
      await write(piece);
    }
    packedBytes.push(sizeBytes - before);
  }
  const line = Buffer.from(JSON.stringify({ ...kept, packedBytes, checksum: checksum.digest('hex') } satisfies Line));
  await write(line);
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32LE(line.length);
  await handle.writeFile(Buffer.concat([createHash('sha256').update(line).digest(), length, FORMAT]));
  await handle.sync();
}

/** Reads a file's line; `tail`: the last bytes of the file. */
async function readLine(fd: number, sizeBytes: number): Promise<Found & { readonly tail: Buffer }> {
  const tail = await readPart(fd, Math.max(0, sizeBytes - PIECE_BYTES), Math.min(PIECE_BYTES, sizeBytes));
  const footer = tail.subarray(-FOOTER_BYTES);
  const isOurs = footer.length === FOOTER_BYTES && footer.subarray(-FORMAT.length).equals(FORMAT);
  if (!isOurs) throw new CorruptPage('it is cut off, or of another format');
  const length = footer.readUInt32LE(32);
  const line = tail.subarray(-FOOTER_BYTES - length, -FOOTER_BYTES);
  const isWhole = createHash('sha256').update(line).digest().equals(footer.subarray(0, 32));
  if (!isWhole) throw new CorruptPage('the checksum of its end is wrong');
  const kept: Line = JSON.parse(line.toString());
  const plannedBytes = kept.packedBytes.reduce((sum, each) => sum + each, length + FOOTER_BYTES);
  if (sizeBytes !== plannedBytes) throw new CorruptPage(`it has ${sizeBytes} bytes, not ${plannedBytes}`);
  return { kept, sizeBytes, tail };
}

async function openPage(fd: number, sizeBytes: number): Promise<Omit<OpenPage, typeof Symbol.asyncDispose>> {
  const { tail, ...found } = await readLine(fd, sizeBytes);
  const { packedBytes, checksum } = found.kept;
  const tailAt = found.sizeBytes - tail.length;
  async function* readPieces(from: number, to: number): AsyncGenerator<Uint8Array> {
    if (from >= tailAt) return yield tail.subarray(from - tailAt, to - tailAt);
    for (let at = from; at < to; at += PIECE_BYTES) yield await readPart(fd, at, Math.min(PIECE_BYTES, to - at));
  }
  const hash = createHash('sha256');
  const wholeBytes = packedBytes.reduce((sum, each) => sum + each, 0);
  for await (const piece of readPieces(0, wholeBytes)) hash.update(piece);
  if (hash.digest('hex') !== checksum) throw new CorruptPage('the checksum of its page is wrong');
  return {
    ...found,
    read(index) {
      const from = packedBytes.slice(0, index).reduce((sum, each) => sum + each, 0);
      return readPieces(from, from + (packedBytes[index] ?? 0));
    },
  };
}

async function readPart(fd: number, from: number, sizeBytes: number): Promise<Buffer> {
  const part = Buffer.allocUnsafeSlow(sizeBytes);
  for (let at = 0; at < sizeBytes; ) {
    const { bytesRead } = await read(fd, part, at, sizeBytes - at, from + at);
    if (bytesRead === 0) throw new CorruptPage('it became shorter');
    at += bytesRead;
  }
  return part;
}
