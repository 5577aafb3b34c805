// The folder of the keeper: a file for each pod's page, whole or not there. Never decides what is kept.
//
// A file is the page in every format, each packed by gzip as it is served; a line of JSON: whose it is, the
// size of each, and the SHA-256 of all; and the SHA-256 of that line.

import { createHash, randomUUID } from 'node:crypto';
import { access, constants, mkdir, open, readdir, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { close, fstat, open as openFile, read, stat } from '../base/files.ts';
import type { HandOver } from '../decide/keep/targets.ts';
import { compress } from '../snapshot/packing.ts';

/** In hex, with a line feed before and after it. */
const DIGEST_BYTES = 66;
/** More than a line may have; most files are read at once. */
const PIECE_BYTES = 64 * 1024;
const SUFFIX = '.page';
/** What a file is called that cannot be read back. */
const CORRUPT_SUFFIX = '.corrupt';

/** What a file's line has. `packedBytes`: the size of each format there; `checksum`: of all these. */
type Line = HandOver & { readonly packedBytes: readonly number[]; readonly checksum: string };

/** A file is not what was written. */
export class CorruptPage extends Error {}

export type Store = Awaited<ReturnType<typeof openStore>>;

/** Opens the folder. `isCheck`: nothing of it is removed. @throws what the file system throws */
export async function openStore(folder: string, isCheck = false) {
  await mkdir(folder, { recursive: true });
  const pagePath = (key: string) => join(folder, key + SUFFIX);
  const list = async (suffix: string) => (await readdir(folder)).filter((each) => each.endsWith(suffix)).sort();
  const forget = (path: string) => unlink(path).catch(() => {});
  // What a process that was killed left behind.
  if (!isCheck) for (const name of await list('.tmp')) await unlink(join(folder, name));
  await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);

  return {
    listKeys: async () => (await list(SUFFIX)).map((name) => name.slice(0, -SUFFIX.length)),
    /** Begins a file, which is deleted unless it is put in place. Both reject as the file system does. */
    begin(key: string) {
      // Two keepers in one folder must not write one file.
      const path = join(folder, `.${randomUUID()}.tmp`);
      return {
        write: writeFile.bind(null, path),
        place: () => rename(path, pagePath(key)),
        [Symbol.asyncDispose]: () => forget(path),
      };
    },
    /** What was put in place is there after a crash from now on. @throws what the file system throws */
    async sync(): Promise<void> {
      await using handle = await open(folder, 'r');
      await handle.sync();
    },
    /** Opens a page. `isRead`: all is checked, not its end alone. @throws CorruptPage, or as the system */
    open: (key: string, isRead: boolean) => openPage(pagePath(key), isRead),
    /** Renames what cannot be read back; of the others deletes what is beyond that size. @throws */
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
    remove: (key: string) => forget(pagePath(key)),
  };
}

/** By what a page is known: a pod may have two fronts. */
export function nameKey({ pod: { namespace, name, uid }, target: { port } }: Pick<HandOver, 'pod' | 'target'>): string {
  return hash(`${namespace}/${name}/${uid}/${port}`).slice(0, 32);
}

function hash(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}

/** `pages` gives the next that many bytes; `onSize` gets the size of the file so far, and may throw. */
async function writeFile(
  path: string,
  handOver: HandOver,
  pages: (sizeBytes: number) => AsyncIterable<Uint8Array>,
  onSize: (sizeBytes: number) => void,
): Promise<void> {
  await using handle = await open(path, 'w', 0o600);
  let sizeBytes = 0;
  async function write(bytes: Uint8Array): Promise<void> {
    sizeBytes += bytes.length;
    onSize(sizeBytes);
    await handle.writeFile(bytes);
  }
  const checksum = createHash('sha256');
  const packedBytes: number[] = [];
  for (const format of handOver.formats) {
    const before = sizeBytes;
    for await (const piece of compress(pages(format.sizeBytes), 'gzip')) {
      checksum.update(piece);
      await write(piece);
    }
    packedBytes.push(sizeBytes - before);
  }
  const line = JSON.stringify({ ...handOver, packedBytes, checksum: checksum.digest('hex') } satisfies Line);
  await write(Buffer.from(`\n${line}\n${hash(line)}\n`));
  await handle.sync();
}

export type OpenPage = Awaited<ReturnType<typeof openPage>>;

async function openPage(path: string, isRead: boolean) {
  await using opened = new AsyncDisposableStack();
  const fd = opened.adopt(await openFile(path, 'r'), close);
  const { size: sizeBytes, mtimeMs } = await fstat(fd);
  const tailAt = Math.max(0, sizeBytes - PIECE_BYTES);
  const tail = await readPart(fd, tailAt, sizeBytes);
  const lineEnd = tail.length - DIGEST_BYTES;
  const lineAt = tail.lastIndexOf('\n', lineEnd - 1) + 1;
  const line = tail.subarray(lineAt, lineEnd);
  const isWhole = tail.toString('latin1', Math.max(0, lineEnd)) === `\n${hash(line)}\n`;
  if (!isWhole) throw new CorruptPage('its end is cut off, changed, or of another format');
  const kept: Line = JSON.parse(line.toString());
  const findStart = (index: number) => kept.packedBytes.slice(0, index).reduce((sum, each) => sum + each, 0);
  const wholeBytes = findStart(kept.packedBytes.length);
  const foundBytes = tailAt + lineAt - 1;
  if (foundBytes !== wholeBytes) throw new CorruptPage(`its page has ${foundBytes} bytes, not ${wholeBytes}`);
  async function* readPieces(from: number, to: number): AsyncGenerator<Uint8Array> {
    if (from >= tailAt) return yield tail.subarray(from - tailAt, to - tailAt);
    for (let at = from; at < to; at += PIECE_BYTES) yield await readPart(fd, at, Math.min(at + PIECE_BYTES, to));
  }
  const checksum = createHash('sha256');
  if (isRead) for await (const piece of readPieces(0, wholeBytes)) checksum.update(piece);
  if (isRead && checksum.digest('hex') !== kept.checksum) throw new CorruptPage('the checksum of its page is wrong');
  const own = opened.move();
  return {
    kept,
    sizeBytes,
    takenAtSeconds: mtimeMs / 1000,
    /** The page in that format, packed. @throws where it cannot be read */
    read: (index: number) => readPieces(findStart(index), findStart(index + 1)),
    [Symbol.asyncDispose]: () => own.disposeAsync(),
  };
}

async function readPart(fd: number, from: number, to: number): Promise<Buffer> {
  const part = Buffer.allocUnsafeSlow(to - from);
  const { bytesRead } = await read(fd, part, 0, part.length, from);
  if (bytesRead < part.length) throw new Error(`only ${bytesRead} of ${part.length} bytes were read`);
  return part;
}
