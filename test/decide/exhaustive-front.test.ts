// Plays every sequence of scrapes through the front, observations, ends and restarts of main, of its source and of lastscrape, and
// signals, up to a depth, against step() and what decides answers. The oracle knows which number each scraper really took.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type {
  ConditionObservation,
  ExporterObservation,
  FrontObservation,
  Limits,
  Policy,
} from '../../src/decide/model.ts';
import { findAnswersEnd, IN_FLIGHT_WAIT_MS } from '../../src/decide/pace.ts';
import { type AnswerKind, chooseAnswer, type SourceResult, viewMain } from '../../src/decide/serve.ts';

import {
  type Decision,
  initialState,
  type Quitting,
  type WatchEvent,
  type WatchState,
} from '../../src/decide/state.ts';
import { step } from '../../src/decide/step.ts';
import { readQuitting } from './phases.ts';
import { createKeyWriter } from './situation-key.ts';

const LIMITS: Limits = {
  scrapesWantedCount: 'auto',
  ttlMs: 40_000,
  settleMs: 5_000,
  startTimeoutMs: 0,
  runTimeoutMs: 0,
  terminationGraceMs: 15_000,
  pollMs: 5_000,
};
const TICK_MS = 5_000;
/** Beyond the TTL, and beyond 2.5 of any interval. */
const LONG_MS = 45_000;

const CONDITIONS = {
  port: { isMetric: false },
  metric: { isMetric: true },
  sigterm: { isMetric: false, isSignal: true },
};
type ConditionName = keyof typeof CONDITIONS;

/** What the decisions do not read, with a front and without counters. */
const NOT_DECIDING = [
  ...['seenText', 'warned', 'totals', 'running', 'history', 'count', 'hasAnswered', 'aliveSinceMs', 'startedAtMs'],
  ...[
    'answerNumbers',
    'givenUpIds',
    'scrapesCount',
    'last',
    'number',
    'firstAtMs',
    'connection',
    'planned',
    'observedAtMs',
  ],
];

/** One scrape as it really was. */
type Scrape = {
  readonly startedAtMs: number;
  /** Which of the numbers that main ever had. */
  readonly number: number;
  readonly isByRefusal: boolean;
  /** The source itself answered, and not the snapshot. */
  readonly isLive: boolean;
};

type ScraperName = 'A' | 'B';

/** Main, its source and the scrapers as they really are, and what the front was shown. */
type World = {
  readonly nowMs: number;
  readonly isAlive: boolean;
  /** It changes with everything that happens while main is alive. */
  readonly number: number;
  readonly snapshot: { readonly number: number; readonly readAtMs: number } | null;
  /** When the newest read that succeeded began. */
  readonly answeredAtMs: number | null;
  readonly scrapes: Readonly<Record<ScraperName, readonly Scrape[]>>;
  /** A scrape whose answer is on its way, with what it gets. */
  readonly inFlight: { readonly scrape: Scrape; readonly served: AnswerKind; readonly readAtMs: number } | null;
  readonly signalMs: number | null;
  /** By what was observed: since when, and how often in a row, main was seen to have ended. */
  readonly doneMs: number | null;
  readonly doneCount: number;
};

const watch = (state: WatchState, event: WatchEvent, policy: Policy) =>
  step({ kind: 'watching', state, event }, policy);

type Situation = { readonly world: World; readonly state: WatchState };

const SOURCES: readonly SourceResult[] = ['answered', 'refused', 'failed'];

function pass(world: World, ms: number): World {
  return { ...world, nowMs: world.nowMs + ms, number: world.number + (world.isAlive ? 1 : 0) };
}

/** A read of the source that began at `readAtMs`. */
function read(world: World, source: SourceResult, readAtMs: number): World {
  return source === 'answered'
    ? { ...world, snapshot: { number: world.number, readAtMs }, answeredAtMs: readAtMs }
    : world;
}

function showFront({ answeredAtMs, inFlight }: World): FrontObservation {
  return { answeredAtMs, inFlightCount: inFlight === null ? 0 : 1 };
}

/** A scrape comes: what it gets, or null for a 503. */
function answerScrape({ world, state }: Situation, source: SourceResult) {
  const view = viewMain(state);
  const served = chooseAnswer({ view, answeredAtMs: world.answeredAtMs }, source);
  const now = read(world, source, world.nowMs);
  if (served === 'unavailable' || now.snapshot === null) return { now, answer: null };
  // An old number for a main that was not seen to have ended only where the source refuses.
  if (served === 'snapshot' && source === 'failed') assert.ok(isEndSeen(world), 'an old number for a living main');
  const { number, readAtMs } = now.snapshot;
  const isLive = served !== 'snapshot';
  const scrape: Scrape = { startedAtMs: world.nowMs, number, isByRefusal: source === 'refused', isLive };
  return { now, answer: { scrape, served, readAtMs } };
}

