// The same input gives the same bytes: builds the checkout once more, in a folder of its own, and compares two results.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import { sha256 } from './layout.ts';

/** What a build says that it was made from. */
export type Origin = { readonly commit: string; readonly createdSeconds: number };

/** Reads that of a built image. */
export function readOrigin(dist: string): Origin {
  const read = (path: string) => JSON.parse(readFileSync(join(dist, 'image', path), 'utf8'));
  const [{ digest }] = read('index.json').manifests;
  const { annotations } = read(`blobs/${digest.replace(':', '/')}`);
  return {
    commit: annotations['org.opencontainers.image.revision'],
    createdSeconds: Date.parse(annotations['org.opencontainers.image.created']) / 1_000,
  };
}

/**
 * Builds the checkout `root` in `folder`, which is emptied first. Takes the packages of `root`, so that one must have been built.
 *
 * @returns the path of what corresponds to dist/
 */
export function buildAgain(root: string, folder: string, { commit, createdSeconds }: Origin): string {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const path of ['bin', 'src', 'package.json', 'LICENSE']) {
    cpSync(join(root, path), join(folder, path), { recursive: true });
  }
  cpSync(join(root, 'image'), join(folder, 'image'), {
    recursive: true,
    filter: (path) => path !== join(root, 'image/node_modules'),
  });
  // The program's own packages are bundled by path: copied. What only builds may be shared, and saves 420 MB.
  cpSync(join(root, 'node_modules'), join(folder, 'node_modules'), {
    recursive: true,
    filter: (path) => !/^node_modules\/(node-linux-|@|typescript|\.)/.test(relative(root, path)),
  });
  symlinkSync(join(root, 'image/node_modules'), join(folder, 'image/node_modules'));
  cpSync(join(root, '.cache/image/debian'), join(folder, '.cache/image/debian'), { recursive: true });
  execFileSync(process.execPath, ['image/build.ts', '--commit', commit, '--created', String(createdSeconds)], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return join(folder, 'dist');
}

/** The files below a folder, sorted; no links and no folders. */
export function listFiles(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}

/** The files that are in one folder only, or differ; empty when both hold the same bytes. */
export function listDifferences(one: string, other: string): readonly string[] {
  const [inOne, inOther] = [new Set(listFiles(one)), new Set(listFiles(other))];
  const hash = (folder: string, path: string) => sha256(readFileSync(join(folder, path)));
  return [...new Set([...inOne, ...inOther])]
    .filter((path) => !inOne.has(path) || !inOther.has(path) || hash(one, path) !== hash(other, path))
    .sort();
}
