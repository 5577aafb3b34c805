// Writes the termination message: a file that the kubelet reads when the container ends, mounted into it, so it is
// rewritten in place and never renamed. Written only into a regular file, and never blocking.

import { closeSync, constants, openSync, statSync, writeSync } from 'node:fs';

/** Writes `text` into the file; null, or why it could not. A missing file is no problem unless the user chose the path. */
export function writeTerminationMessage(path: string, isChosen: boolean, text: string): string | null {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined && !isChosen) return null;
    if (stats !== undefined && !stats.isFile()) return `Cannot write ${path}: it is no regular file`;
    const { O_WRONLY, O_CREAT, O_TRUNC, O_NONBLOCK } = constants;
    const file = openSync(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK, 0o644);
    try {
      writeSync(file, text);
    } finally {
      closeSync(file);
    }
    return null;
  } catch (error) {
    return `Cannot write ${path}: ${(error as NodeJS.ErrnoException).code}`;
  }
}
