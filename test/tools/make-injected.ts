// `npm exec -- node test/tools/make-injected.ts`: rewrites fixtures/injected from what a real API server
// makes of fixtures/pods with copies of both policies that match one namespace of its own (dry run). Wants
// kubectl and KUBECONFIG. Read the diff before you commit it.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { parseAllDocuments, parseDocument, stringify, YAMLMap, type YAMLSeq } from 'yaml';
import {
  buildPod,
  type Fields,
  findLastscrape,
  hashPolicy,
  INJECTED,
  normalise,
  type Pod,
  readGolden,
  readPod,
  readStrangers,
  UNTOUCHED,
  type Variant,
} from '../deploy/injected.ts';
import { JOBS_GOLDEN, JOBS_UNTOUCHED_NAMES, readJobPod } from '../deploy/injected-jobs.ts';

const FOLDER = join(import.meta.dirname, '..', '..', 'fixtures', 'injected');
const NAME = 'lastscrape-golden';

function runKubectl(args: readonly string[], input: unknown = ''): string {
  return execFileSync('kubectl', args, { input: JSON.stringify(input), encoding: 'utf8' });
}

function askServer(pod: Pod): Pod {
  const args = ['create', '--namespace', NAME, '--dry-run=server', '--output', 'json', '--filename', '-'];
  return JSON.parse(runKubectl(args, pod));
}

/** A policy and its binding, renamed and for the namespace of this run only. */
function readCopy(file: 'policy.yaml' | 'jobs-policy.yaml', name: string): readonly Fields[] {
  const text = readFileSync(join(FOLDER, '..', '..', 'deploy', file), 'utf8');
  const [policy, binding] = parseAllDocuments(text).map((document) => document.toJS());
  const metadata = { name };
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': NAME } };
  const matchConstraints = { ...policy.spec.matchConstraints, namespaceSelector };
  return [
    { ...policy, metadata, spec: { ...policy.spec, matchConstraints } },
    { ...binding, metadata, spec: { ...binding.spec, policyName: name } },
  ];
}

/** The API server takes a second or so to see a new policy. @throws after 30 s without. */
async function waitForPolicy(pod: Pod): Promise<void> {
  const isThere = ({ spec }: Pod) =>
    [...spec.containers, ...(spec.initContainers ?? [])].some(({ name }) => name === 'lastscrape');
  for (let attempt = 1; !isThere(askServer(pod)); attempt++) {
    if (attempt > 60)
      throw new Error('Cannot see the policy at work: 30 s after it was applied a pod has no lastscrape');
    await sleep(500);
  }
}

function writeGoldens(): void {
  for (const name of INJECTED) {
    const answer = askServer(readPod(name));
    writeFileSync(join(FOLDER, `${name}.answer.json`), `${JSON.stringify(answer)}\n`);
    writeGolden(name, answer);
  }
  for (const name of JOBS_GOLDEN) writeGolden(`jobs/${name}`, askServer(readJobPod(name)));
}

function writeGolden(name: string, answer: Pod): void {
  const text = stringify(normalise(answer), { indentSeq: false, lineWidth: 0, sortMapEntries: true });
  writeFileSync(join(FOLDER, `${name}.yaml`), `# pods/${name}.yaml with lastscrape in it (README.md)\n${text}`);
}

/** @throws where the policy touches a pod that it should leave as it is. */
function checkUntouched(): void {
  const jobs = JOBS_UNTOUCHED_NAMES.map((name) => [name, readJobPod(name)]);
  const own = UNTOUCHED.map((name) => [name, readPod(name)]);
  const others: Record<string, Pod> = { ...Object.fromEntries([...own, ...jobs]), ...readStrangers() };
  for (const [what, pod] of Object.entries(others)) {
    if (isDeepStrictEqual(normalise(askServer(pod)), normalise(pod))) continue;
    throw new Error(`Cannot go on: the policy changed the pod "${what}"; must leave it as it is`);
  }
}

function writeVariants(): void {
  const path = join(FOLDER, 'annotations.yaml');
  const document = parseDocument(readFileSync(path, 'utf8'));
  for (const row of (document.contents as YAMLSeq).items) {
    if (!(row instanceof YAMLMap)) throw new Error(`Cannot read ${path}: a row is ${row}; must be a mapping`);
    const pod = askServer(buildPod(row.toJSON() as Variant));
    const container = findLastscrape(normalise(pod));
    row.set(
      'lastscrape',
      INJECTED.find((name) => isDeepStrictEqual(findLastscrape(readGolden(name)), container)),
    );
    row.delete('seconds');
    const seconds = pod.spec.terminationGracePeriodSeconds;
    if (seconds !== 30) row.set('seconds', seconds);
  }
  writeFileSync(path, document.toString({ lineWidth: 0, flowCollectionPadding: false }));
}

const namespace = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: NAME, labels: { 'lastscrape.dev/inject': 'false' } },
};
const copy = [namespace, ...readCopy('policy.yaml', NAME), ...readCopy('jobs-policy.yaml', `${NAME}-jobs`)];
try {
  for (const object of copy) runKubectl(['apply', '--filename', '-'], object);
  await waitForPolicy(readPod('regular'));
  await waitForPolicy(readJobPod('annotated'));
  checkUntouched();
  writeGoldens();
  writeVariants();
  for (const file of ['policy.yaml', 'jobs-policy.yaml'] as const) {
    writeFileSync(join(FOLDER, file.replace('.yaml', '.sha256')), `${hashPolicy(file)}\n`);
  }
} finally {
  for (const object of copy.toReversed()) runKubectl(['delete', '--ignore-not-found', '--filename', '-'], object);
}
