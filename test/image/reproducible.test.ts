// The same input gives the same bytes: the checkout is built once more, in another folder, and compared with dist/ file by file.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { sha256 } from '../../image/layout.ts';
import { DIST, gateDist, ROOT, readDist, readIndex } from '../support/dist.ts';

const skip = gateDist('test/image/reproducible.test.ts');
/** Two cores that other tests use too: a build alone takes 100 s, mostly zstd at level 19. */
const BUILD_MS = 600_000;

test('SHA256SUMS holds for every released file', { skip }, () => {
  const lines = readDist('SHA256SUMS').toString('utf8').trimEnd().split('\n');
  const released = listFiles(DIST).filter((path) => !/^(SHA256SUMS|bundle.*|rootfs\/.*)$/.test(path));
  assert.deepEqual(lines.map((line) => line.slice(66)).sort(), released.sort());
  for (const line of lines) assert.equal(sha256(readDist(line.slice(66))), line.slice(0, 64), line.slice(66));
});

test('a build of the same checkout in another folder gives the same bytes', { skip, timeout: BUILD_MS }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'lastscrape-again-'));
  try {
    for (const path of ['bin', 'src', 'package.json', 'LICENSE'])
      cpSync(join(ROOT, path), join(folder, path), { recursive: true });
    cpSync(join(ROOT, 'image'), join(folder, 'image'), {
      recursive: true,
      filter: (path) => path !== join(ROOT, 'image/node_modules'),
    });
    // The program's own packages are bundled by path: copied. What only builds may be shared, and saves 420 MB.
    cpSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'), {
      recursive: true,
      filter: (path) => !/^node_modules\/(node-linux-|@|typescript|\.)/.test(relative(ROOT, path)),
    });
    symlinkSync(join(ROOT, 'image/node_modules'), join(folder, 'image/node_modules'));
    cpSync(join(ROOT, '.cache/image/debian'), join(folder, '.cache/image/debian'), { recursive: true });
    const { annotations } = readIndex();
    const commit = annotations['org.opencontainers.image.revision'] ?? '';
    const created = Date.parse(annotations['org.opencontainers.image.created'] ?? '') / 1000;
    execFileSync(process.execPath, ['image/build.ts', '--commit', commit, '--created', String(created)], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const again = join(folder, 'dist');
    const hasSameBundle = readFileSync(join(again, 'bundle.cjs')).equals(readDist('bundle.cjs'));
    assert.ok(
      hasSameBundle,
      'dist/ is older than the sources, or the bundle depends on the folder: run "npm run build"',
    );
    assert.deepEqual(listFiles(again), listFiles(DIST));
    for (const path of listFiles(again)) {
      assert.equal(sha256(readFileSync(join(again, path))), sha256(readDist(path)), `dist/${path} differs`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

function listFiles(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}
