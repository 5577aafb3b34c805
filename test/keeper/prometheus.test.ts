// Real Prometheus, before and after a hand-over: the same series, the last numbers, and no `up` of 0. What
// Kubernetes' discovery has comes from files; the keeper's targets by HTTP. Nothing here is vmagent or Alloy,
// which no package registry has.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { CLUSTER_PROMETHEUS_VERSION } from '../cluster/prometheus-path.ts';
import { listMissingJudges, OPERATOR_JUDGE } from '../judges/judges.ts';
import { type FrontProgram, frontProgram, listMissingFrontPrograms } from '../pods/front-programs.ts';
import { makeFolder } from '../support/folder.ts';
import { findFreePort } from '../support/listen.ts';
import { findPrograms, gatePrograms, listMissing } from '../support/programs.ts';
import { inTime, type Keeper, startKeeper, startKeeperHere, until } from './keeper.ts';
import { type JobPod, startPod, writeTargets } from './pods.ts';
import { listJobs, listShardJobs, type Matrix, type Server, startServer, WAYS_COUNT } from './servers.ts';

const missing = [
  ...listMissingFrontPrograms(['prometheus', 'prometheus3']),
  ...listMissingJudges(OPERATOR_JUDGE),
  ...listMissing(findPrograms(), ['helm']),
];
const skip = gatePrograms('test/keeper/prometheus.test.ts', missing, () => [OPERATOR_JUDGE.folder]);
const TIMEOUT_MS = 300_000;
/** As the operator knows them. */
const VERSIONS: readonly (readonly [program: FrontProgram, version: string])[] = [
  ['prometheus', 'v2.42.0'],
  // The module v0.310.0 is 3.10.0.
  ['prometheus3', CLUSTER_PROMETHEUS_VERSION.replace(/^v0\.(\d)(\d\d)\./, (_, major, minor) => `v${major}.${+minor}.`)],
];
const NAME = 'jobs_done_total';
const LAST = '1000001';

const listLabels = (found: Matrix) => found.map(({ metric }) => JSON.stringify(metric)).toSorted();

const untilAll = (servers: readonly Server[], what: string, isSo: (server: Server) => Promise<boolean>) =>
  Promise.all(
    servers.map((server) =>
      until(`${what} in ${server.name}`, TIMEOUT_MS, async () => (await isSo(server)) || undefined),
    ),
  );

/** `handedOver`, or why it was held. */
async function readOutcome(pod: JobPod): Promise<string> {
  const { outcome, handOver } = await pod.report();
  return outcome === 'handedOver' ? outcome : JSON.stringify({ outcome, handOver });
}

/** Of every `up` of a pod the last; one of a busy machine's time-outs may be a 0 before it. */
async function listLastUps(server: Server, pod: string): Promise<ReadonlySet<string | undefined>> {
  const ups = await server.query(`up{pod="${pod}"}[1h]`);
  return new Set(ups.map(({ values }) => values.at(-1)?.[1]));
}

