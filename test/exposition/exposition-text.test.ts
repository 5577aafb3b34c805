import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatGoFloat, formatLabels, listLines, makeByteKey } from '../../src/exposition/exposition-text.ts';

test('formatGoFloat() writes numbers as Go does', () => {
  // strconv.FormatFloat(value, 'g', -1, 64), with the exponent from 1e+06 on that client_golang writes.
  for (const [value, expected] of [
    [0, '0'],
    [-0, '0'],
    [1, '1'],
    [-1.5, '-1.5'],
    [0.0001, '0.0001'],
    [0.00001, '1e-05'],
    [-0.000012, '-1.2e-05'],
    [999_999, '999999'],
    [1_000_000, '1e+06'],
    [1_234_567.5, '1.2345675e+06'],
    [1e100, '1e+100'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, '+Inf'],
    [Number.NEGATIVE_INFINITY, '-Inf'],
  ] as const) {
    assert.equal(formatGoFloat(value), expected);
  }
});

test('listLines() writes a header before the first sample, and nothing without one', () => {
  const family = { name: 'a', help: 'An a.', type: 'gauge' } as const;
  assert.deepEqual([...listLines({ ...family, samples: [] })], []);
  const samples = [
    { labels: '{b="1"}', value: 1 },
    { labels: '', value: 2 },
  ];
  const text = [...listLines({ ...family, samples })].join('');
  assert.deepEqual(text, '# HELP a An a.\n# TYPE a gauge\na{b="1"} 1\na 2\n');
});

test('formatLabels() escapes what the text format wants escaped, and nothing else', () => {
  assert.equal(formatLabels([['a', 'x\r\u2028é']]), '{a="x\r\u2028é"}');
  assert.equal(
    formatLabels([
      ['a', '\\'],
      ['b', '"\n"'],
    ]),
    '{a="\\\\",b="\\"\\n\\""}',
  );
});

test('makeByteKey() orders as the bytes of UTF-8 do, which UTF-16 does not', () => {
  const [high, low] = ['\u{1F600}', '\uFF5E'];
  assert.ok(high < low, 'UTF-16');
  assert.ok(makeByteKey(high) > makeByteKey(low), 'UTF-8');
});
