// `node test/tools/make-explain.ts [NAME …]`: records fixtures/explain from the cluster of kubectl: each
// state of test/explain/states.ts, without what only this server knows, and what explain says.

import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { IMAGES } from '../cluster/images.ts';
import { formatFixture, playExplain, stripNoise } from '../explain/fixture.ts';
import { type ExplainState, listExplainStates, type ReachedObject } from '../explain/states.ts';
import { until } from '../support/until.ts';

const FOLDER = join(import.meta.dirname, '../../fixtures/explain');
const NAMESPACE = 'explain-fixtures';
/** Images are there; a back-off takes its time. */
const WITHIN_MS = 240_000;

async function runKubectl(args: readonly string[], input = ''): Promise<string> {
  const started = promisify(execFile)('kubectl', args, { maxBuffer: 2 ** 26 });
  started.child.stdin?.end(input);
  return (await started).stdout;
}

async function readObject(namespace: string, kind: ExplainState['of']): Promise<ReachedObject | undefined> {
  const { items } = JSON.parse(await runKubectl(['get', kind, '--namespace', namespace, '--output=json']));
  return items.toSorted((one: Created, other: Created) =>
    other.metadata.creationTimestamp.localeCompare(one.metadata.creationTimestamp),
  )[0];
}

type Created = { readonly metadata: { readonly creationTimestamp: string } };

async function take(state: ExplainState): Promise<void> {
  const namespace = `${NAMESPACE}-${state.name}`;
  const labels = { 'lastscrape.dev/inject': 'false' };
  const objects = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } },
    { ...state.manifest, metadata: { ...(state.manifest['metadata'] as object), namespace } },
  ];
  try {
    await runKubectl(['create', '--filename=-'], JSON.stringify(objects[0]));
    await until('the service account', WITHIN_MS, async () => {
      await runKubectl(['get', 'serviceaccount', 'default', '--namespace', namespace]);
      return true;
    });
    await runKubectl(['create', '--filename=-'], JSON.stringify(objects[1]));
    const reach = (isReached: (object: ReachedObject) => boolean) =>
      until(`the state ${state.name}`, WITHIN_MS, async () => {
        const object = await readObject(namespace, state.of);
        return object !== undefined && isReached(object) ? object : undefined;
      });
    if (state.deleteWhen !== undefined) {
      const { metadata } = await reach(state.deleteWhen);
      await runKubectl(['delete', state.of, metadata.name, '--namespace', namespace, '--wait=false']);
    }
    const reached = await reach(state.isReached);
    const text = formatFixture(stripNoise(reached, { [namespace]: 'default' }));
    writeFileSync(join(FOLDER, `${state.name}.json`), `${text}\n`);
    writeFileSync(join(FOLDER, `${state.name}.txt`), await playExplain(state.name));
    process.stdout.write(`${state.name}\n`);
  } finally {
    if (state.name === 'finalizer') {
      const patch = ['--type=merge', '--patch', '{"metadata":{"finalizers":null}}'];
      await runKubectl(['patch', 'pod', 'guarded', '--namespace', namespace, ...patch]).catch(() => '');
    }
    await runKubectl(['delete', 'namespace', namespace, '--ignore-not-found', '--wait=false']);
  }
}

mkdirSync(FOLDER, { recursive: true });
const wanted = process.argv.slice(2);
const states = listExplainStates(IMAGES).filter(({ name }) => wanted.length === 0 || wanted.includes(name));
const failed: string[] = [];
// Three side by side: the node is small, and most states only wait.
await Promise.all(
  [0, 1, 2].map(async () => {
    for (let state = states.shift(); state !== undefined; state = states.shift()) {
      await take(state).catch((error: unknown) => failed.push(`${state?.name}: ${error}`));
    }
  }),
);
if (failed.length > 0) throw new Error(`Cannot take all fixtures:\n${failed.join('\n')}`);
