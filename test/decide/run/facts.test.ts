// What is remembered of every observation: the cases that no transcript reaches.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type {
  ConditionObservation,
  ExporterObservation,
  FrontObservation,
  ThresholdReading,
} from '../../../src/decide/model.ts';
import { judgeObservation } from '../../../src/decide/run/evidence.ts';
import { advanceFacts, advanceNumbers, initialState } from '../../../src/decide/run/facts.ts';
import { beginSource, observeSource, takeAnswer, takeView } from '../../../src/decide/serve/serve.ts';
import type { Facts, Phase, State } from '../../../src/decide/state.ts';
import { type JudgedNumbers, NO_NUMBERS, UNSEEN } from '../../../src/decide/verdict.ts';
import {
  ALIVE,
  ANSWERED,
  answer,
  DONE,
  HOLDING,
  NOT_ASKED,
  observe,
  POLICY,
  REFUSED,
  RUNNING,
  UNKNOWN,
} from '../phases.ts';

const BLIND: ConditionObservation = { kind: 'blind', why: 'blind' };
const NOT_OBSERVED: ConditionObservation = { kind: 'notObserved' };

/** The facts after these observations, 1 s apart, each of the exporter and all conditions; the first condition is a metric. */
function remember(...shown: readonly (readonly [ExporterObservation, ...ConditionObservation[]])[]): Facts {
  let { facts } = initialState(0);
  for (const [index, [exporter, ...conditions]] of shown.entries()) {
    const atMs = 1_000 * (index + 1);
    const observation = observe(conditions, { startedAtMs: atMs, readAtMs: atMs, atMs, exporter });
    const policy = { ...POLICY, conditions: conditions.map((_, each) => ({ isMetric: each === 0 })) };
    facts = advanceFacts(facts, observation, judgeObservation(observation, facts, policy));
  }
  return facts;
}

test('advanceFacts() is blind while some condition of those that were asked is', () => {
  assert.equal(remember([NOT_ASKED, UNKNOWN, BLIND]).isBlind, true);
  assert.equal(remember([NOT_ASKED, UNKNOWN, UNKNOWN]).isBlind, false);
  assert.equal(remember([NOT_ASKED, NOT_OBSERVED, NOT_OBSERVED]).isBlind, false, 'nothing was asked yet');
  assert.equal(remember([NOT_ASKED, UNKNOWN, BLIND], [NOT_ASKED, NOT_OBSERVED, NOT_OBSERVED]).isBlind, true);
  assert.equal(remember([NOT_ASKED, UNKNOWN, BLIND], [NOT_ASKED, ALIVE, NOT_OBSERVED]).isBlind, false);
});

test('advanceFacts() keeps of each total the newest that was shown, 0 among them', () => {
  const total = (requests: number | null): readonly [ExporterObservation] => [
    { ...ANSWERED, totals: { requests, failures: requests, users: requests } },
  ];
  assert.deepEqual(remember(total(10), total(null), [REFUSED]).totals.requests, 10);
  assert.deepEqual(remember(total(10), total(0)).totals, { requests: 0, failures: 0, users: 0 });
});

test('advanceFacts() remembers of each condition the newest answer that showed it done', () => {
  const number = (answerNumber: number): ConditionObservation => ({ ...DONE, answerNumber });
  assert.deepEqual(remember([NOT_ASKED, ALIVE, number(0)]).answerNumbers, [null, 0]);
  assert.deepEqual(remember([NOT_ASKED, DONE, number(4)], [NOT_ASKED, UNKNOWN, UNKNOWN]).answerNumbers, [null, 4]);
  assert.deepEqual(remember([NOT_ASKED, DONE, number(0)], [NOT_ASKED, UNKNOWN, UNKNOWN]).answerNumbers, [null, 0]);
  assert.deepEqual(remember([NOT_ASKED, DONE, number(4)], [NOT_ASKED, DONE, number(5)]).answerNumbers, [null, 5]);
});

test('advanceFacts() keeps exit codes while nothing is known, and none of a main that is alive again', () => {
  const ended = (exitCodes: Readonly<Record<string, number>>): ConditionObservation => ({ ...DONE, exitCodes });
  const codes = (...shown: readonly ConditionObservation[]) =>
    remember(...shown.map((each) => [NOT_ASKED, UNKNOWN, each] as const)).exitCodes;
  assert.deepEqual(codes(ended({ load: 3 }), UNKNOWN), { load: 3 });
  assert.deepEqual(codes(ended({ load: 3 }), ended({ check: 0 })), { load: 3, check: 0 });
  assert.deepEqual(codes(ended({ load: 3 }), ALIVE), {});
  assert.deepEqual(codes(ended({ load: 3 }), { ...ALIVE, exitCodes: { check: 0 } }), { check: 0 });
});

