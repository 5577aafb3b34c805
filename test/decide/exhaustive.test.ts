// Plays every sequence of looks, signals and restarts of the watcher on a coarse clock, up to a depth, against step().
// Equal situations (the same memory, ages capped where no limit can tell them apart) are played once.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConditionObservation, ExporterObservation, Limits, Observation } from '../../src/decide/model.ts';
import {
  type Decision,
  GONE_AFTER_MS,
  IN_FLIGHT_WAIT_MS,
  initialState,
  type Reason,
  type State,
  step,
  WITHOUT_METRIC_AFTER_MS,
} from '../../src/decide/step.ts';
import { DEFAULT_LIMITS } from '../support/limits.ts';

const LIMITS: Limits = {
  ...DEFAULT_LIMITS,
  ttlMs: 20_000,
  settleMs: 10_000,
  startTimeoutMs: 30_000,
  runTimeoutMs: 90_000,
  terminationGraceMs: 15_000,
  pollMs: 5_000,
};
const CAP_MS = 100_000;
/** Memory that no decision but a warning reads, where the exporter shows no counters. */
const NOT_DECIDING = ['seenText', 'warned', 'totals', 'metricUnknownSinceMs', 'running', 'trail', 'count'];
/** Memory that the count does not read. */
const NOT_COUNTING = [
  'seenText',
  'warned',
  'totals',
  'metricUnknownSinceMs',
  'running',
  'startedAtMs',
  'aliveSinceMs',
  'goneSinceMs',
];

