import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { formatYaml } from '../../src/explain/lines.ts';
import { formatAge, formatTime, quoteShell, quoteText, readTime } from '../../src/explain/words.ts';

test('formatAge() shows the two largest units', () => {
  const day = 86_400_000;
  for (const [text, ...moments] of [
    ['less than a second', -5, 0],
    ['1 second', 1_000],
    ['59 seconds', 59_999],
    ['1 minute', 60_000, 119_000],
    ['12 minutes', 720_000],
    ['1 hour', 3_600_000, 3_659_000],
    ['3 hours 5 minutes', 11_100_000],
    ['1 day', day, day + 60_000],
    ['2 days 2 hours', 2 * day + 7_200_000],
  ] as const) {
    for (const ms of moments) assert.equal(formatAge(ms), text, `${ms}`);
  }
});

test('readTime() and formatTime() are RFC 3339, and anything else is null', () => {
  assert.equal(formatTime(readTime('2026-11-22T06:51:07Z') ?? 0), '2026-11-22T06:51:07Z');
  assert.equal(readTime('2026-11-22T07:51:07.123+01:00'), Date.UTC(2026, 10, 22, 6, 51, 7, 123));
  for (const value of [undefined, null, 5, '', 'soon']) assert.equal(readTime(value), null);
});

test('quoteText() leaves one line that no terminal obeys, cut', () => {
  assert.equal(quoteText(' a\u001b[31m\nb\u202ec\u0085 '), 'a [31m b c');
  assert.equal(quoteText('x'.repeat(10), 5), 'xxxx…');
});

test('formatYaml() writes what YAML reads as the same, by version 1.1 as well', () => {
  const texts = [
    ...['main', 'a-b.c', '/bin/sh', '1k', '1e3', 'on', 'No', 'null', 'y', '', 'a: b', '#x'],
    ...['--flag', '~', '"', "it's", '-c', '\u202e'],
  ];
  const value = { number: 5, texts, block: [{ name: 'a', env: texts.map((text) => ({ name: 'on', value: text })) }] };
  for (const version of ['1.1', '1.2'] as const) assert.deepEqual(parse(formatYaml(value), { version }), value);
});

test('quoteShell() gives one word', () => {
  const words = ['pod-1', 'a b', "it's", '$(x)', ''].map(quoteShell);
  assert.deepEqual(words, ['pod-1', "'a b'", "'it'\\''s'", "'$(x)'", "''"]);
});
