// Small rules that no transcript has. Stories are in fixtures/transcripts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasHold, type Observation, type Policy } from '../../../src/decide/model.ts';
import { EXIT, findProcessExitCode } from '../../../src/decide/quit/exit-codes.ts';
import { findQuitDeadline, QUIT_MIN_MS } from '../../../src/decide/quit/quitting.ts';
import { begin, step } from '../../../src/decide/run/step.ts';
import type { WatchEvent, WatchState } from '../../../src/decide/state.ts';
import {
  ALIVE,
  ANSWERED,
  DEFAULT_LIMITS,
  DONE,
  HOLDING,
  observe,
  POLICY,
  QUITTING,
  RUNNING,
  UNKNOWN,
} from '../phases.ts';

const LIMITS = DEFAULT_LIMITS;
const watch = (state: WatchState, event: WatchEvent, policy = POLICY) =>
  step({ kind: 'watching', state, event }, policy);

function see(kind: 'alive' | 'done', atMs: number): Observation {
  return observe([kind === 'alive' ? ALIVE : DONE], { startedAtMs: atMs, atMs });
}

test('step() reports the first signal once, and observes at once', () => {
  const told = watch(begin(0, POLICY).state, { kind: 'signalled', atMs: 500 });
  assert.ok(told.kind === 'watching');
  assert.deepEqual(told.log, [{ id: 'terminating', fields: { graceSeconds: 25, while: 'waiting' } }]);
  assert.deepEqual(told.next, { kind: 'observe', atMs: 500, readByMs: 500, isFresh: true });
  const again = watch(told.state, { kind: 'signalled', atMs: 900 });
  assert.deepEqual([again.log, again.state.facts.terminatedAtMs], [[], 500]);
  const first = watch(begin(0, POLICY).state, { kind: 'signalled', atMs: 0 });
  assert.ok(first.kind === 'watching');
  assert.equal(watch(first.state, { kind: 'signalled', atMs: 900 }).state.facts.terminatedAtMs, 0);
});

test('step() logs at debug what each observation showed, and how long it took', () => {
  const observation: Observation = {
    ...see('alive', 4_000),
    startedAtMs: 2_765.4,
    conditions: [{ kind: 'alive', seen: 'port 80 open' }, { kind: 'blind', why: 'no answer' }, { kind: 'notObserved' }],
  };
  const [entry] = watch(begin(0, POLICY).state, { kind: 'observed', observation }).log;
  const conditions = ['alive: port 80 open', 'blind: no answer', 'notObserved'];
  assert.deepEqual(entry, { id: 'polled', fields: { tookSeconds: 1.235, exporter: { kind: 'none' }, conditions } });
});

test('step() logs ten of the entries that fail, ten of those whose metric was always 0, and 300 letters of each', () => {
  const entry = { text: `${'x'.repeat(299)}yz`, name: 'a', comparison: '>=', limit: 0 } as const;
  const limits = { ...POLICY.limits, scrapesWantedCount: 0 };
  const policy: Policy = { ...POLICY, limits, thresholds: Array.from({ length: 11 }, () => entry) };
  const thresholds = Array.from({ length: 11 }, () => ({ kind: 'value', value: 0 }) as const);
  const alive: Observation = { ...see('alive', 1), exporter: { ...ANSWERED, thresholds } };
  const running = watch(begin(0, policy).state, { kind: 'observed', observation: alive }, policy);
  assert.ok(running.kind === 'watching');
  const ending = watch(running.state, { kind: 'observed', observation: see('done', 2) }, policy);
  assert.ok(ending.kind === 'watching');
  const { kind, log } = watch(ending.state, { kind: 'observed', observation: see('done', 30_000) }, policy);
  assert.equal(kind, 'ended');
  const shown = `${'x'.repeat(299)}y`;
  const judged = log.filter(({ fields }) => 'entry' in fields);
  assert.deepEqual(judged, [
    ...Array.from({ length: 10 }, () => ({ id: 'thresholdAlwaysZero', fields: { entry: shown } })),
    ...Array.from({ length: 10 }, () => ({ id: 'thresholdFailed', fields: { entry: shown, seen: 0 } })),
  ]);
});

