// deploy/kyverno.yaml makes of every pod what deploy/policy.yaml makes of it: by Kyverno's own command line
// (where it is built), compared field by field with the answers of a real API server.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { makeFolder } from '../support/folder.ts';
import { findOnPath } from '../support/programs.ts';
import {
  buildGolden,
  buildPod,
  type Fields,
  findLastscrape,
  gateGoldens,
  INJECTED,
  normalise,
  type Pod,
  readGolden,
  readPod,
  readStrangers,
  readVariants,
  UNTOUCHED,
} from './injected.ts';
import { JOBS_GOLDEN, JOBS_UNTOUCHED_NAMES, readJobGolden, readJobPod } from './injected-jobs.ts';

const POLICY = readFileSync(join(import.meta.dirname, '..', '..', 'deploy', 'kyverno.yaml'), 'utf8');
const JOBS_POLICY = readFileSync(join(import.meta.dirname, '..', '..', 'deploy', 'jobs-kyverno.yaml'), 'utf8');
const kyverno = findOnPath('kubectl-kyverno') ?? findOnPath('kyverno');
const skip =
  kyverno === undefined &&
  'deploy/kyverno.yaml was not run: neither "kyverno" nor "kubectl-kyverno" is on the PATH (go build of cmd/cli/kubectl-kyverno)';
const stale = gateGoldens();
if (skip) process.stderr.write(`SKIPPED Cannot run test/deploy/kyverno.test.ts: ${skip}\n`);

/** The policy as in a cluster of this version: the command line reaches none, and takes a default. */
function policyFor(minor: string, policy = POLICY): string {
  const line = '          apiCall: {urlPath: /version, default: {minor: "0"}}\n';
  assert.equal(policy.split(line).length, 2, 'deploy/kyverno.yaml asks for the version in one place');
  return policy.replace(line, line.replace('"0"', `"${minor}"`));
}

/** What Kyverno makes of each pod, normalised, in their order. */
function applyPolicy(policy: string, pods: readonly Pod[]): Pod[] {
  const folder = makeFolder();
  const [policyPath, podsPath, valuesPath, outPath] = ['policy.yaml', 'pods.yaml', 'values.yaml', 'out'].map((name) =>
    join(folder, name),
  ) as [string, string, string, string];
  // Kyverno reads all of them in one go where their names differ.
  const named = pods.map((pod, index) => ({ namespace: 'load', ...pod.metadata, name: `pod-${index}` }));
  writeFileSync(policyPath, policy);
  writeFileSync(podsPath, pods.map((pod, index) => stringify({ ...pod, metadata: named[index] })).join('---\n'));
  writeFileSync(valuesPath, VALUES);
  const args = ['apply', policyPath, '--resource', podsPath, '--values-file', valuesPath, '--output', `${outPath}/`];
  const { stdout, stderr } = spawnSync(kyverno as string, args, { encoding: 'utf8' });
  assert.match(stdout, /fail: 0, warn: 0, error: 0/, `${stdout}${stderr}`);
  const files = readdirSync(outPath);
  assert.equal(files.length, pods.length, files.join(' '));
  return pods.map((_, index) => {
    const file = files.find((name) => name.startsWith(`pod-${index}-`));
    return normalise(parseAllDocuments(readFileSync(join(outPath, file as string), 'utf8'))[0]?.toJS());
  });
}

const VALUES = stringify({
  apiVersion: 'cli.kyverno.io/v1alpha1',
  kind: 'Values',
  metadata: { name: 'values' },
  namespaceSelector: [
    { name: 'load', labels: { team: 'checkout' } },
    { name: 'opted-out', labels: { 'lastscrape.dev/inject': 'false' } },
  ],
});

test("Kyverno's pods are those of the API server, field by field", { skip: skip || stale }, () => {
  const pods = applyPolicy(policyFor('36'), INJECTED.map(readPod));
  for (const [index, name] of INJECTED.entries()) assert.deepEqual(pods[index], readGolden(name), name);
});

test("Kyverno honours a test's annotations as the API server does", { skip: skip || stale }, () => {
  const variants = readVariants();
  const pods = applyPolicy(policyFor('36'), variants.map(buildPod));
  for (const [index, variant] of variants.entries()) {
    assert.deepEqual(pods[index], buildGolden(variant), JSON.stringify(variant));
  }
});

