// The real Locust operator (locust-k8s-operator 2.x), installed by its own chart from sources that a test
// names: no package registry has it.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type BlockName, readBlock } from '../deploy/guide.ts';
import { findOnPath, readTestVariable } from '../support/programs.ts';
import type { Fixture } from './scenario.ts';

/** A built operator: its version, and the folder of its sources, with `bin/manager`. */
export type OperatorBuild = { readonly version: string; readonly folder: string };

/** Names the folders: `2.2.3=/path,2.3.0=/path`. */
const VARIABLE = 'LASTSCRAPE_TEST_OPERATORS';
const CHART = 'charts/locust-k8s-operator';
const PROGRAM = 'bin/manager';
/** The chart's `nameOverride` and `fullnameOverride` in both versions. */
const RELEASE = 'locust-operator';

/** The chart's value for the exporter's image (2.2.3 and 2.3.0: values.yaml, _helpers.tpl). */
export const IMAGE_VALUE = 'locustPods.metricsExporter.image';
const GUIDE_CHART = 'locust-k8s-operator/locust-k8s-operator';
const GUIDE_IMAGE = 'HOST/lastscrape:0.1.0';

/** The operators to test with; empty: the variable is not set. @throws when something of it is missing */
export function listOperators(): readonly OperatorBuild[] {
  const builds = (readTestVariable(VARIABLE) ?? '')
    .split(',')
    .filter((entry) => entry.trim() !== '')
    .map((entry) => {
      const [version = '', folder = ''] = entry.trim().split('=');
      for (const path of [CHART, PROGRAM]) {
        if (existsSync(join(folder, path))) continue;
        throw new Error(
          `Cannot use ${VARIABLE}: "${entry}" has no ${path}; must be VERSION=FOLDER of the operator's sources after "make build"`,
        );
      }
      return { version, folder };
    });
  if (builds.length > 0 && findOnPath('helm') === undefined) {
    throw new Error(`Cannot use ${VARIABLE}: helm is missing; run "go install helm.sh/helm/v4/cmd/helm@v4.3.1"`);
  }
  return builds;
}

/** One line that says that nothing ran with a real operator, and how it would. */
export const NOT_RUN = `NOT RUN: the real Locust operator, since ${VARIABLE} names none; set it to VERSION=FOLDER of its sources after "make build"\n`;

/** An operator that works; disposing of it removes its LocustTests while it can, and then all of it. */
export type Operator = AsyncDisposable & {
  readonly version: string;
  /** Sets the value by the command of deploy/README.md, and waits for the operator that has it. */
  setExporterImage(image: string): Promise<void>;
};

/** Installs an operator with its chart's own values, but for its image, which no registry has here. */
export async function installOperator({ cluster, images }: Fixture, build: OperatorBuild): Promise<Operator> {
  const { version, folder } = build;
  const own = { repository: 'localhost/lastscrape-test/operator', tag: version };
  await images.loadProgramAs(`${own.repository}:${own.tag}`, join(folder, PROGRAM), '65532:65532');
  const namespace = await cluster.openNamespace(`operator-${version.replaceAll('.', '-')}`);
  const chart = join(folder, CHART);
  const within = ['--namespace', namespace.name];
  // What a run left behind that was killed is of another release.
  await helm([
    ...['install', RELEASE, chart, ...within, '--take-ownership'],
    ...['--set', `image.repository=${own.repository},image.tag=${own.tag}`],
  ]);
  return {
    version,
    async setExporterImage(image) {
      const [program = '', ...args] = readCommand('exporter image');
      if (program !== 'helm') throw new Error(`Cannot run "${program}" of deploy/README.md: it must be helm`);
      const words: Readonly<Record<string, string>> = {
        RELEASE,
        NAMESPACE: namespace.name,
        VERSION: version,
        [GUIDE_CHART]: chart,
      };
      const typed = args.map((word) => words[word] ?? word.replace(GUIDE_IMAGE, image));
      try {
        await helm([...typed, '--timeout', '120s']);
      } catch (error) {
        throw new Error(`Cannot give the operator ${version} its value; ${await namespace.describe()}`, {
          cause: error,
        });
      }
    },
    async [Symbol.asyncDispose]() {
      // Each has a finalizer that only the operator takes away.
      await cluster.kubectl(['delete', 'locusttests.locust.io', '--all', '--all-namespaces', '--timeout=120s']);
      await helm(['uninstall', RELEASE, ...within, '--wait']);
      await cluster.kubectl(['delete', 'namespace', namespace.name, '--wait=false', '--ignore-not-found']);
    },
  };
}

/** The words of a command of the guide, which must be one without quotes. */
function readCommand(name: BlockName): readonly string[] {
  return readBlock(name).replaceAll('\\\n', ' ').trim().split(/\s+/);
}

export async function renderChart(build: OperatorBuild, values: readonly string[]): Promise<readonly string[]> {
  // A helm that Go installed takes itself for Kubernetes 1.20.
  const set = ['--kube-version', '1.36.0', ...values.flatMap((value) => ['--set', value])];
  return (await helm(['template', RELEASE, join(build.folder, CHART), ...set])).split('\n');
}

async function helm(args: readonly string[]): Promise<string> {
  return (await promisify(execFile)('helm', args, { maxBuffer: 2 ** 26 })).stdout;
}
