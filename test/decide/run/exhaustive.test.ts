// Plays every sequence of observations, signals, clock jumps and restarts on a coarse clock, up to a depth,
// against step(). Equal situations (same memory, ages capped at the limits) are played once.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type {
  ConditionObservation,
  ExporterObservation,
  Limits,
  Observation,
  Policy,
} from '../../../src/decide/model.ts';
import { initialState } from '../../../src/decide/run/facts.ts';
import { GONE_AFTER_MS } from '../../../src/decide/run/hold.ts';
import { IN_FLIGHT_WAIT_MS } from '../../../src/decide/run/pace.ts';
import { step } from '../../../src/decide/run/step.ts';
import { WITHOUT_METRIC_AFTER_MS } from '../../../src/decide/run/watch.ts';
import type { Decision, Reason, State, WatchState } from '../../../src/decide/state.ts';
import { ALIVE, ANSWERED, answer, POLICY, REFUSED, readQuitting, UNKNOWN } from '../phases.ts';
import { createKeyWriter } from '../situation-key.ts';

const LIMITS: Limits = {
  scrapesWantedCount: 1,
  ttlMs: 20_000,
  settleMs: 10_000,
  startTimeoutMs: 30_000,
  runTimeoutMs: 90_000,
  terminationGraceMs: 15_000,
  pollMs: 5_000,
};

/** Nobody is to be quit: what is checked is when, and why. */
function policyWith(limits: Limits, ...isMetric: readonly boolean[]): Policy {
  return { ...POLICY, limits, conditions: isMetric.map((each) => ({ isMetric: each })) };
}

/** Memory that no decision but a warning reads, where the exporter shows no counters. */
const NOT_DECIDING = [
  ...['seenText', 'warned', 'totals', 'metricUnreadableSinceMs', 'wasAliveAtSignal', 'running', 'history'],
  ...['count', 'hasAnswered'],
];
/** Memory that the count does not read. */
const NOT_COUNTING = [
  ...['seenText', 'warned', 'totals', 'metricUnreadableSinceMs', 'wasAliveAtSignal', 'running', 'startedAtMs'],
  ...['aliveSinceMs', 'goneSinceMs'],
];

// It never quits, and never holds, while main is not proven done, but for the reasons that it names.

const FAILED: ExporterObservation = { kind: 'failed', why: '', mayCount: true };
const done = (provesWasAlive: boolean, provesNeverRan = false): ConditionObservation => ({
  kind: 'done',
  seen: '',
  provesWasAlive,
  provesNeverRan,
});
const METRICS: readonly (readonly [ExporterObservation, ConditionObservation])[] = [
  [ANSWERED, ALIVE],
  [ANSWERED, done(false)],
  [ANSWERED, done(true)],
  [ANSWERED, UNKNOWN],
  [REFUSED, UNKNOWN],
  [FAILED, UNKNOWN],
];
const PORTS: readonly ConditionObservation[] = [
  ALIVE,
  done(false),
  UNKNOWN,
  done(false, true),
  { kind: 'blind', why: '' },
  { kind: 'notStarted', why: '' },
];

/** What one observation shows; the conditions in the order of the policy. */
type Sight = { readonly exporter: ExporterObservation; readonly conditions: readonly ConditionObservation[] };

const ONE_METRIC: readonly Sight[] = METRICS.flatMap(([exporter, metric]) =>
  PORTS.map((port): Sight => ({ exporter, conditions: [metric, port] })),
);
/** A second metric, which may vanish while the first one is read; what a port cannot tell does not depend on that. */
const TWO_METRICS: readonly Sight[] = METRICS.flatMap(([exporter, metric]) =>
  [ALIVE, done(false), UNKNOWN].flatMap((second) =>
    exporter.kind !== 'answered' && second.kind !== 'unknown'
      ? []
      : PORTS.slice(0, 4).map((port): Sight => ({ exporter, conditions: [metric, second, port] })),
  ),
);

/** How an observation went: at once, its read hung, or the process stood still; one per sequence is slow. */
const MANNERS = ['quick', 'hanging', 'stalled'] as const;
type Manner = (typeof MANNERS)[number];

