// What no story tells: the misuse of step(), and small rules of their own. Stories are in fixtures/transcripts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Limits, Observation } from '../../src/decide/model.ts';
import { initialState, QUIT_MIN_MS, quitDeadlineMs, step } from '../../src/decide/step.ts';
import { DEFAULT_LIMITS } from '../support/limits.ts';

const LIMITS: Limits = { ...DEFAULT_LIMITS, startTimeoutMs: 0, isMetric: [] };
const LOOK: Observation = { startedAtMs: 0, atMs: 0, terminatedAtMs: null, exporter: { kind: 'none' }, conditions: [] };

test('step() refuses to be called while quitting, and with a phase that it does not know', () => {
  const { facts } = initialState(0);
  const quitting = step(
    { facts, phase: { kind: 'waiting', done: null } },
    { ...LOOK, terminatedAtMs: 0 },
    { ...LIMITS, isMetric: [true] },
  );
  assert.throws(() => step(quitting.state, LOOK, LIMITS), /^Error: Bug: step\(\) was called while quitting$/);
  assert.throws(() => step({ facts, phase: { kind: 'new' } as never }, LOOK, LIMITS), /^Error: Bug: unexpected value/);
});

test('quitDeadlineMs() leaves the rest of the grace, and 1 s at least', () => {
  assert.equal(quitDeadlineMs(1_000, null, LIMITS), null);
  assert.equal(quitDeadlineMs(1_000, 500, LIMITS), 25_500);
  assert.equal(quitDeadlineMs(25_400, 500, LIMITS), 25_400 + QUIT_MIN_MS);
  assert.equal(quitDeadlineMs(1_000, 500, { ...LIMITS, terminationGraceMs: 0 }), 1_000 + QUIT_MIN_MS);
  assert.equal(
    quitDeadlineMs(1_000, 5_000, { ...LIMITS, terminationGraceMs: 0 }),
    5_000 + QUIT_MIN_MS,
    'a signal while quitting',
  );
});
