// The frameworks that make batch pods: which versions test/tools/install-frameworks.ts builds, and where they are then.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { COMPLETE_MARKER, cachePath } from '../../support/programs.ts';

/** Programs of one Go module. */
export type GoBuild = {
  readonly name: string;
  readonly version: string;
  readonly module: string;
  readonly programs: Readonly<Record<string, string>>;
  /** Files that are links in the sources, which a module's archive leaves out: the file, and what it links to. */
  readonly links?: Readonly<Record<string, string>>;
};

/** Packages of one Python environment. */
export type PythonBuild = { readonly name: string; readonly version: string; readonly packages: readonly string[] };

export const JOBSET: GoBuild = {
  name: 'jobset',
  version: '0.10.1',
  module: 'sigs.k8s.io/jobset',
  programs: { manager: '.' },
};

export const ARGO: GoBuild = {
  name: 'argo',
  version: '3.7.0',
  module: 'github.com/argoproj/argo-workflows/v3',
  programs: { 'workflow-controller': './cmd/workflow-controller', argoexec: './cmd/argoexec' },
  links: { 'workflow/executor/osspecific/signal_linux.go': 'signal_darwin.go' },
};

export const TEKTON: GoBuild = {
  name: 'tekton',
  version: '1.3.1',
  module: 'github.com/tektoncd/pipeline',
  programs: Object.fromEntries(
    ['controller', 'webhook', 'entrypoint', 'nop', 'workingdirinit', 'sidecarlogresults'].map((program) => [
      program,
      `./cmd/${program}`,
    ]),
  ),
};

export const AIRFLOW: PythonBuild = {
  name: 'airflow',
  version: '3.3.2-10.25.0',
  packages: ['apache-airflow==3.3.2', 'apache-airflow-providers-cncf-kubernetes==10.25.0'],
};

export const SPARK: PythonBuild = { name: 'spark', version: '4.1.4', packages: ['pyspark==4.1.4'] };

export const GO_BUILDS: readonly GoBuild[] = [JOBSET, ARGO, TEKTON];
export const PYTHON_BUILDS: readonly PythonBuild[] = [AIRFLOW, SPARK];

/** The folder of one, there or not. */
export function frameworkPath({ name, version }: GoBuild | PythonBuild): string {
  return cachePath(`framework-${name}-${version}`);
}

/** Whether it is there, whole. */
export function isBuilt(build: GoBuild | PythonBuild): boolean {
  return existsSync(join(frameworkPath(build), COMPLETE_MARKER));
}

/** A program of one. */
export function programPath(build: GoBuild | PythonBuild, program: string): string {
  return join(frameworkPath(build), 'bin', program);
}
