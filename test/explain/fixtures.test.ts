// `lastscrape explain` on fixtures/explain: what is found, what is printed, and that the lines to paste fit.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import type { Explanation, Finding } from '../../src/explain/finding.ts';
import { EXPLAIN_STATES, playExplain, readExplainFixture, readMoment, runExplain } from './fixture.ts';
import { putIntoPod } from './put-in.ts';

const FOLDER = join(import.meta.dirname, '../../fixtures/explain');
/** For one pod. */
const LINES_MAX = 24;

type Printed = Pick<Explanation, 'kind' | 'state' | 'summary'> & {
  readonly findings: readonly Pick<Finding, 'reason' | 'container' | 'change'>[];
};

async function explain(name: string): Promise<Printed> {
  const options = { nowMs: readMoment(name), argv: ['explain', '--json'] };
  const { code, stdout } = await runExplain(readExplainFixture(name), options);
  assert.equal(code, 0);
  const { objects } = JSON.parse(stdout);
  assert.equal(objects.length, 1);
  return objects[0];
}

test('every state has a fixture, and every fixture a state', () => {
  const files = globSync('*.json', { cwd: FOLDER }).map((file) => basename(file, '.json'));
  assert.deepEqual(files.toSorted(), EXPLAIN_STATES.map(({ name }) => name).toSorted());
});

for (const { name, reasons, of } of EXPLAIN_STATES) {
  test(`explain finds of the pod or Job "${name}" what keeps it, and prints the golden file, short`, async () => {
    const { kind, state, summary, findings } = await explain(name);
    assert.equal(kind, of);
    const found = findings.map(({ reason, container }) => [reason, container].filter(Boolean).join(' '));
    assert.equal(found.join(', '), reasons);
    assert.equal(state === 'ended', reasons === '');
    const text = await playExplain(name);
    assert.equal(text, readFileSync(join(FOLDER, `${name}.txt`), 'utf8'), 'else "npm run golden"');
    const [line = '', ...more] = text.trimEnd().split('\n');
    assert.ok(more.length < LINES_MAX, `${more.length + 1} lines`);
    assert.equal(line, `${summary}.`);
    const container = findings[0]?.container;
    if (container) assert.ok(line.startsWith(`${container} keeps `), line);
  });

  test(`explain prints of "${name}" lines that fit into its manifest and change it`, async () => {
    const object = JSON.parse(readExplainFixture(name));
    for (const { change } of (await explain(name)).findings) {
      if (change?.lines == null) continue;
      assert.notDeepEqual(putIntoPod(object, change.lines), putIntoPod(object, '{}'));
    }
  });
}

test('explain puts what is moved to initContainers there whole, and nowhere else', async () => {
  const object = JSON.parse(readExplainFixture('exporter'));
  const [finding] = (await explain('exporter')).findings;
  const { spec } = putIntoPod(object, finding?.change?.lines ?? '') as {
    spec: { containers: { name: string }[]; initContainers: { name: string; image: string; restartPolicy: string }[] };
  };
  assert.equal(spec.containers.map(({ name }) => name).join(), 'main');
  const sidecars = spec.initContainers.map(({ name, restartPolicy }) => `${name} ${restartPolicy}`);
  assert.deepEqual(sidecars, ['node-exporter Always', 'lastscrape Always']);
  assert.equal(spec.initContainers[0]?.image, object.spec.containers[1].image);
});
