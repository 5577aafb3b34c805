// What an exposition shows of the samples that are judged: names, labels, numbers, and what cannot be read.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openExposition, type Selector, type SelectorReading } from '../../src/exposition/exposition.ts';
import { LINE_MAX_BYTES } from '../../src/exposition/sample-filter.ts';
import { readRecordedBody } from '../support/recording.ts';

/** Reads the body whole and byte by byte, which must be the same. */
function select(body: string | Uint8Array, name: string, labels: Readonly<Record<string, string>> = {}) {
  const selector: Selector = { name, labels: Object.entries(labels) };
  const bytes = Buffer.from(body);
  const read = (size: number) => {
    const exposition = openExposition([], [selector]);
    for (let at = 0; at < bytes.length; at += size) exposition.write(bytes.subarray(at, at + size));
    return exposition.end().selected[0] as SelectorReading;
  };
  const whole = read(bytes.length || 1);
  if (bytes.length < 10_000) assert.deepEqual(read(1), whole, 'byte by byte');
  return whole.kind === 'value' ? whole.value : whole.kind;
}

type Case = readonly [what: string, body: string, labels: Readonly<Record<string, string>>, reading: number | string];

const CASES: readonly Case[] = [
  ['one sample', 'a 1\n', {}, 1],
  ['nothing', '', {}, 'none'],
  ['other names', 'aa 1\na_total 2\nba 3\n', {}, 'none'],
  ['one next to longer names', 'a 1\naa 2\na_total 3\n', {}, 1],
  ['a name within another line', 'b{c="a 1"} 2\n', {}, 'none'],
  ['labels that are not wanted', 'a{b="c"} 1\n', {}, 1],
  ['two of a name', 'a{b="c"} 1\na{b="d"} 2\n', {}, 'several'],
  ['two of a name, one matches', 'a{b="c"} 1\na{b="d"} 2\n', { b: 'd' }, 2],
  ['some of its labels', 'a{b="c",d="e"} 1\na{b="c",d="f"} 2\n', { d: 'f' }, 2],
  ['two that match', 'a{b="c",d="e"} 1\na{b="c",d="f"} 2\n', { b: 'c' }, 'several'],
  ['the same twice', 'a{b="c"} 1\na{b="c"} 1\n', { b: 'c' }, 'several'],
  ['none that matches', 'a{b="c"} 1\na 2\n', { b: 'd' }, 'unmatched'],
  ['none that matches in all', 'a{b="c",d="e"} 1\na{b="c",d="e",f="g"} 2\n', { b: 'c', d: 'g' }, 'unmatched'],
  ['the value in another label', 'a{d="c"} 1\n', { b: 'c' }, 'unmatched'],
  ['a longer value', 'a{b="cc"} 1\na{b="xc"} 2\n', { b: 'c' }, 'unmatched'],
  ['a longer label', 'a{bb="c"} 1\n', { b: 'c' }, 'unmatched'],
  ['text in a value that looks like a label', 'a{d="b=\\"c\\""} 1\n', { b: 'c' }, 'unmatched'],
  ['an empty value: absent', 'a{d="e"} 1\na{b="c",d="e"} 2\n', { b: '' }, 1],
  ['an empty value: empty', 'a{b="",d="e"} 1\na{b="c",d="e"} 2\n', { b: '' }, 1],
  ['any order, and blanks', 'a { d = "e" ,\tb = "c" , } 1\n', { b: 'c', d: 'e' }, 1],
  ['a line feed', 'a{b="\\\\n"} 1\na{b="\\n"} 2\n', { b: '\n' }, 2],
  ['NaN', 'a NaN\n', {}, Number.NaN],
  ['a quoted label name next to it', 'a{"b.b"="c"} 1\na{b="c"} 2\n', { b: 'c' }, 2],
  ['its own name in quotes', 'b 2\n{"a",b="c"} 1\n', { b: 'c' }, 1],
  ['infinity after a number', 'a 0.1\n{"a"} inf\n', {}, 'several'],
  // It may be the very sample: the whole of it says nothing.
  ['an invalid number', 'a x\n', {}, 'none'],
  ['an invalid number next to a valid one', 'a 1\na x\n', {}, 'none'],
  ['a line that breaks off', 'a{b="c"} 1\na{b="c"}', { b: 'c' }, 'none'],
  ['labels that cannot be read', 'a{b="c"} 1\na{b="c" 2\n', { b: 'c' }, 'none'],
  ['another line of the name that cannot be read', 'a{b="c"} 1\na{b="d"} x\n', { b: 'c' }, 1],
  ['a name that is a label, too', 'a{b="c",c="b"} 1\n', { c: 'b' }, 1],
];
for (const [what, body, labels, reading] of CASES) {
  test(`openExposition() selects: ${what}`, () => {
    assert.deepEqual(select(body, 'a', labels), reading);
  });
}

test('openExposition() takes a line that is too long for one that cannot be read', () => {
  for (const length of [LINE_MAX_BYTES, 3 * LINE_MAX_BYTES]) {
    const long = `a{c="${'x'.repeat(length)}",b="c"} 1\n`;
    const found = [long, `a{b="c"} 2\n${long}`].map((body) => select(body, 'a', { b: 'c' }));
    assert.deepEqual([...found, select(`${long}b 2\n`, 'b')], ['none', 'none', 2]);
    assert.equal(select(`b{c="${'a '.repeat(length)}"} 1\na 2\n`, 'a'), 2, 'a piece of another line');
  }
});

