// The keeper, the pods that hand over to it, and every Prometheus, in virtual time: what a seed draws, and what must
// hold (docs/keeper.md).
//
// 1 what was answered 201 is on the disk, and each Prometheus of that pod gets it    2 201 ends a pod, nothing else
// that has no scrape or limit    3 what is listed is answered, also for a while after it    4 one page a pod, and what
// it took back is none    5 no page says to be another pod's    6 nothing is kept for ever

import type { HandOver } from '../../../src/decide/keep/targets.ts';
import type { Limits, Outcome } from '../../../src/decide/model.ts';
import { nameKey } from '../../../src/keeper/store.ts';
import { openRandom, type Random, World } from '../../front/simulation/world.ts';
import { openDisk } from './disk.ts';
import { type KeeperEnd, openKeeperHost } from './host.ts';
import { type Fault, openPod, type Pod, type PodPlan } from './pod.ts';
import { type Prometheus, type PrometheusPlan, startPrometheus, type Target } from './prometheus.ts';

type Scenario = {
  readonly seed: number;
  readonly pods: readonly PodPlan[];
  readonly prometheus: readonly PrometheusPlan[];
  readonly keeperEnds: readonly KeeperEnd[];
  readonly maxPages: number;
  readonly diskFullProbability: number;
};

/** Of the rules (docs/keeper.md): who else asks is waited for until then, the first scrape until that. */
const OTHERS_MS = 300_000;
const FIRST_MS = 3_600_000;
/** How long a Prometheus may take to take changes of targets up. */
const CHANGES_MS = 10_000;
/** From the moment when main runs again: the next look, and what the keeper is asked then. */
const AGAIN_MS = 5_000;
/** From a 201 to the pod's end: what is on its way. */
const RELEASE_MS = 1_000;

function drawScenario(seed: number): Scenario {
  const random = openRandom(seed);
  const pods = Array.from({ length: random.between(1, 6) }, (_, index) => drawPod(random, index));
  // What is handed over, and what is taken back.
  const ends = pods.flatMap(({ runs }) => runs.flatMap((run, index) => (index === 0 ? run.slice(1) : run)));
  return {
    seed,
    pods,
    prometheus: drawPrometheus(random, ends),
    keeperEnds: Array.from({ length: random.pick([0, 0, 1, 1, 2, 3]) }, () => ({
      atMs: random.pick(ends) + (random.chance(0.6) ? random.between(0, 3_000) : random.between(0, 400_000)),
      how: random.pick(['kill', 'kill', 'crash', 'stop'] as const),
      downMs: random.pick([100, 2_000, 20_000]),
    })),
    maxPages: random.pick([2, 4, 100, 100]),
    diskFullProbability: random.pick([0, 0, 0.2]),
  };
}

function drawPod(random: Random, index: number): PodPlan {
  const fromMs = random.between(0, 300_000);
  const endMs = fromMs + random.between(3_000, 60_000);
  const againMs = endMs + random.between(0, 10_000);
  const isAgain = random.chance(0.4);
  const runs = [
    [fromMs, endMs] as const,
    ...(isAgain ? [[againMs, againMs + random.between(3_000, 60_000)] as const] : []),
  ];
  const limits: Limits = {
    scrapesWantedCount: random.pick(['auto', 'auto', 0, 1]),
    ttlMs: random.pick([0, 10_000, 90_000]),
    settleMs: random.pick([0, 1_000, 3_000]),
    startTimeoutMs: 60_000,
    runTimeoutMs: 0,
    terminationGraceMs: random.pick([5_000, 25_000, 100_000]),
    pollMs: 1_000,
  };
  const faults: readonly (Fault | null)[] = [
    null,
    null,
    null,
    'cutRequest',
    'slowRequest',
    'lostAnswer',
    'lateAnswer',
    'restart',
  ];
  return {
    name: `job-${Math.floor(index / 2)}`,
    namespace: index % 2 === 0 ? 'a' : 'b',
    address: `10.1.0.${index}`,
    runs,
    signalMs: Number(runs.at(-1)?.[1]) + random.between(200, 5_000),
    isBySignal: !isAgain && random.chance(0.5),
    limits,
    faults: [random.pick(faults), random.pick(faults)],
  };
}

