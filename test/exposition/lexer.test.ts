import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readLines, readNumber, readSampleLine, type SampleLine } from '../../src/exposition/lexer.ts';

test('readNumber() reads what Prometheus reads', () => {
  const { NaN: none, POSITIVE_INFINITY: infinite, NEGATIVE_INFINITY: negative } = Number;
  const numbers: Readonly<Record<string, number>> = {
    '1': 1,
    '+.5': 0.5,
    '-1.e-3': -0.001,
    '1E5': 100_000,
    '1.797e308': 1.797e308,
    '-1e-999': -0,
    '0e999': 0,
    nan: none,
    Inf: infinite,
    '+inf': infinite,
    Infinity: infinite,
    '-INFINITY': negative,
    ...Object.fromEntries(
      ['', ' ', 'one', '+NaN', '1e999', '-1.8E+308', '9'.repeat(400), '0x10', '0x1p4', '0b1', '1_0', 'Infi', '1 '].map(
        (text) => [text, none],
      ),
    ),
  };
  for (const [text, number] of Object.entries(numbers)) assert.equal(readNumber(text), number, text);
});

test('readSampleLine() reads names, labels, value and timestamp, blanks aside', () => {
  const table: readonly (readonly [line: string, ...read: readonly unknown[]])[] = [
    ['a 1', 'a', [], '1', undefined],
    [' a\t \t-0  -5 \t\r', 'a', [], '-0', '-5'],
    ['a{}+Inf', 'a', [], '+Inf', undefined],
    [
      'a { b\t= "x  y\t\\" } z" ,\tc="" , } 0',
      'a',
      [
        ['b', 'x  y\t" } z'],
        ['c', ''],
      ],
      '0',
      undefined,
    ],
    ['a{b="\\\\n\\n\\q"} 0', 'a', [['b', '\\n\n\\q']], '0', undefined],
    [
      'a{"b.c"="d","\\"e\\""="f"} 0',
      'a',
      [
        ['b.c', 'd'],
        ['"e"', 'f'],
      ],
      '0',
      undefined,
    ],
    ['{"a.b"} 0 7', 'a.b', [], '0', '7'],
    ['{ "a\\"" , b = "c", } 0', 'a"', [['b', 'c']], '0', undefined],
    [
      '{b="c","a.b" , "d"="e\nf"} 0',
      'a.b',
      [
        ['b', 'c'],
        ['d', 'e\nf'],
      ],
      '0',
      undefined,
    ],
  ];
  for (const [line, name, labels, value, timestamp] of table) {
    assert.deepEqual(readSampleLine(line), { name, labels, value, timestamp }, line);
  }
  for (const line of [
    '',
    'a',
    '# a 1',
    'a 1 2 3',
    'a{b="c} 1',
    'a 1\nb 1',
    'a 1e999',
    '{} 1',
    '{b="c"} 1',
    'a{"b"} 1',
  ]) {
    assert.equal(readSampleLine(line), null, line);
  }
});

const SAMPLES = `
  a 1 | \x20\ta \t1 \t2 \t | a 1 -5 | a{} 1 | a{}1 | a { } 1 | a{b="c"} 1 | a{b="c",} 1 | a { b = "c" , d\t=\t"e" , } 1
  a{b=""} 1 | a{b="\\\\"} 1 | a{b="\\"} x"} 1 | a{b="\\n#{},="} 1 | a{b="\r\u2028é\0"} 1 | a{b="} 0"} 1 | a{__proto__="b"} 1
  _:a9{_9="c"} 1 | :a 1 | {"odd.name"} 1 | { "odd.name" , b="c", "d.e"="f" , } 1 | a{"b.c"="d"} 1 | a 1\r | a 1 \r
  a 0 | a -1 | a +1 | a 1. | a .5 | a 1.5 | a 1e5 | a 1E+5 | a 1.e-5 | a .5e1 | a 00
  a NaN | a nan | a NAN | a Inf | a +Inf | a -Inf | a inf | a -inf | a+0 | a{b="c"d="e"} 1 | a +infinity | a Infinity`;
