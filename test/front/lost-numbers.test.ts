// What an exporter shows after main's end: still the numbers of this run, or those of a program that was started anew.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MainView } from '../../src/decide/answer.ts';
import { watchForLostNumbers } from '../../src/front/lost-numbers.ts';
import type { ExporterReading } from '../../src/observe/condition.ts';

type Step = MainView['main'] | 'refused' | number;

function reading(finishedCount: number): ExporterReading {
  const scrapes = { finishedCount, inFlightCount: 1 };
  const totals = { requests: null, failures: null, users: null };
  return {
    observation: { kind: 'answered', scrapes, totals },
    metric: () => ({ kind: 'unknown', why: '' }),
    hasRequests: false,
  };
}

const TABLE: readonly (readonly [what: string, steps: readonly Step[], areLost: boolean])[] = [
  ['an exporter that goes on', [1, 'ending', 2, 'ended', 3], false],
  ['a counter that falls while the end is being proven', [5, 'ending', 1], true],
  ['a counter that falls to 0 after the end', [5, 'ended', 0], true],
  ['an exporter that has counted nothing', [0, 'ended', 0], false],
  ['a counter that falls after the end', [5, 'ended', 1, 2], true],
  ['a counter that falls in the very read that shows the end', [5, 1, 'ending'], true],
  ['a refusal after the end', [5, 'ended', 'refused', 6], true],
  ['a refusal in the very read that shows the end', [5, 'refused', 'ending', 6], true],
  ['a restart while main lives', [5, 'refused', 'living', 1, 'living', 2, 'ended', 3], false],
  ['an exporter that comes up after the end', ['ended', 'refused', 1], false],
  ['an end that was none', [5, 'ending', 'refused', 1, 'living', 2, 'ending'], false],
];
for (const [what, steps, areLost] of TABLE) {
  test(`watchForLostNumbers(): ${what}: ${areLost ? 'lost' : 'not lost'}`, () => {
    const numbers = watchForLostNumbers();
    for (const step of steps) {
      if (typeof step === 'number') numbers.onAnswer(reading(step));
      else if (step === 'refused') numbers.onRefusal();
      else numbers.tell({ main: step, wasAlive: true, endedAtMs: step === 'ended' ? 0 : null });
    }
    assert.equal(numbers.areLost, areLost);
  });
}
