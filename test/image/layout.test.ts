// The container image as a registry and a kubelet read it.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { listNeeded, readElf, readInterpreter } from '../../image/elf.ts';
import { sha256 } from '../../image/layout.ts';
import { type Entry, writeTar } from '../../image/tar.ts';
import { VERSION } from '../../src/base/version.ts';
import { makeFolder } from '../support/folder.ts';
import {
  type Descriptor,
  DIST,
  gateDist,
  gateProgram,
  ROOT,
  readBlob,
  readDist,
  readDistJson,
  readImages,
  readIndex,
} from './dist.ts';

const FILE = 'test/image/layout.test.ts';
const skip = gateDist(FILE);
const skipSkopeo = skip || gateProgram(FILE, 'skopeo', 'skopeo');
/** ELF machines by OCI's names. */
const MACHINES: Readonly<Record<string, number>> = { amd64: 62, arm64: 183 };
const NAMES: Readonly<Record<string, string>> = { amd64: 'x64', arm64: 'arm64' };

test('the layout has one name, below it one index, below that both architectures', { skip }, () => {
  assert.deepEqual(readDistJson('image/oci-layout'), { imageLayoutVersion: '1.0.0' });
  const { manifests } = readDistJson<{ manifests: readonly Descriptor[] }>('image/index.json');
  assert.deepEqual(
    manifests.map(({ mediaType, annotations }) => [mediaType, annotations?.['org.opencontainers.image.ref.name']]),
    [['application/vnd.oci.image.index.v1+json', JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version]],
  );
  const platforms = readIndex().manifests.map(({ platform }) => `${platform?.os}/${platform?.architecture}`);
  assert.deepEqual(platforms, ['linux/amd64', 'linux/arm64']);
});

test('the command of docs/building.md makes an archive of the image, by the name that a manifest has', {
  skip: skipSkopeo,
}, () => {
  const page = readFileSync(join(ROOT, 'docs/building.md'), 'utf8');
  const [command = '', name] = /^skopeo copy \S+ oci-archive:lastscrape\.tar:(\S+)$/m.exec(page) ?? [];
  const folder = makeFolder();
  symlinkSync(DIST, join(folder, 'dist'));
  execFileSync('sh', ['-c', command], { cwd: folder });
  const index = execFileSync('tar', ['-xOf', 'lastscrape.tar', 'index.json'], { cwd: folder, encoding: 'utf8' });
  const { manifests } = JSON.parse(index);
  assert.equal(name, `docker.io/library/lastscrape:${VERSION}`);
  const names = manifests.map(({ annotations }: Descriptor) => annotations?.['org.opencontainers.image.ref.name']);
  assert.deepEqual(names, [name]);
});

test('every digest and size in the layout is right', { skip }, () => {
  const check = ({ digest, size }: Descriptor) => {
    const bytes = readBlob(digest);
    assert.deepEqual([`sha256:${sha256(bytes)}`, bytes.length], [digest, size]);
  };
  for (const named of readDistJson<{ manifests: readonly Descriptor[] }>('image/index.json').manifests) check(named);
  for (const manifest of readIndex().manifests) check(manifest);
  for (const { manifest, config, tar } of readImages()) {
    check(manifest.config);
    assert.equal(manifest.layers.length, 1);
    for (const layer of manifest.layers) check(layer);
    assert.deepEqual(config.rootfs.diff_ids, [`sha256:${sha256(tar)}`]);
  }
});

test('the image runs the binary as a numeric user, without a variable', { skip }, () => {
  for (const { config, architecture } of readImages()) {
    assert.deepEqual([config.os, config.architecture], ['linux', architecture]);
    const { Labels: labels, ...rest } = config.config;
    assert.deepEqual(rest, { User: '65532:65532', Entrypoint: ['/lastscrape'], WorkingDir: '/' });
    const revision = String((labels as Record<string, string>)['org.opencontainers.image.revision']);
    assert.match(revision, /^[0-9a-f]{12}|^unknown/);
    assert.deepEqual(labels, readIndex().annotations);
  }
});

