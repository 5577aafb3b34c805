import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openBatch } from '../../../src/tell/encode/batch.ts';

/** The points of each request. */
function fill(points: readonly string[]): number[] {
  const batch = openBatch('utf8');
  const counts: number[] = [];
  for (const point of points) {
    if (batch.isFullFor(point)) {
      counts.push(batch.pointCount);
      batch.take();
    }
    batch.add(point);
  }
  return [...counts, batch.pointCount];
}

test('openBatch() is full at 2000 points and at 1 MiB, unless one point is longer', () => {
  const [third, long] = ['x'.repeat(340_000), 'x'.repeat(700_000)];
  assert.deepEqual(fill([third, third, third, long, long, long + long, 'x']), [3, 1, 1, 1, 1]);
  assert.deepEqual(fill([long + long]), [1]);
  assert.deepEqual(fill(Array.from({ length: 4001 }, () => 'x')), [2000, 2000, 1]);
});

test('openBatch() takes points and what stands between them, in the order in which they came', () => {
  const batch = openBatch('latin1');
  batch.write('[');
  batch.add('é');
  batch.write(']');
  assert.equal(batch.pointCount, 1);
  assert.deepEqual(batch.take(), Buffer.from('[é]', 'latin1'));
  assert.deepEqual([batch.pointCount, batch.take().length], [0, 0]);
});