/** What a reader of the design would note down of one watcher's observations; times are null where it does not hold. */
type Memory = {
  readonly startedMs: number;
  readonly aliveMs: number | null;
  readonly wasAlive: boolean;
  readonly signalMs: number | null;
  readonly doneMs: number | null;
  readonly doneCount: number;
  readonly portMs: number | null;
  readonly portCount: number;
  readonly refusedMs: number | null;
  readonly isStalled: boolean;
};

/** What a sight proves; while the process stood still nothing but life. */
function judge({ exporter, conditions }: Sight, isMetric: readonly boolean[], manner: Manner) {
  const isDone = (condition: ConditionObservation) => condition.kind === 'done' && manner !== 'stalled';
  const others = conditions.filter((_, index) => !isMetric[index]);
  const metrics = conditions.filter((_, index) => isMetric[index]);
  return {
    isAlive: conditions.some(({ kind }) => kind === 'alive'),
    isDone: conditions.every(isDone),
    isPortDone: others.every(isDone),
    isRows: conditions.some((each) => each.kind === 'done' && each.provesWasAlive && manner !== 'stalled'),
    isNeverRan: conditions.some((each) => each.kind === 'done' && each.provesNeverRan === true),
    isBlind: conditions.some(({ kind }) => kind === 'blind'),
    isUnreadable:
      metrics.some((each) => each.kind === 'unknown' || (each.kind === 'done' && manner === 'stalled')) &&
      !metrics.some(({ kind }) => kind === 'alive'),
    isNotAlive: conditions.every(
      (each, index) =>
        isDone(each) ||
        each.kind === 'notStarted' ||
        (exporter.kind === 'refused' && manner !== 'stalled' && isMetric[index] === true),
    ),
  };
}
type Proof = ReturnType<typeof judge>;

function remember(
  memory: Memory,
  { exporter }: Sight,
  proof: Proof,
  manner: Manner,
  atMs: number,
  signalMs: number | null,
): Memory {
  const { isAlive, isDone, isPortDone } = proof;
  const isRefused = exporter.kind === 'refused' && manner !== 'stalled';
  return {
    startedMs: memory.startedMs,
    aliveMs: memory.aliveMs ?? (isAlive ? atMs : null),
    wasAlive: memory.wasAlive || proof.isRows,
    signalMs,
    doneMs: isAlive ? null : (memory.doneMs ?? (isDone ? atMs : null)),
    doneCount: isAlive ? 0 : Math.min(2, memory.doneCount + (isDone ? 1 : 0)),
    portMs: isAlive ? null : (memory.portMs ?? (isPortDone ? atMs : null)),
    portCount: isAlive ? 0 : Math.min(2, memory.portCount + (isPortDone ? 1 : 0)),
    refusedMs: !isRefused || isAlive ? null : (memory.refusedMs ?? (isPortDone ? atMs : null)),
    isStalled: manner === 'stalled',
  };
}

function isJustified(because: Reason, memory: Memory, { exporter }: Sight, proof: Proof, manner: Manner, atMs: number) {
  const isKnown = memory.aliveMs !== null || memory.wasAlive;
  const lasts = (sinceMs: number | null, forMs: number) => sinceMs !== null && atMs - sinceMs >= forMs;
  // A limit decides by what was seen when it was over, and by nothing that was seen before the process stood still.
  const isOver = (sinceMs: number | null, forMs: number) => manner !== 'stalled' && lasts(sinceMs, forMs);
  switch (because) {
    case 'settled':
      return isKnown && proof.isDone && memory.doneCount >= 2 && lasts(memory.doneMs, LIMITS.settleMs);
    case 'settledWithoutMetric':
      return (
        isKnown &&
        proof.isPortDone &&
        proof.isUnreadable &&
        memory.portCount >= 2 &&
        (lasts(memory.portMs, WITHOUT_METRIC_AFTER_MS) || isOver(memory.doneMs, LIMITS.ttlMs))
      );
    case 'exporterGone':
      return (
        isKnown &&
        exporter.kind === 'refused' &&
        manner !== 'stalled' &&
        proof.isPortDone &&
        (memory.signalMs !== null || lasts(memory.refusedMs, GONE_AFTER_MS))
      );
    case 'startTimeout':
      return !isKnown && !proof.isBlind && isOver(memory.startedMs, LIMITS.startTimeoutMs);
    case 'neverRan':
      return (
        !isKnown && proof.isDone && proof.isNeverRan && memory.doneCount >= 2 && lasts(memory.doneMs, LIMITS.settleMs)
      );
    case 'runTimeout':
      return isKnown && isOver(memory.wasAlive ? memory.startedMs : memory.aliveMs, LIMITS.runTimeoutMs);
    case 'grace':
      return isOver(memory.signalMs, LIMITS.terminationGraceMs);
    case 'signal':
      return false;
    case 'signalBeforeStart':
      return !isKnown && memory.signalMs !== null && proof.isNotAlive;
  }
}

