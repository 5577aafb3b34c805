// A Prometheus in virtual time: asks the keeper for targets, takes changes up some seconds later, and scrapes pods and
// pages at its interval. It knows by itself what it has.

import { PAGE_PATH } from '../../../src/keeper/pages.ts';
import type { Random, World } from '../../front/simulation/world.ts';
import type { KeeperHost } from './host.ts';
import type { Pod } from './pod.ts';

export type PrometheusPlan = {
  readonly address: string;
  /** Of its only connection; others of the address have others. */
  readonly connection: number;
  readonly openConnections: readonly number[];
  readonly intervalMs: number;
  readonly refreshMs: number;
  /** The pods that are its own, where there are two shards; null: all. */
  readonly shard: 0 | 1 | null;
  /** It does nothing then. */
  readonly downs: readonly (readonly [fromMs: number, toMs: number])[];
  /** How often an answer does not come through; never two in a row. */
  readonly lossProbability: number;
};

/** A target of discovery. */
export type Target = { readonly key: string; readonly uid: string; readonly labels: Readonly<Record<string, string>> };

export type Prometheus = ReturnType<typeof startPrometheus>;

type Parts = {
  readonly plan: PrometheusPlan;
  readonly keeper: KeeperHost;
  readonly pods: readonly Pod[];
  /** What discovery gave. */
  readonly onTargets: (targets: readonly Target[]) => void;
  /** A page as it was scraped; null: 404. `listedForMs`: how old the list was. */
  readonly onPage: (prometheus: Prometheus, target: Target, page: string | null, listedForMs: number) => void;
  readonly isOver: () => boolean;
};

/** Asks and scrapes until it is over. */
export function startPrometheus(world: World, random: Random, parts: Parts) {
  const { plan, keeper, pods, onTargets, onPage, isOver } = parts;
  const { address, intervalMs, refreshMs, downs } = plan;
  /** Of each pod, the newest run whose last numbers it has. */
  const has = new Map<string, number>();
  let targets = new Map<string, Target>();
  let refreshedAtMs = Number.NEGATIVE_INFINITY;
  const lost = new Set<string>();

  const request = () => ({
    startedAtMs: world.nowMs(),
    address,
    agent: 'Prometheus/3.0.0',
    connection: plan.connection,
    openConnections: plan.openConnections,
  });
  const isDown = () => downs.some(([fromMs, toMs]) => fromMs <= world.nowMs() && world.nowMs() < toMs);
  const isOwn = (uid: string) => plan.shard === null || pods.findIndex((pod) => pod.uid === uid) % 2 === plan.shard;
  function isLost(what: string): boolean {
    const isNow = !lost.delete(what) && random.chance(plan.lossProbability);
    if (isNow) lost.add(what);
    return isNow;
  }
  function repeat(everyMs: number, isWanted: () => boolean, work: () => void): void {
    const next = () => {
      if (isOver() || !isWanted()) return;
      if (!isDown()) work();
      world.outside(world.nowMs() + everyMs, next);
    };
    world.outside(world.nowMs() + random.between(0, everyMs), next);
  }
  function store(uid: string, run: number): void {
    has.set(uid, Math.max(run, has.get(uid) ?? 0));
  }

  async function refresh(): Promise<void> {
    const listed = await keeper.ask(async (pages) => {
      return pages.listTargets(request(), refreshMs).map(({ labels }) => JSON.parse(labels.toString()));
    });
    if (typeof listed === 'string') return;
    const found = listed.map(
      (labels): Target => ({
        key: labels['__metrics_path__'].slice(PAGE_PATH.length),
        uid: labels['__meta_kubernetes_pod_uid'],
        labels,
      }),
    );
    onTargets(found);
    if (isLost('refresh')) return;
    const atMs = world.nowMs();
    // Its discovery, then its scrape manager, pass changes on every 5 s.
    world.outside(atMs + random.between(0, 10_000), () => {
      if (atMs < refreshedAtMs) return;
      refreshedAtMs = atMs;
      const before = targets;
      targets = new Map(found.filter(({ uid }) => isOwn(uid)).map((each) => [each.key, before.get(each.key) ?? each]));
      for (const [key, target] of targets) if (!before.has(key)) scrapePage(target);
    });
  }

  function scrapePage(target: Target): void {
    const { key, uid } = target;
    repeat(
      intervalMs,
      () => targets.get(key) === target,
      () => void scrape(),
    );
    async function scrape(): Promise<void> {
      const asked = request();
      const listedForMs = world.nowMs() - refreshedAtMs;
      const isUnread = isLost(key);
      const page = await keeper.ask(async (pages) => {
        const found = await pages.open(key);
        if (found === null) return null;
        let text = '';
        for await (const piece of found.read(0)) text += Buffer.from(piece).toString();
        return { text, addTake: () => pages.addTake(key, asked) };
      });
      if (page === 'refused' || page === 'dropped' || (page !== null && isUnread)) return;
      onPage(self, target, page?.text ?? null, listedForMs);
      if (page === null) return;
      page.addTake();
      store(uid, Number(page.text.split(' ')[1]));
      world.tell(() => `${address}:${plan.connection} has ${page.text.trim()}`);
    }
  }

  const self = {
    plan,
    has,
    isOwn,
    /** Discovers a pod. */
    addPod(pod: Pod): void {
      if (!isOwn(pod.uid)) return;
      repeat(
        intervalMs,
        () => pod.state.outcome === null,
        () => {
          const run = isLost(pod.uid) ? null : pod.scrape(request());
          if (run !== null) store(pod.uid, run);
        },
      );
    },
  };
  repeat(
    refreshMs,
    () => true,
    () => void refresh(),
  );
  return self;
}
