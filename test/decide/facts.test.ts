// What is remembered of every observation: the cases that no transcript reaches.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judgeObservation } from '../../src/decide/evidence.ts';
import { advanceFacts, advanceNumbers, countScrapesWhileRunning } from '../../src/decide/facts.ts';
import type {
  ConditionObservation,
  ExporterObservation,
  FrontObservation,
  Observation,
  ThresholdReading,
  Totals,
} from '../../src/decide/model.ts';
import { type Facts, initialState, type Phase, type State } from '../../src/decide/state.ts';
import { type JudgedNumbers, NO_NUMBERS, UNSEEN } from '../../src/decide/verdict.ts';
import { DEFAULT_LIMITS } from './limits.ts';
import { QUITTING, RUNNING } from './phases.ts';

const NO_TOTALS: Totals = { requests: null, failures: null, users: null };
const ALIVE: ConditionObservation = { kind: 'alive', seen: 'alive' };
const DONE: ConditionObservation = { kind: 'done', seen: 'done', provesWasAlive: false };
const UNKNOWN: ConditionObservation = { kind: 'unknown', why: 'unknown' };
const BLIND: ConditionObservation = { kind: 'blind', why: 'blind' };
const NOT_OBSERVED: ConditionObservation = { kind: 'notObserved' };
const NOT_ASKED: ExporterObservation = { kind: 'none' };

/** The facts after these observations, 1 s apart, each of the exporter and all conditions; the first condition is a metric. */
function remember(...shown: readonly (readonly [ExporterObservation, ...ConditionObservation[]])[]): Facts {
  let { facts } = initialState(0);
  for (const [index, [exporter, ...conditions]] of shown.entries()) {
    const atMs = 1_000 * (index + 1);
    const observation: Observation = {
      startedAtMs: atMs,
      readAtMs: atMs,
      atMs,
      allowedMs: 1_000,
      exporter,
      conditions,
    };
    const policy = {
      limits: DEFAULT_LIMITS,
      conditions: conditions.map((_, each) => ({ isMetric: each === 0 })),
      targets: [],
      quitTimeoutMs: 30_000,
      isDryRun: false,
    };
    facts = advanceFacts(facts, observation, judgeObservation(observation, facts, policy));
  }
  return facts;
}

function answer(finishedCount: number | null, totals: Partial<Totals> = {}): ExporterObservation {
  const scrapes = finishedCount === null ? null : { finishedCount, inFlightCount: 1 };
  return { kind: 'answered', scrapes, totals: { ...NO_TOTALS, ...totals } };
}

test('advanceFacts() is blind while some condition of those that were asked is', () => {
  assert.equal(remember([NOT_ASKED, UNKNOWN, BLIND]).isBlind, true);
  assert.equal(remember([NOT_ASKED, UNKNOWN, UNKNOWN]).isBlind, false);
  assert.equal(remember([NOT_ASKED, NOT_OBSERVED, NOT_OBSERVED]).isBlind, false, 'nothing was asked yet');
  assert.equal(remember([NOT_ASKED, UNKNOWN, BLIND], [NOT_ASKED, NOT_OBSERVED, NOT_OBSERVED]).isBlind, true);
  assert.equal(remember([NOT_ASKED, UNKNOWN, BLIND], [NOT_ASKED, ALIVE, NOT_OBSERVED]).isBlind, false);
});

test('advanceFacts() knows that the exporter answered once', () => {
  assert.equal(remember([NOT_ASKED]).hasAnswered, false);
  assert.equal(remember([{ kind: 'failed', why: '', mayCount: true }]).hasAnswered, false);
  assert.equal(remember([answer(null)], [{ kind: 'refused' }]).hasAnswered, true);
});

