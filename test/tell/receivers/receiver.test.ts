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

test('openBatch() is full by bytes, not letters, but takes one point of any length', () => {
  const batch = openBatch('utf8');
  const point = 'ä'.repeat(600_000);
  assert.equal(batch.isFullFor(point), false);
  batch.add('x');
  assert.equal(batch.isFullFor(point), true);
});
