// Writes the termination message: a file that the kubelet reads when the container ends, mounted into it, so
// it is rewritten in place and never renamed. Written only into a regular file, and never blocking.

import { accessSync, closeSync, constants, ftruncateSync, openSync, statSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/** Every old text of ours is shorter; a longer file is not ours. */
const OLD_TEXT_MAX_BYTES = 4_096;

/** Writes `text`; returns why not, or null. A missing file is no problem unless the user chose the path. */
export function writeTerminationMessage(path: string, isChosen: boolean, text: string): string | null {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined && !isChosen) return null;
    if (stats !== undefined && !stats.isFile()) return `Cannot write ${path}: it is no regular file`;
    // Never truncate first: a kill here leaves the old or the new text, at most followed by blanks.
    const file = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NONBLOCK, 0o644);
    try {
      const bytes = Buffer.from(text);
      const oldBytes = Math.min(stats?.size ?? 0, OLD_TEXT_MAX_BYTES);
      writeSync(file, Buffer.concat([bytes, Buffer.alloc(Math.max(0, oldBytes - bytes.length), ' ')]));
      ftruncateSync(file, bytes.length);
    } finally {
      closeSync(file);
    }
    return null;
  } catch (error) {
    return `Cannot write ${path}: ${(error as NodeJS.ErrnoException).code}`;
  }
}

/** Why no message can be written there, as the file and its folder show; or null. Writes nothing. */
export function findMessageProblem(path: string, isChosen: boolean): string | null {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined && !isChosen) return `${path} is not there: the report goes to the log alone`;
    if (stats !== undefined && !stats.isFile()) return `Cannot write ${path}: it is no regular file`;
    accessSync(stats === undefined ? dirname(path) : path, constants.W_OK);
    return null;
  } catch (error) {
    return `Cannot write ${path}: ${(error as NodeJS.ErrnoException).code}`;
  }
}
