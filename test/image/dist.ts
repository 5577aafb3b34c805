// What `npm run build` made. A missing dist/ is said loudly, and a failure with CI=true.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { type Entry, readTar } from '../../image/tar.ts';
import { findOnPath, gateMissing } from '../support/programs.ts';

export const ROOT = join(import.meta.dirname, '../..');
export const DIST = join(ROOT, 'dist');

/** A component of the bill of materials, as far as it is read. */
export type Component = {
  readonly name: string;
  readonly version: string;
  readonly licenses: readonly { readonly license?: { readonly id: string }; readonly expression?: string }[];
  readonly purl: string;
};

/** An image of one architecture, read from the layout. */
export type Image = {
  readonly architecture: string;
  readonly manifest: { readonly config: Descriptor; readonly layers: readonly Descriptor[] };
  readonly config: {
    readonly architecture: string;
    readonly os: string;
    readonly created: string;
    readonly config: Readonly<Record<string, unknown>>;
    readonly rootfs: { readonly diff_ids: readonly string[] };
  };
  readonly tar: Buffer;
  readonly entries: readonly Entry[];
};

export type Descriptor = {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly architecture: string; readonly os: string };
  readonly annotations?: Readonly<Record<string, string>>;
};

/** Why the tests of a file are skipped; `false`: dist/ is there. @throws with CI=true when it is not */
export function gateDist(file: string): string | false {
  const isThere = existsSync(join(DIST, 'SHA256SUMS'));
  return gateMissing(file, isThere ? [] : ['there is no dist/; run "npm run build"']);
}

/** The same for a program of Debian's. */
export function gateProgram(file: string, program: string, debianPackage: string): string | false {
  const isThere = findOnPath(program) !== undefined;
  return gateMissing(file, isThere ? [] : [`there is no ${program}; run "apt-get install ${debianPackage}"`]);
}

export function readDist(path: string): Buffer {
  return readFileSync(join(DIST, path));
}

export function readDistJson<Value>(path: string): Value {
  return JSON.parse(readDist(path).toString('utf8'));
}

export function readBlob(digest: string): Buffer {
  return readDist(`image/blobs/${digest.replace(':', '/')}`);
}

/** The index with both architectures. */
export function readIndex(): {
  readonly manifests: readonly Descriptor[];
  readonly annotations: Record<string, string>;
} {
  const [named] = readDistJson<{ manifests: readonly [Descriptor] }>('image/index.json').manifests;
  return JSON.parse(readBlob(named.digest).toString('utf8'));
}

export function readImages(): readonly Image[] {
  return readIndex().manifests.map(({ digest, platform }) => {
    const manifest: Image['manifest'] = JSON.parse(readBlob(digest).toString('utf8'));
    const [layer] = manifest.layers;
    if (layer === undefined) throw new Error('Cannot read an image without a layer');
    const tar = zstdDecompressSync(readBlob(layer.digest));
    return {
      architecture: platform?.architecture ?? '',
      manifest,
      config: JSON.parse(readBlob(manifest.config.digest).toString('utf8')),
      tar,
      entries: readTar(tar),
    };
  });
}

/** What a program printed; its exit code must be 0. Its environment is `env` and nothing else. */
export function run(command: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  const [file = '', ...args] = command;
  return execFileSync(file, args, { encoding: 'utf8', env, timeout: 60_000 });
}
