// One run of the real front and the real rules, in virtual time: what a seed draws, and what came of it.

import type { Exchange } from '../../../src/base/net/exchange.ts';
import type { Clock } from '../../../src/base/waits.ts';
import type { LogEntry } from '../../../src/decide/messages.ts';
import type { Policy, SignalName } from '../../../src/decide/model.ts';
import { buildReport, fitReport } from '../../../src/decide/report/report.ts';
import type { Report } from '../../../src/decide/report/report-fields.ts';
import { REST_FACTORS, TEXT_ACCEPT } from '../../../src/decide/serve/budget.ts';
import type { State } from '../../../src/decide/state.ts';
import { openFront } from '../../../src/front/front.ts';
import { openKeptExporter } from '../../../src/front/kept-source.ts';
import type { Condition, ConditionKind } from '../../../src/observe/condition-kind.ts';
import { metricKind } from '../../../src/observe/metric.ts';
import { beginObservation } from '../../../src/observe/observation.ts';
import { openExporterReads } from '../../../src/observe/reads.ts';
import { sigtermKind } from '../../../src/observe/sigterm.ts';
import { listenForSignals, type Signals } from '../../../src/run/host.ts';
import { runLoop } from '../../../src/run/loop.ts';
import type { Snapshot } from '../../../src/snapshot/snapshot.ts';
import { readPieces } from '../../support/pieces.ts';
import { type Page, readPageBytes, showPage } from './page.ts';
import { isBySignal, type Scenario } from './scenario.ts';
import { callSnapshot, listenOn, type Port, type Scrape, startScraper } from './scraper.ts';
import { openSource, type SourceRead, type Whole } from './source.ts';
import { openRandom, START_SECONDS, World } from './world.ts';

/** What came of a run. */
export type Run = {
  readonly scenario: Scenario;
  readonly scrapes: readonly Scrape[];
  /** The source's answers that came whole, as they ended. */
  readonly wholes: readonly Whole[];
  readonly reads: readonly SourceRead[];
  /** An answer that was cut looked whole. */
  readonly wasDeceived: boolean;
  readonly state: State;
  readonly report: Report;
  /** When the rules knew of the end; null: never. */
  readonly knownAtMs: number | null;
  /** When the hold, or the watch, was over. */
  readonly overAtMs: number;
  readonly closedAtMs: number;
  /** The second signal, which ended the run; null: there was none. */
  readonly by: SignalName | null;
  readonly pushed: Page | null;
  readonly story: readonly string[] | null;
};

/** What is judged. */
export const SELECTED = 'job_a_total';
const SELECTOR = { name: SELECTED, labels: [] };

/** Runs it. `isTold`: with its story. */
export async function simulate(scenario: Scenario, isTold = false): Promise<Run> {
  const world = new World(isTold);
  const isTextAsked = scenario.scrapers.some(({ accept = TEXT_ACCEPT }) => accept === TEXT_ACCEPT);
  const source = openSource(world, scenario.source, isTextAsked);
  const scrapes: Scrape[] = [];
  const policy = buildPolicy(scenario);
  const times = { knownAtMs: null as number | null, overAtMs: 0, closedAtMs: 0 };
  let pushed: Page | null = null;
  const { state, next } = await world.run(async () => {
    const { front, exporter, port } = await open(world, scenario, source.exchange);
    const signals = sendSignals(world, scenario);
    if (front !== null) signals.first.addEventListener('abort', front.expectEnd);
    const random = openRandom(scenario.seed + 0.5);
    for (const plan of scenario.scrapers) startScraper(world, random, port, plan, scrapes);
    for (const { fromMs, ms, isOfNode } of scenario.standstills) {
      world.outside(fromMs, () => world.standStill(ms, isOfNode));
    }
    for (const atMs of scenario.snapshotsMs) world.outside(atMs, () => callSnapshot(world, port));
    const conditions = buildConditions(scenario, world);
    const sources = {
      conditions,
      readExporter: front?.readExporter ?? exporter?.observe ?? null,
      ...(front !== null && { observeFront: () => front.settle().then(front.observe) }),
    };
    const end = await runLoop({
      policy,
      clock: world,
      signals,
      observe: (effect) => beginObservation(sources, world, effect),
      front,
      ...(exporter !== null && { onView: exporter.takeView }),
      targets: [],
      log({ id, fields }) {
        if (id === 'mainEnded') times.knownAtMs = world.nowMs();
        if (id === 'releasing') times.overAtMs = world.nowMs();
        if (id !== 'polled') world.tell(() => `lastscrape: ${id} ${JSON.stringify(fields)}`);
      },
      async closeFront() {
        await front?.retire();
        times.closedAtMs = world.nowMs();
        world.tell(() => 'the front has closed');
      },
      async push() {
        pushed = await readSnapshot(await (front ?? exporter)?.newest());
        world.tell(() => `pushed ${showPage(pushed ?? new Map())}`);
        return { kind: 'accepted', requestsCount: 1 };
      },
      progress() {},
    });
    if (end.next.by !== null) times.closedAtMs = world.nowMs();
    return end;
  });
  const report = fitReport(
    buildReport({
      state,
      policy,
      source: { kind: 'exporter', at: 'localhost:8000' },
      nowMs: world.nowMs(),
      toTime: (atMs) => new Date(atMs).toISOString(),
      stage: next,
      version: '0',
    }),
  );
  world.tell(() => JSON.stringify(report));
  const { wholes, reads, hasDeceived } = source;
  return {
    scenario,
    scrapes,
    wholes,
    reads,
    wasDeceived: hasDeceived(),
    state,
    report,
    by: next.by,
    ...times,
    pushed,
    story: world.story,
  };
}