function drawPrometheus(random: Random, ends: readonly number[]): readonly PrometheusPlan[] {
  const count = random.pick([0, 1, 1, 2, 2]);
  const isSharded = count === 2 && random.chance(0.3);
  const isBehindOne = count === 2 && random.chance(0.5);
  const [refreshMs, intervalMs] = [random.pick([15_000, 30_000, 60_000]), random.pick([5_000, 15_000, 30_000, 50_000])];
  return Array.from({ length: count }, (_, index) => ({
    address: isBehindOne ? '10.0.0.1' : `10.0.0.${index + 1}`,
    connection: index + 1,
    openConnections: isBehindOne ? [2 - index] : [],
    // Replicas are configured alike, shards too.
    intervalMs: isSharded || isBehindOne || index === 0 ? intervalMs : random.pick([5_000, 15_000, 30_000, 50_000]),
    refreshMs: isSharded || isBehindOne || index === 0 ? refreshMs : random.pick([15_000, 30_000, 60_000]),
    shard: isSharded ? (index as 0 | 1) : null,
    downs: drawDowns(random, ends),
    lossProbability: random.pick([0, 0.1]),
  }));
}

function drawDowns(random: Random, ends: readonly number[]): readonly (readonly [number, number])[] {
  if (random.chance(0.6)) return [];
  const fromMs = Math.max(0, random.pick(ends) + random.between(-120_000, 120_000));
  return [[fromMs, fromMs + random.pick([20_000, 120_000, 600_000, Number.POSITIVE_INFINITY])]];
}

/** A page that the keeper answered 201 for, until it is replaced or taken back. */
type Taken = { readonly pod: Pod; readonly run: number; readonly atMs: number; untilMs: number };

/** Plays it; what is wrong, and with `isTold` its story. */
export async function playHandOvers(
  seed: number,
  isTold = false,
): Promise<{ faults: readonly string[]; story: readonly string[] }> {
  const scenario = drawScenario(seed);
  const world = new World(isTold);
  world.tell(() => JSON.stringify(scenario));
  const random = openRandom(seed + 0.5);
  const faults: string[] = [];
  const fail = (text: string) => {
    world.tell(() => `WRONG ${text}`);
    faults.push(`${text} at ${world.nowMs()}`);
  };
  const taken: Taken[] = [];
  let isOver = false;
  const disk = openDisk(world, random, () => random.chance(scenario.diskFullProbability));
  const keeper = openKeeperHost(world, random, disk, scenario.maxPages);
  const endTaken = ({ uid }: Pod) => {
    for (const each of taken) if (each.pod.uid === uid) each.untilMs = Math.min(each.untilMs, world.nowMs());
  };
  const log = {
    onTaken(pod: Pod, run: number) {
      endTaken(pod);
      taken.push({ pod, run, atMs: world.nowMs(), untilMs: Number.POSITIVE_INFINITY });
      const { name, namespace } = pod.plan;
      const file = disk.files.get(
        nameKey({ pod: { namespace, name, uid: pod.uid }, target: { port: 9469 } } as HandOver),
      );
      if (!file?.text.endsWith(` ${run}\n`)) fail(`1: 201 for ${name} of ${namespace}, which is not on the disk`);
    },
    onWithdrawn: endTaken,
  };
  const pods = scenario.pods.map((plan) => openPod(world, random, { keeper, log, plan }));
  const isTakenBack = (uid: string) => {
    const own = taken.filter(({ pod }) => pod.uid === uid);
    return own.length > 0 && own.every(({ untilMs }) => untilMs < world.nowMs());
  };
  /** When a page was last seen on the list. */
  const listedAtMs = new Map<string, number>();

  function onTargets(targets: readonly Target[]): void {
    const uids = targets.map(({ uid }) => uid);
    if (new Set(uids).size < uids.length) fail('4: two pages of a pod are listed');
    for (const { key, uid, labels } of targets) {
      listedAtMs.set(key, world.nowMs());
      if (pods.find((pod) => pod.uid === uid)?.isAgain(AGAIN_MS)) fail(`4: ${uid} is listed, and its main runs again`);
      if (uid !== `uid-${labels['__meta_kubernetes_pod_name']}-${labels['__meta_kubernetes_namespace']}`)
        fail(`5: ${uid} is listed as ${labels['__meta_kubernetes_namespace']}`);
    }
  }
  function onPage({ plan }: Prometheus, { key, uid, labels }: Target, page: string | null, listedForMs: number): void {
    const isFresh = listedForMs <= 2 * plan.refreshMs + CHANGES_MS;
    if (page === null && isFresh && !isTakenBack(uid))
      fail(`3: ${uid} is not answered, listed at ${listedAtMs.get(key)}`);
    const { __meta_kubernetes_pod_name: name, __meta_kubernetes_namespace: namespace } = labels;
    if (page !== null && !page.startsWith(`of{pod="${name}",namespace="${namespace}"}`)) fail(`5: ${uid} has ${page}`);
  }

  const all = await world.run(async () => {
    keeper.start();
    for (const end of scenario.keeperEnds) world.outside(end.atMs, () => keeper.end(end));
    const parts = { keeper, pods, onTargets, onPage, isOver: () => isOver };
    const started = scenario.prometheus.map((plan) => startPrometheus(world, random, { ...parts, plan }));
    for (const pod of pods) {
      world.outside(Number(pod.plan.runs[0]?.[0]), () => {
        pod.start();
        for (const prometheus of started) prometheus.addPod(pod);
      });
    }
    await Promise.all(pods.map(({ ended }) => ended));
    const lastMs = Math.max(world.nowMs(), ...scenario.keeperEnds.map(({ atMs, downMs }) => atMs + downMs + 60_000));
    const deadlineMs = lastMs + FIRST_MS + 200_000;
    while (world.nowMs() < lastMs || (disk.files.size > 0 && world.nowMs() < deadlineMs)) {
      await new Promise<void>((resolve) => world.outside(world.nowMs() + 5_000, resolve));
    }
    isOver = true;
    return started;
  });
  if (disk.files.size > 0) fail('6: a page is kept for ever');
  faults.push(...pods.flatMap(checkEnd), ...taken.flatMap((each) => checkGot(each, all)));
  return { faults, story: world.story ?? [] };
}