test('openExposition() selects many entries in one pass, each for itself', () => {
  const body = 'a 1\nb{c="d"} 2\nb{c="e"} 3\n';
  const selectors: readonly Selector[] = [
    { name: 'b', labels: [['c', 'e']] },
    { name: 'x', labels: [] },
    { name: 'b', labels: [] },
    { name: 'a', labels: [] },
    { name: 'a', labels: [] },
    { name: 'a', labels: [['c', 'd']] },
  ];
  const exposition = openExposition(['a'], selectors);
  exposition.write(Buffer.from(body));
  const { selected, metrics } = exposition.end();
  assert.deepEqual(selected, [
    { kind: 'value', value: 3 },
    { kind: 'none' },
    { kind: 'several', nearest: ['{c="d"}', '{c="e"}'] },
    { kind: 'value', value: 1 },
    { kind: 'value', value: 1 },
    { kind: 'unmatched', nearest: ['{}'] },
  ]);
  assert.deepEqual(metrics.get('a'), { kind: 'value', value: 1 });
});

const STOPPED = readRecordedBody('exporter-0.5.0-locust-2.47.0/07-stopped.11.txt');
const REQUESTS = 'locust_requests_num_requests';
/** What is nearest to an entry that no sample, or more than one, answers. */
const NEAREST: readonly (readonly [what: string, body: string | Uint8Array, selector: Selector, nearest?: string[]])[] =
  [
    ['a name', STOPPED, { name: 'locust_request_fail_ratio', labels: [] }, ['locust_requests_fail_ratio']],
    [
      'a name after a hundred others',
      `${'b 1\n'.repeat(300)}# TYPE rows gauge\n`,
      { name: 'row', labels: [] },
      ['rows'],
    ],
    ['a name of a page without types', 'rows_total 1\n', { name: 'row_total', labels: [] }, ['rows_total']],
    ['no name', STOPPED, { name: 'temperature_celsius', labels: [] }],
    ['labels', STOPPED, { name: REQUESTS, labels: [['name', 'aggregated']] }, ['{method="",name="Aggregated"}']],
    ['labels of a sample without any', 'a 1\n', { name: 'a', labels: [['b', 'c']] }, ['{}']],
    ['two that match', 'a{b="c"} 1\na{b="d"} 2\na{b="e"} 3\n', { name: 'a', labels: [] }, ['{b="c"}', '{b="d"}']],
    [
      'a long one, cut',
      `a{b="${'x'.repeat(200)}"} 1\n`,
      { name: 'a', labels: [['b', 'c']] },
      [`{b="${'x'.repeat(95)}…`],
    ],
    ['nothing beyond a hundred labels', listRows(101), { name: 'a', labels: [['b', 'x100']] }, ['{b="10"}', '{b="0"}']],
  ];
function listRows(count: number): string {
  return Array.from({ length: count }, (_, row) => `a{b="${row}"} 1\n`).join('');
}
for (const [what, body, selector, nearest] of NEAREST) {
  test(`openExposition() finds nearest to an entry: ${what}`, () => {
    const exposition = openExposition([], [selector]);
    exposition.write(Buffer.from(body));
    const [reading] = exposition.end().selected;
    assert.deepEqual(reading !== undefined && 'nearest' in reading ? reading.nearest : undefined, nearest);
  });
}

test('openExposition() reads the exemplars and the seconds of OpenMetrics, and of nothing else', () => {
  const exemplar = '# {trace_id="abc"} 1';
  const body = `a 42 ${exemplar}\nb{c="d}"} 1 1.5 ${exemplar}\nb{c="e"} 2 ${exemplar}\n`;
  const selectors = ['a', 'b'].map((name): Selector => ({ name, labels: [] }));
  const readAs = (format: 'text' | 'openMetrics') => {
    const exposition = openExposition(['a'], [...selectors, { name: 'a', labels: [['b', 'c']] }], format);
    exposition.write(Buffer.from(body));
    const { metrics, selected } = exposition.end();
    return [metrics.get('a'), ...selected];
  };
  assert.deepEqual(readAs('openMetrics'), [
    { kind: 'value', value: 42 },
    { kind: 'value', value: 42 },
    { kind: 'several', nearest: ['{c="d}"}', '{c="e"}'] },
    { kind: 'unmatched', nearest: ['{}'] },
  ]);
  assert.deepEqual(readAs('text').slice(0, 2), [{ kind: 'unknown', why: 'unreadable' }, { kind: 'none' }]);
});

// Read off the recordings with grep.
const RECORDED: readonly (readonly [path: string, name: string, labels: Record<string, string>, reading: unknown])[] = [
  ['07-stopped.11', 'locust_requests_fail_ratio', {}, 0.16216216216216217],
  ['10-after-master-exit.1', 'locust_requests_fail_ratio', {}, 'none'],
  ['07-stopped.11', 'locust_requests_avg_response_time', {}, 'several'],
  ['07-stopped.11', 'locust_requests_num_requests', { name: 'Aggregated' }, 222],
  ['07-stopped.11', 'locust_requests_num_requests', { name: 'Aggregated', method: '' }, 222],
  ['07-stopped.11', 'locust_requests_num_requests', { name: 'Aggregated', method: 'GET' }, 'unmatched'],
  ['10-after-master-exit.1', 'locust_requests_num_requests', { name: 'Aggregated' }, 222],
  ['07-stopped.11', 'locust_requests_current_response_time_percentile_95', {}, 0],
];
for (const [path, name, labels, reading] of RECORDED) {
  test(`openExposition() selects ${name}${JSON.stringify(labels)} of ${path}`, () => {
    const body = readRecordedBody(`exporter-0.5.0-locust-2.47.0/${path}.txt`);
    assert.deepEqual(select(body, name, labels), reading);
  });
}