function buildObservation(
  { exporter, conditions }: Sight,
  atMs: number,
  beforeMs: number,
  manner: Manner,
): Observation {
  const startedAtMs = manner === 'quick' ? atMs : beforeMs;
  return { startedAtMs, readAtMs: atMs, atMs, allowedMs: manner === 'stalled' ? 1_000 : 600_000, exporter, conditions };
}

const observe = (state: WatchState, observation: Observation, policy: Policy): Decision =>
  step({ kind: 'watching', state, event: { kind: 'observed', observation } }, policy);

/** Plays on with one and the same sight, at the times that step() asks for; when it quits, or null. */
function playOn(from: Decision, sight: Sight, policy: Policy, untilMs: number): number | null {
  let decision = from;
  while (decision.kind === 'watching') {
    const { atMs } = decision.next;
    if (atMs > untilMs) return null;
    const observation = buildObservation(sight, atMs, atMs, 'quick');
    decision = observe(decision.state, observation, policy);
  }
  return readQuitting(decision.state).sinceMs;
}

type Plan = {
  readonly isMetric: readonly boolean[];
  readonly sights: readonly Sight[];
  /** Main has ended, and stays so. */
  readonly ended: readonly Sight[];
  readonly depth: number;
  /** Sequences up to this length are played on with a main that stays ended, which takes most of the time. */
  readonly endedDepth: number;
  readonly paceMs: readonly number[];
};

const PORT_CLOSED = done(false);
const PLANS: Readonly<Record<string, Plan>> = {
  'a metric and a port': {
    isMetric: [true, false],
    sights: ONE_METRIC,
    ended: [
      { exporter: ANSWERED, conditions: [done(true), PORT_CLOSED] },
      { exporter: REFUSED, conditions: [UNKNOWN, PORT_CLOSED] },
      { exporter: FAILED, conditions: [UNKNOWN, PORT_CLOSED] },
    ],
    depth: 5,
    endedDepth: 4,
    paceMs: [5_000, 45_000],
  },
  'two metrics and a port': {
    isMetric: [true, true, false],
    sights: TWO_METRICS,
    ended: [
      { exporter: ANSWERED, conditions: [done(true), done(false), PORT_CLOSED] },
      { exporter: ANSWERED, conditions: [done(true), UNKNOWN, PORT_CLOSED] },
      { exporter: REFUSED, conditions: [UNKNOWN, UNKNOWN, PORT_CLOSED] },
    ],
    depth: 3,
    endedDepth: 3,
    paceMs: [5_000, 45_000, 200_000],
  },
};

