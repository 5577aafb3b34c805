// From the bundle and the base binaries of Node to one executable per architecture: sections stripped, most of ICU blanked.
// The same bundle gives the same bytes in any folder.

import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { recordCodeCache, wrapBundle } from './code-cache.ts';
import type { DebianPackage } from './debian.ts';
import { stripSections } from './elf.ts';
import { blankIcu } from './icu.ts';
import type { InjectPlan } from './inject.ts';

/** The architectures, as Node, Debian and OCI name them, and as the ELF header does. */
export const ARCHITECTURES = [
  { node: 'x64', debian: 'amd64', oci: { architecture: 'amd64' }, triplet: 'x86_64-linux-gnu', machine: 62 },
  {
    node: 'arm64',
    debian: 'arm64',
    oci: { architecture: 'arm64', variant: 'v8' },
    triplet: 'aarch64-linux-gnu',
    machine: 183,
  },
] as const;

/** One of them. */
export type Architecture = (typeof ARCHITECTURES)[number];

/** What the binaries are made from. */
export type BinaryPlan = {
  readonly bundle: Buffer;
  /** What the bundle reads, by name. */
  readonly assets: ReadonlyMap<string, Buffer>;
  readonly nodeVersion: string;
  /** What Node is linked with; of all architectures. */
  readonly debianPackages: readonly DebianPackage[];
  /** Where image/'s own packages are. */
  readonly imageFolder: string;
  /** Emptied first; may be deleted afterwards. */
  readonly workFolder: string;
};

/** An executable, and the code cache that it has. */
export type Binary = { readonly bytes: Buffer; readonly codeCache: Buffer };

/** Makes the executables; the keys are Node's names of the architectures. */
export function makeBinaries(plan: BinaryPlan): Readonly<Record<Architecture['node'], Binary>> {
  const { bundle, assets, nodeVersion, imageFolder, workFolder, debianPackages } = plan;
  rmSync(workFolder, { recursive: true, force: true });
  mkdirSync(workFolder, { recursive: true });
  const written = new Map([...assets, ['bundle.js', wrapBundle(bundle)]]);
  for (const [name, bytes] of written) writeFileSync(join(workFolder, name), bytes);
  copyFileSync(join(import.meta.dirname, 'main.cjs'), join(workFolder, 'lastscrape.cjs'));
  const made = ARCHITECTURES.map((architecture) => {
    const { node: arch } = architecture;
    const base = makeBase(imageFolder, arch);
    seedCache(workFolder, `node-v${nodeVersion}-linux-${arch}`, base);
    const codeCache = recordCodeCache({ architecture, base, debianPackages, workFolder });
    const path = join(workFolder, `lastscrape-${arch}`);
    const injectPlan: InjectPlan = { nodeVersion, assets: [...written.keys(), 'bundle.cache'], arch, path };
    execFileSync(
      process.execPath,
      [join(import.meta.dirname, 'inject.ts'), JSON.stringify(injectPlan)],
      // What pkg says on stdout is its steps; what goes wrong is on stderr and in the exit code.
      { env: { HOME: workFolder, TMPDIR: workFolder }, stdio: ['ignore', 'ignore', 'inherit'] },
    );
    return [arch, { bytes: readFileSync(path), codeCache }] as const;
  });
  return Object.fromEntries(made) as Record<Architecture['node'], Binary>;
}

/** Node without its unloaded sections and most of ICU. */
export function makeBase(imageFolder: string, node: Architecture['node']): Buffer {
  const base = stripSections(readFileSync(basePath(imageFolder, node)));
  blankIcu(base);
  return base;
}

/** Node as it is on the registry, for an architecture. */
export function basePath(imageFolder: string, node: Architecture['node']): string {
  return join(imageFolder, 'node_modules', `node-linux-${node}`, 'bin/node');
}

/** What pkg looks for before it would download: the binary, and marks that say it is whole. */
function seedCache(home: string, name: string, base: Buffer): void {
  const cache = join(home, '.pkg-cache/sea');
  const bin = join(cache, name, 'bin');
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, 'node'), base);
  chmodSync(join(bin, 'node'), 0o755);
  for (const mark of [join(bin, 'node.ok'), join(cache, `${name}.tar.gz`), join(cache, `${name}.tar.gz.ok`)]) {
    writeFileSync(mark, '');
  }
}
