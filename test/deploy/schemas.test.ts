// Every manifest of deploy/ and fixtures/ against the schemas in fixtures/schemas, strictly. What is no
// manifest is named here, with what checks it instead.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { findPrograms, gate } from '../support/programs.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** YAML files in deploy/ that no API server reads as they are, and what reads them. */
const NOT_MANIFESTS: Readonly<Record<string, string>> = {
  'deploy/chart/Chart.yaml': 'helm, in chart.test.ts',
  'deploy/chart/values.yaml': 'helm, in chart.test.ts',
  'deploy/job/component/kustomization.yaml': 'kustomize, in kustomize.test.ts',
  'deploy/job/component/lastscrape.yaml': 'kustomize, in kustomize.test.ts',
  'deploy/job/example/kustomization.yaml': 'kustomize, in kustomize.test.ts',
  'deploy/job/front-example/kustomization.yaml': 'kustomize, in kustomize.test.ts',
  'deploy/job/front/cron-job-patch.yaml': 'kustomize, in kustomize.test.ts',
  'deploy/job/front/job-patch.yaml': 'kustomize, in kustomize.test.ts',
  'deploy/job/front/kustomization.yaml': 'kustomize, in kustomize.test.ts',
  'deploy/job/hand-over/kustomization.yaml': 'kustomize, in kustomize.test.ts',
  'deploy/job/hook/kustomization.yaml': 'kustomize, in kustomize.test.ts',
  'deploy/job/front/rules.yaml': 'promtool, in rules.test.ts',
  'deploy/job/front/rules.test.yaml': 'promtool, in rules.test.ts',
  'deploy/job/front/scrape-config.yaml': 'promtool, in front.test.ts',
  'deploy/monitoring/rules.yaml': 'promtool, in rules.test.ts',
  'deploy/monitoring/rules.test.yaml': 'promtool, in rules.test.ts',
  'deploy/monitoring/keeper-scrape-config.yaml': 'Prometheus, in test/keeper/prometheus.test.ts',
  'deploy/monitoring/scrape-config.yaml': 'promtool and Prometheus, in monitoring.test.ts',
};

const manifests = globSync(['deploy/**/*.yaml', 'fixtures/pods/**/*.yaml', 'fixtures/injected/**/*.yaml'], {
  cwd: ROOT,
})
  .filter(
    (file) =>
      !(file in NOT_MANIFESTS) &&
      !/^deploy\/chart\/(templates|files)\//.test(file) &&
      file !== 'fixtures/injected/annotations.yaml',
  )
  .toSorted();

const programs = findPrograms();
const skip = gate(programs, 'test/deploy/schemas.test.ts', ['kubeconform', 'kustomize']);

type Verdict = { readonly filename: string; readonly kind: string; readonly status: string; readonly msg: string };

/** What kubeconform says of each document of files, or of a text; it reads the given schemas only. */
function validate(files: readonly string[], input = ''): readonly Verdict[] {
  const schemas = globSync('fixtures/schemas/*/', { cwd: ROOT }).flatMap((folder) => [
    '-schema-location',
    join(folder, '{{.ResourceKind}}{{.KindSuffix}}.json'),
  ]);
  const [file = ''] = programs.kubeconform ?? [];
  const args = ['-strict', '-verbose', '-output', 'json', ...schemas, ...files];
  const { stdout, stderr } = spawnSync(file, args, { cwd: ROOT, input, encoding: 'utf8' });
  assert.match(stdout, /^\{/, stderr);
  return JSON.parse(stdout).resources;
}

test('every manifest is valid, each of its documents', { skip }, () => {
  const verdicts = validate(manifests);
  const wrong = verdicts.filter(({ status }) => status !== 'statusValid');
  assert.deepEqual(wrong, []);
  for (const file of manifests) {
    const documentCount = readFileSync(join(ROOT, file), 'utf8').match(/^kind: /gm)?.length ?? 0;
    assert.equal(verdicts.filter(({ filename }) => filename === file).length, documentCount, file);
    assert.ok(documentCount > 0, file);
  }
});

test('the example of the kustomize component is valid as it is built', { skip }, () => {
  const [file = '', ...args] = programs.kustomize ?? [];
  const text = execFileSync(file, [...args, join(ROOT, 'deploy', 'job', 'example')], { encoding: 'utf8' });
  const verdicts = validate(['-'], text);
  const kinds = verdicts.map(({ kind, status }) => [kind, status]);
  assert.deepEqual(kinds, [['Job', 'statusValid']]);
});

test('the manifests that the README shows are valid', { skip }, () => {
  const blocks = [...readFileSync(join(ROOT, 'README.md'), 'utf8').matchAll(/^```yaml\n([\s\S]*?)^```$/gm)];
  const verdicts = validate(['-'], blocks.map(([, text]) => text).join('---\n'));
  assert.deepEqual(verdicts.map(({ kind, status, msg }) => `${kind} ${status} ${msg}`).toSorted(), [
    'Job statusValid ',
    'PodMonitor statusValid ',
  ]);
});

/** A file, what is misspelt or wrong in it, and what it becomes. */
const BREAKS = [
  ['deploy/policy.yaml', 'failurePolicy:', 'failurPolicy:'],
  ['deploy/policy.yaml', 'matchConditions:', 'matchCondition:'],
  ['deploy/policy.yaml', 'policyName:', 'policy:'],
  ['deploy/job/example/job.yaml', 'backoffLimit:', 'backOffLimit:'],
  ['deploy/job/example/job.yaml', 'containerPort: 9102', 'containerPort: metrics'],
  ['deploy/migrate/pkill.yaml', 'shareProcessNamespace:', 'sharedProcessNamespace:'],
  ['deploy/migrate/scuttle.yaml', 'resources: [pods]', 'resource: [pods]'],
  ['deploy/migrate/scuttle.yaml', 'roleRef:', 'roleref:'],
  ['deploy/monitoring/networkpolicy.yaml', 'podSelector:', 'podSelectors:'],
  ['deploy/monitoring/podmonitor.yaml', 'podMetricsEndpoints:', 'podMetricEndpoints:'],
  ['deploy/monitoring/servicemonitor.yaml', 'scrapeTimeout:', 'scrapeTimeouts:'],
  ['deploy/monitoring/prometheusrule.yaml', 'keep_firing_for:', 'keep_firing_fors:'],
  ['fixtures/pods/native.yaml', 'containerPort:', 'containerport:'],
  ['fixtures/injected/regular.yaml', 'restartPolicyRules:', 'restartRules:'],
  ['fixtures/injected/regular.yaml', 'runAsUser: 65532', 'runAsUser: nobody'],
] as const;

test('a misspelt field or a wrong value is refused', { skip }, () => {
  for (const [file, from, to] of BREAKS) {
    const text = readFileSync(join(ROOT, file), 'utf8');
    assert.ok(text.includes(from), `${file} has ${from}`);
    const verdicts = validate(['-'], text.replaceAll(from, to));
    const isRefused = verdicts.some(({ status }) => status === 'statusInvalid');
    assert.ok(isRefused, `${file} with ${to}`);
  }
});

test('what is named as no manifest is there', () => {
  for (const file of Object.keys(NOT_MANIFESTS)) readFileSync(join(ROOT, file));
  assert.ok(manifests.length >= 10, manifests.join(' '));
});
