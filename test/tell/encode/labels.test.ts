import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openLabelExporter } from '../../../src/tell/encode/labels.ts';

const exportLabels = openLabelExporter([
  ['job', 'load'],
  ['exported_pod', 'taken'],
  ['pod', 'a'],
]);

test('openLabelExporter() returns labels that no target has as they are', () => {
  const labels = [['code', '200']] as const;
  assert.equal(exportLabels(labels), labels);
});

test('openLabelExporter() renames until nobody has the name', () => {
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
