import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judgeStatus, openBatch, openLabelExporter } from '../../../src/tell/receivers/receiver.ts';

test('judgeStatus() has those requests sent again that the receiver may take later', () => {
  for (const status of [200, 202, 204, 299]) assert.equal(judgeStatus(status), 'accepted', String(status));
  for (const status of [408, 429, 500, 502, 503, 504]) assert.equal(judgeStatus(status), 'retry', String(status));
  for (const status of [199, 300, 301, 307, 400, 401, 403, 404, 413])
    assert.equal(judgeStatus(status), 'refused', String(status));
});

const exportLabels = openLabelExporter([
  ['job', 'load'],
  ['exported_pod', 'taken'],
  ['pod', 'a'],
]);

test('openLabelExporter() returns labels that no target has as they are', () => {
  const labels = [['code', '200']] as const;
  assert.equal(exportLabels(labels), labels);
});

test('openLabelExporter() renames until the name is free', () => {
  assert.deepEqual(
    exportLabels([
      ['job', 'own'],
      ['exported_job', 'theirs'],
      ['pod', 'own'],
      ['code', '200'],
    ]),
    [
      ['exported_exported_job', 'own'],
      ['exported_job', 'theirs'],
      ['exported_exported_pod', 'own'],
      ['code', '200'],
    ],
  );
});

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
  assert.deepEqual(fill(['ä'.repeat(340_000), 'ä'.repeat(340_000)]), [1, 1], 'bytes, not letters');
  assert.deepEqual(fill(Array.from({ length: 4001 }, () => 'x')), [2000, 2000, 1]);
});