for (const [name, plan] of Object.entries(PLANS)) {
  test(`step() holds and quits only for what it names, and ends once main stays ended: ${name}, all sequences`, (t) => {
    const { isMetric, sights, ended, depth, endedDepth, paceMs } = plan;
    const policy = policyWith(LIMITS, ...isMetric);
    type Situation = { state: WatchState; memory: Memory; hasManner: boolean };
    let frontier: { situation: Situation; nowMs: number }[] = [
      { situation: { state: initialState(0), memory: EMPTY_MEMORY, hasManner: false }, nowMs: 0 },
    ];
    const writeKey = createKeyWriter(NOT_DECIDING);
    const seen = new Set<number>();
    const playedOn = new Set<number>();
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
            let { state } = situation;
            if (isSignal) {
              const signalled = step({ kind: 'watching', state: state, event: { kind: 'signalled', atMs } }, policy);
              assert.ok(signalled.kind === 'watching');
              state = signalled.state;
            }
            // Once in a sequence, and twice where it stands still: that distinguishes two in a row.
            const isLate = level === endedDepth || (situation.hasManner && !situation.memory.isStalled);
            const isQuickOnly = dtMs === paceMs[0] || isLate;
            for (const played of isQuickOnly ? MANNERS.slice(0, 1) : MANNERS) {
              // A process that always stands still keeps its limits even so: the second one in a row is believed.
              const manner = played === 'stalled' && situation.memory.isStalled ? 'hanging' : played;
              for (const sight of sights) {
                const proof = judge(sight, isMetric, manner);
                const memory = remember(situation.memory, sight, proof, manner, atMs, signalMs);
                const observation = buildObservation(sight, atMs, nowMs, played);
                const decision = observe(state, observation, policy);
                stepCount++;
                const { phase } = decision.state;
                if (
                  (phase.kind === 'holding' || phase.kind === 'quitting') &&
                  situation.state.phase.kind !== 'holding'
                ) {
                  named.set(phase.because, (named.get(phase.because) ?? 0) + 1);
                  assert.ok(
                    isJustified(phase.because, memory, sight, proof, manner, atMs),
                    `${phase.kind} because ${phase.because}: ${JSON.stringify({ memory, sight, manner, atMs })}`,
                  );
                }
                if (decision.kind !== 'watching') continue;
                const isAgain = decision.next.atMs === atMs;
                assert.ok(
                  decision.next.atMs > atMs || (isAgain && manner !== 'quick'),
                  'the next observation is later',
                );
                if (level === endedDepth) continue;
                const hasManner = situation.hasManner || manner !== 'quick';
                const key = writeKey({ state: decision.state, memory, hasManner }, atMs, 0);
                if (seen.has(key)) continue;
                seen.add(key);
                const stateKey = writeKey(decision.state, atMs, 0);
                const isPlayed = playedOn.has(stateKey);
                playedOn.add(stateKey);
                for (const each of isPlayed ? [] : ended) {
                  const quitMs = playOn(decision, each, policy, atMs + sumMs);
                  assert.ok(
                    quitMs !== null,
                    `hangs: ${JSON.stringify({ state: decision.state, atMs })} with ${JSON.stringify(each)}`,
                  );
                }
                next.push({ situation: { state: decision.state, memory, hasManner }, nowMs: atMs });
              }
            }
          }
        }
      }
      frontier = next;
    }
    // A restart of the watcher is a new start next to the same main: its memory is empty, and so is the oracle's.
    t.diagnostic(
      `${stepCount} steps, ${seen.size} situations, ${playedOn.size} played, depth ${depth}; reasons named: ${JSON.stringify(Object.fromEntries(named))}`,
    );
    assert.equal(named.size, 8, 'every reason was met');
  });
}

const EMPTY_MEMORY: Memory = {
  startedMs: 0,
  aliveMs: null,
  wasAlive: false,
  signalMs: null,
  doneMs: null,
  doneCount: 0,
  portMs: null,
  portCount: 0,
  refusedMs: null,
  isStalled: false,
};

// It never counts more scrapes than others made since the end.

/** The exporter as it really is, and what others really did. */
type World = {
  readonly isEnded: boolean;
  readonly counter: number;
  /** Others' scrapes in flight that began before main ended, and after. */
  readonly oldInFlight: number;
  readonly newInFlight: number;
  /** Own requests that were given up and are still queued. */
  readonly ownQueued: number;
  /** Others' scrapes that began after the end and are finished. */
  readonly trueCount: number;
};

/** Everything that can happen at the exporter between two observations. */
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
const KINDS: readonly Kind[] = ['quick', 'slow', 'givenUpQueued', 'givenUpCounted', 'givenUpLost', 'status500'];