/** The front on a virtual port, or what reads without one; it reads the virtual source. */
async function open(world: World, scenario: Scenario, exchange: Exchange) {
  const port: Port = { serving: null };
  const toUnixSeconds = (atMs: number) => START_SECONDS + atMs / 1000;
  const parts = {
    url: new URL('http://localhost:8000/metrics'),
    metricNames: buildConditions(scenario, world).flatMap(({ metricName }) => metricName ?? []),
    selectors: [SELECTOR],
    pollMs: scenario.limits.pollMs,
    clock: world,
    log: ({ id }: LogEntry) => world.tell(() => id),
  };
  if (scenario.shape === 'portAlone') {
    const findMoment = () => ({ atMs: world.nowMs(), seconds: toUnixSeconds(world.nowMs()) });
    return { front: null, exporter: openAlone({ findMoment, ...parts }, exchange), port };
  }
  const options = { isOnlyEvidence: scenario.shape === 'metricExporter', isPushed: true, toUnixSeconds };
  const opened = await openFront(
    { at: { host: null, port: 9469 }, openExchange: () => exchange, ...parts, ...options },
    listenOn(port),
  );
  if (opened.kind === 'failed') throw new Error(opened.problem);
  return { front: opened.front, exporter: null, port };
}

type AloneParts = Parameters<typeof openKeptExporter>[0] & Parameters<typeof openKeptExporter>[1] & { clock: Clock };

/** As a run opens it where a push is set, and no front. */
export function openAlone(parts: AloneParts, exchange: Exchange) {
  const kept = openKeptExporter(parts, parts, { open: () => exchange });
  const reads = openExporterReads(kept, { ...parts, restFactor: REST_FACTORS.usual });
  return { ...reads, observeKept: () => kept.observe(0), newest: () => reads.readLast().then(() => kept.newest()) };
}

function sendSignals(world: World, { signalsMs }: Scenario): Signals {
  let send = (_: 'SIGTERM') => {};
  const onSignal = (listener: typeof send) => {
    send = listener;
  };
  const signals = listenForSignals({ nowMs: world.nowMs, onSignal });
  for (const atMs of signalsMs) {
    world.outside(atMs, () => {
      world.tell(() => 'SIGTERM');
      world.deliver(() => send('SIGTERM'));
    });
  }
  return signals;
}

function buildPolicy(scenario: Scenario): Policy {
  const conditions = buildConditions(scenario, null);
  return {
    limits: scenario.limits,
    conditions: conditions.map(({ metricName, isSignal = false }) => ({ isMetric: metricName !== null, isSignal })),
    front: scenario.shape === 'portAlone' ? null : { port: 9_469 },
    push: { to: 'pushgateway', when: scenario.pushWhen },
    thresholds: [{ text: `${SELECTED} < 0`, name: SELECTED, comparison: '<', limit: 0 }],
    targets: [],
    quitTimeoutMs: 30_000,
    isDryRun: false,
  };
}

function buildConditions({ shape, endMs }: Scenario, world: World | null): readonly Condition[] {
  if (isBySignal(shape)) return [readKind(sigtermKind, '')];
  if (shape === 'metricExporter') return [readKind(metricKind, 'job_up')];
  const isAlive = () => world !== null && world.nowMs() < endMs;
  return [
    {
      text: 'port:1',
      metricName: null,
      observe: async () =>
        isAlive() ? { kind: 'alive', seen: 'open' } : { kind: 'done', seen: 'refused', provesWasAlive: false },
    },
  ];
}

function readKind({ read }: ConditionKind, argument: string): Condition {
  const result = read(argument, {
    pid: 1,
    pod: { open: () => Promise.reject(new Error('Bug: there is no pod')) },
    sidecars: [],
  });
  if ('problem' in result) throw new Error(result.problem);
  return result.value;
}

async function readSnapshot(snapshot: Snapshot | null = null): Promise<Page | null> {
  if (snapshot === null) return null;
  return readPageBytes(snapshot.body.type.format, await readPieces(snapshot.body.read()));
}
