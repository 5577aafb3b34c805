// `lastscrape explain` on a real Kubernetes: the main states made and explained as a user does it, the change
// put in, and the lines for every fixture as the API server takes them.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { VERSION } from '../../src/base/version.ts';
import type { Finding } from '../../src/explain/finding.ts';
import { readExplainFixture } from '../explain/fixture.ts';
import { putIntoPod } from '../explain/put-in.ts';
import { type ExplainState, listExplainStates, type ReachedObject } from '../explain/states.ts';
import { DIST } from '../image/dist.ts';
import { makeFolder } from '../support/folder.ts';
import { until } from '../support/until.ts';
import { type Manifest, type Namespace, runShell } from './cluster.ts';
import { IMAGES } from './images.ts';
import { END_MS, getFixture, runLabelledScenario, runScenarioIn, START_MS } from './scenario.ts';

/** The states to create, and how to try the finding: its lines in a new object, or its command. */
const SCENARIOS: readonly { readonly state: string; readonly proof: 'change' | 'now' | 'nothing' }[] = [
  { state: 'exporter-of-locust', proof: 'now' },
  { state: 'exporter', proof: 'change' },
  { state: 'mesh-linkerd-and-database-proxy', proof: 'nothing' },
  { state: 'unknown-beside-an-ended-one', proof: 'change' },
  { state: 'native-sidecar-deaf-to-term', proof: 'nothing' },
  { state: 'main-runs', proof: 'nothing' },
  { state: 'image', proof: 'nothing' },
  { state: 'native-sidecar-not-started', proof: 'nothing' },
  { state: 'unschedulable', proof: 'nothing' },
  { state: 'terminating', proof: 'nothing' },
  { state: 'succeeded', proof: 'nothing' },
  { state: 'lastscrape-holds', proof: 'nothing' },
  { state: 'lastscrape-waits-for-sigterm', proof: 'change' },
  { state: 'lastscrape-is-misconfigured', proof: 'nothing' },
  { state: 'lastscrape-could-not-stop-it', proof: 'nothing' },
  { state: 'lastscrape-was-not-asked-to', proof: 'nothing' },
  { state: 'job-failed', proof: 'nothing' },
];

export function runExplainScenarios(): void {
  const states = listExplainStates(IMAGES);
  for (const { state: name, proof } of SCENARIOS) {
    const state = states.find((each) => each.name === name);
    assert.ok(state, name);
    runLabelledScenario(`explain: ${name}`, { 'lastscrape.dev/inject': 'false' }, async (namespace) => {
      const object = await reach(namespace, state);
      // What is seen may pass before it comes back, as between two pulls of an image.
      const findings = await until(`what explains ${name}`, START_MS, async () => {
        const found = await explain(namespace, state.of, object.metadata.name);
        const reasons = found.map(({ reason, container }) => [reason, container].filter(Boolean).join(' '));
        assert.equal(reasons.join(', '), state.reasons);
        return found;
      });
      const [finding] = findings;
      if (proof === 'now') await proveNow(namespace, state, object, finding);
      if (proof === 'change') await proveChange(namespace, object, finding);
    });
  }

  runScenarioIn('explain: the API server takes the lines for every fixture', async (namespace) => {
    const refused: string[] = [];
    for (const state of states) {
      const fixture = JSON.parse(readExplainFixture(state.name));
      for (const { change } of await explainText(readExplainFixture(state.name))) {
        if (change?.lines == null) continue;
        await createDry(namespace, fixture, change.lines).catch((error) => refused.push(`${state.name}: ${error}`));
      }
    }
    assert.deepEqual(refused, []);
  });
}

async function reach(namespace: Namespace, state: ExplainState): Promise<ReachedObject> {
  await namespace.apply(state.manifest);
  const find = (isReached: (object: ReachedObject) => boolean) =>
    until(`the state ${state.name}`, END_MS, async () =>
      (await list(namespace, state.of)).find((object) => isReached(object)),
    );
  if (state.deleteWhen !== undefined) {
    const { metadata } = await find(state.deleteWhen);
    await kubectl(namespace, ['delete', state.of, metadata.name, '--wait=false']);
  }
  return find(state.isReached);
}

