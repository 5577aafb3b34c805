// Which lastscrape is measured: LASTSCRAPE_TEST_BINARY, what `npm run build` made, or the sources.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readTestVariable } from '../support/programs.ts';

export type Subject = {
  readonly name: string;
  readonly command: readonly string[];
  /** The file of the binary; `undefined` for the sources. */
  readonly binary: string | undefined;
};

const ROOT = join(import.meta.dirname, '../..');

/** Looks for the binary first; the sources cost more in every respect but the final numbers. */
export function findSubject(): Subject {
  const built = join(ROOT, 'dist', `lastscrape-linux-${process.arch}`);
  const binary = readTestVariable('LASTSCRAPE_TEST_BINARY') ?? (existsSync(built) ? built : undefined);
  if (binary !== undefined) return { name: 'the binary', command: [binary], binary };
  return { name: 'the sources', command: [process.execPath, join(ROOT, 'bin/lastscrape.ts')], binary };
}
