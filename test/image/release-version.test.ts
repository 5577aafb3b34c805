// The version is set in one step: in a copy of the checkout, where its tests run at another one.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, globSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { readVersion, setVersion } from '../../image/release-version.ts';
import { makeFolder } from '../support/folder.ts';

const ROOT = join(import.meta.dirname, '../..');
/** No program that is named anywhere has it. */
const OTHER = '97.98.99-rc.1';
/** They compare with VERSION what a version is written into. */
const COMPARING = ['test/main.test.ts', 'test/readme.test.ts', 'test/deploy/policy.test.ts'];

function copyCheckout(): string {
  const copy = makeFolder();
  cpSync(ROOT, copy, {
    recursive: true,
    filter: (path) => !/^(\.git|\.cache|dist|release|coverage|(image\/)?node_modules)$/.test(relative(ROOT, path)),
  });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

test('setVersion() writes the version wherever it stands, and back', () => {
  const copy = copyCheckout();
  const old = readVersion(copy);
  const changed = setVersion(copy, OTHER);
  for (const file of [
    'package.json',
    'package-lock.json',
    'src/base/version.ts',
    'deploy/policy.yaml',
    'deploy/README.md',
  ]) {
    assert.ok(changed.includes(file), file);
  }
  assert.equal(readVersion(copy), OTHER);
  const { version, packages } = JSON.parse(readFileSync(join(copy, 'package-lock.json'), 'utf8'));
  assert.deepEqual([version, packages[''].version], [OTHER, OTHER]);

  const files = globSync(
    ['*.{md,json}', 'src/base/version.ts', 'docs/**/*.md', 'deploy/**/*.*', 'fixtures/{pods,injected}/**/*.*'],
    { cwd: copy },
  );
  const left = files.flatMap((file) =>
    readFileSync(join(copy, file), 'utf8')
      .split('\n')
      .filter((line) => line.includes(old) && /lastscrape:|newTag|"version":|version [=:]|tag -s/.test(line))
      .filter(() => file !== 'CHANGELOG.md' && file !== 'package-lock.json')
      .map((line) => `${file}: ${line.trim()}`),
  );
  assert.deepEqual(left, [], 'image/release-version.ts does not know these');

  assert.deepEqual(setVersion(copy, old), changed);
  for (const file of changed) {
    assert.equal(readFileSync(join(copy, file), 'utf8'), readFileSync(join(ROOT, file), 'utf8'), file);
  }
  assert.deepEqual(setVersion(copy, old), []);
});

test('the tests that compare versions hold at another one', () => {
  const copy = copyCheckout();
  setVersion(copy, OTHER);
  // The variable says that a runner is inside another one, which then runs nothing.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { status, stdout } = spawnSync(process.execPath, ['--test', ...COMPARING], {
    cwd: copy,
    env,
    encoding: 'utf8',
  });
  assert.equal(status, 0, stdout);
  // Else the goldens were not compared.
  assert.match(stdout, /✔ an injected container has a variable for each annotation/);
});

test('setVersion() refuses what is no version of an image, and writes nothing', () => {
  const copy = copyCheckout();
  for (const version of ['', 'v1.2.3', '1.2', '01.2.3', '1.2.3.4', '1.2.3+build', '1.2.3-']) {
    assert.throws(() => setVersion(copy, version), { message: /^Cannot set the version: ".*" is none; must be like/ });
  }
  writeFileSync(join(copy, 'src/base/version.ts'), 'export const VERSION = "1";\n');
  assert.throws(() => setVersion(copy, OTHER), {
    message: /^Cannot set the version: src\/base\/version\.ts has .* in 0 places/,
  });
  assert.notEqual(readVersion(copy), OTHER);
});
