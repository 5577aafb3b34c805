// The verdict as a table.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Comparison, ThresholdPolicy, ThresholdReading } from '../../src/decide/model.ts';
import {
  findAlwaysZero,
  type JudgedNumbers,
  judgeNumbers,
  mergeReadings,
  NO_NUMBERS,
} from '../../src/decide/verdict.ts';

const NONE: ThresholdReading = { kind: 'none' };
const of = (value: number): ThresholdReading => ({ kind: 'value', value });

function threshold(comparison: Comparison, limit: number, name = 'a'): ThresholdPolicy {
  return { text: `${name} ${comparison} ${limit}`, name, comparison, limit };
}

/** What one entry comes to; null: it passes. */
function judgeOne(each: ThresholdPolicy, ...readings: readonly ThresholdReading[]): number | string | null {
  const verdict = judgeNumbers([each], { ...NO_NUMBERS, readings });
  return verdict?.kind === 'failed' ? (verdict.failed[0]?.seen ?? null) : null;
}

// Below, at and above the limit: which of them fail.
const COMPARED: readonly (readonly [Comparison, boolean, boolean, boolean])[] = [
  ['>', false, false, true],
  ['>=', false, true, true],
  ['<', true, false, false],
  ['<=', true, true, false],
  ['==', false, true, false],
  ['!=', true, false, true],
];
for (const [comparison, ...fails] of COMPARED) {
  test(`judgeNumbers() compares by ${comparison}`, () => {
    const judged = [0.5, 1, 1.5].map((value) => judgeOne(threshold(comparison, 1), of(value)));
    assert.deepEqual(
      judged,
      [0.5, 1, 1.5].map((value, index) => (fails[index] ? value : null)),
    );
  });
}

test('judgeNumbers() fails an entry that cannot be judged, whatever it compares by', () => {
  for (const [comparison] of COMPARED) {
    const each = threshold(comparison, 1);
    assert.equal(judgeOne(each), 'no sample of a');
    assert.equal(judgeOne(each, NONE), 'no sample of a');
    assert.equal(judgeOne(each, { kind: 'unmatched' }), 'no sample with these labels');
    assert.equal(judgeOne(each, { kind: 'several' }), 'several samples match');
    assert.equal(judgeOne(each, of(Number.NaN)), 'NaN');
  }
});

test('judgeNumbers() says of infinite numbers what JSON cannot', () => {
  assert.equal(judgeOne(threshold('>', 1), of(Number.POSITIVE_INFINITY)), '+Inf');
  assert.equal(judgeOne(threshold('<', 1), of(Number.NEGATIVE_INFINITY)), '-Inf');
  assert.equal(judgeOne(threshold('<', 1), of(Number.POSITIVE_INFINITY)), null);
});

test('judgeNumbers() takes -0 for 0', () => {
  assert.equal(judgeOne(threshold('<', 0), of(-0)), null);
  assert.equal(judgeOne(threshold('!=', 0), of(-0)), null);
  assert.equal(judgeOne(threshold('==', 0), of(-0)), -0);
});

test('judgeNumbers() passes where no entry fails, lists those that do in their order, and judges nothing without entries', () => {
  const numbers: JudgedNumbers = { ...NO_NUMBERS, readings: [of(1), of(2), of(3)] };
  const [one, two, three] = [threshold('>', 1), threshold('>', 1, 'b'), threshold('>', 1, 'c')];
  assert.equal(judgeNumbers([], numbers), null);
  assert.deepEqual(judgeNumbers([one], numbers), { kind: 'passed' });
  assert.deepEqual(judgeNumbers([one, two, three], numbers), {
    kind: 'failed',
    failed: [
      { entry: 'b > 1', seen: 2 },
      { entry: 'c > 1', seen: 3 },
    ],
  });
});

test('mergeReadings() keeps what a newer exposition says nothing of, and replaces all else', () => {
  const older = [of(1), of(2), of(3), NONE];
  assert.deepEqual(mergeReadings(older, [NONE, { kind: 'unmatched' }, of(Number.NaN), of(4)]), [
    of(1),
    { kind: 'unmatched' },
    of(Number.NaN),
    of(4),
  ]);
  assert.deepEqual(mergeReadings([], [NONE, of(1)]), [NONE, of(1)]);
});

test('findAlwaysZero() finds what was never anything else, but for what counts failures', () => {
  const entries = [threshold('>', 1), threshold('>', 1, 'locust_requests_fail_ratio'), threshold('>', 1, 'b')];
  const zero = [of(0), of(0), of(0)];
  assert.deepEqual(findAlwaysZero(entries, { ...NO_NUMBERS, readings: zero }), [entries[0], entries[2]]);
  assert.deepEqual(findAlwaysZero(entries, { ...NO_NUMBERS, readings: zero, wereNonZero: [true, true, false] }), [
    entries[2],
  ]);
  assert.deepEqual(findAlwaysZero(entries, NO_NUMBERS), [], 'nothing was read');
  assert.deepEqual(findAlwaysZero(entries, { ...NO_NUMBERS, readings: [of(Number.NaN), NONE, of(1)] }), []);
});
