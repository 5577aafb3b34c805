// A user at the guide: its commands in a copy of deploy/ with the test's images and namespaces.

import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BlockName, readBlock } from '../deploy/guide.ts';
import { type Child, startChild } from '../support/child.ts';
import { makeFolder } from '../support/folder.ts';
import { readTestVariable } from '../support/programs.ts';
import { type Cluster, type Namespace, runShell } from './cluster.ts';
import { IMAGES } from './images.ts';

export type GuideShell = Disposable & {
  /** Runs a block to its end. @returns what it printed. @throws when a command of it fails. */
  run(name: BlockName): Promise<string>;
  start(name: BlockName): Child;
};

function readEdits(namespace: string): Readonly<Record<string, (text: string) => string>> {
  const inNamespace = (text: string) => text.replace('namespace: monitoring', `namespace: ${namespace}`);
  return {
    'job/example/kustomization.yaml': (text) => `${text}${EXAMPLE_IMAGES}`,
    'job/front-example/kustomization.yaml': (text) => `${text}${replaceImage('python', IMAGES.locust)}`,
    'monitoring/podmonitor.yaml': inNamespace,
    'monitoring/servicemonitor.yaml': inNamespace,
    'monitoring/prometheusrule.yaml': inNamespace,
  };
}

const EXAMPLE_IMAGES = [
  ['busybox', IMAGES.busybox],
  ['prom/statsd-exporter', IMAGES.statsdExporter],
]
  .map(([name = '', image = '']) => replaceImage(name, image))
  .join('');

function replaceImage(name: string, image: string): string {
  const [newName, newTag] = image.split(':');
  return `  - {name: ${name}, newName: ${newName}, newTag: "${newTag}"}\n`;
}

/** Opens it; disposing of it removes the copy. */
export async function openGuideShell(cluster: Cluster, namespace: Namespace): Promise<GuideShell> {
  const directory = makeFolder();
  cpSync(join(import.meta.dirname, '../../deploy'), join(directory, 'deploy'), { recursive: true });
  for (const [file, edit] of Object.entries(readEdits(namespace.name))) {
    const path = join(directory, 'deploy', file);
    const text = readFileSync(path, 'utf8');
    const edited = edit(text);
    if (edited === text) throw new Error(`Cannot edit deploy/${file}: what a user replaces there was not found`);
    writeFileSync(path, edited);
  }
  const kubeconfig = join(directory, 'kubeconfig');
  writeFileSync(kubeconfig, await cluster.kubectl(['config', 'view', '--raw', '--flatten', '--minify']), {
    mode: 0o600,
  });
  await cluster.kubectl([
    'config',
    'set-context',
    '--current',
    '--namespace',
    namespace.name,
    '--kubeconfig',
    kubeconfig,
  ]);
  return {
    run: (name) => runShell(readBlock(name), directory, { KUBECONFIG: kubeconfig }),
    start: (name) =>
      startChild({
        name: `the guide's "${name}"`,
        command: ['bash', '-c', `exec ${readBlock(name)}`],
        env: { PATH: readTestVariable('PATH') ?? '', HOME: directory, KUBECONFIG: kubeconfig },
        cwd: directory,
      }),
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true, maxRetries: 3 }),
  };
}
