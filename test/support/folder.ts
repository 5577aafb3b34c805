// A folder of a test's own, which goes when its process ends.

import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folders: string[] = [];

/** Makes an empty folder; its path has no links. */
export function makeFolder(): string {
  if (folders.length === 0) process.once('exit', removeAll);
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'lastscrape-')));
  folders.push(folder);
  return folder;
}

function removeAll(): void {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}
