import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import type { Format } from '../../src/exposition/format.ts';
import { openReadableCheck, READABLE_LINE_MAX_BYTES } from '../../src/exposition/readable.ts';
import { readRecordedBody } from '../support/recording.ts';

function check(...pieces: readonly (Uint8Array | string)[]): string | null {
  const readable = openReadableCheck();
  for (const piece of pieces) readable.write(Buffer.from(piece));
  return readable.end();
}

const FOLDER = new URL('../../fixtures/recordings/expositions/', import.meta.url);
const RECORDED = readdirSync(FOLDER).filter((name) => name.endsWith('.txt'));

test('openReadableCheck() reads every recorded exposition', () => {
  assert.ok(RECORDED.length > 20);
  for (const name of RECORDED) {
    assert.equal(check(readRecordedBody(`expositions/${name}`)), null, name);
  }
  for (const name of ['13-odd-names-stopped.txt', '14-nan-running.txt', '14-nan-stopped.txt']) {
    assert.equal(check(readRecordedBody(`exporter-0.5.0-locust-2.47.0/${name}`)), null, name);
  }
});

test('openReadableCheck() says the same of a body cut anywhere between two pieces', () => {
  const readable = 'a 1\n# HELP b\n\nb{c="d, }",e="\\"\n"} 2 3\r\nb 4'.replace('"\n"', '"\\n"');
  const unreadable = 'a 1\nb{c="d} 2\na 2';
  const [good, bad] = [Buffer.from(readable), Buffer.from(unreadable)];
  for (let at = 0; at <= good.length; at++) {
    assert.equal(check(good.subarray(0, at), good.subarray(at)), null, `cut at ${at}`);
  }
  for (let at = 0; at <= bad.length; at++) {
    const why = 'neither a sample nor a comment: "b{c=\\"d} 2"';
    assert.equal(check(bad.subarray(0, at), bad.subarray(at)), why, `cut at ${at}`);
  }
});

test('openReadableCheck() names the first line of many that cannot be read', () => {
  const many = 'a 1\n'.repeat(50_000);
  const why = 'neither a sample nor a comment: "b"';
  assert.equal(check(`${many}b\n${many}c\n${many}`), why);
  assert.equal(check(`${many}b\n`, `${many}c\n`, 'd'), why);
});

test('openReadableCheck() quotes no more than the start of a line', () => {
  const result = check(`a 1\n${'é'.repeat(100)}\n`);
  assert.equal(result, `neither a sample nor a comment: "${'é'.repeat(30)}…"`);
});

test('openReadableCheck() quotes nothing of what may be secret', () => {
  const readable = openReadableCheck('text', { isQuoted: false });
  readable.write(Buffer.from('a secret\n'));
  assert.equal(readable.end(), 'neither a sample nor a comment');
});

test('openReadableCheck() wants a sample', () => {
  for (const body of ['', '\n', '\r\n \t\n', '# HELP a b\n# TYPE a gauge\n', '#', '\n#a 1\n \t# a 1']) {
    assert.equal(check(body), 'no sample', JSON.stringify(body));
  }
  assert.equal(check('# a\n'.repeat(50_000), 'a 1\n', '# a\n'.repeat(50_000)), null);
});

test('openReadableCheck() bounds a line, whatever the pieces', () => {
  const longest = `a{b="${'x'.repeat(READABLE_LINE_MAX_BYTES - 9)}"} 1`;
  assert.equal(longest.length, READABLE_LINE_MAX_BYTES);
  const why = `a line of more than ${READABLE_LINE_MAX_BYTES} bytes`;
  for (const length of [5_000, 65_536, 10_000_000]) {
    const write = (text: string) => check(...(text.match(new RegExp(`[^]{1,${length}}`, 'g')) ?? []));
    assert.equal(write(`${longest}\n`), null, `pieces of ${length}`);
    assert.equal(write(`${longest}2\n`), why, `pieces of ${length}`);
    assert.equal(write(`a 1\n${longest}2`), why, `pieces of ${length}`);
    assert.equal(write(`a 1\n#${'x'.repeat(3_000_000)}\na 1\n`), why, `pieces of ${length}`);
  }
});

test('openReadableCheck() judges a long line in time that grows as its length does', () => {
  // Each took hours where two parts of the expression matched the same bytes; with none it is milliseconds.
  const many = 1_000_000;
  for (const line of [
    `${' '.repeat(many)}x`,
    `a 1${' '.repeat(many)}x`,
    `a ${'1'.repeat(many)}x`,
    `a${' '.repeat(many)}x`,
    `a{b="c"${' '.repeat(many)}x`,
    `a{${' '.repeat(many)}x`,
    `a{${'b="",'.repeat(many / 5)}x`,
    `a{b="${'\\\\'.repeat(many / 2)}`,
    `{"${'x'.repeat(many)}`,
    'a'.repeat(many),
  ]) {
    assert.notEqual(check(`a 1\n${line}\n`), null, line.slice(0, 20));
  }
});

