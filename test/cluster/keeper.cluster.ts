// The keeper on a real Kubernetes, by the chart and a label alone: pods that hand over are not held, and their final
// numbers go on in the series of before; with the API server's own TokenReview.

import assert from 'node:assert/strict';
import { until } from '../support/until.ts';
import type { Container, Namespace, Pod } from './cluster.ts';
import { buildCountingJob, buildTask, JOB, METRIC, readFinal } from './counting-job.ts';
import { type KeeperChart, openKeeper } from './keeper.ts';
import { FRONT_JOB } from './prometheus.ts';
import { END_MS, getFixture, readEnd, requirePolicies, runScenarioIn, START_MS } from './scenario.ts';

/** How many pods of a Job there are; each changes its number in its last instant. */
const COUNT = 20;

export function runKeeperScenarios(): void {
  runScenarioIn('keeper: nothing is held, and nothing is lost', async (namespace) => {
    requirePolicies();
    const { cluster } = getFixture();
    const pods = await cluster.openNamespace('keeper-pods');
    const keeper = await openKeeper(namespace, [pods.name]);
    try {
      await play(namespace, pods, keeper);
    } catch (error) {
      throw new Error(await pods.describe(), { cause: error });
    } finally {
      // Before its namespace goes, in which helm has written what it made in the whole cluster.
      await keeper.helm('uninstall');
    }
  });
}

async function play(namespace: Namespace, pods: Namespace, keeper: KeeperChart): Promise<void> {
  const { cluster } = getFixture();
  const test = () => keeper.helm('test', '--timeout', '3m');
  // Its first pod is held where the keeper of a busy node takes more than the 2 s of a hand-over.
  const tested = await test().catch(test);
  assert.equal(tested.match(/Phase: +Succeeded/g)?.length, 4, tested);
  const ports = await namespace.readField(`networkpolicy/${keeper.name}`, '{.spec.ingress[*].ports[*].port}');
  assert.equal(ports, 'hand-over serve');
  const account = `system:serviceaccount:${namespace.name}:${keeper.name}`;
  const may = (verb: string, kind: string) =>
    cluster.kubectl(['auth', 'can-i', verb, kind, '--as', account]).catch(() => 'no\n');
  assert.deepEqual([await may('create', 'tokenreviews'), await may('get', 'pods')], ['yes\n', 'no\n']);

  let handedOverCount = 0;
  for (const pod of await run(pods)) {
    // A keeper that answers too late on a busy node, or a scrape that is quicker, leaves a hold.
    if (readEnd(pod).report.outcome === 'handedOver') handedOverCount += 1;
    await proveStored(pods, keeper, pod);
  }
  assert.ok(handedOverCount > 0, 'none was handed over');
}

/** A Job of COUNT pods with the label and the hook, ten at a time. @returns its pods, all Succeeded */
async function run(namespace: Namespace): Promise<readonly Pod[]> {
  const job = { parallelism: 10, completions: COUNT };
  await namespace.apply(
    buildCountingJob({
      annotations: { 'lastscrape.dev/hook': 'python' },
      job,
      edit: ({ containers: [main], ...spec }) => ({
        ...spec,
        containers: [{ ...(main as Container), ...buildTask({ TASK_SECONDS: '20' }) }],
      }),
    }),
  );
  assert.equal(await namespace.untilJobEnded(JOB, END_MS), 'Complete');
  const pods = [...new Map(namespace.events.map(({ pod }) => [pod.metadata.name, pod])).values()];
  assert.equal(pods.length, COUNT);
  return pods;
}

/** In one series, which `readSamples` sees to. */
async function proveStored(namespace: Namespace, { prometheus }: KeeperChart, pod: Pod): Promise<void> {
  const { final } = await readFinal(namespace, pod);
  const selector = `${METRIC}{job="${FRONT_JOB}",pod="${pod.metadata.name}"}`;
  await until(`${final} in the Prometheus of the keeper`, START_MS, async () => {
    const samples = await prometheus.readSamples(selector, namespace.name);
    if (samples.at(-1)?.value === final && samples.length > 1) return true;
    const ups = await prometheus.readSamples(selector.replace(METRIC, 'up'), namespace.name);
    throw new Error(
      `of ${pod.metadata.name} it holds ${JSON.stringify({ samples: samples.slice(-3), ups: ups.slice(-5) })}`,
    );
  });
}