function isEndSeen({ doneMs, doneCount, signalMs }: World): boolean {
  return doneMs !== null && (doneCount >= 2 || signalMs !== null);
}

/** It is handed over, and the rules are told. */
function deliver(
  world: World,
  state: WatchState,
  name: ScraperName,
  { scrape, served, readAtMs }: NonNullable<World['inFlight']>,
  policy: Policy,
): Situation {
  const told = watch(
    state,
    {
      kind: 'scraped',
      scrape: {
        startedAtMs: scrape.startedAtMs,
        atMs: world.nowMs,
        address: '10.0.0.1',
        agent: 'Prometheus',
        connection: name === 'A' ? 1 : 2,
        openConnections: name === 'A' ? [2] : [1],
        served: served as Exclude<AnswerKind, 'unavailable'>,
        isByRefusal: served === 'snapshot' && scrape.isByRefusal,
        readAtMs,
      },
      front: showFront(world),
      planned: { kind: 'observe', atMs: world.nowMs + TICK_MS, readByMs: null, isFresh: false },
    },
    policy,
  );
  assert.ok(told.kind === 'watching');
  const scrapes = { ...world.scrapes, [name]: [...world.scrapes[name], scrape] };
  return { world: { ...world, scrapes }, state: told.state };
}

/** Everything that can happen between two observations. */
function listEvents(situation: Situation, policy: Policy): Situation[] {
  const world = pass(situation.world, TICK_MS);
  const { state } = situation;
  const events: Situation[] = [
    // lastscrape is restarted: it knows nothing, and its connections are gone.
    { world: { ...world, ...FORGOTTEN }, state: initialState(world.nowMs) },
  ];
  // A main that ran between two observations, and was not seen, is none of this: while its end is proven they come every 500 ms.
  const canToggle = isBySignal(policy) ? world.signalMs === null : !(world.isAlive && world.doneMs !== null);
  if (canToggle) events.push({ world: { ...world, isAlive: !world.isAlive }, state });
  for (const source of SOURCES) {
    const { now, answer } = answerScrape({ world, state }, source);
    for (const name of ['A', 'B'] as const) {
      if (answer === null) events.push({ world: now, state });
      else if (world.inFlight === null || name === 'B') events.push(deliver(now, state, name, answer, policy));
    }
    if (answer !== null && world.inFlight === null) events.push({ world: { ...now, inFlight: answer }, state });
  }
  if (world.inFlight !== null) {
    const ended: World = { ...world, inFlight: null };
    events.push({ world: ended, state }, deliver(ended, state, 'A', world.inFlight, policy));
  }
  if (world.signalMs === null) events.push(signal({ world, state }, policy));
  return events;
}

function signal({ world, state }: Situation, policy: Policy): Situation {
  const { nowMs } = world;
  const signalled = watch(state, { kind: 'signalled', atMs: nowMs }, policy);
  assert.ok(signalled.kind === 'watching');
  // As main's only condition the signal is the proof that main has ended.
  const proof = isBySignal(policy) ? { isAlive: false, doneMs: nowMs, doneCount: 1 } : {};
  return { world: { ...world, ...proof, signalMs: nowMs }, state: signalled.state };
}

const isBySignal = (policy: Policy) => policy.conditions.every((condition) => condition.isSignal === true);

const FORGOTTEN = {
  snapshot: null,
  answeredAtMs: null,
  scrapes: { A: [], B: [] },
  inFlight: null,
  signalMs: null,
  doneMs: null,
  doneCount: 0,
} as const;

/** What an observation shows of the source; `isUnknown`: and nothing of main. */
type Sight = { readonly source: SourceResult; readonly isUnknown: boolean };
const ANSWERED: Sight = { source: 'answered', isUnknown: false };
const REFUSED: Sight = { source: 'refused', isUnknown: false };
const SIGHTS: readonly Sight[] = [
  ANSWERED,
  REFUSED,
  { source: 'failed', isUnknown: false },
  { source: 'failed', isUnknown: true },
];

