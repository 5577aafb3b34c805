import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readSamples } from './prometheus.ts';

const RECORDINGS = join(import.meta.dirname, '../../fixtures/recordings');

test('readSamples() reads odd names as the recorded Prometheus did', () => {
  const folder = join(RECORDINGS, 'exporter-0.5.0-locust-2.47.0');
  const text = readFileSync(join(folder, '13-odd-names-stopped.txt'), 'utf8')
    .split('\r\n\r\n')
    .slice(1)
    .join('\r\n\r\n');
  const want = JSON.parse(readFileSync(join(folder, '13-odd-names.prometheus-label-values.json'), 'utf8'));
  const names = new Set(readSamples(text).flatMap(({ labels: { name } }) => (name === undefined ? [] : [name])));
  assert.deepEqual([...names].filter((name) => name !== '').toSorted(), want.data.toSorted());
});

test('readSamples() refuses the whole body for one line that is no sample', () => {
  for (const text of ['a 1', 'a\n', 'a 1\nb{x=1} 1\n', 'a "1"\n', '{x="y"} 1\n', '<html>\n', 'a{x="y" 1\n']) {
    assert.throws(() => readSamples(text), text);
  }
});