/** 2: how a pod ended. */
function checkEnd({ plan, state }: Pod): readonly string[] {
  const { outcome, endedAtMs, heardAtMs, wasRestarted } = state;
  if (outcome === 'killed' || wasRestarted) return [];
  if (heardAtMs !== null && endedAtMs > heardAtMs + RELEASE_MS) return [`2: ${plan.name} is held`];
  const { scrapesWantedCount, ttlMs, terminationGraceMs } = plan.limits;
  const mainEndedAtMs = Math.max(...plan.runs.map(([, toMs]) => toMs).filter((toMs) => toMs <= endedAtMs));
  const mayEnd: Partial<Record<Outcome, boolean>> = {
    handedOver: heardAtMs !== null,
    scraped: state.scrapedAtMs >= mainEndedAtMs,
    released: scrapesWantedCount === 0 || ttlMs === 0,
    expired: endedAtMs >= mainEndedAtMs + ttlMs,
    terminated: endedAtMs >= plan.signalMs + terminationGraceMs,
    neverStarted: endedAtMs >= plan.signalMs,
  };
  const isRight =
    outcome !== null &&
    mayEnd[outcome] === true &&
    (heardAtMs === null || outcome === 'handedOver' || outcome === 'scraped');
  return isRight ? [] : [`2: ${plan.name} of ${plan.namespace} ends ${outcome} at ${endedAtMs}, 201 at ${heardAtMs}`];
}

/** 1: whether each Prometheus has it that the rules wait for. */
function checkGot({ pod, run, atMs, untilMs }: Taken, all: readonly Prometheus[]): readonly string[] {
  const missing = all.filter(({ plan, has, isOwn }) => {
    const needsMs = 2 * plan.refreshMs + CHANGES_MS + 3 * plan.intervalMs;
    const isThere = plan.downs.every(([fromMs, toMs]) => {
      const isNear = fromMs < atMs + OTHERS_MS && toMs > atMs - 2 * OTHERS_MS;
      return !isNear || (toMs - fromMs <= 120_000 && toMs <= atMs + OTHERS_MS - needsMs);
    });
    return isOwn(pod.uid) && isThere && untilMs > atMs + OTHERS_MS && (has.get(pod.uid) ?? 0) < run;
  });
  return missing.map(
    ({ plan }) => `1: ${plan.address}:${plan.connection} has no run ${run} of ${pod.uid}, answered 201 at ${atMs}`,
  );
}
