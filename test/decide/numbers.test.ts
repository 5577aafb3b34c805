// What is remembered of the numbers that are judged: the cases that no transcript reaches.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { advanceNumbers } from '../../src/decide/facts.ts';
import type { ExporterObservation, FrontObservation, Observation, ThresholdReading } from '../../src/decide/model.ts';
import { initialState, type Phase, type State } from '../../src/decide/state.ts';
import { type JudgedNumbers, NO_NUMBERS, UNSEEN } from '../../src/decide/verdict.ts';

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
const HELD = of(7);

/** The numbers after one observation, before which 7 was seen by an exporter that had counted 5 scrapes. */
function advance({ exporter = { kind: 'none' }, front, phase, facts = ALIVE, evidence }: Shown): JudgedNumbers {
  const state = initialState(0);
  const continuity = { ...UNSEEN, finishedCount: 5, hasAnswered: true };
  const numbers = { ...NO_NUMBERS, readings: [HELD], wereNonZero: [true], continuity };
  const observation: Observation = {
    startedAtMs: 0,
    readAtMs: 0,
    atMs: 0,
    allowedMs: 0,
    exporter,
    conditions: [],
    ...(front === undefined ? {} : { front }),
  };
  const judged = { isAlive: false, isDone: false, areOthersDone: false, isStalled: false, ...evidence };
  const now = { facts: { ...state.facts, numbers, ...facts }, phase: phase ?? state.phase };
  return advanceNumbers(now, observation, judged);
}

function answer(reading: ThresholdReading, finishedCount = 5): ExporterObservation {
  const totals = { requests: null, failures: null, users: null };
  return { kind: 'answered', scrapes: { finishedCount, inFlightCount: 1 }, totals, thresholds: [reading] };
}

const FRONT = { answeredAtMs: 0, inFlightCount: 0 };
const RESTARTED = answer(of(0), 1);
const DONE = { isDone: true, areOthersDone: true };
const OTHERS_DONE = { areOthersDone: true };

const TABLE: readonly (readonly [what: string, shown: Shown, reading: ThresholdReading])[] = [
  ['main is known to be alive', { exporter: answer(of(9)) }, of(9)],
  ['main is known to have been alive', { exporter: answer(of(9)), facts: { wasAliveBefore: true } }, of(9)],
  ['main was not seen: another run', { exporter: answer(of(9)), facts: {} }, HELD],
  ['it was not read', { exporter: { kind: 'none' } }, HELD],
  ['it refused', { exporter: { kind: 'refused' } }, HELD],
  ['it failed', { exporter: { kind: 'failed', why: 'HTTP 500', mayCount: false } }, HELD],
  ['it has no such sample', { exporter: answer(NONE) }, HELD],
  ['nothing is judged', { exporter: { ...answer(NONE), thresholds: [] } as ExporterObservation }, HELD],
  ['nothing was to be judged', { exporter: { ...answer(NONE), thresholds: undefined } as never }, HELD],
  ['it was restarted after the end', { exporter: RESTARTED, evidence: DONE }, HELD],
  ['it was restarted when all but the metric is done', { exporter: RESTARTED, evidence: OTHERS_DONE }, HELD],
  ['it was restarted while main runs', { exporter: RESTARTED }, of(0)],
  ['it was restarted and main is alive', { exporter: RESTARTED, evidence: { ...DONE, isAlive: true } }, of(0)],
  ['it goes on after the end', { exporter: answer(of(0)), evidence: DONE }, of(0)],
  ['a front has kept another', { exporter: answer(of(9)), front: { ...FRONT, thresholds: [of(8)] } }, of(8)],
  ['a front has kept nothing yet', { exporter: answer(of(9)), front: FRONT }, HELD],
  ['a front has that of another run', { front: { ...FRONT, thresholds: [of(8)] }, facts: {} }, HELD],
];
for (const [what, shown, reading] of TABLE) {
  test(`advanceNumbers() where ${what}`, () => assert.deepEqual(advance(shown).readings, [reading]));
}

test('advanceNumbers() takes nothing more once the exporter refused after main ended, until main is alive again', () => {
  const refused = advance({ exporter: { kind: 'refused' }, evidence: OTHERS_DONE });
  const facts = { ...ALIVE, numbers: refused };
  assert.deepEqual(advance({ exporter: answer(of(0)), facts, evidence: DONE }).readings, [HELD]);
  assert.deepEqual(advance({ exporter: answer(of(0)), facts, evidence: { isAlive: true } }).readings, [of(0)]);
  const stalled = advance({ exporter: { kind: 'refused' }, evidence: { ...OTHERS_DONE, isStalled: true } });
  assert.equal(stalled.continuity.isLost, false, 'what was seen may be long past');
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
    assert.equal(advance({ exporter: answer(of(0), 1), phase }).continuity.isLost, isLost, JSON.stringify(phase));
  }
});

test('advanceNumbers() remembers that a number was not 0 at some time', () => {
  const seen = advance({ exporter: answer(of(0)) });
  assert.deepEqual([seen.readings, seen.wereNonZero], [[of(0)], [true]]);
  const facts = { ...ALIVE, numbers: NO_NUMBERS };
  assert.deepEqual(advance({ exporter: answer(of(0)), facts }).wereNonZero, [false]);
  assert.deepEqual(advance({ exporter: answer({ kind: 'several' }), facts }).wereNonZero, [false]);
  assert.deepEqual(advance({ exporter: answer(of(0.1)), facts }).wereNonZero, [true]);
});
