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
const RECORDED = readdirSync(FOLDER).filter((name) => name.endsWith('.txt') && !/openmetrics|prom3/.test(name));

test('openReadableCheck() reads every recorded exposition', () => {
  assert.ok(RECORDED.length > 15);
  for (const name of RECORDED) {
    assert.equal(check(readRecordedBody(`expositions/${name}`)), null, name);
  }
  for (const name of ['13-odd-names-stopped.txt', '14-nan-running.txt', '14-nan-stopped.txt']) {
    assert.equal(check(readRecordedBody(`exporter-0.5.0-locust-2.47.0/${name}`)), null, name);
  }
});

test('openReadableCheck() says the same of a body cut anywhere between two pieces', () => {
  const readable = 'a 1\n# HELP b\n\nb{c="d, }",e="\\"\n"} 2 3\nb 4';
  const unreadable = 'a 1\nb{c="d} 2\na 2\nb';
  const [good, bad] = [Buffer.from(readable), Buffer.from(unreadable)];
  for (let at = 0; at <= good.length; at++) {
    assert.equal(check(good.subarray(0, at), good.subarray(at)), null, `cut at ${at}`);
  }
  for (let at = 0; at <= bad.length; at++) {
    const why = 'a line that Prometheus refuses: "b{c=\\"d} 2"';
    assert.equal(check(bad.subarray(0, at), bad.subarray(at)), why, `cut at ${at}`);
  }
});

test('openReadableCheck() names the first line of many that cannot be read', () => {
  const many = 'a 1\n'.repeat(50_000);
  const why = 'a line that Prometheus refuses: "b"';
  assert.equal(check(`${many}b\n${many}c\n${many}`), why);
  assert.equal(check(`${many}b\n`, `${many}c\n`, 'd'), why);
});

test('openReadableCheck() quotes no more than the start of a line', () => {
  const result = check(`a 1\n${'é'.repeat(100)}\n`);
  assert.equal(result, `a line that Prometheus refuses: "${'é'.repeat(60)}…"`);
});

test('openReadableCheck() quotes nothing of what may be secret', () => {
  const readable = openReadableCheck('text', { isQuoted: false });
  readable.write(Buffer.from('a secret\n'));
  assert.equal(readable.end(), 'a line that Prometheus refuses');
});

test('openReadableCheck() takes a page without a sample, and an empty one', () => {
  for (const body of ['', '\n', ' \t\n', '# HELP a b\n# TYPE a gauge\n', '#', '\n#a 1\n \t# a 1']) {
    assert.equal(check(body), null, JSON.stringify(body));
  }
  for (const format of ['openMetrics', 'protobuf'] as const) assert.equal(checkAs(format), null, format);
});

test('openReadableCheck() takes what Prometheus takes, cut anywhere', () => {
  const table: Readonly<Record<'taken' | 'refused', readonly string[]>> = {
    taken: [
      'a{b="c\nd 1\n"} 1',
      '# \xff\na{b="c\nd 1\n"} 1',
      'a{b="c"d="e"} 1',
      'a{b="\\\0n"} 1',
      'a 1\n \0<html>',
      'a 1\n#x\0<html>\n<html>\n',
      '# \xff\na 1',
      'a+0',
      '{b="c","d"} 1',
      'a{b="",b="c"} 1',
      '# HELP a\xff',
      '# TYPE "a\nb" gauge',
      'a 1 9223372036854775807',
      `a{b="${'x'.repeat(3_000)}"} 1e308`,
    ],
    refused: [
      'a{b="c\nd 1\n',
      '# \xff\na{b="c\nd 1\n',
      'a 1\r\n',
      '# TYPE a x',
      '# TYPE a gauge ',
      '# TYPE 1a gauge',
      '# HELP 1a x',
      '# HELP a \xff',
      '# HELP a\xc3\xa9',
      'a{b="\xff"} 1',
      'a{b="c",d="e",b="f"} 1',
      'a{"b"="c",b="f"} 1',
      'a{""="c"} 1',
      'a{__name__="b"} 1',
      '{""} 1',
      'a 1 -5',
      'a 1 9223372036854775808',
      'a 1e999',
    ],
  };
  for (const [kind, bodies] of Object.entries(table)) {
    for (const text of bodies) {
      const body = Buffer.from(text, 'latin1');
      for (let at = 0; at <= body.length; at += body.length > 1_000 ? 500 : 1) {
        const why = check(body.subarray(0, at), body.subarray(at));
        assert.equal(why === null, kind === 'taken', `${JSON.stringify(text.slice(0, 60))} cut at ${at}: ${why}`);
      }
    }
  }
  const long = 'x'.repeat(READABLE_LINE_MAX_BYTES + 1);
  assert.equal(check(`\0\n${long}`), null);
  assert.equal(
    check(`a{b="${'\n'.repeat(READABLE_LINE_MAX_BYTES + 100_000)}"} 1\n`)?.startsWith('a line of more'),
    true,
  );
  for (const line of ['# UNIT a_s s', '# UNIT a ', '# UNIT "a b_s" s', 'a 1e308 1e307 # {b="c"} 1e306 1e305']) {
    assert.equal(checkAs('openMetrics', `${line}\n# EOF`), null, line);
  }
  for (const line of ['# UNIT a s', '# UNIT as s', 'a 1 # {b="c"} 1 1e999', 'a 1 1e999']) {
    assert.notEqual(checkAs('openMetrics', `${line}\n# EOF`), null, line);
  }
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
      assert.equal(checkAs('openMetrics', body.subarray(0, length)) === null, length === 0, `${name}, ${length} bytes`);
    }
  }
});

test('openReadableCheck() wants # EOF once, at the end of OpenMetrics', () => {
  const unreadable = (line: string) => `a line that Prometheus refuses: ${JSON.stringify(line)}`;
  const table: readonly (readonly [body: string, why: string | null])[] = [
    ['a 1\n# EOF', null],
    ['a_total 1 1.5e9 # {b="c"} 1 2.5\n# EOF\n', null],
    ['a_bucket{le="1"} 1 # {} 0.5\n{"a.b",c="d"} NaN 1\n# EOF\n', null],
    ['a 1\n', 'no "# EOF" at its end'],
    ['# EOF\n', null],
    ['', null],
    ['a 1\n# EOF\n# EOF\n', 'text after "# EOF"'],
    ['a 1\n# EOF\nb 1\n# EOF\n', 'text after "# EOF"'],
    ['a 1\n# EOF\nb 1\n', 'text after "# EOF"'],
    ['a 1\n# EOFF\n', 'text after "# EOF"'],
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
