// A pod in virtual time: its main, and lastscrape by the real rules, which hands over to the keeper. Its front is
// simulated: what it would show of scrapes, and no pages.

import type { Clock } from '../../../src/base/waits.ts';
import type { Limits, Outcome, Policy } from '../../../src/decide/model.ts';
import { buildReport } from '../../../src/decide/report/report.ts';
import type { ScraperRequest } from '../../../src/decide/serve/scrapers.ts';
import type { FrontEvent, HandOverResult } from '../../../src/decide/state.ts';
import { Refused } from '../../../src/keeper/request.ts';
import type { Condition } from '../../../src/observe/condition-kind.ts';
import { makeFailedReading, REFUSED } from '../../../src/observe/exporter.ts';
import { beginObservation } from '../../../src/observe/observation.ts';
import { sigtermKind } from '../../../src/observe/sigterm.ts';
import { listenForSignals } from '../../../src/run/host.ts';
import { runLoop } from '../../../src/run/loop.ts';
import type { Random, World } from '../../front/simulation/world.ts';
import { CONTEXT } from '../../observe/condition-context.ts';
import { writeHandOver } from '../keeper.ts';
import type { KeeperHost } from './host.ts';

/** What becomes of a hand-over on its way. */
export type Fault = 'cutRequest' | 'slowRequest' | 'lostAnswer' | 'lateAnswer' | 'restart';

export type PodPlan = {
  readonly name: string;
  readonly namespace: string;
  readonly address: string;
  /** From when to when main runs, each time. */
  readonly runs: readonly (readonly [fromMs: number, toMs: number])[];
  /** The kubelet's, after the last end. */
  readonly signalMs: number;
  readonly isBySignal: boolean;
  readonly limits: Limits;
  readonly faults: readonly (Fault | null)[];
};

/** What is written down of a pod. */
export type PodLog = {
  /** A hand-over, as the keeper took it; of which run of main. */
  onTaken(pod: Pod, run: number): void;
  onWithdrawn(pod: Pod): void;
};

export type Pod = ReturnType<typeof openPod>;

