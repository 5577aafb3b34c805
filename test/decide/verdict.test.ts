// The verdict as a table.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Comparison, ExporterObservation, ThresholdPolicy, ThresholdReading } from '../../src/decide/model.ts';
import {
  advanceContinuity,
  findAlwaysZero,
  findOddLimit,
  judgeNumbers,
  mergeReading,
  NO_NUMBERS,
  UNSEEN,
} from '../../src/decide/verdict.ts';
import { ANSWERED, answer, NOT_ASKED, REFUSED } from './phases.ts';

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
    assert.deepEqual([judgeOne(each), judgeOne(each, NONE)], ['no sample of a', 'no sample of a']);
    assert.equal(judgeOne(each, { kind: 'unmatched' }), 'no sample with these labels');
    assert.equal(judgeOne(each, { kind: 'several' }), 'several samples match');
    assert.equal(judgeOne(each, of(Number.NaN)), 'NaN');
  }
});

test('judgeNumbers() has what may be meant, as it was when a page had something like it', () => {
  const near: ThresholdReading = { kind: 'none', nearest: ['aa'] };
  const nearer: ThresholdReading = { kind: 'none', nearest: ['ab'] };
  for (const [older, newer, expected] of [
    [near, nearer, ['ab', 'aa']],
    [near, NONE, ['aa']],
    [NONE, near, ['aa']],
    [{ kind: 'several', nearest: ['{}'] } as const, near, ['{}']],
  ] as const) {
    const readings = [mergeReading<ThresholdReading>(older, newer)];
    const verdict = judgeNumbers([threshold('>', 1)], { ...NO_NUMBERS, readings });
    assert.deepEqual(verdict?.kind === 'failed' && verdict.failed[0]?.nearest, expected);
  }
});

test('judgeNumbers() says of infinite numbers what JSON cannot', () => {
  assert.equal(judgeOne(threshold('>', 1), of(Number.POSITIVE_INFINITY)), '+Inf');
  assert.equal(judgeOne(threshold('<', 1), of(Number.NEGATIVE_INFINITY)), '-Inf');
  assert.equal(judgeOne(threshold('<', 1), of(Number.POSITIVE_INFINITY)), null);
});

test('judgeNumbers() takes -0 for 0', () => {
  assert.deepEqual([judgeOne(threshold('<', 0), of(-0)), judgeOne(threshold('!=', 0), of(-0))], [null, null]);
  assert.equal(judgeOne(threshold('==', 0), of(-0)), -0);
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

/** Main from now on, or a read: the counter that it showed, null where the exporter has none. */
type Step = 'living' | 'ended' | 'refused' | 'failed' | number | null;

function readStep(step: Step): ExporterObservation {
  if (step === 'refused') return REFUSED;
  if (step === 'failed') return { kind: 'failed', why: 'timed out', mayCount: true };
  if (typeof step === 'string') return NOT_ASKED;
  return step === null ? ANSWERED : answer(step);
}

const CONTINUITY: readonly (readonly [what: string, steps: readonly Step[], isLost: boolean])[] = [
  ['a counter that falls in the very read that shows the end', [5, 1, 'ended'], true],
  ['a counter that falls while main lives', [5, 1, 'living', 'ended', 2], false],
  ['a restart while main lives, seen in answers without a counter', [5, 'refused', null, 'ended', 3], false],
  ['an exporter that comes up after the end', ['ended', 'refused', 1], false],
];
for (const [what, steps, isLost] of CONTINUITY) {
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

test('findOddLimit() knows limits in another unit, and leaves those that a run can reach and miss', () => {
  const isOdd = (text: string) => {
    const [, name = '', comparison, limit] = /^(\S+) (\S+) (\S+)$/.exec(text) ?? [];
    return findOddLimit({ text, name, comparison: comparison as Comparison, limit: Number(limit) }) !== null;
  };
  for (const text of [
    'locust_requests_fail_ratio > 1',
    'locust_requests_fail_ratio >= 5',
    'cache_hit_ratio < 90',
    'cache_hit_ratio <= 1',
    'locust_requests_avg_response_time > 0.5',
    'locust_requests_response_time_percentile >= 2',
    'job_latency_ms > 0.2',
    'http_request_duration_seconds > 500',
    'errors_total >= 0',
    'locust_requests_num_requests < 0',
  ]) {
    assert.ok(isOdd(text), text);
  }
  for (const text of [
    'locust_requests_fail_ratio > 0.01',
    'locust_requests_fail_ratio >= 1',
    'cache_hit_ratio < 1',
    'cache_hit_ratio != 1',
    'locust_requests_avg_response_time > 500',
    'locust_requests_min_response_time < 5',
    'http_response_seconds > 2.5',
    'backup_duration_seconds > 7200',
    'job_last_success_timestamp_seconds < 1790000000',
    'errors_total > 0',
    'errors_total < 1',
    'temperature < 0',
  ]) {
    assert.ok(!isOdd(text), text);
  }
});