test('advanceFacts() keeps of each total the newest that was shown, 0 among them', () => {
  const first = answer(1, { requests: 10, failures: 2, users: 5 });
  assert.deepEqual(remember([first], [answer(2)], [{ kind: 'refused' }]).totals, {
    requests: 10,
    failures: 2,
    users: 5,
  });
  const zero = { requests: 0, failures: 0, users: 0 };
  assert.deepEqual(remember([first], [answer(2, zero)]).totals, zero);
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

test('advanceFacts() believes a proof that main was alive only where main was not seen alive', () => {
  const was: ConditionObservation = { ...DONE, provesWasAlive: true };
  assert.equal(remember([NOT_ASKED, was, DONE]).wasAliveBefore, true);
  assert.equal(remember([NOT_ASKED, was, ALIVE]).wasAliveBefore, false);
  assert.equal(remember([NOT_ASKED, ALIVE, ALIVE], [NOT_ASKED, was, DONE]).wasAliveBefore, false);
});

test('advanceFacts() knows since when a metric is unreadable', () => {
  const unreadable = remember([NOT_ASKED, ALIVE], [NOT_ASKED, UNKNOWN], [NOT_ASKED, UNKNOWN]);
  assert.equal(unreadable.metricUnreadableSinceMs, 2_000);
  assert.equal(remember([NOT_ASKED, UNKNOWN], [NOT_ASKED, DONE]).metricUnreadableSinceMs, null);
});

test('advanceFacts() starts counting again when the exporter was restarted, and keeps what was seen before', () => {
  const { running } = remember([answer(10), ALIVE], [answer(14), ALIVE], [answer(0), ALIVE], [answer(3), ALIVE]);
  assert.deepEqual(
    [running.count.seenCount, running.beforeRestartCount, running.restartedAtMs, running.wasScrapedBefore],
    [2, 3, 3_000, true],
  );
  const twice = remember([answer(10)], [answer(14)], [answer(0)], [answer(3)], [answer(0)]).running;
  assert.deepEqual([twice.count.seenCount, twice.beforeRestartCount, twice.restartedAtMs], [0, 5, 5_000]);
  const alone = remember([answer(10)], [answer(11)], [answer(0)]).running;
  assert.equal(alone.wasScrapedBefore, false);
  const before = remember([answer(10)], [answer(14)], [answer(0)], [answer(1)], [answer(0)]).running;
  assert.equal(before.wasScrapedBefore, true, 'it stays so');
});

test('countScrapesWhileRunning() subtracts those after the end, and is null where nothing was counted', () => {
  const facts = remember([answer(10)], [answer(16)], [answer(0)], [answer(3)]);
  assert.equal(countScrapesWhileRunning({ facts, phase: RUNNING }), 7);
  assert.equal(countScrapesWhileRunning({ facts, phase: QUITTING }), 5);
  assert.equal(countScrapesWhileRunning({ facts, phase: { ...QUITTING, scrapesSeenCount: null } }), 7);
  assert.equal(countScrapesWhileRunning({ facts, phase: { ...QUITTING, scrapesSeenCount: 9 } }), 0);
  assert.equal(countScrapesWhileRunning({ facts: remember([answer(null)]), phase: RUNNING }), null);
});

const NONE: ThresholdReading = { kind: 'none' };
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
function advance({ exporter = { kind: 'none' }, front, phase, facts = KNOWN_ALIVE, evidence }: Shown): JudgedNumbers {
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

function show(reading: ThresholdReading, finishedCount = 5): ExporterObservation {
  const totals = { requests: null, failures: null, users: null };
  return { kind: 'answered', scrapes: { finishedCount, inFlightCount: 1 }, totals, thresholds: [reading] };
}

const FRONT = { answeredAtMs: 0, inFlightCount: 0 };
const RESTARTED = show(of(0), 1);
const ENDED = { isDone: true, areOthersDone: true };
const OTHERS_DONE = { areOthersDone: true };

const NUMBERS: readonly (readonly [what: string, shown: Shown, reading: ThresholdReading])[] = [
  ['main is known to be alive', { exporter: show(of(9)) }, of(9)],
  ['main is known to have been alive', { exporter: show(of(9)), facts: { wasAliveBefore: true } }, of(9)],
  ['main was not seen: another run', { exporter: show(of(9)), facts: {} }, HELD],
  ['it was not read', { exporter: { kind: 'none' } }, HELD],
  ['it refused', { exporter: { kind: 'refused' } }, HELD],
  ['it failed', { exporter: { kind: 'failed', why: 'HTTP 500', mayCount: false } }, HELD],
  ['it has no such sample', { exporter: show(NONE) }, HELD],
  ['nothing is judged', { exporter: { ...show(NONE), thresholds: [] } as ExporterObservation }, HELD],
  ['nothing was to be judged', { exporter: { ...show(NONE), thresholds: undefined } as never }, HELD],
  ['it was restarted after the end', { exporter: RESTARTED, evidence: ENDED }, HELD],
  ['it was restarted when all but the metric is done', { exporter: RESTARTED, evidence: OTHERS_DONE }, HELD],
  ['it was restarted while main runs', { exporter: RESTARTED }, of(0)],
  ['it was restarted and main is alive', { exporter: RESTARTED, evidence: { ...ENDED, isAlive: true } }, of(0)],
  ['it goes on after the end', { exporter: show(of(0)), evidence: ENDED }, of(0)],
  ['a front has kept another', { exporter: show(of(9)), front: { ...FRONT, thresholds: [of(8)] } }, of(8)],
  ['a front has kept nothing yet', { exporter: show(of(9)), front: FRONT }, HELD],
  ['a front has the one of another run', { front: { ...FRONT, thresholds: [of(8)] }, facts: {} }, HELD],
];
for (const [what, shown, reading] of NUMBERS) {
  test(`advanceNumbers() where ${what}`, () => assert.deepEqual(advance(shown).readings, [reading]));
}

test('advanceNumbers() takes nothing more once the exporter refused after main ended, until main is alive again', () => {
  const refused = advance({ exporter: { kind: 'refused' }, evidence: OTHERS_DONE });
  const facts = { ...KNOWN_ALIVE, numbers: refused };
  assert.deepEqual(advance({ exporter: show(of(0)), facts, evidence: ENDED }).readings, [HELD]);
  assert.deepEqual(advance({ exporter: show(of(0)), facts, evidence: { isAlive: true } }).readings, [of(0)]);
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
    assert.equal(advance({ exporter: show(of(0), 1), phase }).continuity.isLost, isLost, JSON.stringify(phase));
  }
});

test('advanceNumbers() remembers that a number was not 0 at some time', () => {
  const seen = advance({ exporter: show(of(0)) });
  assert.deepEqual([seen.readings, seen.wereNonZero], [[of(0)], [true]]);
  const facts = { ...KNOWN_ALIVE, numbers: NO_NUMBERS };
  assert.deepEqual(advance({ exporter: show(of(0)), facts }).wereNonZero, [false]);
  assert.deepEqual(advance({ exporter: show({ kind: 'several' }), facts }).wereNonZero, [false]);
  assert.deepEqual(advance({ exporter: show(of(0.1)), facts }).wereNonZero, [true]);
});