test('step() goes on as running from what a first look of a later watch shows of a main that was alive', () => {
  const hidden: Observation = { ...see('done', 1_000), conditions: [UNKNOWN] };
  for (const isMetric of [true, false]) {
    const policy: Policy = { ...POLICY, conditions: [{ isMetric, isSignal: false }] };
    const before = begin(0, policy).state;
    const state = { ...before, facts: { ...before.facts, wasAliveBefore: true } };
    const decision = watch(state, { kind: 'observed', observation: hidden }, policy);
    assert.deepEqual([decision.state.phase.kind, decision.log.at(-1)?.id], ['running', 'mainWasAlive']);
  }
});

test('step() ends a run at the second signal in any phase, and is not judged then', () => {
  const policy: Policy = { ...POLICY, thresholds: [{ text: 'a > 0', name: 'a', comparison: '>', limit: 0 }] };
  for (const phase of [RUNNING, HOLDING, { ...QUITTING, tasks: ['target'] }] as const) {
    const state = { facts: begin(0, policy).state.facts, phase };
    for (const [by, exitCode] of [
      ['SIGINT', 130],
      ['SIGTERM', EXIT.notJudged],
    ] as const) {
      const { kind, log, next } = step({ kind: 'interrupted', state, by }, policy);
      assert.deepEqual([kind, log, next], ['ended', [], { kind: 'done', exitCode, by }]);
    }
  }
});

test('step() fails on an event outside its type', () => {
  const state = { facts: begin(0, POLICY).state.facts, phase: RUNNING };
  assert.throws(() => step({ kind: 'odd' } as never, POLICY), /^Error: Bug: unexpected value /);
  assert.throws(() => step({ kind: 'watching', state, event: { kind: 'odd' } as never }, POLICY), /^Error: Bug: /);
});

test('findProcessExitCode() hides all but a verdict with LASTSCRAPE_EXIT_ZERO, and of a native sidecar all', () => {
  const codes = Object.values(EXIT);
  const plain = codes.map((code) => findProcessExitCode(code, { isExitZero: false, conditions: [{ isSignal: true }] }));
  assert.deepEqual(plain, codes);
  for (const [conditions, shown] of [
    [[{}], [EXIT.thresholdFailed, EXIT.notJudged]],
    [[{}, { isSignal: true }], []],
  ] as const) {
    const codesShown = codes.filter((code) => findProcessExitCode(code, { isExitZero: true, conditions }) !== 0);
    assert.deepEqual(codesShown, shown);
  }
});

test('step() fails on an event of a target where none is being asked', () => {
  const state = { facts: begin(0, POLICY).state.facts, phase: QUITTING };
  const event = { kind: 'probed', atMs: 3, terminatedAtMs: null, probe: 'open' } as const;
  assert.throws(() => step({ kind: 'quitting', state, event }, POLICY), /^Error: Bug: no target is being asked$/);
});

test('findQuitDeadline() leaves the rest of the grace, and 1 s at least', () => {
  assert.deepEqual([findQuitDeadline(1_000, null, LIMITS), findQuitDeadline(1_000, 500, LIMITS)], [null, 25_500]);
  assert.equal(findQuitDeadline(25_400, 500, LIMITS), 25_400 + QUIT_MIN_MS);
  assert.equal(findQuitDeadline(1_000, 500, { ...LIMITS, terminationGraceMs: 0 }), 1_000 + QUIT_MIN_MS);
  const late = findQuitDeadline(1_000, 5_000, { ...LIMITS, terminationGraceMs: 0 });
  assert.equal(late, 5_000 + QUIT_MIN_MS, 'a signal while quitting');
});

test('hasHold() wants scrapes and time', () => {
  assert.deepEqual([hasHold(LIMITS), hasHold({ ...LIMITS, scrapesWantedCount: 0 })], [true, false]);
  assert.equal(hasHold({ ...LIMITS, ttlMs: 0 }), false);
  assert.equal(hasHold({ ...LIMITS, scrapesWantedCount: 1, ttlMs: 1 }), true);
});
