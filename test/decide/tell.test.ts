// When the last exposition is pushed, and where the webhook comes; the rest is in the transcripts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HoldOutcome, Limits, Policy } from '../../src/decide/model.ts';
import { beginQuitting, decideQuitEvent, isPushDue, reportPush } from '../../src/decide/quitting.ts';
import { initialState } from '../../src/decide/state.ts';
import { DEFAULT_LIMITS } from './limits.ts';
import { POLICY, QUITTING } from './phases.ts';

const target = (name: string, isMesh = false) => ({ name, request: name, needsMs: 0, canForce: false, isMesh });

const quitting = (outcome: HoldOutcome, scrapesSeenCount: number | null) => ({ outcome, scrapesSeenCount });

/** Outcome, scrapes wanted and seen, whether it is due with `expired`, and with `always`. */
const DUE: readonly (readonly [HoldOutcome, Limits['scrapesWantedCount'], number | null, boolean, boolean])[] = [
  ['released', 0, null, false, true],
  ['timedOut', 1, 1, false, true],
  ['timedOut', 2, 1, true, true],
  ['timedOut', 'auto', 1, true, true],
];
for (const [outcome, scrapesWantedCount, seen, expired, always] of DUE) {
  test(`isPushDue() is ${expired} by default, and ${always} with always: ${outcome}, ${seen} of ${scrapesWantedCount}`, () => {
    const limits = { ...DEFAULT_LIMITS, scrapesWantedCount };
    const isDue = (when: 'expired' | 'always') =>
      isPushDue(quitting(outcome, seen), { ...POLICY, limits, push: { to: 'otlp', when } });
    assert.deepEqual([isDue('expired'), isDue('always')], [expired, always]);
    assert.equal(isPushDue(quitting(outcome, seen), { ...POLICY, limits }), false);
  });
}

test('after a signal a push keeps a second for targets and one for a webhook; a webhook one for targets', () => {
  const limits = { ...DEFAULT_LIMITS, terminationGraceMs: 25_000 };
  const graces = (policy: Partial<Policy>) => {
    const all: Policy = { ...POLICY, limits, push: { to: 'otlp', when: 'always' }, ...policy };
    const pushed = beginQuitting(initialState(0).facts, { ...QUITTING, outcome: 'expired' }, [], all);
    assert.ok(pushed.kind === 'quitting' && pushed.next.kind === 'push');
    const result = { kind: 'accepted', requestsCount: 1 } as const;
    const { next } = decideQuitEvent(pushed.state, { kind: 'pushed', result, atMs: 0, terminatedAtMs: null }, all);
    return [pushed.next.graceMs, next.kind === 'callWebhook' ? next.graceMs : null];
  };
  assert.deepEqual(graces({}), [25_000, null]);
  assert.deepEqual(graces({ targets: [target('a')] }), [24_000, null]);
  assert.deepEqual(graces({ hasWebhook: true }), [24_000, 25_000]);
  assert.deepEqual(graces({ targets: [target('a', true), target('b')], hasWebhook: true }), [23_000, 24_000]);
  assert.deepEqual(graces({ targets: [target('a')], limits: { ...limits, terminationGraceMs: 0 } }), [0, null]);
});

test('reportPush() cuts a long reason', () => {
  const failed = reportPush('otlp', { kind: 'failed', why: 'x'.repeat(500) }, 1_249);
  assert.deepEqual(failed, { to: 'otlp', result: 'failed', seconds: 1.2, why: `${'x'.repeat(159)}…` });
  const whole = reportPush('otlp', { kind: 'failed', why: 'x'.repeat(160) }, 0);
  assert.equal(whole.why, 'x'.repeat(160));
  const accepted = reportPush('otlp', { kind: 'accepted', requestsCount: 3 }, 90);
  assert.deepEqual(accepted, { to: 'otlp', result: 'accepted', seconds: 0.1 });
});