/** One observation, and what it shows the oracle of main. */
function observe(
  situation: Situation,
  { source, isUnknown }: Sight,
  conditions: readonly ConditionName[],
  policy: Policy,
): { readonly world: World; readonly decision: Decision } {
  const world = read(situation.world, source, situation.world.nowMs);
  const { nowMs, isAlive, signalMs } = world;
  const exporter: ExporterObservation =
    source === 'answered'
      ? { kind: 'answered', scrapes: null, totals: { requests: null, failures: null, users: null } }
      : source === 'refused'
        ? { kind: 'refused' }
        : { kind: 'failed', why: '', mayCount: false };
  const shown: ConditionObservation = isAlive
    ? { kind: 'alive', seen: '' }
    : { kind: 'done', seen: '', provesWasAlive: false };
  const unknown: ConditionObservation = { kind: 'unknown', why: '' };
  const observed = conditions.map((name): ConditionObservation => {
    if (name === 'sigterm') return { kind: 'notObserved' };
    return isUnknown || (name === 'metric' && source !== 'answered') ? unknown : shown;
  });
  const judged = conditions.map((name, index) => {
    if (name !== 'sigterm') return observed[index]?.kind;
    return signalMs === null ? 'alive' : 'done';
  });
  const isSeenAlive = judged.includes('alive');
  // A source that refuses stands for its metric: nothing more will be read there.
  const isDone = conditions.every(
    (name, index) => judged[index] === 'done' || (name === 'metric' && source !== 'answered'),
  );
  const observation = { startedAtMs: nowMs, readAtMs: nowMs, atMs: nowMs, allowedMs: 1_000, exporter };
  return {
    world: {
      ...world,
      doneMs: isSeenAlive ? null : (world.doneMs ?? (isDone ? nowMs : null)),
      doneCount: isSeenAlive ? 0 : Math.min(2, world.doneCount + (isDone ? 1 : 0)),
    },
    decision: watch(
      situation.state,
      { kind: 'observed', observation: { ...observation, conditions: observed, front: showFront(world) } },
      policy,
    ),
  };
}

/** Whether a scrape left nothing newer behind: it came after the end, or main was gone, and nothing newer was read since. */
function isLast({ startedAtMs, isByRefusal, number }: Scrape, { snapshot }: World, endedAtMs: number): boolean {
  return (startedAtMs > endedAtMs || isByRefusal) && number >= (snapshot?.number ?? 0);
}

/** Who scraped before the end and may still come. */
function listLiving({ scrapes, nowMs }: World, endedAtMs: number): ScraperName[] {
  return (['A', 'B'] as const).filter((name) => {
    const times = scrapes[name].map(({ startedAtMs }) => startedAtMs).toSorted((a, b) => a - b);
    const first = times[0];
    if (first === undefined || first > endedAtMs) return false;
    const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    const interval = gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)];
    return nowMs - (times.at(-1) ?? 0) <= (interval === undefined ? LIMITS.ttlMs : 2.5 * interval);
  });
}

/** Whether the grace has been over for so long that no answer in flight is waited for. */
function isCut({ signalMs, nowMs }: World): boolean {
  return signalMs !== null && nowMs >= findAnswersEnd(signalMs, LIMITS);
}

/** Asserts that the hold, or the watch, may end so. */
function checkQuit(before: WatchState, world: World, phase: Quitting, source: SourceResult, policy: Policy): void {
  const { nowMs, scrapes, inFlight, signalMs, snapshot } = world;
  const { outcome, mainEndedAtMs: endedAtMs } = phase;
  const isGraceOver = signalMs !== null && nowMs >= signalMs + LIMITS.terminationGraceMs;
  const text = () => `${outcome}: ${JSON.stringify({ world, before: before.phase, phase })}`;
  if (endedAtMs === null) {
    const isNeverStarted = outcome === 'neverStarted' && signalMs !== null;
    assert.ok((outcome === 'terminated' && isGraceOver) || isNeverStarted, text());
    return;
  }
  // Main that was seen alive is never quit under, but when the grace is over.
  assert.ok(world.doneMs !== null || isGraceOver, text());
  assert.ok(endedAtMs >= (world.doneMs ?? endedAtMs), text());
  if (inFlight !== null && !isCut(world)) {
    const sinceMs = before.phase.kind === 'holding' ? before.phase.scrapedAtMs : null;
    assert.ok(sinceMs !== null && nowMs - sinceMs >= IN_FLIGHT_WAIT_MS, `cuts an answer off: ${text()}`);
  }
  const taken = [...scrapes.A, ...scrapes.B].filter((each) => isLast(each, world, endedAtMs));
  switch (outcome) {
    case 'scraped': {
      // Main is back, and no observation has seen it: numbers change unseen.
      if (world.isAlive) return;
      const { scrapesWantedCount } = policy.limits;
      if (scrapesWantedCount !== 'auto') {
        assert.ok(taken.length >= scrapesWantedCount, text());
        return;
      }
      assert.ok(taken.length > 0, text());
      for (const name of listLiving(world, endedAtMs)) {
        assert.ok(
          scrapes[name].some((each) => isLast(each, world, endedAtMs)),
          `${name} lost it: ${text()}`,
        );
      }
      return;
    }
    case 'expired':
      assert.ok(nowMs >= endedAtMs + LIMITS.ttlMs, text());
      return;
    case 'terminated':
      assert.ok(isGraceOver, text());
      return;
    case 'exporterGone':
      assert.ok(snapshot === null && source === 'refused', text());
      return;
    default:
      assert.fail(text());
  }
}

