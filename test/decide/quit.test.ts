// What quitting logs of each event, also at debug, which transcripts leave out. How it goes is in fixtures/transcripts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Policy } from '../../src/decide/model.ts';
import { beginQuitting, decideQuitEvent } from '../../src/decide/quit.ts';
import { initialState, type QuitEvent } from '../../src/decide/state.ts';
import { DEFAULT_LIMITS } from './limits.ts';

const POLICY: Policy = {
  limits: DEFAULT_LIMITS,
  conditions: [],
  targets: [{ name: 'envoy', request: 'POST http://localhost:9901/quitquitquit', needsMs: 0, canForce: true }],
  quitTimeoutMs: 30_000,
  isDryRun: false,
};
const BEGUN = beginQuitting(
  {
    facts: initialState(0).facts,
    phase: {
      kind: 'quitting',
      sinceMs: 0,
      outcome: 'scraped',
      because: 'settled',
      mainEndedAtMs: 0,
      scrapesSeenCount: 1,
      hasAnswered: true,
      reports: [],
      target: null,
    },
  },
  [],
  POLICY,
);

const LEAVES = { exitCode: 143 };
const EVENTS: Readonly<Record<string, readonly [QuitEvent, readonly unknown[]]>> = {
  'an answer at debug': [
    { kind: 'asked', atMs: 10, terminatedAtMs: null, answer: { kind: 'dropped' }, hint: '', leaves: {} },
    [{ id: 'targetAsked', fields: { target: 'envoy', kind: 'dropped' } }],
  ],
  'a signal that went to processes, with what it leaves behind': [
    {
      kind: 'asked',
      atMs: 10,
      terminatedAtMs: null,
      answer: { kind: 'signalled', signal: 'TERM', pids: [7] },
      hint: '',
      leaves: LEAVES,
    },
    [
      { id: 'targetSignalled', fields: { target: 'envoy', signal: 'TERM', pids: [7], exitCode: 143 } },
      { id: 'targetAsked', fields: { target: 'envoy', kind: 'signalled', signal: 'TERM', pids: [7] } },
    ],
  ],
  'no signal where every process has its own already': [
    {
      kind: 'asked',
      atMs: 10,
      terminatedAtMs: null,
      answer: { kind: 'signalled', signal: 'TERM', pids: [] },
      hint: '',
      leaves: LEAVES,
    },
    [{ id: 'targetAsked', fields: { target: 'envoy', kind: 'signalled', signal: 'TERM', pids: [] } }],
  ],
  'nothing of a probe': [{ kind: 'probed', atMs: 10, terminatedAtMs: null, probe: 'open' }, []],
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
    assert.deepEqual(decideQuitEvent(BEGUN.state, event, POLICY).log, log);
  });
}

test('decideQuitEvent() goes by the first signal', () => {
  const probed = { kind: 'probed', probe: 'open' } as const;
  const first = decideQuitEvent(BEGUN.state, { ...probed, atMs: 0, terminatedAtMs: 0 }, POLICY);
  assert.equal(first.state.phase.target?.endsByMs, 25_000);
  const second = decideQuitEvent(first.state, { ...probed, atMs: 900, terminatedAtMs: 900 }, POLICY);
  assert.equal(second.state.facts.terminatedAtMs, 0);
  assert.equal(second.state.phase.target?.endsByMs, 25_000);
});

test('decideQuitEvent() logs how a target ended, and reports seconds of two decimals', () => {
  const asked = decideQuitEvent(BEGUN.state, EVENTS['an answer at debug']?.[0] as QuitEvent, POLICY);
  const gone = decideQuitEvent(
    asked.state,
    { kind: 'probed', atMs: 1_236, terminatedAtMs: null, probe: 'refused' },
    POLICY,
  );
  assert.deepEqual(gone.log, [{ id: 'targetStopped', fields: { target: 'envoy', seconds: 1.24 } }]);
  assert.deepEqual(gone.state.phase.reports, [{ target: 'envoy', result: 'stopped', seconds: 1.24 }]);
  assert.deepEqual(gone.next, { kind: 'done' });
});