/** A situation as text: every moment becomes an age, every counter its distance from `counter`; what is in `without` is left out. */
function keyOf(situation: unknown, nowMs: number, counter: number, without: readonly string[]): string {
  return JSON.stringify(situation, (name, value) => {
    if (without.includes(name)) return undefined;
    if (typeof value !== 'number') return value;
    if (name.endsWith('Ms')) return Math.max(-CAP_MS, Math.min(CAP_MS, nowMs - value));
    return name === 'finishedCount' ? value - counter : value;
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// It never quits, and never holds, while main is not proven done, but for the reasons that the decision names.

const ANSWERED: ExporterObservation = {
  kind: 'answered',
  scrapes: null,
  totals: { requests: null, failures: null, users: null },
};
const REFUSED: ExporterObservation = { kind: 'refused' };
const FAILED: ExporterObservation = { kind: 'failed', why: '', mayCount: true };
const METRICS: readonly (readonly [ExporterObservation, ConditionObservation])[] = [
  [ANSWERED, { kind: 'alive', seen: '' }],
  [ANSWERED, { kind: 'done', seen: '', provesWasAlive: false }],
  [ANSWERED, { kind: 'done', seen: '', provesWasAlive: true }],
  [ANSWERED, { kind: 'unknown', why: '' }],
  [REFUSED, { kind: 'unknown', why: '' }],
  [FAILED, { kind: 'unknown', why: '' }],
];
const PORTS: readonly ConditionObservation[] = [
  { kind: 'alive', seen: '' },
  { kind: 'done', seen: '', provesWasAlive: false },
  { kind: 'unknown', why: '' },
  { kind: 'done', seen: '', provesWasAlive: false, provesNeverRan: true },
];
type Sight = readonly [ExporterObservation, ConditionObservation, ConditionObservation];
const SIGHTS: readonly Sight[] = [
  [{ kind: 'none' }, { kind: 'unknown', why: '' }, { kind: 'unknown', why: '' }],
  ...METRICS.flatMap(([exporter, metric]) => PORTS.map((port): Sight => [exporter, metric, port])),
];

/** What a reader of the design would note down of the looks of one watcher; times are null where it does not hold. */
type Memory = {
  readonly startedMs: number;
  readonly aliveMs: number | null;
  readonly wasAlive: boolean;
  readonly signalMs: number | null;
  readonly doneMs: number | null;
  readonly doneLooks: number;
  readonly portMs: number | null;
  readonly portLooks: number;
  readonly refusedMs: number | null;
};

function remember(memory: Memory, [exporter, metric, port]: Sight, atMs: number, signalMs: number | null): Memory {
  const isAlive = metric.kind === 'alive' || port.kind === 'alive';
  const isPortDone = port.kind === 'done';
  const isDone = isPortDone && metric.kind === 'done';
  const isRows = metric.kind === 'done' && metric.provesWasAlive;
  const isRefused = exporter.kind === 'refused' || (exporter.kind === 'none' && memory.refusedMs !== null);
  return {
    startedMs: memory.startedMs,
    aliveMs: memory.aliveMs ?? (isAlive ? atMs : null),
    wasAlive: memory.wasAlive || isRows,
    signalMs,
    doneMs: isAlive ? null : (memory.doneMs ?? (isDone ? atMs : null)),
    doneLooks: isAlive ? 0 : Math.min(2, memory.doneLooks + (isDone ? 1 : 0)),
    portMs: isAlive ? null : (memory.portMs ?? (isPortDone ? atMs : null)),
    portLooks: isAlive ? 0 : Math.min(2, memory.portLooks + (isPortDone ? 1 : 0)),
    refusedMs: !isRefused || isAlive ? null : (memory.refusedMs ?? (isPortDone ? atMs : null)),
  };
}

function isJustified(because: Reason, memory: Memory, sight: Sight, atMs: number): boolean {
  const [exporter, metric, port] = sight;
  const isKnown = memory.aliveMs !== null || memory.wasAlive;
  const lasts = (sinceMs: number | null, forMs: number) => sinceMs !== null && atMs - sinceMs >= forMs;
  const areLooksDone = port.kind === 'done' && metric.kind === 'done';
  switch (because) {
    case 'settled':
      return isKnown && areLooksDone && memory.doneLooks >= 2 && lasts(memory.doneMs, LIMITS.settleMs);
    case 'settledWithoutMetric':
      return (
        isKnown &&
        port.kind === 'done' &&
        metric.kind === 'unknown' &&
        memory.portLooks >= 2 &&
        lasts(memory.portMs, WITHOUT_METRIC_AFTER_MS)
      );
    case 'exporterGone':
      return (
        isKnown &&
        exporter.kind === 'refused' &&
        port.kind === 'done' &&
        (memory.signalMs !== null || lasts(memory.refusedMs, GONE_AFTER_MS))
      );
    case 'startTimeout':
      return !isKnown && lasts(memory.startedMs, LIMITS.startTimeoutMs);
    case 'neverRan':
      return (
        !isKnown &&
        areLooksDone &&
        port.provesNeverRan === true &&
        memory.doneLooks >= 2 &&
        lasts(memory.doneMs, LIMITS.settleMs)
      );
    case 'runTimeout':
      return isKnown && lasts(memory.wasAlive ? memory.startedMs : memory.aliveMs, LIMITS.runTimeoutMs);
    case 'grace':
      return lasts(memory.signalMs, LIMITS.terminationGraceMs);
    case 'signalBeforeStart':
      return !isKnown && memory.signalMs !== null;
  }
}

/** Plays on with one and the same look, at the times that step() asks for; when it quits, or null. */
function playOn(from: Decision, sight: Sight, signalMs: number | null, untilMs: number): number | null {
  let decision = from;
  while (decision.next.kind === 'look') {
    const { atMs: nextMs, deadlineMs } = decision.next;
    const isLate = deadlineMs !== null && nextMs >= deadlineMs;
    const atMs = isLate ? deadlineMs : nextMs;
    if (atMs > untilMs) return null;
    decision = step(decision.state, lookOf(isLate ? (SIGHTS[0] as Sight) : sight, atMs, signalMs), LIMITS);
  }
  return decision.state.phase.kind === 'quitting' ? decision.state.phase.sinceMs : null;
}

function lookOf([exporter, metric, port]: Sight, atMs: number, terminatedAtMs: number | null): Observation {
  return { startedAtMs: atMs, atMs, terminatedAtMs, exporter, conditions: [metric, port] };
}

const ENDED: readonly Sight[] = [
  [ANSWERED, METRICS[2]?.[1] as ConditionObservation, PORTS[1] as ConditionObservation],
  [REFUSED, METRICS[4]?.[1] as ConditionObservation, PORTS[1] as ConditionObservation],
  [FAILED, METRICS[5]?.[1] as ConditionObservation, PORTS[1] as ConditionObservation],
];

test('step() holds and quits only for what it names, and ends once main stays ended: all sequences', (t) => {
  const depth = 7;
  const paceMs = [5_000, 45_000] as const;
  type Situation = { state: State; memory: Memory; decision: Decision | null };
  const startOf = (nowMs: number): Situation => ({
    state: initialState(nowMs),
    memory: { ...EMPTY_MEMORY, startedMs: nowMs },
    decision: null,
  });
  let frontier: { situation: Situation; nowMs: number }[] = [{ situation: startOf(0), nowMs: 0 }];
  const seen = new Set<string>();
  const named = new Map<string, number>();
  let stepCount = 0;
  const sumMs =
    LIMITS.startTimeoutMs +
    WITHOUT_METRIC_AFTER_MS +
    LIMITS.settleMs +
    LIMITS.ttlMs +
    GONE_AFTER_MS +
    3 * LIMITS.pollMs;

  for (let level = 0; level < depth; level++) {
    const next: typeof frontier = [];
    for (const { situation, nowMs } of frontier) {
      for (const dtMs of paceMs) {
        const atMs = nowMs + dtMs;
        for (const isSignal of situation.memory.signalMs === null ? [false, true] : [false]) {
          const signalMs = situation.memory.signalMs ?? (isSignal ? atMs : null);
          for (const sight of SIGHTS) {
            const memory = remember(situation.memory, sight, atMs, signalMs);
            const decision = step(situation.state, lookOf(sight, atMs, signalMs), LIMITS);
            stepCount++;
            const { phase } = decision.state;
            const before = situation.state.phase.kind;
            if ((phase.kind === 'holding' || phase.kind === 'quitting') && before !== 'holding') {
              named.set(phase.because, (named.get(phase.because) ?? 0) + 1);
              assert.ok(
                isJustified(phase.because, memory, sight, atMs),
                `${phase.kind} because ${phase.because}: ${JSON.stringify({ memory, sight, atMs })}`,
              );
            }
            if (decision.next.kind === 'look') {
              assert.ok(decision.next.atMs > atMs, 'the next look is later');
              assert.ok(
                decision.next.deadlineMs === null || decision.next.deadlineMs > atMs,
                'a limit that is over has decided',
              );
            }
            if (phase.kind === 'quitting') continue;
            const key = keyOf({ state: decision.state, memory }, atMs, 0, NOT_DECIDING);
            if (seen.has(key)) continue;
            seen.add(key);
            for (const ended of ENDED) {
              const quitMs = playOn(decision, ended, signalMs, atMs + sumMs);
              assert.ok(quitMs !== null, `hangs: ${key} with ${JSON.stringify(ended)}`);
            }
            next.push({ situation: { state: decision.state, memory, decision }, nowMs: atMs });
          }
        }
      }
    }
    frontier = next;
  }
  // A restart of the watcher is a new start beside the same main: its memory is empty, and so is the oracle's.
  t.diagnostic(
    `${stepCount} steps, ${seen.size} situations, depth ${depth}; reasons named: ${JSON.stringify(Object.fromEntries(named))}`,
  );
  assert.equal(named.size, 8, 'every reason was met');
});

const EMPTY_MEMORY: Memory = {
  startedMs: 0,
  aliveMs: null,
  wasAlive: false,
  signalMs: null,
  doneMs: null,
  doneLooks: 0,
  portMs: null,
  portLooks: 0,
  refusedMs: null,
};

// ---------------------------------------------------------------------------------------------------------------------
// It never counts more scrapes than others made since the end.

/** The exporter as it really is, and what others really did. */
type World = {
  readonly isEnded: boolean;
  /** promhttp's counter. */
  readonly counter: number;
  /** Others' scrapes in flight that began before main ended, and after. */
  readonly oldInFlight: number;
  readonly newInFlight: number;
  /** Own requests that were given up and are still queued. */
  readonly ownQueued: number;
  /** Others' scrapes that began after the end and are finished. */
  readonly trueCount: number;
};

/** Everything that can happen at the exporter between two looks. */
const EVENTS: readonly ((world: World) => World | null)[] = [
  (world) => world,
  (world) => ({ ...world, counter: world.counter + 1, trueCount: world.trueCount + (world.isEnded ? 1 : 0) }),
  (world) =>
    world.oldInFlight + world.newInFlight >= 2
      ? null
      : world.isEnded
        ? { ...world, newInFlight: world.newInFlight + 1 }
        : { ...world, oldInFlight: world.oldInFlight + 1 },
  (world) =>
    world.oldInFlight === 0 ? null : { ...world, oldInFlight: world.oldInFlight - 1, counter: world.counter + 1 },
  (world) =>
    world.newInFlight === 0
      ? null
      : { ...world, newInFlight: world.newInFlight - 1, counter: world.counter + 1, trueCount: world.trueCount + 1 },
  (world) => (world.ownQueued === 0 ? null : { ...world, ownQueued: world.ownQueued - 1, counter: world.counter + 1 }),
  (world) => (world.isEnded ? null : { ...world, isEnded: true }),
];

type Kind = 'quick' | 'slow' | 'givenUpQueued' | 'givenUpCounted' | 'givenUpLost' | 'status500';
const KINDS_OF_LOOK: readonly Kind[] = ['quick', 'slow', 'givenUpQueued', 'givenUpCounted', 'givenUpLost', 'status500'];

test('step() never counts more scrapes than others made since the end: all sequences', (t) => {
  const depth = 5;
  const limits: Limits = {
    ...LIMITS,
    scrapesWantedCount: 2,
    ttlMs: 600_000,
    settleMs: 1_000,
    runTimeoutMs: 0,
    pollMs: 1_000,
  };
  const start: World = { isEnded: false, counter: 50, oldInFlight: 0, newInFlight: 0, ownQueued: 0, trueCount: 0 };
  const first = step(initialState(0), answeredLook(start, start, 0, 0), limits).state;
  let frontier = [{ state: first, world: { ...start, counter: start.counter + 1 }, nowMs: 0 }];
  const seen = new Set<string>();
  let stepCount = 0;
  let scrapedCount = 0;

  for (let level = 0; level < depth; level++) {
    const next: typeof frontier = [];
    for (const { state, world, nowMs } of frontier) {
      for (const event of EVENTS) {
        const before = event(world);
        if (before === null) continue;
        for (const kind of KINDS_OF_LOOK) {
          for (const during of kind === 'slow' ? EVENTS : EVENTS.slice(0, 1)) {
            const after = during(before);
            if (after === null) continue;
            const startedAtMs = nowMs + 1_000;
            const atMs = startedAtMs + (kind === 'slow' ? 5_000 : 0);
            const { look, world: left } = play(kind, before, after, startedAtMs, atMs);
            const decision = step(state, look, limits);
            stepCount++;
            const { phase } = decision.state;
            const counted =
              phase.kind === 'holding'
                ? phase.count.seenCount
                : phase.kind === 'quitting'
                  ? (phase.scrapesSeenCount ?? 0)
                  : 0;
            // A slow look ends after the events that happened during it, but shows the counters from before.
            assert.ok(counted <= before.trueCount, `counted ${counted}: ${JSON.stringify({ state, before, look })}`);
            if (phase.kind === 'quitting') {
              scrapedCount++;
              assert.equal(phase.outcome, 'scraped');
              assert.ok(before.trueCount >= limits.scrapesWantedCount, 'scraped means scraped');
              const isQuiet = before.oldInFlight + before.newInFlight === 0;
              const reachedMs = state.phase.kind === 'holding' ? state.phase.scrapedAtMs : null;
              assert.ok(
                isQuiet || (reachedMs !== null && atMs - reachedMs >= IN_FLIGHT_WAIT_MS),
                'cuts a scrape in flight off',
              );
              continue;
            }
            // A restart of the watcher, too: it knows nothing, its given-up requests are still queued.
            for (const kept of [decision.state, initialState(atMs)]) {
              const key = keyOf(
                { kept, left: { ...left, counter: 0, trueCount: Math.min(left.trueCount, 3) } },
                atMs,
                left.counter,
                NOT_COUNTING,
              );
              if (seen.has(key)) continue;
              seen.add(key);
              next.push({ state: kept, world: left, nowMs: atMs });
            }
          }
        }
      }
    }
    frontier = next;
  }
  t.diagnostic(`${stepCount} steps, ${seen.size} situations, depth ${depth}; ended as scraped ${scrapedCount} times`);
  assert.ok(scrapedCount > 0, 'no sequence was scraped: the check shows nothing');
});

/** One look of a kind: what it shows (counters of its beginning), and the exporter after it. */
function play(
  kind: Kind,
  before: World,
  after: World,
  startedAtMs: number,
  atMs: number,
): { look: Observation; world: World } {
  const failed = (mayCount: boolean): Observation => ({
    ...answeredLook(before, after, startedAtMs, atMs),
    exporter: { kind: 'failed', why: '', mayCount },
    conditions: [{ kind: 'unknown', why: '' }, portOf(after)],
  });
  switch (kind) {
    case 'quick':
    case 'slow':
      return { look: answeredLook(before, after, startedAtMs, atMs), world: { ...after, counter: after.counter + 1 } };
    case 'givenUpQueued':
      return { look: failed(true), world: { ...after, ownQueued: after.ownQueued + 1 } };
    case 'givenUpCounted':
      return { look: failed(true), world: { ...after, counter: after.counter + 1 } };
    case 'givenUpLost':
      return { look: failed(true), world: after };
    case 'status500':
      return { look: failed(false), world: after };
  }
}

function answeredLook(before: World, after: World, startedAtMs: number, atMs: number): Observation {
  const inFlightCount = 1 + before.oldInFlight + before.newInFlight + before.ownQueued;
  return {
    startedAtMs,
    atMs,
    terminatedAtMs: null,
    exporter: {
      kind: 'answered',
      scrapes: { finishedCount: before.counter, inFlightCount },
      totals: { requests: null, failures: null, users: null },
    },
    conditions: [
      after.isEnded ? { kind: 'done', seen: '', provesWasAlive: true } : { kind: 'alive', seen: '' },
      portOf(after),
    ],
  };
}

function portOf({ isEnded }: World): ConditionObservation {
  return isEnded ? { kind: 'done', seen: '', provesWasAlive: false } : { kind: 'alive', seen: '' };
}
