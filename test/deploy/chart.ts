// Renders deploy/chart with helm.

import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { findPrograms } from '../support/programs.ts';

export const ROOT = join(import.meta.dirname, '..', '..');
export const CHART = join(ROOT, 'deploy/chart');

/** The APIs of a cluster with everything that the chart can use. */
export const APIS = ['admissionregistration.k8s.io/v1/MutatingAdmissionPolicy', 'kyverno.io/v1/ClusterPolicy'] as const;

/** The manifests of deploy/ that are what the chart renders: the template, and the values that switch it on. */
export const RENDERED: Readonly<Record<string, readonly [template: string, ...values: readonly string[]]>> = {
  'deploy/policy.yaml': ['policy'],
  'deploy/jobs-policy.yaml': ['jobs-policy'],
  'deploy/annotations-policy.yaml': ['annotations-policy'],
  'deploy/jobs-warnings.yaml': ['jobs-warnings'],
  'deploy/kyverno.yaml': ['kyverno', 'engine=kyverno'],
  'deploy/jobs-kyverno.yaml': ['jobs-kyverno', 'engine=kyverno'],
  'deploy/monitoring/podmonitor.yaml': ['podmonitor', 'monitors.enabled=true'],
  'deploy/monitoring/prometheusrule.yaml': ['prometheusrule', 'rules.enabled=true'],
  'deploy/monitoring/networkpolicy.yaml': ['networkpolicy', 'networkPolicy.namespaces[0]='],
  'deploy/job/front/podmonitor.yaml': ['jobs-podmonitor', 'monitors.enabled=true'],
};

/** Runs helm. */
export function runHelm(...args: readonly string[]): SpawnSyncReturns<string> {
  const [helm = ''] = findPrograms().helm ?? [];
  return spawnSync(helm, args, { encoding: 'utf8' });
}

/** `helm template` for a cluster of one version that has these APIs. */
export function template(
  values: readonly string[],
  { version = '1.36.0', apis = APIS, only = [] as readonly string[] } = {},
): SpawnSyncReturns<string> {
  return runHelm(
    ...['template', 'lastscrape', CHART, '--namespace', 'monitoring', '--kube-version', version],
    ...apis.flatMap((api) => ['--api-versions', api]),
    ...values.flatMap((value) => ['--set', value]),
    ...only.flatMap((name) => ['--show-only', `templates/${name}.yaml`]),
  );
}

/** The text of one of RENDERED. @throws with what helm says */
export function renderManifest(file: string): string {
  const [name = '', ...values] = RENDERED[file] ?? [];
  const { stdout, stderr, status } = template(['image=lastscrape:0.1.0', ...values], { only: [name] });
  if (status !== 0) throw new Error(`Cannot render ${file}: ${stderr}`);
  return stdout.replace(/^---\n/, '').replaceAll(/^# Source: .*\n/gm, '');
}
