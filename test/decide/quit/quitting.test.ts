// What quitting logs of each event, also at debug, which transcripts leave out. How it goes is in fixtures/transcripts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HoldOutcome, Limits, Policy } from '../../../src/decide/model.ts';
import {
  beginQuitting,
  decideQuitEvent,
  isPushDue,
  reportSending,
  type WatchEnd,
} from '../../../src/decide/quit/quitting.ts';
import { initialState } from '../../../src/decide/run/facts.ts';
import type { QuitEnd, QuitEvent } from '../../../src/decide/state.ts';
import { DEFAULT_LIMITS, POLICY, QUITTING, readQuitting } from '../phases.ts';

const ENVOY: Policy = {
  ...POLICY,
  targets: [{ name: 'envoy', request: 'POST http://localhost:9901/quitquitquit', needsMs: 0, canForce: true }],
};
const BEGUN = beginQuitting(initialState(0).facts, { ...QUITTING, sinceMs: 0 }, [], ENVOY);
assert.ok(BEGUN.kind === 'quitting');

const LEAVES = { exitCode: 143 };
const EVENTS: Readonly<Record<string, readonly [QuitEvent, readonly unknown[]]>> = {
  'an answer at debug': [
    { kind: 'asked', atMs: 10, answer: { kind: 'dropped' }, hint: '', leaves: {} },
    [{ id: 'targetAsked', fields: { target: 'envoy', kind: 'dropped' } }],
  ],
  'that it was forced': [
    {
      kind: 'forced',
      atMs: 10,
      result: { kind: 'signalled', signal: 'KILL', pids: [7, 8] },
      leaves: LEAVES,
    },
    [{ id: 'targetForced', fields: { target: 'envoy', signal: 'KILL', pids: [7, 8], exitCode: 143 } }],
  ],
  'nothing where there was no process to force': [
    {
      kind: 'forced',
      atMs: 10,
      result: { kind: 'signalled', signal: 'KILL', pids: [] },
      leaves: {},
    },
    [],
  ],
  'why it cannot be forced, at debug': [
    { kind: 'forced', atMs: 10, result: { kind: 'impossible', why: 'hidden' }, leaves: {} },
    [{ id: 'targetNotForced', fields: { target: 'envoy', why: 'hidden' } }],
  ],
};

for (const [name, [event, log]] of Object.entries(EVENTS)) {
  test(`decideQuitEvent() logs ${name}`, () => {
    assert.deepEqual(decideQuitEvent(BEGUN.state, event, ENVOY).log, log);
  });
}

test('decideQuitEvent() goes by the first signal', () => {
  const probed = { kind: 'probed', probe: 'open' } as const;
  const signal = { kind: 'signalled', planned: BEGUN.next } as const;
  const first = decideQuitEvent(BEGUN.state, { ...signal, atMs: 0 }, ENVOY);
  assert.ok(first.kind === 'quitting');
  assert.deepEqual([first.state.phase.target?.endsByMs, first.next], [25_000, BEGUN.next]);
  const later = decideQuitEvent(first.state, { ...signal, atMs: 900 }, ENVOY);
  assert.ok(later.kind === 'quitting');
  const second = decideQuitEvent(later.state, { ...probed, atMs: 900 }, ENVOY);
  assert.deepEqual([second.state.facts.terminatedAtMs, readQuitting(second.state).target?.endsByMs], [0, 25_000]);
});

test('decideQuitEvent() logs how a target ended, and reports seconds of two decimals', () => {
  const asked = decideQuitEvent(BEGUN.state, EVENTS['an answer at debug']?.[0] as QuitEvent, ENVOY);
  assert.ok(asked.kind === 'quitting');
  const probed = { kind: 'probed', atMs: 1_236, probe: 'refused' } as const;
  const gone = decideQuitEvent(asked.state, probed, ENVOY);
  assert.deepEqual(gone.log, [{ id: 'targetStopped', fields: { target: 'envoy', seconds: 1.24 } }]);
  assert.deepEqual(readQuitting(gone.state).reports, [{ target: 'envoy', result: 'stopped', seconds: 1.24 }]);
  assert.deepEqual(gone.next, { kind: 'done', exitCode: 0, by: null });
});

