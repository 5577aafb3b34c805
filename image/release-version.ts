// The version of the program in every file that carries it. package.json has the one that counts; a test writes another one into a
// copy of the checkout, and runs there what compares them.

import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Files in which the version stands behind one of the words of `WORDS`. A changelog keeps the versions that it names. */
const FILES = ['README.md', 'docs/**/*.md', 'deploy/**/*.{md,yaml}', 'fixtures/{injected,pods}/**/*.{json,yaml}'];

/** What stands before the version: the image's name, kustomize's field, the layout's name, the report's field, the tag's command. */
const WORDS = ['lastscrape:', 'newTag: ', 'dist/image:', '"version":"', 'git tag -s v'];

/** Semantic Versioning 2.0.0 without build metadata: an image's tag has no "+". */
const VERSION_PATTERN = /^(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$/;

/** The version of the checkout. */
export function readVersion(root: string): string {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version;
}

/**
 * Writes `version` wherever that of package.json stands.
 *
 * @returns the files that changed, relative to `root`; empty when it is the version already
 * @throws before anything is written when it is no version, or when a file that must have it has it not
 */
export function setVersion(root: string, version: string): readonly string[] {
  if (!VERSION_PATTERN.test(version)) {
    throw new Error(`Cannot set the version: "${version}" is none; must be like 1.2.3 or 1.2.3-rc.1`);
  }
  const old = readVersion(root);
  if (old === version) return [];
  const changed = new Map<string, string>();
  const replace = (file: string, pattern: RegExp, wanted: 'once' | 'any'): void => {
    const before = readFileSync(join(root, file), 'utf8');
    const count = [...before.matchAll(pattern)].length;
    if (wanted === 'once' && count !== 1) {
      throw new Error(`Cannot set the version: ${file} has ${old} in ${count} places; must be one (${pattern.source})`);
    }
    if (count > 0) changed.set(file, before.replaceAll(pattern, version));
  };
  const oldPattern = old.replaceAll('.', '\\.');
  replace('package.json', RegExp(`(?<=^  "version": ")${oldPattern}(?=",$)`, 'gm'), 'once');
  replace('src/base/version.ts', RegExp(`(?<=VERSION = ')${oldPattern}(?=';)`, 'g'), 'once');
  // Twice: the lock's own field and the one of the package in the folder "".
  replace('package-lock.json', RegExp(`(?<="name": "lastscrape",\\s+"version": ")${oldPattern}(?=")`, 'g'), 'any');
  // The chart's own and the program's: they are released together.
  replace('deploy/chart/Chart.yaml', RegExp(`(?<=^(?:v|appV)ersion: )${oldPattern}$`, 'gm'), 'any');
  const behindWord = RegExp(`(?<=${WORDS.join('|')})${oldPattern}(?![\\w-]|\\.\\w)`, 'g');
  for (const file of globSync(FILES, { cwd: root }).toSorted()) replace(file, behindWord, 'any');
  for (const [file, text] of changed) writeFileSync(join(root, file), text);
  return [...changed.keys()];
}
