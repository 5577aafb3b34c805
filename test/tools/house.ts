// The sources as a house: who imports whom, in which folder, on which floor. Reads text, so that types count.

import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');

/** Every source file of the program, relative to the checkout; declarations of foreign packages left out. */
export const FILES: readonly string[] = globSync('{src,bin}/**/*.ts', { cwd: ROOT })
  .filter((file) => !file.endsWith('.d.ts'))
  .sort();

/** One import. `to` is a file relative to the checkout, or the name of a package. */
export type Import = {
  readonly from: string;
  readonly to: string;
  readonly isType: boolean;
  readonly isDynamic: boolean;
};

/** The text of a file of the checkout. */
export function readSource(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

/** Every import of a file: static, of types, and by import(). */
export function listImports(file: string): readonly Import[] {
  const text = readSource(file);
  const statements = text.matchAll(/^(?:import|export)\s+(type\s)?([^;]*?)\s*from\s+'([^']+)';/gm);
  const bare = [...text.matchAll(/^import\s+'([^']+)'|\bimport\(\s*'([^']+)'/gm)].map((match) => [
    '',
    undefined,
    'all',
    match[1] ?? match[2],
    match[1] === undefined ? 'dynamic' : undefined,
  ]);
  return [...statements, ...bare].map(([, type, names = '', to = '', dynamic]) => {
    const isType =
      type !== undefined ||
      names
        .replace(/[{}]/g, '')
        .split(',')
        .every((name) => /^\s*(type\s|$)/.test(name));
    const isDynamic = dynamic !== undefined;
    return { from: file, to: to.startsWith('.') ? normalize(join(dirname(file), to)) : to, isType, isDynamic };
  });
}

/** The folder of `src/` that a file is in; `main` or `bin` for the two that are in none. */
export function findFolder(file: string): string {
  const [top = '', second = ''] = file.split('/');
  return top === 'bin' ? 'bin' : second.replace('.ts', '');
}

export function listFolderImports(): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>(FILES.map((file) => [findFolder(file), new Set()]));
  for (const { from, to } of FILES.flatMap(listImports)) {
    if (to.startsWith('src/') && findFolder(from) !== findFolder(to)) found.get(findFolder(from))?.add(findFolder(to));
  }
  return found;
}

/** The folders floor by floor, each above the highest that it imports. @throws at a circle */
export function listFloors(folders: ReadonlyMap<string, ReadonlySet<string>>): readonly (readonly string[])[] {
  const floorOf = new Map<string, number>();
  function place(folder: string, path: readonly string[]): number {
    if (path.includes(folder)) throw new Error(`Folders import each other: ${[...path, folder].join(' → ')}`);
    const known = floorOf.get(folder);
    if (known !== undefined) return known;
    const below = [...(folders.get(folder) ?? [])].map((each) => place(each, [...path, folder]));
    const floor = Math.max(-1, ...below) + 1;
    floorOf.set(folder, floor);
    return floor;
  }
  for (const folder of folders.keys()) place(folder, []);
  const height = Math.max(...floorOf.values()) + 1;
  return Array.from({ length: height }, (_, floor) =>
    [...floorOf.keys()].filter((folder) => floorOf.get(folder) === floor).toSorted(),
  );
}