/** Starts with its main. */
export function openPod(
  world: World,
  random: Random,
  { keeper, log, plan }: { readonly keeper: KeeperHost; readonly log: PodLog; readonly plan: PodPlan },
) {
  const { name, namespace, address, runs, limits } = plan;
  const uid = `uid-${name}-${namespace}`;
  const ended = Promise.withResolvers<void>();
  const state = {
    outcome: null as Outcome | 'killed' | null,
    endedAtMs: Number.POSITIVE_INFINITY,
    wasRestarted: false,
    /** When 201 came; null: it did not, or main ran again since. */
    heardAtMs: null as number | null,
    /** When a scrape of the pod itself was answered last. */
    scrapedAtMs: Number.NEGATIVE_INFINITY,
    withdrawnCount: 0,
    /** The keeper could not be asked to forget a page. */
    stays: false,
  };
  let generation = 0;
  let hasSignal = false;
  let events: FrontEvent[] = [];
  let listeners: (() => void)[] = [];
  let readAtMs: number | null = null;
  let sendSignal = () => {};
  let faultsCount = 0;

  const isAlive = () => runs.some(([fromMs, toMs]) => fromMs <= world.nowMs() && world.nowMs() < toMs);
  /** Its newest run, whose number its page shows. */
  const run = () => runs.filter(([fromMs]) => fromMs <= world.nowMs()).length;
  function observeFront() {
    if (isAlive()) readAtMs = world.nowMs();
    return { answeredAtMs: readAtMs, inFlightCount: 0 };
  }
  function add(event: FrontEvent): void {
    events.push(event);
    for (const listener of listeners.splice(0)) listener();
  }
  function end(outcome: Outcome | 'killed'): void {
    world.tell(() => `${name} of ${namespace} ends: ${outcome}`);
    state.outcome = outcome;
    state.endedAtMs = world.nowMs();
    ended.resolve();
  }

  async function start(): Promise<void> {
    const own = ++generation;
    const isCurrent = () => own === generation;
    const clock: Clock = { nowMs: world.nowMs, after: (ms, call) => world.after(ms, () => isCurrent() && call()) };
    [events, listeners, readAtMs] = [[], [], null];
    const signals = listenForSignals({
      nowMs: world.nowMs,
      onSignal: (listener) => {
        sendSignal = () => isCurrent() && listener('SIGTERM');
      },
    });
    const port: Condition = {
      text: 'port:1',
      metricName: null,
      observe: async () =>
        isAlive() ? { kind: 'alive', seen: 'open' } : { kind: 'done', seen: 'refused', provesWasAlive: false },
    };
    const signal = sigtermKind.read('', CONTEXT);
    const condition = plan.isBySignal && 'value' in signal ? signal.value : port;
    const sources = {
      conditions: [condition],
      readExporter: async () => (isAlive() ? makeFailedReading('', false) : REFUSED),
      observeFront,
    };
    const policy: Policy = {
      limits,
      conditions: [{ isMetric: false, isSignal: plan.isBySignal }],
      front: { port: 9_469 },
      handOver: { kind: 'keeper', to: 'http://keeper' },
      targets: [],
      quitTimeoutMs: 0,
      isDryRun: false,
    };
    const decision = await runLoop({
      policy,
      clock,
      signals,
      observe: (effect) => beginObservation(sources, clock, effect),
      front: {
        takeEvent: () => events.shift() ?? null,
        onEvent(listener) {
          if (events.length > 0) listener();
          else listeners.push(listener);
          return () => {
            listeners = listeners.filter((each) => each !== listener);
          };
        },
        tell() {},
      },
      targets: [],
      log: ({ id, fields }) =>
        id !== 'polled' && world.tell(() => `${name} of ${namespace}: ${id} ${JSON.stringify(fields)}`),
      closeFront: async () => {},
      handOver: (_, limit) => untilDead(isCurrent, handOver(limit)),
      withdraw: (limit) => untilDead(isCurrent, withdraw(limit)),
      progress() {},
    });
    const { outcome } = buildReport({
      state: decision.state,
      policy,
      source: { kind: 'exporter', at: '' },
      nowMs: world.nowMs(),
      toTime: String,
      stage: decision.next,
      version: '0',
    });
    end(outcome);
  }

  /** A process that is dead hears of nothing. */
  function untilDead<Value>(isCurrent: () => boolean, work: Promise<Value>): Promise<Value> {
    return new Promise((resolve) => void work.then((value) => isCurrent() && resolve(value)));
  }

  /** Who it is was proven; that it says of itself to be of another namespace changes nothing. */
  const prove = () => ({ namespace, name, uid, node: 'n1' });
  const write = (page: string) =>
    writeHandOver({
      head: {
        pod: {
          namespace: namespace === 'a' ? 'b' : 'a',
          name: 'other',
          uid: 'other',
          ip: address,
          labels: {},
          annotations: {},
        },
      },
      pages: [page],
    });

  async function handOver(limit: AbortSignal): Promise<HandOverResult> {
    const fault = plan.faults[faultsCount++] ?? null;
    const number = run();
    const { withdrawnCount } = state;
    const bytes = write(`of{pod="${name}",namespace="${namespace}"} ${number}\n`);
    world.tell(() => `${name} of ${namespace} hands over run ${number}${fault === null ? '' : `: ${fault}`}`);
    async function* send(gone: AbortSignal): AsyncGenerator<Uint8Array> {
      const half = random.between(1, bytes.length - 1);
      yield bytes.subarray(0, half);
      await new Promise<void>((resolve) => {
        world.outside(
          world.nowMs() + (fault === 'slowRequest' ? random.between(500, 4_000) : random.between(0, 30)),
          resolve,
        );
      });
      gone.throwIfAborted();
      if (fault === 'cutRequest') throw new Error('aborted');
      yield bytes.subarray(half);
    }
    const answerMs = { lostAnswer: Number.POSITIVE_INFINITY, lateAnswer: random.between(1_000, 4_000) }[String(fault)];
    const asked = keeper.ask(
      async (pages, gone) => {
        try {
          await pages.take({ body: send(gone), proven: prove(), address, gone });
        } catch (error) {
          return error instanceof Refused ? error.reason : String(error);
        }
        // Its answer comes too late for a pod that has taken it back meanwhile.
        if (state.withdrawnCount === withdrawnCount) log.onTaken(self, number);
        return null;
      },
      { hangUp: limit, ...(answerMs !== undefined && { answerMs }) },
    );
    const result = await withLimit(asked, limit);
    if (result === null) {
      state.heardAtMs = world.nowMs();
      if (fault === 'restart') restart();
      return { kind: 'accepted' };
    }
    return { kind: 'failed', why: result };
  }

  async function withdraw(limit: AbortSignal): Promise<HandOverResult> {
    // Whether it comes there or not, the page is owed to nobody any more.
    log.onWithdrawn(self);
    state.withdrawnCount++;
    state.heardAtMs = null;
    const bytes = write('\n');
    async function* body(): AsyncGenerator<Uint8Array> {
      yield bytes;
    }
    const asked = keeper.ask(
      async (pages, gone) => {
        const withdrawn = pages.withdraw({ body: body(), proven: prove(), address, gone });
        return withdrawn.then(
          () => null,
          ({ reason }) => reason as string,
        );
      },
      { hangUp: limit },
    );
    const result = await withLimit(asked, limit);
    state.stays ||= result !== null;
    return result === null ? { kind: 'accepted' } : { kind: 'failed', why: result };
  }

  function withLimit<Value>(work: Promise<Value>, limit: AbortSignal): Promise<Value | 'timed out'> {
    return new Promise((resolve) => {
      limit.addEventListener('abort', () => resolve('timed out'));
      void work.then(resolve);
    });
  }

  /** Our own container: the kubelet starts it again unless the pod is about to end. */
  function restart(): void {
    generation++;
    state.wasRestarted = true;
    world.tell(() => `${name} of ${namespace}: our container is killed`);
    if (hasSignal) end('killed');
    else world.outside(world.nowMs() + random.between(500, 3_000), () => (hasSignal ? end('killed') : void start()));
  }

  const self = {
    plan,
    uid,
    ended: ended.promise,
    state,
    /** Main runs again, for that long, and lastscrape knows. */
    isAgain: (ms: number) =>
      isAlive() &&
      world.nowMs() - ms > Number(runs[1]?.[0]) &&
      state.outcome === null &&
      !state.wasRestarted &&
      !state.stays,
    start(): void {
      void start();
      world.outside(plan.signalMs, () => {
        hasSignal = true;
        sendSignal();
      });
    },
    /** A scrape of the pod itself; the run that its page is of, null where it gets none. */
    scrape(request: ScraperRequest): number | null {
      if (state.outcome !== null) return null;
      add({ kind: 'requested', request });
      const { answeredAtMs } = observeFront();
      if (answeredAtMs === null) return null;
      state.scrapedAtMs = world.nowMs();
      const served = isAlive() ? 'live' : 'snapshot';
      const scrape = {
        ...request,
        atMs: world.nowMs(),
        served,
        readAtMs: answeredAtMs,
        isByRefusal: !isAlive(),
      } as const;
      add({ kind: 'scraped', scrape, front: observeFront() });
      return isAlive() ? null : run();
    },
  };
  return self;
}
