// Reads a small file that may change at any time (a Secret), and whose mount may hang.

import { close, open, read } from './files.ts';
import { prepareThreadCall } from './thread-call.ts';
import type { Limits } from './waits.ts';

/** The text, or why it was not read: `ENOENT`, `it is longer than 64 KiB`. */
export type SmallFile = { readonly text: string } | { readonly why: string };

export type ReadSmallFile = (limits: Limits) => Promise<SmallFile>;

/** Prepares to read the file at `path`; each call reads it again. Never rejects. */
export function prepareSmallFile(path: string, maxBytes: number): ReadSmallFile {
  const call = prepareThreadCall(() => readWhole(path, maxBytes));
  return async (limits) => {
    const result = await call(limits);
    return result.kind === 'returned' ? result.value : { why: result.why };
  };
}

async function readWhole(path: string, maxBytes: number): Promise<SmallFile> {
  let file: number | null = null;
  try {
    file = await open(path, 'r');
    const buffer = Buffer.allocUnsafeSlow(maxBytes + 1);
    let sizeBytes = 0;
    while (sizeBytes <= maxBytes) {
      const { bytesRead } = await read(file, buffer, sizeBytes, buffer.length - sizeBytes, null);
      if (bytesRead === 0) return { text: buffer.toString('utf8', 0, sizeBytes) };
      sizeBytes += bytesRead;
    }
    return { why: `it is longer than ${maxBytes / 1024} KiB` };
  } catch (error) {
    return { why: (error as NodeJS.ErrnoException).code ?? String(error) };
  } finally {
    if (file !== null) await close(file);
  }
}
