import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openFamilyReader } from '../../../src/exposition/samples.ts';
import { type BucketPoint, openBucketPoints } from '../../../src/tell/receivers/bucket-points.ts';

/** The points of a body with one family, and the names of the samples that are part of none. */
function collect(body: string): { readonly points: readonly BucketPoint[]; readonly others: readonly string[] } {
  const reader = openFamilyReader();
  const open = openBucketPoints();
  const others: string[] = [];
  for (const family of [...reader.write(Buffer.from(body)), ...reader.end()]) {
    for (const sample of family.samples) if (!open.add(family, sample)) others.push(sample.name);
  }
  const points = [...open.take()];
  assert.deepEqual([...open.take()], []);
  return { points, others };
}

test('openBucketPoints() puts the lines of a histogram together by their labels, in whatever order', () => {
  const { points, others } = collect(
    [
      '# TYPE h histogram',
      'h_bucket{le="+Inf",a="1",b="2"} 3',
      'h_bucket{a="1",le="0.5",b="2"} 1 500',
      'h_count{b="2",a="1"} 3',
      'h_bucket{le="0.5",a="2"} 0',
      'h_sum{a="1",b="2"} 4.5 600',
      'h_bucket{a="1"} 1',
      'h_bucket{le="x",a="1"} 1',
      'h_bucket{le="",a="1"} 1',
      'h 1',
    ].join('\n'),
  );
  assert.deepEqual(points, [
    {
      labels: [
        ['a', '1'],
        ['b', '2'],
      ],
      steps: [
        { bound: 0.5, value: 1 },
        { bound: Number.POSITIVE_INFINITY, value: 3 },
      ],
      sum: 4.5,
      count: 3,
      timestampMs: 600,
    },
    { labels: [['a', '2']], steps: [{ bound: 0.5, value: 0 }], sum: null, count: null, timestampMs: null },
  ]);
  assert.deepEqual(others, ['h_bucket', 'h_bucket', 'h_bucket', 'h']);
});

test('openBucketPoints() puts the lines of a summary together', () => {
  const { points, others } = collect(
    '# TYPE s summary\ns{quantile="0.99"} NaN\ns{quantile="0.5"} 1\ns_sum 2\ns_count 3\ns 4\n',
  );
  assert.deepEqual(points, [
    {
      labels: [],
      steps: [
        { bound: 0.5, value: 1 },
        { bound: 0.99, value: Number.NaN },
      ],
      sum: 2,
      count: 3,
      timestampMs: null,
    },
  ]);
  assert.deepEqual(others, ['s']);
});
