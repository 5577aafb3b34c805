import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ConditionObservation } from '../../src/decide/model.ts';
import { NOT_READ } from '../../src/observe/exporter.ts';
import { fileKind } from '../../src/observe/file.ts';

const CONTEXT = { pid: 1, env: {}, version: '1.2.3', names: [] };

async function lookAt(path: string): Promise<ConditionObservation> {
  const parsed = fileKind.read(path, CONTEXT);
  assert.ok('value' in parsed, path);
  assert.equal(parsed.value.text, `file:${path}`);
  assert.equal(parsed.value.metricName, null);
  return parsed.value.observe({ exporter: NOT_READ, signal: new AbortController().signal });
}

test('observe() is alive until the file exists, and unknown where that cannot be seen', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'lastscrape-file-'));
  context.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'done');
  const alive = (text: string) => ({ kind: 'alive', seen: `file ${text} not there` });
  const done = (text: string) => ({ kind: 'done', seen: `file ${text} exists`, provesWasAlive: true });
  assert.deepEqual(await lookAt(path), alive(path));
  writeFileSync(path, '');
  assert.deepEqual(await lookAt(path), done(path), 'an empty file is enough');
  assert.deepEqual(await lookAt(folder), done(folder), 'a directory too');
  const loop = join(folder, 'loop');
  symlinkSync(loop, loop);
  assert.deepEqual(await lookAt(loop), { kind: 'unknown', why: `file ${loop} unknown: ELOOP` });
  const below = join(path, 'below');
  assert.deepEqual(await lookAt(below), { kind: 'unknown', why: `file ${below} unknown: ENOTDIR` });
});

test('read() takes absolute paths', () => {
  for (const path of ['', 'done', './done', '~/done']) {
    assert.deepEqual(fileKind.read(path, CONTEXT), { problem: 'an absolute path such as "/shared/done"' }, path);
  }
});