test('openReadableCheck() takes no timestamp beyond 64 bits, which Prometheus does not either', () => {
  for (const timestamp of [
    '9223372036854775807',
    '-9223372036854775808',
    `-${'0'.repeat(300)}9`,
    '1700000000000000000',
  ]) {
    assert.equal(check(`# 1 9223372036854775808\na{b="c 9223372036854775808"} 1 ${timestamp}\n`), null);
  }
  for (const timestamp of ['9223372036854775808', '-9223372036854775809', '1'.repeat(300)]) {
    const line = `b 1 ${timestamp}`;
    const quoted = line.length > 60 ? `${line.slice(0, 60)}…` : line;
    const why = `neither a sample nor a comment: "${quoted}"`;
    assert.equal(check(`a 1\n${line}\nc 1\n`), why);
  }
});

function checkAs(format: Format, ...pieces: readonly (Uint8Array | string)[]): string | null {
  const readable = openReadableCheck(format);
  for (const piece of pieces) readable.write(Buffer.from(piece));
  return readable.end();
}

const OPEN_METRICS = [
  'formats/client_golang-1.23.2-openmetrics.txt',
  'formats/prometheus_client-0.26.0-openmetrics.txt',
  'expositions/python-prometheus_client-0.26.0-openmetrics.txt',
];

test('openReadableCheck() reads OpenMetrics of real programs, cut anywhere between two pieces', () => {
  for (const name of OPEN_METRICS) {
    const body = readRecordedBody(name);
    for (let at = 0; at <= body.length; at++) {
      assert.equal(checkAs('openMetrics', body.subarray(0, at), body.subarray(at)), null, `${name} cut at ${at}`);
    }
  }
});

test('openReadableCheck() never takes a page of OpenMetrics that is cut for a whole one', () => {
  for (const name of OPEN_METRICS) {
    const body = readRecordedBody(name);
    // The last line feed alone may be missing.
    for (let length = 0; length < body.length - 1; length++) {
      assert.notEqual(checkAs('openMetrics', body.subarray(0, length)), null, `${name}, ${length} bytes`);
    }
  }
});

test('openReadableCheck() wants # EOF once, at the end of OpenMetrics', () => {
  const unreadable = (line: string) => `neither a sample nor a comment: ${JSON.stringify(line)}`;
  const table: readonly (readonly [body: string, why: string | null])[] = [
    ['a 1\n# EOF', null],
    ['a_total 1 1.5e9 # {b="c"} 1 2.5\n# EOF\n', null],
    ['a_bucket{le="1"} 1 # {} 0.5\n{"a.b",c="d"} NaN 1\n# EOF\n', null],
    ['a 1\n', 'no "# EOF" at its end'],
    ['# EOF\n', 'no sample'],
    ['', 'no "# EOF" at its end'],
    ['a 1\n# EOF\n# EOF\n', 'text after "# EOF"'],
    ['a 1\n# EOF\nb 1\n# EOF\n', 'text after "# EOF"'],
    ['a 1\n# EOF\nb 1\n', 'text after "# EOF"'],
    ['a 1\n# EOFF\n', unreadable('# EOFF')],
    ['a 1\n\n# EOF\n', unreadable('')],
    ['a 1 # {b="c"}\n# EOF\n', unreadable('a 1 # {b="c"}')],
    ['a 1 # {b="c} 1\n# EOF\n', unreadable('a 1 # {b="c} 1')],
    ['a\n# EOF\n', unreadable('a')],
    ['a 1 9e300 # {b1="1e400 1e400"} 1e300 -1\n# EOF\n', null],
    ['a 1\nb 1 1e400\n# EOF\n', unreadable('b 1 1e400')],
    ['a 1 # {b="c"} 1e400\n# EOF\n', unreadable('a 1 # {b="c"} 1e400')],
    ['a 1 # {} 1 -1e400\n# EOF\n', unreadable('a 1 # {} 1 -1e400')],
  ];
  for (const [body, why] of table) assert.equal(checkAs('openMetrics', body), why, JSON.stringify(body));
  assert.equal(checkAs('openMetrics', 'a 1\n# EOF\n', '# EOF\n'), 'text after "# EOF"');
  assert.equal(checkAs('openMetrics', 'a 1\n# EOF\n', 'b 1\n'), 'text after "# EOF"');
  assert.equal(checkAs('text', 'a 1\n# EOF\nb 1\n# EOF\n'), null);
});
