// Each command of deploy/README.md is run, here or in the cluster test, or says why it is not.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { findPrograms, gate } from '../support/programs.ts';
import {
  type BlockName,
  RUN_HERE,
  RUN_IN_CLUSTER,
  RUN_WITH_OPERATOR,
  readBlock,
  readBlocks,
  readGuide,
} from './guide.ts';

const ROOT = join(import.meta.dirname, '../..');
const programs = findPrograms();

function runBlock(name: BlockName): string {
  const { status, stdout, stderr } = spawnSync('bash', ['-euo', 'pipefail', '-c', readBlock(name)], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  return stdout;
}

test('every command of the guide is run by a test, or says why it is not', () => {
  const marked = readBlocks();
  const commands = readGuide().match(/^```sh$/gm) ?? [];
  assert.equal(marked.filter(({ language }) => language === 'sh').length, commands.length, 'a block has no marker');
  const run = marked.filter(({ marker }) => marker === 'run').map(({ name }) => name);
  assert.deepEqual(run.toSorted(), [...RUN_IN_CLUSTER, ...RUN_HERE, ...RUN_WITH_OPERATOR].toSorted());
  const files = ['annotations', 'guide', 'in-place', 'jobs', 'verdict'].map((name) => `${name}.cluster.ts`);
  const cluster = [...files, 'fixture.ts']
    .map((file) => readFileSync(join(ROOT, 'test/cluster', file), 'utf8'))
    .join('\n');
  for (const name of RUN_IN_CLUSTER) {
    assert.match(cluster, new RegExp(`\\.(run|start)\\('${name}'\\)|\\['${name}', /`), name);
  }
  const operator = readFileSync(join(ROOT, 'test/cluster/operator.ts'), 'utf8');
  for (const name of RUN_WITH_OPERATOR) assert.match(operator, new RegExp(`readCommand\\('${name}'\\)`), name);
});

test('the guide checks the rules with promtool', {
  skip: gate(programs, 'test/deploy/guide.test.ts', ['promtool']),
}, () => {
  assert.match(runBlock('rules'), /SUCCESS: \d+ rules found/);
});

test('every link between the pages leads somewhere', () => {
  const pages = globSync(['*.md', 'docs/*.md', 'deploy/**/*.md', 'fixtures/**/*.md'], { cwd: ROOT });
  for (const page of pages) {
    const text = readFileSync(join(ROOT, page), 'utf8');
    for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? join(ROOT, page) : join(ROOT, dirname(page), path);
      assert.ok(existsSync(file), `${page} links to ${target}`);
      if (anchor !== undefined) assert.ok(listAnchors(file).includes(anchor), `${page} links to ${target}`);
    }
  }
});

function listAnchors(file: string): readonly string[] {
  return [...readFileSync(file, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}
