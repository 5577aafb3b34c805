// What no transcript tells: small rules of their own. Stories are in fixtures/transcripts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasHold, type Observation, type Policy } from '../../src/decide/model.ts';
import { findQuitDeadline, QUIT_MIN_MS } from '../../src/decide/quit.ts';
import { begin, step } from '../../src/decide/step.ts';
import { DEFAULT_LIMITS } from './limits.ts';

const LIMITS = DEFAULT_LIMITS;
const POLICY: Policy = {
  limits: LIMITS,
  conditions: [{ isMetric: false }],
  targets: [],
  quitTimeoutMs: 30_000,
  isDryRun: false,
};

function observe(atMs: number, kind: 'alive' | 'done'): Observation {
  const condition =
    kind === 'alive' ? ({ kind, seen: '' } as const) : ({ kind, seen: '', provesWasAlive: false } as const);
  return {
    startedAtMs: atMs,
    readAtMs: atMs,
    atMs,
    allowedMs: 25_000,
    exporter: { kind: 'none' },
    conditions: [condition],
  };
}

test('begin() observes at once', () => {
  const { state, next } = begin(1_000, POLICY);
  assert.equal(state.phase.kind, 'waiting');
  assert.deepEqual(next, { kind: 'observe', atMs: 1_000, readByMs: 601_000 });
});

test('step() tells of the first signal once, and observes at once', () => {
  const told = step(begin(0, POLICY).state, { kind: 'signalled', atMs: 500 }, POLICY);
  assert.ok(told.kind === 'watching');
  assert.deepEqual(told.log, [{ id: 'terminating', fields: { graceSeconds: 25, while: 'waiting' } }]);
  assert.deepEqual(told.next, { kind: 'observe', atMs: 500, readByMs: 500 });
  const again = step(told.state, { kind: 'signalled', atMs: 900 }, POLICY);
  assert.deepEqual([again.log, again.state.facts.terminatedAtMs], [[], 500]);
  const first = step(begin(0, POLICY).state, { kind: 'signalled', atMs: 0 }, POLICY);
  assert.ok(first.kind === 'watching');
  assert.equal(step(first.state, { kind: 'signalled', atMs: 900 }, POLICY).state.facts.terminatedAtMs, 0);
});

test('step() logs at debug what each observation showed, and how long it took', () => {
  const observation: Observation = {
    ...observe(4_000, 'alive'),
    startedAtMs: 2_765.4,
    conditions: [{ kind: 'alive', seen: 'port 80 open' }, { kind: 'blind', why: 'no answer' }, { kind: 'notObserved' }],
  };
  const [entry] = step(begin(0, POLICY).state, { kind: 'observed', observation }, POLICY).log;
  const conditions = ['alive: port 80 open', 'blind: no answer', 'notObserved'];
  assert.deepEqual(entry, { id: 'polled', fields: { tookSeconds: 1.235, exporter: { kind: 'none' }, conditions } });
});

test('step() logs ten of the entries that fail, ten of those whose metric was always 0, and 300 letters of each', () => {
  const entry = { text: `${'x'.repeat(299)}yz`, name: 'a', comparison: '>=', limit: 0 } as const;
  const policy: Policy = { ...POLICY, thresholds: Array.from({ length: 11 }, () => entry) };
  const thresholds = Array.from({ length: 11 }, () => ({ kind: 'value', value: 0 }) as const);
  const totals = { requests: null, failures: null, users: null };
  const exporter = { kind: 'answered', scrapes: null, totals, thresholds } as const;
  const alive: Observation = { ...observe(1, 'alive'), exporter };
  const running = step(begin(0, policy).state, { kind: 'observed', observation: alive }, policy);
  assert.ok(running.kind === 'watching');
  const told = step(running.state, { kind: 'signalled', atMs: 2 }, policy);
  assert.ok(told.kind === 'watching');
  const { kind, log } = step(told.state, { kind: 'observed', observation: observe(30_000, 'alive') }, policy);
  assert.equal(kind, 'quitting');
  const shown = `${'x'.repeat(299)}y`;
  assert.deepEqual(
    log.filter(({ fields }) => 'entry' in fields),
    [
      ...Array.from({ length: 10 }, () => ({ id: 'thresholdAlwaysZero', fields: { entry: shown } })),
      ...Array.from({ length: 10 }, () => ({ id: 'thresholdFailed', fields: { entry: shown, seen: 0 } })),
    ],
  );
});

test('step() fails on an event of a target where none is left', () => {
  const waiting = step(begin(0, POLICY).state, { kind: 'signalled', atMs: 0 }, POLICY);
  assert.ok(waiting.kind === 'watching');
  const quitting = step(waiting.state, { kind: 'observed', observation: observe(1, 'done') }, POLICY);
  assert.ok(quitting.kind === 'quitting');
  assert.deepEqual(quitting.next, { kind: 'done' });
  assert.throws(
    () => step(quitting.state, { kind: 'probed', atMs: 3, terminatedAtMs: null, probe: 'open' }, POLICY),
    /^Error: Bug: no target is being asked$/,
  );
});

test('findQuitDeadline() leaves the rest of the grace, and 1 s at least', () => {
  assert.equal(findQuitDeadline(1_000, null, LIMITS), null);
  assert.equal(findQuitDeadline(1_000, 500, LIMITS), 25_500);
  assert.equal(findQuitDeadline(25_400, 500, LIMITS), 25_400 + QUIT_MIN_MS);
  assert.equal(findQuitDeadline(1_000, 500, { ...LIMITS, terminationGraceMs: 0 }), 1_000 + QUIT_MIN_MS);
  assert.equal(
    findQuitDeadline(1_000, 5_000, { ...LIMITS, terminationGraceMs: 0 }),
    5_000 + QUIT_MIN_MS,
    'a signal while quitting',
  );
});

test('hasHold() wants scrapes and time', () => {
  assert.equal(hasHold(LIMITS), true);
  assert.equal(hasHold({ ...LIMITS, scrapesWantedCount: 0 }), false);
  assert.equal(hasHold({ ...LIMITS, ttlMs: 0 }), false);
  assert.equal(hasHold({ ...LIMITS, scrapesWantedCount: 1, ttlMs: 1 }), true);
});
