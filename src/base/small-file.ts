// Reads a small file that a person or a Secret may change at any time, and that may be on a mount which hangs.

import { close, open, read } from './files.ts';
import { prepareThreadCall } from './thread-call.ts';

/** The text, or why there is none: `ENOENT`, `it is longer than 64 KiB`. */
export type SmallFile = { readonly text: string } | { readonly why: string };

export type ReadSmallFile = (options: {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}) => Promise<SmallFile>;

/** Prepares to read the file at `path`, anew by each call. Never rejects. */
export function prepareSmallFile(path: string, maxBytes: number): ReadSmallFile {
  const call = prepareThreadCall(() => readWhole(path, maxBytes));
  return async (options) => {
    const result = await call(options);
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