test('the image holds the binary of dist/, the libraries that it needs and theirs, and no other program', {
  skip,
}, () => {
  for (const { entries, architecture } of readImages()) {
    const file = (path: string) => resolve(entries, path);
    const binary = file('lastscrape');
    assert.equal(sha256(binary), sha256(readDist(`lastscrape-linux-${NAMES[architecture]}`)));
    const programs = entries.flatMap((entry) =>
      entry.kind === 'file' && entry.bytes.subarray(1, 4).toString('latin1') === 'ELF' ? [entry] : [],
    );
    for (const { bytes, path } of programs) assert.equal(readElf(bytes).machine, MACHINES[architecture], path);
    const folder = architecture === 'amd64' ? 'usr/lib/x86_64-linux-gnu' : 'usr/lib/aarch64-linux-gnu';
    const needed = new Set<string>();
    const follow = (bytes: Buffer) => {
      for (const name of listNeeded(bytes)) {
        if (needed.has(name)) continue;
        needed.add(name);
        follow(file(`${folder}/${name}`));
      }
    };
    follow(binary);
    file((readInterpreter(binary) ?? '').slice(1));
    assert.deepEqual(
      programs
        .map(({ path }) =>
          path
            .split('/')
            .at(-1)
            ?.replace(/\.so\.6\.0\.33$/, '.so.6'),
        )
        .sort(),
      ['lastscrape', ...needed].sort(),
    );
  }
});

test('the image has no shell, no user database, nothing that is set-id, and nothing that others may write', {
  skip,
}, () => {
  for (const { entries } of readImages()) {
    assert.deepEqual(
      entries.filter(
        ({ path }) =>
          /(^|\/)(s?bin|passwd|group|shadow|sh|busybox|dpkg)(\/|$)/.test(path) && !path.startsWith('var/lib/dpkg'),
      ),
      [],
    );
    for (const { path, kind, mode } of entries) if (kind !== 'symlink') assert.equal(mode & 0o7022, 0, path);
    const runnable = entries
      .filter(({ kind, mode }) => kind === 'file' && (mode & 0o111) !== 0)
      .map(({ path }) => path);
    assert.deepEqual(
      runnable.filter(
        (path) => path !== 'lastscrape' && !/\/(ld-linux-[\w-]+|libc|libstdc\+\+)\.so\.[\d.]+$/.test(path),
      ),
      [],
    );
  }
});

test('the image holds the licences of everything in it', { skip }, () => {
  for (const { entries } of readImages()) {
    const read = (path: string) => resolve(entries, path).toString('utf8');
    for (const name of ['libc6', 'libgcc-s1', 'libstdc++6']) {
      const copyright = read(`usr/share/doc/${name}/copyright`);
      for (const [, text] of copyright.matchAll(/\/usr\/share\/common-licenses\/((?:L?GPL)-[\d.]*\d)/g)) {
        assert.ok(read(`usr/share/common-licenses/${text}`).length > 1000, text);
      }
    }
    const notices = read('usr/share/doc/lastscrape/THIRD-PARTY-NOTICES');
    for (const part of ['undici', 'parse-prometheus-text-format', 'shallow-equal', 'Node.js', 'OpenSSL', 'libc6']) {
      assert.ok(notices.includes(part), part);
    }
    assert.match(read('usr/share/doc/lastscrape/LICENSE'), /Apache License/);
  }
});

test('the folders for the Containerfile hold the same as the layers', { skip }, () => {
  for (const { entries, architecture } of readImages()) {
    for (const entry of entries) {
      if (entry.kind !== 'file') continue;
      const path = join(DIST, 'rootfs', architecture, entry.path);
      assert.equal(sha256(readFileSync(path)), sha256(entry.bytes), path);
    }
  }
});

test('the layers are within the budget of 30 MB', { skip }, () => {
  for (const { manifest, architecture } of readImages()) {
    assert.ok((manifest.layers[0]?.size ?? Infinity) <= 30e6, architecture);
  }
});

test('writeTar() refuses a path that ustar cannot hold', () => {
  const entry: Entry = { kind: 'directory', path: 'x'.repeat(101), mode: 0o755 };
  assert.throws(() => writeTar([entry], 0), /more than 100 bytes/);
});

/** The bytes at a path, through links in any part of it. */
function resolve(entries: readonly Entry[], path: string): Buffer {
  let parts = path.split('/');
  for (let index = 1; index <= parts.length; index += 1) {
    const entry = entries.find((candidate) => candidate.path === parts.slice(0, index).join('/'));
    assert.ok(entry !== undefined, `${path} is not in the image`);
    if (entry.kind === 'file') return entry.bytes;
    if (entry.kind === 'symlink') {
      const target = new URL(entry.target, `file:///${parts.slice(0, index).join('/')}`).pathname.slice(1);
      parts = [...target.split('/'), ...parts.slice(index)];
      index = 0;
    }
  }
  throw new Error(`Cannot read ${path}: it is a folder`);
}
