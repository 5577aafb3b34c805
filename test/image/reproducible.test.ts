// The same input gives the same bytes: the checkout is built again elsewhere, and compared with dist/.

import assert from 'node:assert/strict';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { sha256 } from '../../image/layout.ts';
import { buildAgain, listDifferences, listFiles, readOrigin } from '../../image/release-compare.ts';
import { makeFolder } from '../support/folder.ts';
import { gateFull } from '../support/programs.ts';
import { DIST, gateDist, ROOT, readDist } from './dist.ts';

const skip = gateDist('test/image/reproducible.test.ts');
const skipBuild = skip || gateFull('the second build in test/image/reproducible.test.ts');
/** Two cores that other tests use too: a build alone takes 100 s, mostly zstd at level 19. */
const BUILD_MS = 600_000;

test('SHA256SUMS holds for every released file', { skip }, () => {
  const lines = readDist('SHA256SUMS').toString('utf8').trimEnd().split('\n');
  const released = listFiles(DIST).filter((path) => !/^(SHA256SUMS|bundle.*|rootfs\/.*)$/.test(path));
  assert.deepEqual(lines.map((line) => line.slice(66)).sort(), released.sort());
  for (const line of lines) assert.equal(sha256(readDist(line.slice(66))), line.slice(0, 64), line.slice(66));
});

test('a build of the same checkout in another folder gives the same bytes', {
  skip: skipBuild,
  timeout: BUILD_MS,
}, () => {
  const folder = makeFolder();
  const again = buildAgain(ROOT, folder, readOrigin(DIST));
  const differences = listDifferences(DIST, again);
  const isNew = !differences.includes('bundle.cjs');
  assert.ok(isNew, 'dist/ is older than the sources, or the bundle depends on the folder: run "npm run build"');
  assert.deepEqual(differences, []);
});

test('listDifferences() names what is changed, what is more and what is missing', () => {
  const folder = makeFolder();
  const [one, other] = [join(folder, 'one'), join(folder, 'other')];
  cpSync(join(ROOT, 'image/figures'), join(one, 'same'), { recursive: true });
  cpSync(one, other, { recursive: true });
  assert.deepEqual(listDifferences(one, other), []);
  writeFileSync(join(one, 'changed'), 'a');
  writeFileSync(join(other, 'changed'), 'b');
  writeFileSync(join(one, 'missing'), '');
  writeFileSync(join(other, 'more'), '');
  assert.deepEqual(listDifferences(one, other), ['changed', 'missing', 'more']);
});
