// The files of the image: the binary, the Debian libraries that it is linked with and theirs, the licences of all that,
// and what vulnerability scanners read. No shell, no package manager, no user database.

import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Architecture } from './binary.ts';
import type { DebianPackage } from './debian.ts';
import { listNeeded, readInterpreter } from './elf.ts';
import type { Entry } from './tar.ts';

/** What the tree is made from. */
export type RootPlan = {
  readonly architecture: Architecture;
  readonly binary: Buffer;
  /** Of all architectures. */
  readonly packages: readonly DebianPackage[];
  readonly license: Buffer;
  readonly notices: Buffer;
};

/** Where the binary is in the image. */
export const BINARY_PATH = 'lastscrape';

/** The files, sorted by path, with the folders that they need. @throws when a library is in none of the packages. */
export function makeRoot({ architecture, binary, packages, license, notices }: RootPlan): readonly Entry[] {
  const own = packages.filter((candidate) => candidate.architecture === architecture.debian);
  const entries: Entry[] = [
    { kind: 'file', path: BINARY_PATH, mode: 0o755, bytes: binary },
    { kind: 'file', path: 'usr/share/doc/lastscrape/LICENSE', mode: 0o644, bytes: license },
    { kind: 'file', path: 'usr/share/doc/lastscrape/THIRD-PARTY-NOTICES', mode: 0o644, bytes: notices },
    // As on Debian, where everything is below /usr: the path of the loader is in the binary, that of libraries in the loader.
    { kind: 'symlink', path: 'lib', mode: 0o777, target: 'usr/lib' },
    ...(architecture.node === 'x64'
      ? [{ kind: 'symlink', path: 'lib64', mode: 0o777, target: 'usr/lib64' } as const]
      : []),
  ];
  for (const { name, takes, control, entries: content } of own) {
    if (takes !== 'libraries') entries.push(...takes.map((path) => pick(content, path)));
    // The same place as in distroless images, where scanners look for the packages of an image without dpkg.
    const status = control.replace(/^(Package: .*)$/m, '$1\nStatus: install ok installed');
    entries.push({ kind: 'file', path: `var/lib/dpkg/status.d/${name}`, mode: 0o644, bytes: Buffer.from(status) });
    // libgcc-s1's and libstdc++6's folder is a link to that of gcc-14-base, whose copyright file is for all three.
    const doc = content.find(({ path }) => path === `usr/share/doc/${name}`);
    if (doc?.kind === 'symlink') entries.push(doc);
    else if (takes === 'libraries') entries.push(pick(content, `usr/share/doc/${name}/copyright`));
  }
  entries.push(...collectLibraries(binary, own, architecture));

  const byPath = new Map(entries.map((entry) => [entry.path, entry]));
  for (const path of [...byPath.keys()]) {
    for (let end = path.indexOf('/'); end !== -1; end = path.indexOf('/', end + 1)) {
      const folder = path.slice(0, end);
      if (!byPath.has(folder)) byPath.set(folder, { kind: 'directory', path: folder, mode: 0o755 });
    }
  }
  return [...byPath.values()].sort((left, right) => (left.path < right.path ? -1 : 1));
}

/** Writes the files below a folder. */
export function writeRoot(folder: string, entries: readonly Entry[]): void {
  mkdirSync(folder, { recursive: true });
  for (const entry of entries) {
    const path = join(folder, entry.path);
    if (entry.kind === 'symlink') {
      symlinkSync(entry.target, path);
      continue;
    }
    if (entry.kind === 'directory') mkdirSync(path);
    else writeFileSync(path, entry.bytes);
    // Whatever the umask: the user of the image must be able to read it.
    chmodSync(path, entry.mode);
  }
}

/** The libraries of the binary, theirs, and the loader, each with the links that lead to it. */
function collectLibraries(
  binary: Buffer,
  packages: readonly DebianPackage[],
  { triplet }: Architecture,
): readonly Entry[] {
  const available = new Map(
    packages
      .flatMap(({ takes, entries }) => (takes === 'libraries' ? entries : []))
      .map((entry) => [entry.path, entry]),
  );
  const taken = new Map<string, Entry>();
  const take = (path: string): void => {
    if (taken.has(path)) return;
    const entry = available.get(path);
    if (entry === undefined) throw new Error(`Cannot find ${path} for the image: none of the packages has it`);
    taken.set(path, entry);
    if (entry.kind === 'symlink') take(resolveLink(path, entry.target));
    if (entry.kind === 'file') for (const name of listNeeded(entry.bytes)) take(`usr/lib/${triplet}/${name}`);
  };
  const interpreter = readInterpreter(binary);
  if (interpreter === null) throw new Error('Bug: the binary names no loader');
  take(`usr${interpreter}`);
  for (const name of listNeeded(binary)) take(`usr/lib/${triplet}/${name}`);
  return [...taken.values()];
}

function resolveLink(path: string, target: string): string {
  return new URL(target, `file:///${path}`).pathname.slice(1);
}

function pick(entries: readonly Entry[], path: string): Entry {
  const entry = entries.find((candidate) => candidate.path === path && candidate.kind !== 'directory');
  if (entry === undefined) throw new Error(`Cannot find ${path} in the Debian package: it has no such file`);
  return entry;
}
