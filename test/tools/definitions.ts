// The CustomResourceDefinitions of what deploy/ has, from their programs' Go modules (fixtures/schemas).

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cachePath } from '../support/programs.ts';

/** One definition: its name, and the file of a module that it comes from. */
export type Definition = {
  readonly name: string;
  readonly module: string;
  readonly version: string;
  readonly file: string;
};

export const OPERATOR_VERSION = '0.85.0';

export const OPERATOR_DEFINITIONS: readonly Definition[] = [
  'podmonitors',
  'servicemonitors',
  'prometheusrules',
  'scrapeconfigs',
].map((plural) => ({
  name: `${plural}.monitoring.coreos.com`,
  module: 'github.com/prometheus-operator/prometheus-operator',
  version: OPERATOR_VERSION,
  file: `example/prometheus-operator-crd/monitoring.coreos.com_${plural}.yaml`,
}));

export const KYVERNO_DEFINITION: Definition = {
  name: 'mutatingpolicies.policies.kyverno.io',
  module: 'github.com/kyverno/kyverno',
  version: '1.19.1',
  file: 'config/crds/policies.kyverno.io/policies.kyverno.io_mutatingpolicies.yaml',
};

export const DEFINITIONS: readonly Definition[] = [...OPERATOR_DEFINITIONS, KYVERNO_DEFINITION];

/** Where test/tools/install-cluster.ts keeps it. */
export function definitionPath({ name, version }: Definition): string {
  return cachePath(`definition-${name}-${version}.yaml`);
}

/** Its text, by Go and its module proxy. */
export function downloadDefinition({ module, version, file }: Definition): string {
  const options = { encoding: 'utf8', cwd: tmpdir(), maxBuffer: 2 ** 24 } as const;
  const { Dir } = JSON.parse(execFileSync('go', ['mod', 'download', '-json', `${module}@v${version}`], options));
  return readFileSync(join(Dir, file), 'utf8');
}
