// What is remembered of the numbers that are judged: the cases that no transcript reaches.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExporterObservation, FrontObservation, Observation, ThresholdReading } from '../../src/decide/model.ts';
import { advanceNumbers } from '../../src/decide/numbers.ts';
import { initialState, type Phase, type State } from '../../src/decide/state.ts';
import { type JudgedNumbers, NO_NUMBERS } from '../../src/decide/verdict.ts';

const NONE: ThresholdReading = { kind: 'none' };
const of = (value: number): ThresholdReading => ({ kind: 'value', value });

type Shown = {
  readonly exporter?: ExporterObservation;
  readonly front?: FrontObservation;
  readonly phase?: Phase;
  readonly facts?: Partial<State['facts']>;
  readonly evidence?: Partial<Parameters<typeof advanceNumbers>[2]>;
};

const ALIVE = { aliveSinceMs: 0 };
const DONE = { isDone: true, areOthersDone: true };
const HELD = of(7);

/** The numbers after one observation, before which 7 was seen. */
function advance({ exporter, front, phase, facts = ALIVE, evidence }: Shown): JudgedNumbers {
  const state = initialState(0);
  const before: State['facts'] = {
    ...state.facts,
    hasAnswered: true,
    numbers: { ...NO_NUMBERS, readings: [HELD], wereNonZero: [true] },
    history: { finishedCount: 5, givenUpCount: 0 },
    ...facts,
  };
  const observation: Observation = {
    startedAtMs: 0,
    readAtMs: 0,
    atMs: 0,
    allowedMs: 0,
    exporter: exporter ?? { kind: 'none' },
    conditions: [],
    ...(front === undefined ? {} : { front }),
  };
  const judged = { isAlive: false, isDone: false, areOthersDone: false, isRefused: false, ...evidence };
  return advanceNumbers({ before, facts: before, phase: phase ?? state.phase }, observation, judged);
}

function answer(reading: ThresholdReading, finishedCount = 5): ExporterObservation {
  const totals = { requests: null, failures: null, users: null };
  return { kind: 'answered', scrapes: { finishedCount, inFlightCount: 1 }, totals, thresholds: [reading] };
}

test('advanceNumbers() takes what is read once main is known to be or to have been alive', () => {
  const exporter = answer(of(9));
  assert.deepEqual(advance({ exporter }).readings, [of(9)]);
  assert.deepEqual(advance({ exporter, facts: { wasAliveBefore: true } }).readings, [of(9)]);
  assert.deepEqual(advance({ exporter, facts: {} }).readings, [HELD], 'another run, or nothing yet');
});

test('advanceNumbers() keeps the number where the exporter says nothing', () => {
  const unread: readonly ExporterObservation[] = [
    { kind: 'none' },
    { kind: 'refused' },
    { kind: 'failed', why: 'HTTP 500', mayCount: false },
    answer(NONE),
    { kind: 'answered', scrapes: null, totals: { requests: null, failures: null, users: null } },
  ];
  for (const exporter of unread) assert.deepEqual(advance({ exporter }).readings, [HELD]);
});

test('advanceNumbers() takes nothing of an exporter that was restarted after main ended', () => {
  const restarted = answer(of(0), 1);
  assert.deepEqual(advance({ exporter: restarted, evidence: DONE }).readings, [HELD]);
  assert.deepEqual(advance({ exporter: restarted, evidence: { areOthersDone: true } }).readings, [HELD]);
  assert.deepEqual(advance({ exporter: restarted }).readings, [of(0)], 'main runs: its own numbers begin anew');
  assert.deepEqual(advance({ exporter: restarted, evidence: { ...DONE, isAlive: true } }).readings, [of(0)]);
  assert.deepEqual(advance({ exporter: answer(of(0), 5), evidence: DONE }).readings, [of(0)], 'it is the same one');
});

test('advanceNumbers() takes nothing more once the exporter refused after main ended, until main is alive again', () => {
  const refused = advance({ exporter: { kind: 'refused' }, evidence: { areOthersDone: true, isRefused: true } });
  assert.equal(refused.isLost, true);
  const facts = { ...ALIVE, numbers: refused };
  assert.deepEqual(advance({ exporter: answer(of(0)), facts, evidence: DONE }).readings, [HELD]);
  const again = advance({ exporter: answer(of(0)), facts, evidence: { isAlive: true } });
  assert.deepEqual(again, { readings: [of(0)], wereNonZero: [true], isLost: false });
  const never = advance({
    exporter: { kind: 'refused' },
    facts: { ...ALIVE, hasAnswered: false },
    evidence: { areOthersDone: true, isRefused: true },
  });
  assert.equal(never.isLost, false, 'it has not come up yet');
});

test('advanceNumbers() goes by the end that was seen before', () => {
  const state = initialState(0);
  const series = {
    sinceMs: 0,
    provenCount: 1,
    count: state.facts.running.count,
    isExporterRestarted: false,
    hasAnswered: true,
  };
  const phases: readonly (readonly [Phase, boolean])[] = [
    [{ kind: 'waiting', done: null }, false],
    [{ kind: 'waiting', done: series }, true],
    [{ kind: 'running', done: null, others: null, goneSinceMs: null }, false],
    [{ kind: 'running', done: series, others: null, goneSinceMs: null }, true],
    [{ kind: 'running', done: null, others: series, goneSinceMs: null }, true],
    [
      {
        kind: 'holding',
        mainEndedAtMs: 0,
        because: 'settled',
        count: series.count,
        isExporterRestarted: false,
        hasAnswered: true,
        goneSinceMs: null,
        scrapedAtMs: null,
      },
      true,
    ],
  ];
  for (const [phase, isLost] of phases) {
    assert.equal(advance({ exporter: answer(of(0), 1), phase }).isLost, isLost, JSON.stringify(phase));
  }
});

test('advanceNumbers() takes what the front keeps, and not what an observation happened to see', () => {
  const front = { hasSnapshot: true, answeredAtMs: 0, inFlightCount: 0 };
  const exporter = answer(of(9));
  assert.deepEqual(advance({ exporter, front: { ...front, thresholds: [of(8)] } }).readings, [of(8)]);
  assert.deepEqual(advance({ exporter, front }).readings, [HELD], 'it has kept nothing yet');
  assert.deepEqual(advance({ front: { ...front, thresholds: [of(8)] }, facts: {} }).readings, [HELD]);
});

test('advanceNumbers() remembers that a number was not 0 at some time', () => {
  const seen = advance({ exporter: answer(of(0)) });
  assert.deepEqual([seen.readings, seen.wereNonZero], [[of(0)], [true]]);
  const facts = { ...ALIVE, numbers: NO_NUMBERS };
  assert.deepEqual(advance({ exporter: answer(of(0)), facts }).wereNonZero, [false]);
  assert.deepEqual(advance({ exporter: answer({ kind: 'several' }), facts }).wereNonZero, [false]);
  assert.deepEqual(advance({ exporter: answer(of(0.1)), facts }).wereNonZero, [true]);
});
