// The chart's keeper: what its variables become, and what the pods of `helm test` do at a real one.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { readKeepConfig } from '../../src/config/keep-variables.ts';
import { template } from '../deploy/chart.ts';
import { startChild } from '../support/child.ts';
import { makeFolder } from '../support/folder.ts';
import { findFreePort } from '../support/listen.ts';
import { findPrograms, gate } from '../support/programs.ts';
import { inTime, readPages, startKeeper } from './keeper.ts';

const skip = gate(findPrograms(), 'test/keeper/chart.test.ts', ['helm']);

type Variable = { readonly name: string; readonly value?: string };
type Rendered = {
  readonly metadata: { readonly name: string; readonly annotations: Readonly<Record<string, string>> };
  readonly spec: {
    readonly activeDeadlineSeconds?: number;
    readonly containers: readonly [{ readonly env: readonly Variable[] }];
    readonly template: { readonly spec: Rendered['spec'] };
  };
};

function render(only: string, ...values: readonly string[]): readonly Rendered[] {
  const { stdout, stderr, status } = template(['image=a/b:1', 'keeper.enabled=true', ...values], { only: [only] });
  assert.equal(status, 0, stderr);
  return parseAllDocuments(stdout).map((document) => document.toJS());
}

function readEnv({ containers: [container] }: Rendered['spec']): Readonly<Record<string, string>> {
  return Object.fromEntries(container.env.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]])));
}

test('pages may take 7/8 of the claim, whatever its unit', { skip }, () => {
  const readSize = (storage: string) => {
    const deployment = render('keeper', `keeper.storage=${storage}`).find(({ spec }) => spec?.template !== undefined);
    const result = readKeepConfig(readEnv(deployment?.spec.template.spec as Rendered['spec']));
    assert.ok('config' in result, JSON.stringify(result));
    return result.config.maxBytes / 2 ** 20;
  };
  assert.equal(readSize(''), 256, 'without one: the default');
  assert.equal(readSize('1Gi'), 896);
  assert.equal(readSize('512Mi'), 448);
  assert.equal(readSize('100Gi'), 87 * 1024);
  assert.equal(readSize('2Ti'), 1_792 * 1024);
});

/** Runs a pod of `helm test` with its variables, at that keeper. */
function startTestPod(
  name: string,
  keeper: Parameters<typeof readPages>[0] & { handOverUrl: string; serveUrl: string },
  front: number,
) {
  const folder = makeFolder();
  const pod = render('tests/keeper').find(({ metadata }) => metadata.name === `lastscrape-test-${name}`);
  assert.ok(pod !== undefined);
  writeFileSync(join(folder, 'page.prom'), pod.metadata.annotations['lastscrape.dev/test-page'] ?? '');
  const env = Object.entries(readEnv(pod.spec)).map(([variable, value]) => [
    variable,
    value
      .replace('/var/run/lastscrape/page', folder)
      .replace('http://lastscrape-keeper.monitoring.svc:9470', new URL(keeper.handOverUrl).origin)
      .replace('http://lastscrape-keeper.monitoring.svc:9471', keeper.serveUrl)
      .replace('file:/lastscrape', `file:${join(folder, 'page.prom')}`)
      .replace(/^9469$/, `${front}`),
  ]);
  const own = {
    POD_NAME: 'helm-test',
    POD_NAMESPACE: 'monitoring',
    POD_UID: 'uid-1',
    LASTSCRAPE_TERMINATION_LOG: join(folder, 'message'),
  };
  const command = findPrograms().watcher;
  return startChild({ name, command, env: { ...Object.fromEntries(env), ...own }, cwd: folder });
}

test(
  'helm test: the first pod ends once the keeper has its page, and the second fails where none is listed',
  {
    skip,
  },
  inTime(async (isLate) => {
    await using keeper = await startKeeper();
    await using none = startTestPod('targets', keeper, 0);
    assert.equal((await none.exited).code, 1, 'nothing is listed yet');
    await using first = startTestPod('hand-over', keeper, await findFreePort());
    if (await isLate(first)) return 'late';
    assert.equal((await first.exited).code, 0);
    const pages = await readPages(keeper);
    assert.match(pages['helm-test'] ?? '', /^lastscrape_helm_test 1\n/);
    assert.doesNotMatch(pages['helm-test'] ?? '', /lastscrape_keeper_/);
    await using second = startTestPod('targets', keeper, 0);
    assert.equal((await second.exited).code, 0);
    return 'played';
  }),
);

test('helm test: a pod that is refused is held beyond its deadline', { skip }, async () => {
  await using keeper = await startKeeper({ LASTSCRAPE_KEEPER_PAGES: '1' });
  await using first = startTestPod('hand-over', keeper, await findFreePort());
  await first.waitForLine(/the hand-over failed: the pod is held instead/, 60_000);
  const [pod] = render('tests/keeper');
  assert.equal(pod?.spec.activeDeadlineSeconds, 60);
  assert.equal(readEnv(pod.spec)['LASTSCRAPE_TTL'], '1h');
});
