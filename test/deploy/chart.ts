// Renders deploy/chart with helm.

import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { cpSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../support/folder.ts';
import { findPrograms } from '../support/programs.ts';

export const ROOT = join(import.meta.dirname, '..', '..');
export const CHART = join(ROOT, 'deploy/chart');

/** The APIs of a cluster with everything that the chart can use. */
export const APIS = [
  'admissionregistration.k8s.io/v1/MutatingAdmissionPolicy',
  'policies.kyverno.io/v1/MutatingPolicy',
] as const;

/** The manifests of deploy/ that are what the chart renders: the template, and the values that switch it on. */
export const RENDERED: Readonly<Record<string, readonly [template: string, ...values: readonly string[]]>> = {
  'deploy/policy.yaml': ['policy'],
  'deploy/jobs-policy.yaml': ['jobs-policy'],
  'deploy/limits.yaml': ['limits'],
  'deploy/annotations-policy.yaml': ['annotations-policy'],
  'deploy/jobs-warnings.yaml': ['jobs-warnings'],
  'deploy/monitoring/podmonitor.yaml': ['podmonitor', 'monitors.enabled=true'],
  'deploy/monitoring/prometheusrule.yaml': ['prometheusrule', 'rules.enabled=true'],
  'deploy/monitoring/networkpolicy.yaml': ['networkpolicy', 'networkPolicy.namespaces[0]='],
  'deploy/keeper.yaml': ['keeper', 'keeper.enabled=true'],
  'deploy/monitoring/keeper.yaml': ['keeper-monitors', 'keeper.enabled=true', 'monitors.enabled=true'],
  'deploy/job/front/podmonitor.yaml': ['jobs-podmonitor', 'monitors.enabled=true'],
};

/** The files of deploy/ that have a lastscrape of their own, whose fixed parts are those of the chart. */
export const DERIVED: readonly string[] = globSync('deploy/{job,migrate}/**/*.yaml', { cwd: ROOT })
  .filter((file) => /terminationMessagePolicy/.test(readFileSync(join(ROOT, file), 'utf8')))
  .toSorted();

export function runHelm(...args: readonly string[]): SpawnSyncReturns<string> {
  const [helm = ''] = findPrograms().helm ?? [];
  return spawnSync(helm, args, { encoding: 'utf8' });
}

/** `helm template` for a cluster of one version that has these APIs. */
export function template(
  values: readonly string[],
  { version = '1.36.0', apis = APIS as readonly string[], only = [] as readonly string[], chart = CHART } = {},
): SpawnSyncReturns<string> {
  return runHelm(
    ...['template', 'lastscrape', chart, '--namespace', 'monitoring', '--kube-version', version],
    ...apis.flatMap((api) => ['--api-versions', api]),
    ...values.flatMap((value) => ['--set', value]),
    ...only.flatMap((name) => ['--show-only', `templates/${name}.yaml`]),
  );
}

/** The text of one of RENDERED. @throws with what helm says */
export function renderManifest(file: string): string {
  const [name = '', ...values] = RENDERED[file] ?? [];
  return render(name, values, CHART);
}

function render(name: string, values: readonly string[], chart: string): string {
  const { stdout, stderr, status } = template(['image=lastscrape:0.1.0', ...values], { only: [name], chart });
  if (status !== 0) throw new Error(`Cannot render ${name}: ${stderr}`);
  return stdout.replace(/^---\n/, '').replaceAll(/^# Source: .*\n/gm, '');
}

/** What the chart puts into every container, and the variables that annotations set: of any pod, of a labelled Job. */
const PARTS = `container:
  {{- include "lastscrape.container" . | nindent 2 }}
{{- range $list := list "all" "jobs" }}
{{ $list }}:
  {{- range include (printf "lastscrape.annotations.%s" $list) $ | splitList " " }}
  - {{ include "lastscrape.env" . }}
  {{- end }}
{{- end }}
`;

/** Renders PARTS, each without its indentation. @throws with what helm says */
export function renderParts(): Readonly<Record<string, string>> {
  const chart = makeFolder();
  cpSync(CHART, chart, { recursive: true });
  writeFileSync(join(chart, 'templates/parts.yaml'), PARTS);
  const parts = render('parts', [], chart).matchAll(/^(\w+):\n((?: .*\n)+)/gm);
  return Object.fromEntries([...parts].map(([, name, text = '']) => [name, text.replaceAll(/^ {2}/gm, '')]));
}

/** One of DERIVED as it has to be: its own text with the parts of the chart. */
export function deriveManifest(file: string, parts: Readonly<Record<string, string>>): string {
  const { container = '', all = '', jobs = '' } = parts;
  const variables = file.includes('/component/') ? all : `${all.slice(0, all.indexOf('\n') + 1)}${jobs}`;
  const indent = (text: string, by: string) => text.replaceAll(/^(?=.)/gm, by);
  const own = file.replace('/cron-job-patch', '/job-patch');
  const text = readFileSync(join(ROOT, own), 'utf8')
    .replace(/^( *)terminationMessagePolicy: .*\n(?:\1(?:(?:resources|securityContext):| ).*\n)*/m, (_, by) =>
      indent(container, by),
    )
    .replace(/^( *)(?:- \{name: LASTSCRAPE_\w+, valueFrom: .*\n(?:\1(?=- \{name: LASTSCRAPE_))?)+/m, (_, by) =>
      indent(variables, by),
    );
  if (own === file) return text;
  const [head = '', body = ''] = text.replace('kind: Job', 'kind: CronJob').split('\nspec:\n');
  return `${head}\nspec:\n  jobTemplate:\n    spec:\n${indent(body, '    ')}`;
}
