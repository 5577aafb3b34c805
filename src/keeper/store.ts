// The folder of the keeper: a file for each pod's page, whole or not there. Never decides what is kept.
//
// A file is a line that names the format, a line of JSON that tells whose pages they are, the pages one after
// the other as gzip packs them, and the SHA-256 of all that.

import { createHash } from 'node:crypto';
import { constants, type FileHandle, mkdir, open, readdir, rename, unlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { compress, decompress } from '../snapshot/packing.ts';

const FORMAT_LINE = 'lastscrape page 1\n';
const CHECKSUM_BYTES = 32;
const READ_BYTES = 64 * 1024;
const SUFFIX = '.page';
/** What a file is called that cannot be read back. */
const CORRUPT_SUFFIX = '.corrupt';

/** A file as it was found. */
export type StoredFile =
  | { readonly kind: 'read'; readonly key: string; readonly head: string; readonly sizeBytes: number }
  | { readonly kind: 'corrupt'; readonly file: string; readonly why: string };

export type Store = Awaited<ReturnType<typeof openStore>>;

/** A file that is open, and was whole when it was opened. */
export type OpenPage = {
  readonly head: string;
  /** These bytes of the unpacked pages. @throws where they cannot be read */
  readonly read: (from: number, sizeBytes: number) => AsyncGenerator<Uint8Array>;
  readonly close: () => Promise<void>;
};

/** A file that is on the disk, and not yet in place. */
type WrittenFile = {
  readonly sizeBytes: number;
  /**
   * Puts it in place: it is there after a crash once this has returned. @throws what the file system throws
   */
  readonly commit: () => Promise<void>;
  /** Never rejects. */
  readonly discard: () => Promise<void>;
};

/** Opens the folder, and makes it where it is missing. @throws where it cannot be written */
export async function openStore(folder: string) {
  await mkdir(folder, { recursive: true });
  const temporaryPath = (number: number) => join(folder, `.${number}.tmp`);
  let writtenCount = 0;
  // What a process that was killed left behind; and whether the folder can be written at all.
  for (const name of await readdir(folder)) if (name.endsWith('.tmp')) await unlink(join(folder, name));
  await (await open(temporaryPath(0), 'w')).close();
  await unlink(temporaryPath(0));

  async function syncFolder(): Promise<void> {
    await using handle = await open(folder, 'r');
    await handle.sync();
  }

  return {
    /**
     * Writes a file that `commit` puts in place of the one with that key. `pieces` change once the next is
     * asked
     * for; `onSize` gets the size of the file so far.
     * @throws what `pieces`, `onSize` and the file system throw; then nothing has changed
     */
    async write(
      key: string,
      head: string,
      pieces: AsyncIterable<Uint8Array>,
      onSize: (sizeBytes: number) => void,
    ): Promise<WrittenFile> {
      writtenCount++;
      const path = temporaryPath(writtenCount);
      const discard = () => unlink(path).catch(() => {});
      try {
        const sizeBytes = await writeFile(path, head, pieces, onSize);
        return {
          sizeBytes,
          discard,
          async commit() {
            await rename(path, join(folder, key + SUFFIX));
            await syncFolder();
          },
        };
      } catch (error) {
        await discard();
        throw error;
      }
    },
    /** Every file; one that is not whole gets another name. @throws where the folder cannot be read */
    async *readBack(): AsyncGenerator<StoredFile> {
      for (const name of (await readdir(folder)).filter((each) => each.endsWith(SUFFIX)).sort()) {
        const path = join(folder, name);
        const found = await inspect(path);
        if ('head' in found) yield { kind: 'read', key: basename(name, SUFFIX), ...found };
        else {
          await rename(path, path + CORRUPT_SUFFIX);
          yield { kind: 'corrupt', file: path + CORRUPT_SUFFIX, why: found.why };
        }
      }
    },
    /** Opens a page to read it, or says why it cannot be read. Never rejects. */
    async open(key: string): Promise<OpenPage | { readonly why: string }> {
      let handle: FileHandle | null = null;
      try {
        handle = await open(join(folder, key + SUFFIX), 'r');
        const found = await check(handle);
        if ('head' in found) return openPages(handle, found);
        await handle.close();
        return found;
      } catch (error) {
        await handle?.close();
        return { why: describeFault(error) };
      }
    },
    /** Forgets a page. Never rejects: what stays is read back at the next start. */
    remove: (key: string): Promise<void> => unlink(join(folder, key + SUFFIX)).catch(() => {}),
  };
}

async function writeFile(
  path: string,
  head: string,
  pieces: AsyncIterable<Uint8Array>,
  onSize: (sizeBytes: number) => void,
): Promise<number> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
  await using handle = await open(path, flags, 0o600);
  const checksum = createHash('sha256');
  let sizeBytes = CHECKSUM_BYTES;
  const write = async (bytes: Uint8Array) => {
    sizeBytes += bytes.length;
    onSize(sizeBytes);
    checksum.update(bytes);
    await writeWhole(handle, bytes);
  };
  await write(Buffer.from(`${FORMAT_LINE}${head}\n`));
  for await (const packed of compress(pieces, 'gzip')) await write(packed);
  await writeWhole(handle, checksum.digest());
  await handle.sync();
  return sizeBytes;
}