/** Everything that can be done between the hold and the end; the second of the targets is a mesh's proxy. */
const ALL: Policy = {
  ...POLICY,
  front: { port: 9_469 },
  push: { to: 'otlp', when: 'always' },
  tombstonePath: '/graveyard/lastscrape',
  hasWebhook: true,
  targets: ['envoy', 'istio'].map((name) => ({
    name,
    request: name,
    needsMs: 0,
    canForce: false,
    isMesh: name === 'istio',
  })),
};
const ENDS: Readonly<Record<string, QuitEnd>> = {
  closeFront: { kind: 'frontClosed' },
  push: { kind: 'pushed', result: { kind: 'accepted', requestsCount: 1 } },
  declareDead: { kind: 'declaredDead' },
  ask: { kind: 'asked', answer: { kind: 'refused' }, hint: '', leaves: {} },
  callWebhook: { kind: 'webhookCalled', result: { kind: 'accepted', status: 200, tries: 1 } },
};

/** The effects, each of which takes a second, until nothing is left to do. */
function listEffects(policy: Policy, end: Partial<WatchEnd> = {}): readonly string[] {
  const effects: string[] = [];
  let decision = beginQuitting(initialState(0).facts, { ...QUITTING, sinceMs: 0, ...end }, [], policy);
  for (let atMs = 1_000; decision.kind === 'quitting'; atMs += 1_000) {
    const { state, next } = decision;
    effects.push('index' in next ? `${next.kind} ${next.index}` : next.kind);
    const event = { ...(ENDS[next.kind] as QuitEnd), atMs };
    decision = decideQuitEvent(state, event, policy);
  }
  return [...effects, decision.next.kind];
}

test('beginQuitting() closes the front, pushes, declares itself dead, quits, calls the webhook before a mesh', () => {
  const closed = ['closeFront', 'push', 'declareDead', 'ask 0', 'callWebhook', 'ask 1', 'done'];
  assert.deepEqual(listEffects(ALL), closed);
  assert.deepEqual(listEffects({ ...ALL, isDryRun: true }), ['closeFront', 'push', 'callWebhook', 'done']);
  assert.deepEqual(listEffects(ALL, { outcome: 'neverStarted' }), closed.toSpliced(1, 1), 'nothing to push');
  assert.deepEqual(listEffects(POLICY), ['done']);
});

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
    const { next } = decideQuitEvent(pushed.state, { kind: 'pushed', result, atMs: 0 }, all);
    return [pushed.next.graceMs, next.kind === 'callWebhook' ? next.graceMs : null];
  };
  assert.deepEqual(graces({}), [25_000, null]);
  assert.deepEqual(graces({ targets: [target('a')] }), [24_000, null]);
  assert.deepEqual(graces({ hasWebhook: true }), [24_000, 25_000]);
  assert.deepEqual(graces({ targets: [target('a', true), target('b')], hasWebhook: true }), [23_000, 24_000]);
  assert.deepEqual(graces({ targets: [target('a')], limits: { ...limits, terminationGraceMs: 0 } }), [0, null]);
});

test('reportSending() cuts a long reason', () => {
  const failed = reportSending('otlp', { kind: 'failed', why: 'x'.repeat(500) }, 1_249);
  assert.deepEqual(failed, { to: 'otlp', result: 'failed', seconds: 1.2, why: `${'x'.repeat(159)}…` });
  const whole = reportSending('otlp', { kind: 'failed', why: 'x'.repeat(160) }, 0);
  assert.equal(whole.why, 'x'.repeat(160));
  const accepted = reportSending('otlp', { kind: 'accepted', requestsCount: 3 }, 90);
  assert.deepEqual(accepted, { to: 'otlp', result: 'accepted', seconds: 0.1 });
});
