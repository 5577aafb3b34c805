// `lastscrape explain --targets`: which rule dropped a pod, by recorded answers of real Prometheis to wrong
// configurations, and by those of the Prometheus on this machine.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { EXIT } from '../../src/decide/quit/exit-codes.ts';
import { makeFolder } from '../support/folder.ts';
import { findPrograms, gate } from '../support/programs.ts';
import { readExplainFixture, readMoment, runExplain } from './fixture.ts';
import { askPrometheus, FRONT, STORIES, selectJob } from './targets.ts';

const RECORDED = join(import.meta.dirname, '../../fixtures/targets');
const HOLDS = 'lastscrape-holds-as-a-native-sidecar';
const nowMs = readMoment(HOLDS);

/** The held pod, whose lastscrape listens on the front's port. */
function readPod(annotations = {}, env: readonly object[] = [{ name: 'LASTSCRAPE_FRONT', value: `${FRONT}` }]) {
  const pod = JSON.parse(readExplainFixture(HOLDS));
  pod.metadata.annotations = annotations;
  pod.spec.initContainers[1].env.push(...env);
  return pod;
}

/** Explains the pod by an answer, which follows it on stdin. */
async function explain(answer: unknown, pod = readPod(), argv: readonly string[] = ['--json']) {
  const input = `${JSON.stringify(pod, null, 2)}\n${JSON.stringify(answer)}`;
  const run = await runExplain(input, { nowMs, argv: ['explain', '--targets', '-', ...argv] });
  assert.deepEqual([run.code, run.stderr], [0, '']);
  return run.stdout;
}

const explainTarget = async (answer: unknown, pod = readPod()) =>
  JSON.parse(await explain(answer, pod)).objects[0].target;

for (const file of readdirSync(RECORDED)) {
  const answer = JSON.parse(readFileSync(join(RECORDED, file), 'utf8'));
  test(`explain names the rule that dropped the pod, by answers of Prometheus ${file.replace('.json', '')}`, async () => {
    for (const { job, rule } of STORIES) {
      const found = await explainTarget({ status: 'success', data: selectJob(answer, job) });
      assert.equal(found.rule, rule, `${job}: ${JSON.stringify(found)}`);
    }
  });
}

const programs = findPrograms();
const skip = gate(programs, 'test/explain/targets.test.ts', ['prometheus']);

test('explain names the same rules by what the Prometheus of this machine answers', { skip }, async () => {
  const answer = await askPrometheus(programs.prometheus ?? []);
  for (const { job, rule } of STORIES) assert.equal((await explainTarget(selectJob(answer, job))).rule, rule, job);
});

const ANSWER = JSON.parse(readFileSync(join(RECORDED, '2.42.json'), 'utf8'));

test('explain prints what Prometheus does with the pod, in a line of its own', async () => {
  const lines = async (job: string, pod = readPod()) => {
    const text = await explain(selectJob(ANSWER, job), pod, []);
    return text
      .slice(text.indexOf('\nTargets') + 10)
      .replaceAll(/\s+/g, ' ')
      .trim();
  };
  const wanted: Readonly<Record<string, RegExp>> = {
    right: /^Prometheus scrapes port 9469 of it \(job right\) every 1s, and did so last at 20\S+Z\.$/,
    refused: /^Prometheus cannot scrape port 9469 of it \(job refused\): Get .+ connection refused\.$/,
    'main-only': /^Prometheus scrapes port 8000 of it, not 9469\.$/,
    'no-init': /job no-init drops it, most likely since it drops init containers\.$/,
    alone: /most likely since it drops init containers or drops NotReady pods\.$/,
    'own-rule': /by none of the usual rules: look at its relabelling\.$/,
    elsewhere: /^Prometheus discovers nothing in default: /,
  };
  for (const [job, pattern] of Object.entries(wanted)) assert.match(await lines(job), pattern, job);
  const annotated = readPod({ 'prometheus.io/port': '8000' });
  assert.match(await lines('annotated', annotated), /not 9469: its annotation prometheus\.io\/port is 8000\.$/);
  const reasons = async (job: string) =>
    JSON.parse(await explain(selectJob(ANSWER, job), annotated)).objects[0].findings.map(
      ({ reason }: { reason: string }) => reason,
    );
  assert.ok((await reasons('annotated')).includes('scrapedElsewhere'));
  assert.ok(!(await reasons('right')).includes('scrapedElsewhere'), 'Prometheus knows better');
});

test('explain goes by the port of the exporter without a front, and says nothing where the port is not in the JSON', async () => {
  const unfronted = await explainTarget(selectJob(ANSWER, 'main-only'), readPod({}, []));
  assert.match(unfronted.text, /port 8000 of it, not 9646/);
  const hidden = readPod({}, [{ name: 'LASTSCRAPE_FRONT', valueFrom: { configMapKeyRef: { name: 'a', key: 'b' } } }]);
  assert.equal(await explainTarget(selectJob(ANSWER, 'right'), hidden), undefined);
  const over = JSON.parse(readExplainFixture('lastscrape-is-done'));
  assert.equal(await explainTarget(selectJob(ANSWER, 'right'), over), undefined);
});

test('explain says that a Prometheus does not list all that it dropped', async () => {
  const cut = { ...selectJob(ANSWER, 'selector'), droppedTargetCounts: { selector: 5 } };
  assert.equal((await explainTarget(cut)).rule, 'unknown');
});

test('explain takes the answer from a file, and refuses what is no answer', async () => {
  const path = join(makeFolder(), 'targets.json');
  const pod = JSON.stringify(readPod());
  const argv = ['explain', '--json', '--targets', path];
  const missing = await runExplain(pod, { nowMs, argv });
  assert.equal(missing.code, EXIT.unreadable);
  assert.match(
    missing.stderr,
    /^Cannot read the targets in ".+targets\.json": it is no such answer; must be JSON of at most 8 MiB: /,
  );
  writeFileSync(path, JSON.stringify(ANSWER));
  assert.equal(JSON.parse((await runExplain(pod, { nowMs, argv })).stdout).objects[0].target.rule, 'scraped');
  writeFileSync(path, ' '.repeat(8 * 1024 * 1024 + 1));
  assert.match((await runExplain(pod, { nowMs, argv })).stderr, /it is longer than 8 MiB;/);
  const behind = await runExplain(pod, { nowMs, argv: ['explain', '--targets', '-'] });
  assert.deepEqual([behind.code, behind.stdout], [EXIT.unreadable, '']);
  assert.equal((await runExplain(pod, { nowMs, argv: ['explain', '--targets'] })).code, EXIT.usage);
});
