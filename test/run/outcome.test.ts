import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeTerminationMessage } from '../../src/run/outcome.ts';
import { makeFolder } from '../support/folder.ts';

test('writeTerminationMessage() leaves a default path alone that is not there', () => {
  const path = join(makeFolder(), 'termination-log');
  assert.deepEqual([writeTerminationMessage({ path, isChosen: false }, '{}'), existsSync(path)], [null, false]);
});

test('writeTerminationMessage() creates a path that the user chose', () => {
  const path = join(makeFolder(), 'termination-log');
  assert.equal(writeTerminationMessage({ path, isChosen: true }, '{"a":"ü"}'), null);
  assert.equal(readFileSync(path, 'utf8'), '{"a":"ü"}');
  assert.equal(statSync(path).mode & 0o777, 0o644 & ~process.umask());
});

test('writeTerminationMessage() rewrites in place, with a shorter and a longer text', () => {
  const path = join(makeFolder(), 'termination-log');
  writeFileSync(path, 'what was there before');
  const { ino } = statSync(path);
  for (const text of ['{"short":1}', '{"longer":"üüüüüüüüüüüüüüüüüüüüüüüüüüüü"}', '{}', '']) {
    assert.equal(writeTerminationMessage({ path, isChosen: false }, text), null);
    assert.equal(readFileSync(path, 'utf8'), text);
  }
  assert.equal(statSync(path).ino, ino, 'the mount stays the mount');
});

test('writeTerminationMessage() does not write into a directory, a device, or an unread FIFO', () => {
  const folder = makeFolder();
  const fifo = join(folder, 'fifo');
  execFileSync('mkfifo', [fifo]);
  const directory = join(folder, 'directory');
  mkdirSync(directory);
  for (const path of [directory, '/dev/null', fifo]) {
    for (const isChosen of [true, false]) {
      assert.equal(writeTerminationMessage({ path, isChosen }, '{}'), `Cannot write ${path}: it is no regular file`);
    }
  }
});

test('writeTerminationMessage() says why it could not write', () => {
  const folder = makeFolder();
  const nowhere = join(folder, 'nowhere', 'termination-log');
  assert.equal(writeTerminationMessage({ path: nowhere, isChosen: true }, '{}'), `Cannot write ${nowhere}: ENOENT`);
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const below = join(file, 'termination-log');
  assert.equal(writeTerminationMessage({ path: below, isChosen: true }, '{}'), `Cannot write ${below}: ENOTDIR`);
  // Not writable to anybody, root included: the kernel's own.
  const readOnly = '/proc/version';
  const problem = writeTerminationMessage({ path: readOnly, isChosen: false }, '{}') ?? '';
  assert.match(problem, /^Cannot write \/proc\/version: E[A-Z]+$/);
});