/** Asserts that the hold had to go on. */
function checkHold(world: World, endedAtMs: number, { limits: { scrapesWantedCount } }: Policy): void {
  const { nowMs, scrapes, inFlight, signalMs } = world;
  const text = () => `holds on: ${JSON.stringify({ world, endedAtMs })}`;
  assert.ok(inFlight === null || !isCut(world), text());
  if (inFlight !== null) return;
  assert.ok(nowMs < endedAtMs + LIMITS.ttlMs, text());
  assert.ok(signalMs === null || nowMs < signalMs + LIMITS.terminationGraceMs, text());
  const isSure = ({ startedAtMs, isLive }: Scrape) => startedAtMs > endedAtMs && isLive;
  const sureCount = [...scrapes.A, ...scrapes.B].filter(isSure).length;
  const isReached =
    scrapesWantedCount === 'auto'
      ? sureCount > 0 && listLiving(world, endedAtMs).every((name) => scrapes[name].some(isSure))
      : sureCount >= scrapesWantedCount;
  assert.ok(!isReached, text());
}

/** What the decisions go by: scrapes from before the end will never count, whatever comes. */
function reduce({ facts, phase }: WatchState): object {
  const running = phase.kind === 'running' ? (phase.done ?? phase.others) : null;
  const sinceMs =
    phase.kind === 'holding'
      ? phase.mainEndedAtMs
      : (running?.sinceMs ?? (phase.kind === 'waiting' ? phase.done?.sinceMs : null));
  const isOpen = ({ startedAtMs, isByRefusal }: { startedAtMs: number; isByRefusal: boolean }) =>
    isByRefusal || (sinceMs !== null && sinceMs !== undefined && startedAtMs > sinceMs);
  const taken = facts.front.taken.filter(isOpen);
  // Whoever came first before an end is from before every later one.
  const scrapers = facts.front.scrapers.map((each) => ({
    ...each,
    isNew: sinceMs != null && each.firstAtMs > sinceMs,
  }));
  return { phase, facts: { ...facts, front: { ...facts.front, taken, scrapers } } };
}

type Plan = {
  readonly conditions: readonly ConditionName[];
  readonly scrapesWantedCount: number | 'auto';
  readonly depth: number;
};

const PLANS: Readonly<Record<string, Plan>> = {
  'a port, auto': { conditions: ['port'], scrapesWantedCount: 'auto', depth: 4 },
  'a metric and a port, two scrapes': { conditions: ['metric', 'port'], scrapesWantedCount: 2, depth: 4 },
  'the signal, auto': { conditions: ['sigterm'], scrapesWantedCount: 'auto', depth: 4 },
};