test('Kyverno leaves the other pods as they are', { skip }, () => {
  const others: Readonly<Record<string, Pod>> = {
    ...Object.fromEntries(UNTOUCHED.map((name) => [name, readPod(name)])),
    ...readStrangers(),
  };
  const pods = applyPolicy(policyFor('36'), Object.values(others));
  for (const [index, [name, pod]] of Object.entries(others).entries())
    assert.deepEqual(pods[index], normalise(pod), name);
});

test('Kyverno leaves a namespace that opted out as it is', { skip }, () => {
  const pod = readPod('regular');
  const inNamespace = { ...pod, metadata: { ...pod.metadata, namespace: 'opted-out' } };
  assert.deepEqual(applyPolicy(policyFor('36'), [inNamespace]), [normalise(pod)]);
});

test('Kyverno leaves out the restart rules where the cluster is too old for them, or does not say', {
  skip,
}, () => {
  for (const minor of ['35+', '36']) {
    const [pod] = applyPolicy(policyFor(minor), [readPod('regular')]);
    assert.deepEqual(pod, readGolden('regular'), minor);
  }
  for (const minor of ['33', '29+', '0', '']) {
    const [pod] = applyPolicy(policyFor(minor), [readPod('regular')]);
    const { restartPolicy, restartPolicyRules, ...rest } = findLastscrape(readGolden('regular'));
    assert.ok(restartPolicy !== undefined && restartPolicyRules !== undefined);
    assert.deepEqual(findLastscrape(pod as Pod), rest, minor);
  }
});

test("Kyverno's labelled pods are those of the API server, field by field", { skip: skip || stale }, () => {
  const pods = applyPolicy(JOBS_POLICY, JOBS_GOLDEN.map(readJobPod));
  for (const [index, name] of JOBS_GOLDEN.entries()) assert.deepEqual(pods[index], readJobGolden(name), name);
});

test('Kyverno changes labelled pods only', { skip }, () => {
  const others = JOBS_UNTOUCHED_NAMES.map(readJobPod);
  const pods = applyPolicy(JOBS_POLICY, others);
  for (const [index, pod] of others.entries()) assert.deepEqual(pods[index], normalise(pod), `pod ${index}`);
  const pod = readJobPod('annotated');
  const inNamespace = { ...pod, metadata: { ...pod.metadata, namespace: 'opted-out' } };
  assert.deepEqual(applyPolicy(JOBS_POLICY, [inNamespace]), [normalise(pod)]);
});

test('deploy/kyverno.yaml has the container of the API server, field by field', { skip: stale }, () => {
  const { container, quit, restarts, source } = readVariables();
  for (const [name, kind, from] of [
    ['regular', 'annotated', 'annotated'],
    ['native', 'none', 'annotated'],
    ['front-regular', 'annotated', 'exporter'],
    ['front-native', 'none', 'exporter'],
  ] as const) {
    const values = {
      '{{ quit }}': quit[kind],
      '{{ source.url }}': source[from].url,
      '{{ source.front }}': source[from].front,
    };
    const env = container.env.map((variable) => values[variable as keyof typeof values] ?? variable);
    assert.deepEqual({ ...container, ...restarts.byRules, env }, findLastscrape(readGolden(name)), name);
  }
});

test('deploy/kyverno.yaml appends, to pods only, and fails open', () => {
  const { metadata, spec } = parse(POLICY);
  assert.equal(metadata.annotations['pod-policies.kyverno.io/autogen-controllers'], 'none');
  assert.equal(spec.webhookConfiguration.failurePolicy, 'Ignore');
  assert.equal(spec.background, false);
  assert.equal(spec.rules.length, 1);
  const [{ match, mutate }] = spec.rules;
  assert.deepEqual([match.any[0].resources.kinds, match.any[0].resources.operations], [['Pod'], ['CREATE']]);
  assert.match(mutate.patchesJson6902, /path: \/spec\/containers\/-,/);
});

/** The values of the variables of the one rule, by name. */
function readVariables(): {
  container: Fields & { env: readonly unknown[] };
  quit: { none: Fields; annotated: Fields };
  restarts: { byRules: Fields };
  source: Record<'exporter' | 'annotated', { url: Fields; front: Fields }>;
} {
  const entries: readonly { name: string; variable?: { value?: unknown } }[] = parse(POLICY).spec.rules[0].context;
  return Object.fromEntries(entries.map(({ name, variable }) => [name, variable?.value])) as ReturnType<
    typeof readVariables
  >;
}
