// What an exporter shows after main's end: still the numbers of this run, or those of one that was restarted.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExporterObservation } from '../../src/decide/model.ts';
import { advanceContinuity, UNSEEN } from '../../src/decide/verdict.ts';

/** Main from now on, or a read: the counter that it showed, null where the exporter has none. */
type Step = 'living' | 'ended' | 'refused' | 'failed' | number | null;

function readStep(step: Step): ExporterObservation {
  if (step === 'refused') return { kind: 'refused' };
  if (step === 'failed') return { kind: 'failed', why: 'timed out', mayCount: true };
  if (typeof step === 'string') return { kind: 'none' };
  const scrapes = step === null ? null : { finishedCount: step, inFlightCount: 1 };
  return { kind: 'answered', scrapes, totals: { requests: null, failures: null, users: null } };
}

const TABLE: readonly (readonly [what: string, steps: readonly Step[], isLost: boolean])[] = [
  ['an exporter that goes on', [1, 'ended', 2, 3], false],
  ['an exporter without a counter that goes on', [null, 'ended', null], false],
  ['a counter that stays', [5, 'ended', 5], false],
  ['a counter that falls to 0 after the end', [5, 'ended', 0], true],
  ['an exporter that has counted nothing', [0, 'ended', 0], false],
  ['a counter that falls after the end, and rises', [5, 'ended', 1, 2, 9], true],
  ['a counter that falls in the very read that shows the end', [5, 1, 'ended'], true],
  ['a counter that falls while main lives', [5, 1, 'living', 'ended', 2], false],
  ['a counter that falls where an answer in between had none', [5, null, 'ended', 1], true],
  ['a refusal after the end', [5, 'ended', 'refused', 6], true],
  ['a refusal in the very read that shows the end', [5, 'refused', 'ended', 6], true],
  ['a refusal, and an end that is seen while it fails', [null, 'refused', 'failed', 'ended', null], true],
  ['an exporter that fails after the end', [5, 'ended', 'failed', 6], false],
  ['a restart while main lives', [5, 'refused', 'living', 1, 'living', 2, 'ended', 3], false],
  ['an exporter that comes up after the end', ['ended', 'refused', 1], false],
  ['an end that was none', [5, 'ended', 'refused', 1, 'living', 2, 'ended'], false],
];
for (const [what, steps, isLost] of TABLE) {
  test(`advanceContinuity(): ${what}: ${isLost ? 'lost' : 'not lost'}`, () => {
    let isMainLiving = true;
    let continuity = UNSEEN;
    for (const step of steps) {
      if (step === 'living' || step === 'ended') isMainLiving = step === 'living';
      continuity = advanceContinuity(continuity, readStep(step), isMainLiving);
    }
    assert.equal(continuity.isLost, isLost);
  });
}