const OTHERS = `
  a | a\x20 | a b | a 1 2 3 | a 1 2.5 | a 1 b | a 1 # {} 1 | a1 | 9a 1 | a-b 1 | é 1 | 1 | a@ 1 | a= 1 | a[ 1 | a} 1 | a"x" 1
  a{b="c"} | a{b="c" 1 | a{b="c} 1 | a{b=c} 1 | a{b} 1 | a{"b"} 1 | a{,} 1 | a{b="c",,} 1 | a{b="c"}} 1 | a{b c="d"} 1
  a{9="c"} 1 | a{b:c="d"} 1 | {b="c"} 1 | {} 1 | {"a",b} 1 | a{ | a{} | a{b="c | a{b="c\\ | a 5 } 5
  a\r1 | a 1\r2 | a 1\r\r | a 1\0 | a\u00001 | a 1\u2028 | a 1\u000b | \u00a0a 1 | a \u00a01 | \ufeffa 1 | <html> | OK
  a --1 | a 1e | a e5 | a . | a + | a +NaN | a -nan | a Infi | a 1,5 | a 1_000 | a 0x1p4 | a 0x10 | a 1p4 | a "" | a "1" | a one`;
const split = (table: string) => table.trimStart().split(/ \| |\n {2}/);

test('readSampleLine() takes what Prometheus takes for samples, and line ends and times that it does not', () => {
  for (const line of split(SAMPLES)) assert.notEqual(readSampleLine(line), null, JSON.stringify(line));
  for (const line of split(OTHERS)) assert.equal(readSampleLine(line), null, JSON.stringify(line));
});

const TEXT = [
  '# HELP a Of \\\\ and \\"quotes".\r',
  '#TYPE\ta \tcounter \r',
  'a{b="c"} 1',
  ' a 2',
  '# HELP b',
  '# A comment.',
  '',
  'neither',
  '{"odd.name"} 3',
  '# TYPE "odd.name" gauge',
  'aa 4',
].join('\n');

test('readLines() gives samples and headers in their order, and the others', () => {
  const lines: unknown[] = [];
  readLines(TEXT, {
    onSample: ({ name, labels, value }) => lines.push([name, ...labels.flat(), value]),
    onHeader: (kind, name, text) => lines.push([kind, name, text]),
    onOther: (line) => lines.push([line]),
  });
  assert.deepEqual(lines, [
    ['help', 'a', 'Of \\\\ and \\"quotes".\r'],
    ['type', 'a', 'counter \r'],
    ['a', 'b', 'c', '1'],
    ['a', '2'],
    ['help', 'b', ''],
    ['# A comment.\n'],
    ['\n'],
    ['neither\n'],
    ['odd.name', '3'],
    ['type', 'odd.name', 'gauge'],
    ['aa', '4'],
  ]);
});

test('readLines() stops before a sample that may go on behind the text', () => {
  const read = (text: string, isLast: boolean) => {
    const lines: string[] = [];
    const sink = {
      onSample: ({ name }: SampleLine) => lines.push(name),
      onHeader() {},
      onOther: (line: string) => lines.push(line),
    };
    return [readLines(text, sink, 'text', isLast), ...lines];
  };
  const whole = 'a 1\nb{c="d\ne 1\n",f="g"} 2\nh 3\n';
  assert.deepEqual(read(whole, true), [whole.length, 'a', 'b', 'h']);
  for (let end = whole.indexOf('d') + 1; end < whole.indexOf('",f'); end++) {
    assert.deepEqual(read(whole.slice(0, end), false), [4, 'a'], JSON.stringify(whole.slice(0, end)));
  }
  assert.deepEqual(read('a 1\nb{c="d\ne 1\n', true), [15, 'a', 'b{c="d\n', 'e']);
});
