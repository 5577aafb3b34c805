// The chart with its keeper, for the pods of some namespaces, and a Prometheus that scrapes them and what it keeps.

import { CHART } from '../deploy/chart.ts';
import { install, nameAndLimit, runHelmIn } from './chart.cluster.ts';
import type { Namespace } from './cluster.ts';
import { IMAGES } from './images.ts';
import { openNames } from './names.ts';
import { type ClusterPrometheus, startClusterPrometheus } from './prometheus.ts';
import { getFixture } from './scenario.ts';

export type KeeperChart = {
  /** Of the keeper's own objects. */
  readonly name: string;
  readonly prometheus: ClusterPrometheus;
  helm(verb: string, ...args: readonly string[]): Promise<string>;
};

/** Installs both; the release is in the first namespace, whose pods hand over as those of the others do. */
export async function openKeeper(own: Namespace, covered: readonly string[]): Promise<KeeperChart> {
  const { cluster } = getFixture();
  const release = `keeper-${cluster.run}`;
  const name = `${release}-keeper`;
  const monitoring = 'keeper-monitoring';
  const mayRead = `keeper.prometheus.namespace=lastscrape-${cluster.run}-${monitoring}`;
  const values = [...nameAndLimit(release, covered.join(',')), '--set', `keeper.enabled=true,${mayRead}`];
  await install(own.name, release, IMAGES.lastscrape, values);
  await cluster.kubectl(['rollout', 'status', `deployment/${name}`, '--namespace', own.name, '--timeout=120s']);
  await openNames(cluster, await own.readField(`service/${name}`, '{.spec.clusterIP}'));
  const keeperTargets = `http://${name}.${own.name}.svc:9471/targets`;
  return {
    name,
    prometheus: await startClusterPrometheus(cluster, monitoring, { only: [own.name, ...covered], keeperTargets }),
    helm: (verb, ...args) =>
      runHelmIn(own.name, verb, release, ...(verb === 'upgrade' ? [CHART, '--reuse-values'] : []), ...args),
  };
}
