// How frameworks come into the cluster: by their charts, and by programs beside the API server.

import { tmpdir } from 'node:os';
import { startChild } from '../../support/child.ts';
import { readTestVariable } from '../../support/programs.ts';
import { runHelmIn } from '../chart.cluster.ts';
import { getFixture } from '../scenario.ts';

/** Installs a chart in a namespace of its own, until it works. @param values as after `--set` */
export async function installChart(name: string, chart: string, values: string): Promise<void> {
  const { cluster } = getFixture();
  const namespace = await cluster.openNamespace(name);
  cluster.defer(() => runHelmIn(namespace.name, 'uninstall', name, '--ignore-not-found', '--wait'));
  try {
    await runHelmIn(namespace.name, 'install', name, chart, '--set', values, '--wait', '--timeout', '3m');
  } catch (error) {
    throw new Error(`Cannot install ${name}; ${await namespace.describe()}`, { cause: error });
  }
}

/** Starts a controller where it reaches the API server, and has it ended with the cluster's other things. */
export function startController(
  name: string,
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
): ReturnType<typeof startChild> {
  const own = {
    PATH: readTestVariable('PATH') ?? '',
    HOME: tmpdir(),
    KUBECONFIG: readTestVariable('KUBECONFIG') ?? '',
  };
  const child = startChild({ name, command, env: { ...own, ...env }, cwd: tmpdir() });
  getFixture().cluster.defer(async () => child[Symbol.asyncDispose]());
  return child;
}