async function explain(namespace: Namespace, kind: string, name: string): Promise<readonly Finding[]> {
  const get = `kubectl --namespace=${namespace.name} get ${kind} ${name} --output=json`;
  return readFindings(await shell(`${get} | lastscrape explain --json`));
}

async function explainText(text: string): Promise<readonly Finding[]> {
  return readFindings(await shell(`lastscrape explain --json <<'EOF'\n${text}\nEOF`));
}

function readFindings(printed: string): readonly Finding[] {
  const { objects } = JSON.parse(printed);
  assert.equal(objects.length, 1);
  return objects[0].findings;
}

/** With the program that was built as `lastscrape` on the PATH. */
async function shell(line: string): Promise<string> {
  const folder = makeFolder();
  return await runShell(
    `lastscrape() { ${JSON.stringify(join(DIST, `lastscrape-linux-x64`))} "$@"; }; ${line}`,
    folder,
  );
}

/** Runs the command that ends it for this object alone, and sees that it did. */
async function proveNow(
  namespace: Namespace,
  state: ExplainState,
  { metadata }: ReachedObject,
  finding: Finding | undefined,
): Promise<void> {
  assert.ok(finding?.now);
  // The exporter gives no answer, which kubectl prints as an error.
  await shell(`${finding.now.line} || ${state.name === 'exporter-of-locust'}`);
  await until(`${state.name} at its end`, END_MS, async () => {
    const objects = await list(namespace, state.of);
    const object = objects.find(({ metadata: { name } }) => name === metadata.name);
    const isOver =
      object?.status?.phase === 'Succeeded' || object?.status?.conditions?.some(({ type }) => type === 'Complete');
    return object === undefined || isOver ? true : undefined;
  });
}

/** Creates the pod again with the lines, and waits until it succeeds. */
async function proveChange(namespace: Namespace, object: ReachedObject, finding: Finding | undefined): Promise<void> {
  const { change = null, first = null } = finding ?? {};
  assert.ok(change?.lines);
  if (first !== null) await shell(first.line);
  const lines = change.lines.replaceAll(`registry.example.com/lastscrape:${VERSION}`, IMAGES.lastscrape);
  const { metadata, ...rest } = putIntoPod(object, lines);
  const name = `${object.metadata.name}-changed`;
  // With the labels its Job would take it for one too many, and delete it.
  const { annotations } = metadata as { annotations?: object };
  await namespace.apply({ ...rest, metadata: { name, annotations } } as unknown as Manifest);
  await untilSucceeded(namespace, name);
}

async function untilSucceeded(namespace: Namespace, name: string): Promise<void> {
  await until(`pod ${name} succeeded`, END_MS, async () => {
    const pod = (await list(namespace, 'Pod')).find(({ metadata }) => metadata.name === name);
    return pod?.status?.phase === 'Succeeded' ? true : undefined;
  });
}

/** As the server would take it; nothing is made. */
async function createDry(namespace: Namespace, fixture: object, lines: string): Promise<void> {
  const args = ['create', '--dry-run=server', '--filename=-'];
  const put = putIntoPod(fixture, lines);
  const text = JSON.stringify({ ...put, metadata: { ...(put['metadata'] as object), namespace: namespace.name } });
  await kubectl(namespace, args, text);
  // The same lines as a part of a Job's template.
  const { spec, metadata } = put as {
    spec: { restartPolicy: string };
    metadata: { labels?: object; annotations?: object };
  };
  const { labels, annotations } = metadata;
  const restartPolicy = spec.restartPolicy === 'Always' ? 'Never' : spec.restartPolicy;
  const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'dry', namespace: namespace.name } };
  const template = {
    metadata: { labels: { ...labels, 'batch.kubernetes.io/job-name': 'dry', 'job-name': 'dry' }, annotations },
  };
  await kubectl(
    namespace,
    args,
    JSON.stringify({ ...job, spec: { template: { ...template, spec: { ...spec, restartPolicy } } } }),
  );
}

async function list(namespace: Namespace, kind: ExplainState['of']): Promise<readonly ReachedObject[]> {
  return JSON.parse(await kubectl(namespace, ['get', kind, '--output=json'])).items;
}

function kubectl(namespace: Namespace, args: readonly string[], input?: string): Promise<string> {
  return getFixture().cluster.kubectl([...args, '--namespace', namespace.name], input);
}
