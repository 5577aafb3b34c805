// `lastscrape explain` on fixtures/explain: what is found, what is printed, and that the lines to paste fit.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import type { Explanation, Finding } from '../../src/explain/finding.ts';
import { EXPLAIN_STATES, playExplain, readExplainFixture, readMoment, runExplain } from './fixture.ts';
import { putInto, putIntoPod } from './put-in.ts';

const FOLDER = join(import.meta.dirname, '../../fixtures/explain');
/** For one pod. */
const LINES_MAX = 24;

type Printed = {
  readonly objects: readonly (Pick<Explanation, 'kind' | 'state' | 'summary'> & {
    readonly findings: readonly Pick<Finding, 'reason' | 'container' | 'change'>[];
  })[];
};

async function explain(name: string): Promise<Printed> {
  const state = EXPLAIN_STATES.find((each) => each.name === name);
  assert.ok(state);
  const { code, stdout } = await runExplain(readExplainFixture(name), {
    nowMs: readMoment(state),
    argv: ['explain', '--json'],
  });
  assert.equal(code, 0);
  return JSON.parse(stdout);
}

test('every state has a fixture, and every fixture a state', () => {
  const files = globSync('*.json', { cwd: FOLDER }).map((file) => basename(file, '.json'));
  assert.deepEqual(files.toSorted(), EXPLAIN_STATES.map(({ name }) => name).toSorted());
});

for (const { name, reasons, of } of EXPLAIN_STATES) {
  test(`explain finds of the pod or Job "${name}" what keeps it`, async () => {
    const { objects } = await explain(name);
    assert.equal(objects.length, 1);
    const [object] = objects;
    assert.equal(object?.kind, of);
    assert.deepEqual(
      object?.findings.map(({ reason, container }) => [reason, container].filter(Boolean).join(' ')).join(', '),
      reasons,
    );
    assert.equal(object?.state === 'ended', reasons === '');
  });

  test(`explain prints of "${name}" what the golden file has, short, the container and the reason first`, async () => {
    const text = await playExplain(name);
    assert.equal(text, readFileSync(join(FOLDER, `${name}.txt`), 'utf8'), 'else "npm run golden"');
    const lines = text.trimEnd().split('\n');
    assert.ok(lines.length <= LINES_MAX, `${lines.length} lines`);
    const { objects } = await explain(name);
    const [first] = objects[0]?.findings ?? [];
    assert.equal(lines[0], `${objects[0]?.summary}.`);
    if (first?.container) assert.ok(lines[0]?.startsWith(`${first.container} keeps `), lines[0]);
  });

  test(`explain prints of "${name}" lines that fit into its manifest and change it`, async () => {
    const object = JSON.parse(readExplainFixture(name));
    const { objects } = await explain(name);
    for (const { change } of objects[0]?.findings ?? []) {
      if (change?.lines == null) continue;
      const put = change.in === 'podTemplate' ? putIntoPod(object, change.lines) : putInto(object, change.lines);
      const without = change.in === 'podTemplate' ? putIntoPod(object, '{}') : putInto(object, '{}');
      if (change.in !== 'object') assert.notDeepEqual(put, without);
      const names = [put['spec']].flatMap((spec) => Object.values(spec as object)).flat();
      assert.ok(names.length > 0);
    }
  });
}

test('explain puts what is moved to initContainers there whole, and nowhere else', async () => {
  const object = JSON.parse(readExplainFixture('exporter'));
  const [finding] = (await explain('exporter')).objects[0]?.findings ?? [];
  const { spec } = putIntoPod(object, finding?.change?.lines ?? '') as {
    spec: { containers: { name: string }[]; initContainers: { name: string; image: string; restartPolicy: string }[] };
  };
  const names = spec.containers.map(({ name }) => name);
  assert.deepEqual(names, ['main']);
  const sidecars = spec.initContainers.map(({ name, restartPolicy }) => [name, restartPolicy]);
  assert.deepEqual(sidecars, [
    ['node-exporter', 'Always'],
    ['lastscrape', 'Always'],
  ]);
  assert.equal(spec.initContainers[0]?.image, object.spec.containers[1].image);
});
