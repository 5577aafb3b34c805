// What quitting logs of each event, also at debug, which transcripts leave out. How it goes is in fixtures/transcripts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Policy } from '../../src/decide/model.ts';
import { beginQuitting, decideQuitEvent, type WatchEnd } from '../../src/decide/quitting.ts';
import { initialState, type QuitEnd, type QuitEvent } from '../../src/decide/state.ts';
import { POLICY, QUITTING, readQuitting } from './phases.ts';

const ENVOY: Policy = {
  ...POLICY,
  targets: [{ name: 'envoy', request: 'POST http://localhost:9901/quitquitquit', needsMs: 0, canForce: true }],
};
const BEGUN = beginQuitting(initialState(0).facts, { ...QUITTING, sinceMs: 0 }, [], ENVOY);
assert.ok(BEGUN.kind === 'quitting');

const LEAVES = { exitCode: 143 };
const EVENTS: Readonly<Record<string, readonly [QuitEvent, readonly unknown[]]>> = {
  'an answer at debug': [
    { kind: 'asked', atMs: 10, terminatedAtMs: null, answer: { kind: 'dropped' }, hint: '', leaves: {} },
    [{ id: 'targetAsked', fields: { target: 'envoy', kind: 'dropped' } }],
  ],
  'that it was forced': [
    {
      kind: 'forced',
      atMs: 10,
      terminatedAtMs: null,
      result: { kind: 'signalled', signal: 'KILL', pids: [7, 8] },
      leaves: LEAVES,
    },
    [{ id: 'targetForced', fields: { target: 'envoy', signal: 'KILL', pids: [7, 8], exitCode: 143 } }],
  ],
  'nothing where there was no process to force': [
    {
      kind: 'forced',
      atMs: 10,
      terminatedAtMs: null,
      result: { kind: 'signalled', signal: 'KILL', pids: [] },
      leaves: {},
    },
    [],
  ],
  'why it cannot be forced, at debug': [
    { kind: 'forced', atMs: 10, terminatedAtMs: null, result: { kind: 'impossible', why: 'hidden' }, leaves: {} },
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
  const first = decideQuitEvent(BEGUN.state, { ...probed, atMs: 0, terminatedAtMs: 0 }, ENVOY);
  assert.ok(first.kind === 'quitting');
  assert.equal(first.state.phase.target?.endsByMs, 25_000);
  const second = decideQuitEvent(first.state, { ...probed, atMs: 900, terminatedAtMs: 900 }, ENVOY);
  assert.deepEqual([second.state.facts.terminatedAtMs, readQuitting(second.state).target?.endsByMs], [0, 25_000]);
});

test('decideQuitEvent() logs how a target ended, and reports seconds of two decimals', () => {
  const asked = decideQuitEvent(BEGUN.state, EVENTS['an answer at debug']?.[0] as QuitEvent, ENVOY);
  assert.ok(asked.kind === 'quitting');
  const probed = { kind: 'probed', atMs: 1_236, terminatedAtMs: null, probe: 'refused' } as const;
  const gone = decideQuitEvent(asked.state, probed, ENVOY);
  assert.deepEqual(gone.log, [{ id: 'targetStopped', fields: { target: 'envoy', seconds: 1.24 } }]);
  assert.deepEqual(readQuitting(gone.state).reports, [{ target: 'envoy', result: 'stopped', seconds: 1.24 }]);
  assert.deepEqual(gone.next, { kind: 'done', exitCode: 0, by: null });
});

/** Everything that can be done between the hold and the end; the second of the targets is a mesh's proxy. */
const ALL: Policy = {
  ...POLICY,
  hasFront: true,
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
    const event = { ...(ENDS[next.kind] as QuitEnd), atMs, terminatedAtMs: null };
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
