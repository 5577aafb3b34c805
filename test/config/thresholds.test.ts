// The grammar of LASTSCRAPE_FAIL_IF, with every problem at once.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseThreshold, type Threshold } from '../../src/config/thresholds.ts';
import { readProblems, readValid } from './read-config.ts';

const readThresholds = (text: string) => readValid({ LASTSCRAPE_FAIL_IF: text }).thresholds;
const readFailIfProblems = (text: string) => readProblems({ LASTSCRAPE_FAIL_IF: text });

/** An entry, and what of it is not the metric `a` without labels above 1. */
const READABLE: readonly (readonly [text: string, parts: Partial<Threshold>])[] = [
  ['a > 1', {}],
  ['a>=1', { comparison: '>=' }],
  ['a\t<  -1.5', { comparison: '<', limit: -1.5 }],
  ['a <= .5', { comparison: '<=', limit: 0.5 }],
  ['a == 1e3', { comparison: '==', limit: 1000 }],
  ['a != +1.E-2', { comparison: '!=', limit: 0.01 }],
  ['job:errors:rate5m > 0', { name: 'job:errors:rate5m', limit: 0 }],
  ['a{} > 1', {}],
  ['a { b = "c" , } > 1', { labels: [['b', 'c']] }],
  ['a{b="",c="D"} > 1', { labels: Object.entries({ b: '', c: 'D' }) }],
  ['a{b=", } > 2 {"} > 1', { labels: [['b', ', } > 2 {']] }],
  [String.raw`a{b="\"\\\n\\n"} > 1`, { labels: [['b', '"\\\n\\n']] }],
  ['a{"b.c"="\\d" d="e"} > 1', { labels: Object.entries({ 'b.c': '\\d', d: 'e' }) }],
  ['a{b="x\r\ny\u2028\u0000"} > 1', { labels: [['b', 'x\r\ny\u2028\u0000']] }],
];
for (const [text, parts] of READABLE) {
  test(`parseThreshold() reads ${JSON.stringify(text)}`, () => {
    const value = { text, name: 'a', labels: [], comparison: '>', limit: 1, ...parts };
    assert.deepEqual(parseThreshold(text), { value });
  });
}

test('readConfig() splits FAIL_IF at commas, but for those of labels', () => {
  const text = ' a > 1 ,b{c="d},e",f="\\",g"} <= 2,\n c == 3';
  const texts = readThresholds(text).map((each) => each.text);
  assert.deepEqual(texts, ['a > 1', 'b{c="d},e",f="\\",g"} <= 2', 'c == 3']);
  assert.deepEqual(readThresholds('none'), []);
  assert.deepEqual(readThresholds('  '), []);
});

const EXAMPLE = '"locust_requests_fail_ratio > 0.01"';
const NUMBER = 'compared with a plain number such as 0.01 or 500, in the unit of the metric';
const PROBLEMS: readonly (readonly [must: string, ...entries: string[]])[] = [
  [`a metric, a comparison and a number, such as ${EXAMPLE}`, '> 1', '1a > 1'],
  [
    `compared with one of >= <= == != > <, such as ${EXAMPLE}`,
    'none',
    'a',
    'a b > 1',
    'a >> 1',
    'a = 1',
    'a => 1',
    'p(95)<500',
  ],
  [NUMBER, 'a >', 'a > b', 'a > NaN', 'a > 0x10', 'a > 1e999', 'a > 1 2', 'a > 500ms', 'a > 1.5%'],
  [
    'written with label="value", separated by commas, such as {name="Aggregated"} between { and }',
    ...['a{b="c" > 1', 'a{b=c} > 1', "a{b='c'} > 1", 'a{b=~"c.*"} > 1', 'a{b!="c"} > 1', 'a{b} > 1', 'a{,} > 1'],
  ],
];
for (const [must, ...entries] of PROBLEMS) {
  test(`parseThreshold() says that ${entries.join('; ')} must be ${must}`, () => {
    for (const entry of entries) assert.deepEqual(parseThreshold(entry), { problem: must }, entry);
  });
}

test('readConfig() reports all wrong entries at once, each with its text', () => {
  assert.deepEqual(readFailIfProblems('a > 1,, b => 2, c{d="e"} > 1%'), [
    'Cannot read LASTSCRAPE_FAIL_IF: entry 2 of 4 is empty; must be left out, with its comma',
    `Cannot read LASTSCRAPE_FAIL_IF: "b => 2" must be compared with one of >= <= == != > <, such as ${EXAMPLE}`,
    `Cannot read LASTSCRAPE_FAIL_IF: "c{d=\\"e\\"} > 1%" must be ${NUMBER}`,
  ]);
  assert.deepEqual(readFailIfProblems(',a > 1'), [
    'Cannot read LASTSCRAPE_FAIL_IF: entry 1 of 2 is empty; must be left out, with its comma',
  ]);
});

test('readConfig() takes no more entries than one search of each exposition each may cost', () => {
  const list = (count: number) => Array.from({ length: count }, (_, index) => `a${index} > 1`).join();
  assert.equal(readThresholds(list(50)).length, 50);
  assert.deepEqual(readFailIfProblems(list(51)), [
    'Cannot read LASTSCRAPE_FAIL_IF: it has 51 entries; must be 50 at most',
  ]);
});

test('readConfig() reads a very long entry in no time', () => {
  const long = 200_000;
  for (const text of [
    `a${' '.repeat(long)}b`,
    `a{${' '.repeat(long)}`,
    `a{b="${'\\\\'.repeat(long)}`,
    `a > ${'1'.repeat(long)}x`,
    `a{${'b="c",'.repeat(2)}${'"'.repeat(long)}`,
    `a > 1 ${'or '.repeat(long)}`,
  ]) {
    assert.equal(readFailIfProblems(text).length > 0, true);
  }
});