for (const [name, { conditions, scrapesWantedCount, depth }] of Object.entries(PLANS)) {
  test(`step() ends the hold of a front only when nothing is lost, or time is up: ${name}, all sequences`, (t) => {
    const policy: Policy = {
      limits: { ...LIMITS, scrapesWantedCount },
      conditions: conditions.map((each) => CONDITIONS[each]),
      hasFront: true,
      targets: [],
      quitTimeoutMs: 30_000,
      isDryRun: false,
    };
    const writeKey = createKeyWriter(NOT_DECIDING);
    const seen = new Set<number>();
    const outcomes = new Map<string, number>();
    let stepCount = 0;
    const add = ({ world, state }: Situation, into: Situation[]): boolean => {
      const { number } = world;
      const lagging = (scrape: Scrape) => ({ ...scrape, lag: number - scrape.number });
      const shown = {
        ...world,
        scrapes: { A: world.scrapes.A.map(lagging), B: world.scrapes.B.map(lagging) },
        snapshot: world.snapshot === null ? null : { ...world.snapshot, lag: number - world.snapshot.number },
        inFlight: world.inFlight === null ? null : { ...world.inFlight, scrape: lagging(world.inFlight.scrape) },
        nowMs: 0,
      };
      const key = writeKey({ world: shown, state: reduce(state) }, world.nowMs, 0);
      if (seen.has(key)) return false;
      seen.add(key);
      into.push({ world, state });
      return true;
    };
    let frontier: Situation[] = [];
    for (const start of begin(conditions, policy)) add(start, frontier);
    for (let level = 0; level < depth; level++) {
      const next: Situation[] = [];
      for (const situation of frontier) {
        for (const event of listEvents(situation, policy)) {
          stepCount++;
          add(event, next);
        }
        for (const ms of [TICK_MS, LONG_MS]) {
          for (const sight of SIGHTS) {
            const passed = { world: pass(situation.world, ms), state: situation.state };
            const { world, decision } = observe(passed, sight, conditions, policy);
            stepCount++;
            if (decision.kind !== 'watching') {
              const ended = readQuitting(decision.state);
              checkQuit(situation.state, world, ended, sight.source, policy);
              const { outcome } = ended;
              outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
              continue;
            }
            assert.ok(decision.next.atMs > world.nowMs, 'it spins');
            const { phase } = decision.state;
            if (phase.kind === 'holding') {
              assert.ok(isEndSeen(world), `holds: ${JSON.stringify({ world, phase })}`);
              checkHold(world, phase.mainEndedAtMs, policy);
            }
            const isNew = add({ world, state: decision.state }, next);
            if (isNew && phase.kind === 'holding') playOn(decision, world, conditions, policy);
          }
        }
      }
      frontier = next;
    }
    t.diagnostic(`${stepCount} steps, ${seen.size} situations, depth ${depth}: ${JSON.stringify([...outcomes])}`);
    for (const outcome of ['scraped', 'expired', 'terminated', 'exporterGone']) {
      assert.ok(outcomes.has(outcome), `${outcome} was never met: the check shows nothing of it`);
    }
  });
}

/** Nothing yet; a main that two scrape every 10 s; and that main once it has ended, and is held for. */
function* begin(conditions: readonly ConditionName[], policy: Policy): Generator<Situation> {
  const fresh: World = { nowMs: 0, isAlive: true, number: 1, ...FORGOTTEN };
  yield { world: fresh, state: initialState(0) };
  const first = observe({ world: fresh, state: initialState(0) }, ANSWERED, conditions, policy);
  assert.ok(first.decision.kind === 'watching');
  let situation: Situation = { world: first.world, state: first.decision.state };
  for (const name of ['A', 'B', 'A', 'B'] as const) {
    const world = pass(situation.world, TICK_MS);
    const { now, answer } = answerScrape({ world, state: situation.state }, 'answered');
    assert.ok(answer !== null);
    situation = deliver(now, situation.state, name, answer, policy);
  }
  yield situation;
  const world = pass(situation.world, TICK_MS);
  situation = isBySignal(policy)
    ? signal({ ...situation, world }, policy)
    : { ...situation, world: { ...world, isAlive: false } };
  for (let count = 0; situation.state.phase.kind !== 'holding'; count++) {
    assert.ok(count < 3, 'the hold does not begin');
    const ended = observe(situation, ANSWERED, conditions, policy);
    assert.ok(ended.decision.kind === 'watching');
    situation = { world: pass(ended.world, TICK_MS), state: ended.decision.state };
  }
  yield situation;
}

/** Main stays ended, its source refuses, and an answer never ends: the hold does, in time. */
function playOn(from: Decision, world: World, conditions: readonly ConditionName[], policy: Policy): void {
  let decision = from;
  let now: World = { ...world, isAlive: false };
  const { phase } = from.state;
  assert.ok(phase.kind === 'holding');
  const untilMs = Math.min(
    // The wait for an answer in flight begins when the TTL is seen to be over.
    Math.max(phase.mainEndedAtMs + LIMITS.ttlMs, world.nowMs) + IN_FLIGHT_WAIT_MS,
    now.signalMs === null ? Number.POSITIVE_INFINITY : findAnswersEnd(now.signalMs, LIMITS),
  );
  while (decision.kind === 'watching') {
    const { atMs } = decision.next;
    assert.ok(atMs <= Math.max(untilMs, world.nowMs + 1_000), `it hangs: ${JSON.stringify({ world, phase })}`);
    assert.ok(atMs > now.nowMs, 'it spins');
    now = { ...now, nowMs: atMs };
    ({ decision } = observe({ world: now, state: decision.state }, REFUSED, conditions, policy));
  }
}