test('step() never counts more scrapes than others made since the end: all sequences', (t) => {
  const depth = 4;
  const limits: Limits = {
    ...LIMITS,
    scrapesWantedCount: 2,
    ttlMs: 600_000,
    settleMs: 1_000,
    runTimeoutMs: 0,
    pollMs: 1_000,
  };
  const start: World = { isEnded: false, counter: 50, oldInFlight: 0, newInFlight: 0, ownQueued: 0, trueCount: 0 };
  const policy = policyWith(limits, true, false);
  const first = observe(initialState(0), answered(start, start, 0, 0), policy);
  assert.ok(first.kind === 'watching');
  const alive = { state: first.state, world: { ...start, counter: start.counter + 1 }, nowMs: 0 };
  // A main that runs; and one that has ended, and is held for.
  let frontier: { state: WatchState; world: World; nowMs: number }[] = [alive];
  let held = { ...alive, world: { ...alive.world, isEnded: true } };
  while (held.state.phase.kind !== 'holding') {
    const nowMs = held.nowMs + 1_000;
    assert.ok(nowMs < 5_000, 'the hold does not begin');
    const { observation, world } = play('quick', held.world, held.world, nowMs, nowMs);
    const decision = observe(held.state, observation, policy);
    assert.ok(decision.kind === 'watching');
    held = { state: decision.state, world, nowMs };
  }
  frontier.push(held);
  const writeKey = createKeyWriter(NOT_COUNTING);
  const seen = new Set<number>();
  let stepCount = 0;
  let scrapedCount = 0;

  for (let level = 0; level < depth; level++) {
    const next: typeof frontier = [];
    for (const { state, world, nowMs } of frontier) {
      for (const event of EVENTS) {
        const before = event(world);
        if (before === null) continue;
        for (const kind of KINDS) {
          for (const during of kind === 'slow' ? EVENTS : EVENTS.slice(0, 1)) {
            const after = during(before);
            if (after === null) continue;
            const startedAtMs = nowMs + 1_000;
            const atMs = startedAtMs + (kind === 'slow' ? 5_000 : 0);
            const { observation, world: left } = play(kind, before, after, startedAtMs, atMs);
            const decision = observe(state, observation, policy);
            stepCount++;
            const { phase }: State = decision.state;
            const counted =
              phase.kind === 'holding'
                ? phase.count.seenCount
                : phase.kind === 'quitting'
                  ? (phase.scrapesSeenCount ?? 0)
                  : 0;
            // A slow observation ends after the events that happened during it, but shows the counters from before.
            assert.ok(
              counted <= before.trueCount,
              `counted ${counted}: ${JSON.stringify({ state, before, observation })}`,
            );
            if (decision.kind !== 'watching') {
              scrapedCount++;
              assert.equal(readQuitting(decision.state).outcome, 'scraped');
              assert.ok(before.trueCount >= Number(limits.scrapesWantedCount), 'scraped means scraped');
              const isQuiet = before.oldInFlight + before.newInFlight === 0;
              const reachedMs = state.phase.kind === 'holding' ? state.phase.scrapedAtMs : null;
              assert.ok(
                isQuiet || (reachedMs !== null && atMs - reachedMs >= IN_FLIGHT_WAIT_MS),
                'cuts a scrape in flight off',
              );
              continue;
            }
            if (level === depth - 1) continue;
            // A restart of the watcher, too: it knows nothing, its given-up requests are still queued.
            for (const kept of [decision.state, initialState(atMs)]) {
              const key = writeKey(
                { kept, left: { ...left, counter: 0, trueCount: Math.min(left.trueCount, 3) } },
                atMs,
                left.counter,
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

/** One observation of a kind: what it shows (counters of its beginning), and the exporter after it. */
function play(
  kind: Kind,
  before: World,
  after: World,
  startedAtMs: number,
  atMs: number,
): { observation: Observation; world: World } {
  const failed = (mayCount: boolean): Observation => ({
    ...answered(before, after, startedAtMs, atMs),
    exporter: { kind: 'failed', why: '', mayCount },
    conditions: [UNKNOWN, showPort(after)],
  });
  switch (kind) {
    case 'quick':
    case 'slow':
      return {
        observation: answered(before, after, startedAtMs, atMs),
        world: { ...after, counter: after.counter + 1 },
      };
    case 'givenUpQueued':
      return { observation: failed(true), world: { ...after, ownQueued: after.ownQueued + 1 } };
    case 'givenUpCounted':
      return { observation: failed(true), world: { ...after, counter: after.counter + 1 } };
    case 'givenUpLost':
      return { observation: failed(true), world: after };
    case 'status500':
      return { observation: failed(false), world: after };
  }
}

function answered(before: World, after: World, startedAtMs: number, atMs: number): Observation {
  const inFlightCount = 1 + before.oldInFlight + before.newInFlight + before.ownQueued;
  return {
    startedAtMs,
    readAtMs: atMs,
    atMs,
    allowedMs: 25_000,
    exporter: answer(before.counter, inFlightCount),
    conditions: [after.isEnded ? done(true) : ALIVE, showPort(after)],
  };
}

function showPort({ isEnded }: World): ConditionObservation {
  return isEnded ? done(false) : ALIVE;
}
