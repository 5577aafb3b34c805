// What one observation proves, and what a series of them keeps: the cases that no transcript reaches.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConditionObservation, Observation, Policy } from '../../../src/decide/model.ts';
import { advanceSeries, beginSeries, judgeObservation } from '../../../src/decide/run/evidence.ts';
import { initialState } from '../../../src/decide/run/facts.ts';
import { EMPTY_HISTORY } from '../../../src/decide/run/scrape-count.ts';
import type { Facts } from '../../../src/decide/state.ts';
import { ALIVE, answer, DONE, NOT_ASKED, observe, POLICY, REFUSED, UNKNOWN } from '../phases.ts';

const { facts: FACTS } = initialState(0);
const METRIC_AND_PORT: Policy = { ...POLICY, conditions: [{ isMetric: true }, { isMetric: false }] };
const NOT_STARTED: ConditionObservation = { kind: 'notStarted', why: 'not started' };

function judge(observation: Observation, facts: Partial<Facts> = {}) {
  return judgeObservation(observation, { ...FACTS, ...facts }, METRIC_AND_PORT);
}

test('judgeObservation() takes what took 2 s longer than it could for a process that stood still, which saw no end', () => {
  const slow = judge(observe([DONE, DONE], { atMs: 3_000 }));
  assert.deepEqual([slow.isStalled, slow.isDone, slow.areOthersDone], [false, true, true]);
  const stalled = judge(observe([DONE, DONE], { atMs: 3_001 }));
  assert.deepEqual([stalled.isStalled, stalled.isDone, stalled.areOthersDone], [true, false, false]);
  assert.equal(stalled.isMetricUnreadable, true);
  assert.equal(judge(observe([ALIVE, DONE], { atMs: 3_001 })).isAlive, true, 'life is believed even so');
});

test('judgeObservation() believes one answer of a source once', () => {
  const number = (answerNumber: number): ConditionObservation => ({ ...DONE, answerNumber });
  const before = { answerNumbers: [null, 0] };
  assert.equal(judge(observe([DONE, number(0)]), before).isDone, false);
  assert.equal(judge(observe([DONE, number(1)]), before).isDone, true);
  assert.equal(judge(observe([DONE, DONE]), before).isDone, true, 'one that has no number is its own');
  assert.equal(judge(observe([number(0), DONE]), before).isDone, true, 'the number of another condition');
});

/** The conditions, whether the exporter refuses, whether that proves that main is not alive. */
const NOT_ALIVE: readonly (readonly [readonly ConditionObservation[], boolean, boolean])[] = [
  [[NOT_STARTED, DONE], false, true],
  [[UNKNOWN, DONE], false, false],
  [[DONE, UNKNOWN], true, false],
];

for (const [conditions, isRefused, isNotAlive] of NOT_ALIVE) {
  const kinds = conditions.map(({ kind }) => kind).join(' and ');
  test(`judgeObservation() takes ${kinds}, exporter ${isRefused ? 'refused' : 'not asked'}, for ${isNotAlive ? 'not alive' : 'perhaps alive'}`, () => {
    const evidence = judge(observe(conditions, { exporter: isRefused ? REFUSED : NOT_ASKED }));
    assert.equal(evidence.isNotAlive, isNotAlive);
  });
}

test('judgeObservation() needs one condition to prove that main was alive, or that it never ran', () => {
  const was: ConditionObservation = { ...DONE, provesWasAlive: true };
  const never: ConditionObservation = { ...DONE, provesNeverRan: true };
  assert.equal(judge(observe([DONE, was])).provesWasAlive, true);
  assert.equal(judge(observe([DONE, DONE])).provesWasAlive, false);
  assert.equal(judge(observe([DONE, never])).provesNeverRan, true);
  assert.equal(judge(observe([DONE, DONE])).provesNeverRan, false);
  assert.equal(judge(observe([was, was], { atMs: 9_000 })).provesWasAlive, false, 'nothing, where it stood still');
});

