import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Format } from '../../../src/exposition/format.ts';
import { judgeStatus, openBatch, openLabelExporter, readFamilies } from '../../../src/tell/receivers/receiver.ts';
import { PUSH_KINDS } from '../../../src/tell/telling.ts';
import { readRecordedBody } from '../../support/recording.ts';

test('judgeStatus() has those requests sent again that the receiver may take later', () => {
  for (const status of [200, 202, 204, 299]) assert.equal(judgeStatus(status), 'accepted', String(status));
  for (const status of [408, 429, 500, 502, 503, 504]) assert.equal(judgeStatus(status), 'retry', String(status));
  for (const status of [199, 300, 301, 307, 400, 401, 403, 404, 413])
    assert.equal(judgeStatus(status), 'refused', String(status));
});

test('PUSH_KINDS has each kind once', () => {
  const names = PUSH_KINDS.map(({ name }) => name);
  assert.deepEqual(names, ['pushgateway', 'remote-write', 'otlp']);
});

async function list(pieces: AsyncIterable<Uint8Array>, format?: Format): Promise<readonly string[]> {
  const samples: string[] = [];
  for await (const family of readFamilies(pieces, format))
    samples.push(...family.samples.map((each) => JSON.stringify(each)));
  return samples;
}

test('readFamilies() reads a page in its own format', async () => {
  const read = (format: Format) => list(ReadableStream.from([Buffer.from('a 1 # {b="c"} 2\n# EOF\n')]), format);
  assert.deepEqual([(await read('openMetrics')).length, (await read('text')).length], [1, 0]);
});

test('readFamilies() reads the same from one piece and from many', async () => {
  const body = readRecordedBody('expositions/envoy-1.40.0-admin-stats.txt');
  const pieces = Array.from({ length: Math.ceil(body.length / 777) }, (_, index) =>
    body.subarray(index * 777, (index + 1) * 777),
  );
  const whole = await list(ReadableStream.from([body]));
  assert.equal(whole.length, 484);
  assert.deepEqual(await list(ReadableStream.from(pieces)), whole);
});

test('readFamilies() passes on that the body broke off', async () => {
  async function* breakOff(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('a 1\n');
    throw new Error('it broke off');
  }
  await assert.rejects(list(breakOff()), /^Error: it broke off$/);
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

test('openBatch() takes points and what stands between them, in the order in which they came', () => {
  const batch = openBatch('latin1');
  batch.write('[');
  batch.add('é');
  batch.write(']');
  assert.equal(batch.pointCount, 1);
  assert.deepEqual(batch.take()(0), Buffer.from('[é]', 'latin1'));
  assert.deepEqual([batch.pointCount, batch.take()(0).length], [0, 0]);
});