async function writeWhole(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await handle.write(bytes, at)).bytesWritten;
}

type Checked = { readonly head: string; readonly sizeBytes: number };

async function inspect(path: string): Promise<Checked | { readonly why: string }> {
  try {
    await using handle = await open(path, 'r');
    return await check(handle);
  } catch (error) {
    return { why: describeFault(error) };
  }
}

/** Whether a file is what was written; its head. */
async function check(handle: FileHandle): Promise<Checked | { readonly why: string }> {
  const { size } = await handle.stat();
  const checksum = createHash('sha256');
  const wanted = Buffer.alloc(CHECKSUM_BYTES);
  const dataBytes = size - CHECKSUM_BYTES;
  if (dataBytes < FORMAT_LINE.length) return { why: 'it is too short' };
  let start = '';
  for await (const piece of readPieces(handle, 0, dataBytes)) {
    checksum.update(piece);
    if (!start.includes('\n', FORMAT_LINE.length)) start += Buffer.from(piece).toString('latin1');
  }
  await handle.read(wanted, 0, CHECKSUM_BYTES, dataBytes);
  if (!checksum.digest().equals(wanted)) return { why: 'its checksum is wrong' };
  const endAt = start.indexOf('\n', FORMAT_LINE.length);
  if (!start.startsWith(FORMAT_LINE) || endAt < 0) return { why: 'it is of another format' };
  return { head: Buffer.from(start.slice(FORMAT_LINE.length, endAt), 'latin1').toString(), sizeBytes: size };
}

/** Bytes of a file; each piece is valid until the next is asked for. @throws where it ends before */
async function* readPieces(handle: FileHandle, from: number, sizeBytes: number): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, sizeBytes));
  for (let at = 0; at < sizeBytes; ) {
    const wantedBytes = Math.min(buffer.length, sizeBytes - at);
    const { bytesRead } = await handle.read(buffer, 0, wantedBytes, from + at);
    if (bytesRead === 0) throw new Error('the file ends too early');
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

function openPages(handle: FileHandle, { head, sizeBytes }: Checked): OpenPage {
  const startBytes = Buffer.byteLength(`${FORMAT_LINE}${head}\n`);
  return {
    head,
    async *read(from, wantedBytes) {
      const packed = readPieces(handle, startBytes, sizeBytes - startBytes - CHECKSUM_BYTES);
      const untilBytes = from + wantedBytes;
      let at = 0;
      for await (const piece of decompress(packed)) {
        const part = piece.subarray(Math.max(0, from - at), Math.max(0, untilBytes - at));
        at += piece.length;
        if (part.length > 0) yield part;
        if (at >= untilBytes) return;
      }
    },
    close: () => handle.close(),
  };
}

function describeFault(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