test('judgeObservation() takes a metric for unreadable as soon as one of them is, and none is alive', () => {
  const isUnreadable = (...metrics: readonly ConditionObservation[]) => {
    const policy = { ...POLICY, conditions: metrics.map(() => ({ isMetric: true })) };
    return judgeObservation(observe(metrics), FACTS, policy).isMetricUnreadable;
  };
  assert.deepEqual([isUnreadable(UNKNOWN, UNKNOWN), isUnreadable(UNKNOWN, DONE)], [true, true]);
  assert.deepEqual([isUnreadable(UNKNOWN, ALIVE), isUnreadable(DONE, DONE)], [false, false]);
  assert.equal(isUnreadable({ kind: 'notObserved' }), null, 'the page was not read');
});

test('judgeObservation() wants every condition that is no metric done, and one at least', () => {
  const areDone = (...others: readonly ConditionObservation[]) => {
    const conditions = [{ isMetric: true }, ...others.map(() => ({ isMetric: false }))];
    return judgeObservation(observe([UNKNOWN, ...others]), FACTS, { ...POLICY, conditions }).areOthersDone;
  };
  assert.deepEqual([areDone(DONE, DONE), areDone(DONE, UNKNOWN)], [true, false]);
  assert.equal(areDone(), false);
});

test('advanceSeries() counts what proves, keeps what does not, and ends with life', () => {
  const first = advanceSeries(null, observe([], { atMs: 5 }), EMPTY_HISTORY, { isAlive: false, isProven: true });
  assert.deepEqual([first?.sinceMs, first?.provenCount], [5, 1]);
  const kept = advanceSeries(first, observe([], { atMs: 6 }), EMPTY_HISTORY, { isAlive: false, isProven: false });
  assert.deepEqual([kept?.sinceMs, kept?.provenCount], [5, 1]);
  const again = advanceSeries(kept, observe([], { atMs: 7 }), EMPTY_HISTORY, { isAlive: false, isProven: true });
  assert.deepEqual([again?.sinceMs, again?.provenCount], [5, 2]);
  assert.equal(advanceSeries(again, observe([]), EMPTY_HISTORY, { isAlive: true, isProven: false }), null);
  assert.equal(advanceSeries(null, observe([]), EMPTY_HISTORY, { isAlive: false, isProven: false }), null);
});

test('a series knows that the exporter was restarted in it, at its beginning or later', () => {
  const history = { finishedCount: 10, givenUpCount: 0 };
  const proven = { isAlive: false, isProven: true };
  const fell = observe([], { exporter: answer(2) });
  const rose = observe([], { exporter: answer(11) });
  assert.equal(beginSeries(fell, history).count.isRestarted, true);
  const begun = beginSeries(rose, history);
  assert.equal(begun.count.isRestarted, false);
  const restarted = advanceSeries(begun, fell, history, proven);
  assert.equal(restarted?.count.isRestarted, true);
  assert.equal(advanceSeries(restarted, rose, EMPTY_HISTORY, proven)?.count.isRestarted, true, 'it stays so');
});

test('a series knows that the exporter answered in it, at its beginning or later', () => {
  const proven = { isAlive: false, isProven: true };
  const silent = beginSeries(observe([]), EMPTY_HISTORY);
  assert.equal(silent.count.hasAnswered, false);
  assert.equal(beginSeries(observe([], { exporter: REFUSED }), EMPTY_HISTORY).count.hasAnswered, false);
  const answered = beginSeries(observe([], { exporter: answer(1) }), EMPTY_HISTORY);
  assert.equal(answered.count.hasAnswered, true);
  assert.equal(advanceSeries(answered, observe([]), EMPTY_HISTORY, proven)?.count.hasAnswered, true, 'it stays so');
  assert.equal(
    advanceSeries(silent, observe([], { exporter: answer(1) }), EMPTY_HISTORY, proven)?.count.hasAnswered,
    true,
  );
  assert.equal(
    advanceSeries(silent, observe([], { exporter: REFUSED }), EMPTY_HISTORY, proven)?.count.hasAnswered,
    false,
  );
});

test('beginSeries() takes no baseline from an observation of more than a second', () => {
  const exporter = answer(3);
  assert.notEqual(beginSeries(observe([], { atMs: 1_000, exporter }), EMPTY_HISTORY).count.baseline, null);
  assert.equal(beginSeries(observe([], { atMs: 1_001, exporter }), EMPTY_HISTORY).count.baseline, null);
});
