// Opens everything that the stories share: images on the node, Prometheus in the cluster, the policy applied. Says in two lines
// how to get a cluster where there is none.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gateDist } from '../image/dist.ts';
import { findOnPath, findPrograms, listMissing, readTestVariable } from '../pods/programs.ts';
import { until } from '../pods/until.ts';
import { openCluster, RUN_LABEL } from './cluster.ts';
import { openImageLoader } from './images.ts';
import { startClusterPrometheus } from './prometheus.ts';
import { CLUSTER_PROMETHEUS_PATH } from './prometheus-path.ts';
import type { Stage } from './story.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Shown where no cluster is named. */
const HOW_TO =
  'Cannot run test:cluster: KUBECONFIG and LASTSCRAPE_TEST_IMAGE_LOAD must be set; start a cluster, for instance "kind create cluster",\n' +
  'then run: KUBECONFIG=~/.kube/config LASTSCRAPE_TEST_IMAGE_LOAD="kind load image-archive" npm run test:cluster\n';

/** The kinds that a run makes outside of namespaces. */
const CLUSTER_KINDS =
  'mutatingadmissionpolicies,mutatingadmissionpolicybindings,clusterroles,clusterrolebindings,namespaces';

/** What must be there; ends the process with what to do where it is not, since without a cluster no story can begin. */
export function requireCluster(): { readonly loadCommand: string } {
  const loadCommand = readTestVariable('LASTSCRAPE_TEST_IMAGE_LOAD');
  if (readTestVariable('KUBECONFIG') === undefined || loadCommand === undefined) {
    process.stderr.write(HOW_TO);
    process.exit(1);
  }
  const programs = ['kubectl', 'busybox', 'tar', 'ldd'].filter((name) => findOnPath(name) === undefined);
  const missing = [
    ...programs.map((name) => `${name} on the PATH`),
    ...listMissing(findPrograms(), ['locust']),
    ...(existsSync(CLUSTER_PROMETHEUS_PATH)
      ? []
      : ['Prometheus with Kubernetes discovery: run "npm exec -- node test/cluster/install.ts" (needs Go)']),
  ];
  if (missing.length > 0) {
    process.stderr.write(`Cannot run test:cluster: programs are missing; install ${missing.join('; ')}\n`);
    process.exit(1);
  }
  if (gateDist('test:cluster') !== false) process.exit(1);
  return { loadCommand };
}

/** Opens the stage; what it made is removed when it is disposed of, also where opening failed. */
export async function openStage(): Promise<Stage & AsyncDisposable> {
  const { loadCommand } = requireCluster();
  const stack = new AsyncDisposableStack();
  try {
    const cluster = stack.use(await openCluster());
    // A run that was killed could not remove what it had made.
    await cluster.kubectl(['delete', CLUSTER_KINDS, '--selector', RUN_LABEL, '--wait=false', '--ignore-not-found']);
    await refuseForeign(cluster.kubectl);
    const images = stack.use(openImageLoader(findPrograms(), loadCommand));
    await images.loadAll();
    const prometheus = await startClusterPrometheus(cluster);
    return { cluster, prometheus, images, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

/** Applies deploy/policy.yaml as a user does, and waits until the API server obeys it. */
export async function applyPolicy({ cluster }: Stage): Promise<void> {
  cluster.defer(() => cluster.kubectl(['delete', '-f', join(ROOT, 'deploy/policy.yaml'), '--ignore-not-found']));
  await cluster.kubectl(['apply', '-f', join(ROOT, 'deploy/policy.yaml')]);
  await cluster.kubectl([
    ...['label', 'mutatingadmissionpolicies,mutatingadmissionpolicybindings', 'lastscrape'],
    ...[`${RUN_LABEL}=${cluster.run}`, '--overwrite'],
  ]);
  const check = readCheck();
  await until('the policy at work', 60_000, async () => {
    const printed = execFileSync('bash', ['-c', check], { encoding: 'utf8' }).trim();
    if (printed === 'locust-metrics-exporter lastscrape') return true;
    throw new Error(`the check of deploy/README.md printed "${printed}"`);
  });
}

/** The guide's one-line check. */
export function readCheck(): string {
  const guide = readFileSync(join(ROOT, 'deploy/README.md'), 'utf8');
  const [, command] = /<!-- run: check -->\n```sh\n([\s\S]*?)```/.exec(guide) ?? [];
  if (command === undefined) throw new Error('Cannot find the check in deploy/README.md: no block after "run: check"');
  return command;
}

// Somebody's own policy must not be changed, nor removed at the end.
async function refuseForeign(kubectl: (args: readonly string[]) => Promise<string>): Promise<void> {
  const found = await kubectl([
    ...['get', 'mutatingadmissionpolicies', '--field-selector', 'metadata.name=lastscrape'],
    ...['--selector', `!${RUN_LABEL}`, '--output', 'name'],
  ]);
  if (found.trim() !== '') {
    throw new Error(
      'Cannot run test:cluster: this cluster has the policy "lastscrape"; delete it, or take another cluster',
    );
  }
}