const of = (value: number): ThresholdReading => ({ kind: 'value', value });

type Shown = {
  readonly exporter?: ExporterObservation;
  readonly front?: FrontObservation;
  readonly phase?: Phase;
  readonly facts?: Partial<State['facts']>;
  readonly evidence?: Partial<Parameters<typeof advanceNumbers>[2]>;
};

const KNOWN_ALIVE = { aliveSinceMs: 0 };
const HELD = of(7);

/** The numbers after one observation, before which 7 was seen by an exporter that had counted 5 scrapes. */
function advance({ exporter = NOT_ASKED, front, phase, facts = KNOWN_ALIVE, evidence }: Shown): JudgedNumbers {
  const state = initialState(0);
  const continuity = { ...UNSEEN, finishedCount: 5, hasAnswered: true };
  const numbers = { ...NO_NUMBERS, readings: [HELD], wereNonZero: [true], continuity };
  const observation = observe([], { exporter, ...(front && { front }) });
  const judged = { isAlive: false, isDone: false, areOthersDone: false, isStalled: false, ...evidence };
  const now = { facts: { ...state.facts, numbers, ...facts }, phase: phase ?? state.phase };
  return advanceNumbers(now, observation, judged);
}

function show(reading: ThresholdReading, finishedCount = 5): ExporterObservation {
  return { ...answer(finishedCount), thresholds: [reading] } as ExporterObservation;
}

const ENDED = { isDone: true, areOthersDone: true };
const OTHERS_DONE = { areOthersDone: true };

test('advanceNumbers() keeps what it has where nothing is judged, or a front has kept nothing yet', () => {
  const { thresholds: _, ...unjudged } = show(of(9)) as Extract<ExporterObservation, { readonly kind: 'answered' }>;
  assert.deepEqual(advance({ exporter: unjudged }).readings, [HELD]);
  assert.deepEqual(advance({ exporter: show(of(9)), front: { answeredAtMs: 0, inFlightCount: 0 } }).readings, [HELD]);
});

test('advanceNumbers() takes nothing more once the exporter refused after main ended, until main is alive again', () => {
  const refused = advance({ exporter: REFUSED, evidence: OTHERS_DONE });
  const facts = { ...KNOWN_ALIVE, numbers: refused };
  assert.deepEqual(advance({ exporter: show(of(0)), facts, evidence: ENDED }).readings, [HELD]);
  assert.deepEqual(advance({ exporter: show(of(0)), facts, evidence: { isAlive: true } }).readings, [of(0)]);
  const stalled = advance({ exporter: REFUSED, evidence: { ...OTHERS_DONE, isStalled: true } });
  assert.equal(stalled.continuity.isLost, false, 'what was seen may be long past');
});

test('advanceNumbers() goes by the end that was seen before', () => {
  const state = initialState(0);
  const series = {
    sinceMs: 0,
    provenCount: 1,
    count: state.facts.running.count,
  };
  const phases: readonly (readonly [Phase, boolean])[] = [
    [{ kind: 'waiting', done: null }, false],
    [{ kind: 'waiting', done: series }, true],
    [RUNNING, false],
    [{ ...RUNNING, done: series }, true],
    [{ ...RUNNING, others: series }, true],
    [HOLDING, true],
  ];
  for (const [phase, isLost] of phases) {
    assert.equal(advance({ exporter: show(of(0), 1), phase }).continuity.isLost, isLost, JSON.stringify(phase));
  }
});

test('advanceNumbers() judges an answer by the end that is seen with it; a front, which has served it by then, cannot', () => {
  const restarted = show(of(0), 1);
  assert.deepEqual(advance({ exporter: restarted, evidence: ENDED }).readings, [HELD]);
  const living = takeView(beginSource('exporter'), { main: 'living', wasAlive: true, endedAtMs: null });
  const { state } = takeAnswer(living, { readAtMs: 0, metrics: [], exporter: show(HELD) });
  const served = takeAnswer(state, { readAtMs: 1, metrics: [], exporter: restarted });
  // What is judged is what was served, and nothing that no scraper has.
  assert.deepEqual([served.becomes, observeSource(served.state, 0).thresholds], ['renewed', [of(0)]]);
});
