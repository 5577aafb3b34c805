import assert from 'node:assert/strict';
import { chmodSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ConditionObservation } from '../../src/decide/model.ts';
import { fileKind, makeFileCondition } from '../../src/observe/file.ts';
import { makeFolder } from '../support/folder.ts';
import { WATCHER_UID } from '../support/pid-namespace.ts';
import { CONTEXT, UNDISTURBED } from './condition-context.ts';

async function observe(path: string): Promise<ConditionObservation> {
  const parsed = fileKind.read(path, CONTEXT);
  assert.ok('value' in parsed, path);
  assert.equal(parsed.value.text, `file:${path}`);
  assert.equal(parsed.value.metricName, null);
  return parsed.value.observe(UNDISTURBED);
}

test('observe() is alive until the file exists, and unknown where that cannot be seen', async () => {
  const folder = makeFolder();
  const path = join(folder, 'done');
  const alive = (text: string) => ({ kind: 'alive', seen: `file ${text} not there` });
  const done = (text: string) => ({ kind: 'done', seen: `file ${text} exists`, provesWasAlive: true });
  assert.deepEqual(await observe(path), alive(path));
  writeFileSync(path, '');
  assert.deepEqual(await observe(path), done(path), 'an empty file is enough');
  assert.deepEqual(await observe(folder), done(folder), 'so is a directory');
  const loop = join(folder, 'loop');
  symlinkSync(loop, loop);
  assert.deepEqual(await observe(loop), { kind: 'unknown', why: `file ${loop} unknown: ELOOP` });
  const below = join(path, 'below');
  assert.deepEqual(await observe(below), { kind: 'unknown', why: `file ${below} unknown: ENOTDIR` });
});

test('observe() is blind where its UID may not look, and says what to do', async () => {
  const folder = makeFolder();
  const path = join(folder, 'done');
  chmodSync(folder, 0);
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(WATCHER_UID);
  const observation = await observe(path);
  if (isRoot) process.seteuid?.(0);
  chmodSync(folder, 0o700);
  assert.deepEqual(observation, {
    kind: 'blind',
    why: `file ${path} unknown: EACCES`,
    problem: `file ${path} cannot be seen (EACCES); its folders must be open to lastscrape's UID: the runAsUser of main, or fsGroup for the volume`,
  });
});

test('observe() takes a mistake in the path for unknown, and any other failure for blind', async () => {
  const fail = async (code: string) => {
    const read = async () => Promise.reject(Object.assign(new Error(code), { code }));
    const show = () => assert.fail('read');
    const condition = makeFileCondition({ kind: 'file', path: '/a', read, show, showMissing: show });
    return condition.observe(UNDISTURBED);
  };
  const why = (code: string) => `file /a unknown: ${code}`;
  for (const code of ['ELOOP', 'ENOTDIR', 'ENAMETOOLONG']) {
    assert.deepEqual(await fail(code), { kind: 'unknown', why: why(code) });
  }
  for (const code of ['EIO', 'ESTALE', 'ENOTCONN']) {
    const problem = `file /a cannot be seen (${code}); is its volume still mounted, and the server of it there?`;
    assert.deepEqual(await fail(code), { kind: 'blind', why: why(code), problem });
  }
  assert.match(JSON.stringify(await fail('EPERM')), /"blind".*lastscrape's UID/);
});

test('read() takes absolute paths', () => {
  for (const path of ['', 'done', './done', '~/done']) {
    assert.deepEqual(fileKind.read(path, CONTEXT), { problem: 'an absolute path such as "/shared/done"' }, path);
  }
});
