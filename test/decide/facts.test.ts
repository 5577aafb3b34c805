// What is remembered of every observation: the cases that no transcript reaches.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judgeObservation } from '../../src/decide/evidence.ts';
import { advanceFacts, countScrapesWhileRunning } from '../../src/decide/facts.ts';
import type { ConditionObservation, ExporterObservation, Observation, Totals } from '../../src/decide/model.ts';
import { type Facts, initialState } from '../../src/decide/state.ts';
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

test('advanceFacts() counts anew when the exporter was restarted, and keeps what was seen before', () => {
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
