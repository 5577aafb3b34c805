// docs/explain.md says what the code does: the reasons, the sample, the fields of the JSON, the exit codes.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { POD_REASONS } from '../../src/explain/explain.ts';
import { JOB_REASONS } from '../../src/explain/reasons/jobs.ts';
import { playExplain, readExplainFixture, runExplain } from './fixture.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/explain.md'), 'utf8');

test('docs/explain.md has every reason', () => {
  const [, table = ''] = /<!-- reasons[^>]*-->\n([\s\S]*?)<!-- \/reasons -->/.exec(page) ?? [];
  const wanted = [...Object.values(POD_REASONS), JOB_REASONS].flatMap(Object.keys).toSorted();
  assert.deepEqual([...table.matchAll(/`(\w+)`/g)].map(([, id]) => id).toSorted(), wanted);
  assert.equal(new Set(wanted).size, wanted.length);
});

test('docs/explain.md shows what is printed', async () => {
  const [, sample] = /<!-- of fixtures\/explain\/exporter.txt[^>]*-->\n```text\n([\s\S]*?)```/.exec(page) ?? [];
  assert.equal(sample, await playExplain('exporter'));
});

test('docs/explain.md has every field of the JSON', async () => {
  const { stdout } = await runExplain(readExplainFixture('exporter'), { argv: ['explain', '--json'] });
  const printed = JSON.parse(stdout);
  const [object] = printed.objects;
  const [finding] = object.findings;
  const names = [printed, object, finding, finding.change].flatMap((each) => Object.keys(each));
  for (const name of names) assert.match(page, new RegExp(`[\`.]${name}\\b`), name);
});