describe('Prometheus', { skip, concurrency: false }, () => {
  test(
    'two servers store the last numbers of pods that are gone in the series of before, as those of one that is held',
    inTime(async (isLate) => {
      // In its first 5 minutes a keeper waits for others that may ask yet.
      const clock = { aheadMs: 0 };
      await using keeper = await startKeeperHere({}, clock);
      clock.aheadMs = 300_000;
      await using started = new AsyncDisposableStack();
      const handOver = new URL(keeper.handOverUrl).origin;
      const pods = await Promise.all(['import-a', 'import-b'].map((name) => startPod(name, handOver)));
      const held = await startPod('held', 'none');
      for (const pod of [...pods, held]) started.use(pod);
      const folder = makeFolder();
      const [file, heldFile] = [join(folder, 'pods.json'), join(folder, 'held.json')];
      writeTargets(file, pods);
      writeTargets(heldFile, [held]);
      const servers = await Promise.all(
        VERSIONS.map(async ([program, version]) => {
          const plan = { name: version, command: frontProgram(program), targetFiles: [file, heldFile] };
          return started.use(await startServer(keeper, { ...plan, jobs: await listJobs(version) }));
        }),
      );
      await untilAll(servers, 'every pod', async (server) => {
        const found = await server.query(`${NAME}[1h]`);
        return found.length === 3 * WAYS_COUNT && found.every(({ values }) => values.length >= 3);
      });
      const before = await Promise.all(servers.map((server) => server.query(NAME)));

      // Kubernetes' discovery drops a pod when it has ended; later, and its up becomes 0, with a hold too.
      rmSync(file);
      await untilAll(servers, 'one pod', async (server) => (await server.countTargets()) === WAYS_COUNT);
      for (const pod of [...pods, held]) pod.end();
      if ((await Promise.all(pods.map(({ child }) => isLate(child)))).includes(true)) return 'late';
      assert.deepEqual(await Promise.all(pods.map(readOutcome)), ['handedOver', 'handedOver']);
      assert.equal((await held.report())['outcome'], 'scraped');
      rmSync(heldFile);

      await untilAll(servers, 'the last numbers', async (server) => {
        const found = await server.query(`last_over_time(${NAME}[1h]) == ${LAST}`);
        return found.length === 3 * WAYS_COUNT;
      });
      await until('an empty keeper', TIMEOUT_MS, async () => (await keeper.metric('pages')) === 0 || undefined);
      await untilAll(servers, 'nothing but the past', async (server) => (await server.query(NAME)).length === 0);
      for (const [index, server] of servers.entries()) {
        const after = await server.query(`${NAME}[1h]`);
        assert.deepEqual(listLabels(after), listLabels(before[index] ?? []), `${server.name}: no other series`);
        for (const { values } of after) assert.equal(values.at(-1)?.[1], LAST);
        for (const pod of ['import-a', 'import-b']) {
          assert.deepEqual(await listLastUps(server, pod), new Set(['1']), server.name);
        }
        const increases = await server.query(`increase(${NAME}[1h]) > 900000`);
        assert.equal(increases.length, 3 * WAYS_COUNT, server.name);
      }
      assert.deepEqual([await keeper.metric('scraped_total'), await keeper.metric('expired_total')], [2, 0]);
      return 'played';
    }),
  );

  test(
    'of two shards the one that scraped a pod scrapes its page',
    inTime(async (isLate) => {
      await using keeper = await startKeeper();
      await using started = new AsyncDisposableStack();
      const shards = [0, 1] as const;
      const pods = await Promise.all(shards.flatMap((shard) => [shard, shard]).map(startInShard(keeper)));
      for (const { pod } of pods) started.use(pod);
      const file = join(makeFolder(), 'pods.json');
      writeTargets(
        file,
        pods.map(({ pod }) => pod),
      );
      const [, version] = VERSIONS[1] ?? assert.fail();
      const jobs = await listShardJobs(version);
      const servers = await Promise.all(
        shards.map(async (shard) => {
          const plan = { name: `shard ${shard}`, command: frontProgram('prometheus3'), targetFiles: [file] };
          return started.use(await startServer(keeper, { ...plan, jobs, shard }));
        }),
      );
      await untilAll(servers, 'its pods', async (server) => (await server.query(NAME)).length === 2);
      const before = await Promise.all(servers.map((server) => server.query(NAME)));
      rmSync(file);
      await untilAll(servers, 'no pod', async (server) => (await server.countTargets()) === 0);
      for (const { pod } of pods) pod.end();
      if ((await Promise.all(pods.map(({ pod }) => isLate(pod.child)))).includes(true)) return 'late';
      const outcomes = await Promise.all(pods.map(({ pod }) => readOutcome(pod)));
      assert.deepEqual([...new Set(outcomes)], ['handedOver']);
      await untilAll(servers, 'the last numbers', async (server) => {
        return (await server.query(`last_over_time(${NAME}[1h]) == ${LAST}`)).length === 2;
      });
      for (const [shard, server] of servers.entries()) {
        const after = await server.query(`${NAME}[1h]`);
        assert.deepEqual(listLabels(after), listLabels(before[shard] ?? []));
        const own = pods.filter((each) => each.shard === shard).map(({ name }) => name);
        assert.deepEqual(after.map(({ metric }) => metric['pod']).toSorted(), own);
      }
      return 'played';
    }),
  );
});

/** A pod at a port that belongs to this shard: Prometheus's hashmod is the end of an MD5 (model/relabel). */
function startInShard(keeper: Keeper) {
  return async (shard: number, index: number) => {
    let port = await findFreePort();
    const isOther = () =>
      createHash('md5').update(`127.0.0.1:${port}`).digest().readBigUInt64BE(8) % 2n !== BigInt(shard);
    for (let tries = 0; isOther() && tries < 100; tries++) port = await findFreePort();
    const name = `import-${index}`;
    return { name, shard, pod: await startPod(name, new URL(keeper.handOverUrl).origin, port) };
  };
}
