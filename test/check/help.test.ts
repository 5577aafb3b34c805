// What --help prints: that nothing is missing, and its shape. docs/reference.md has the same words from the same tables.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatHelp } from '../../src/check/help.ts';
import { VARIABLES } from '../../src/config/variables.ts';
import { EXIT } from '../../src/decide/quit/exit-codes.ts';
import { KINDS } from '../../src/main.ts';

/** Where what is printed is broken. */
const WIDTH = 100;
const HELP = formatHelp(KINDS);
const lines = HELP.split('\n');

/** The lines below one that begins so, until the next empty one. */
function readBlock(start: string): string[] {
  const from = lines.findIndex((line) => line.startsWith(start)) + 1;
  assert.notEqual(from, 0, `there is "${start}"`);
  return lines.slice(from, lines.indexOf('', from));
}

test('formatHelp() has every variable with its default, and every kind, each with what it means behind it', () => {
  const plain = (text: string) => text.replaceAll('`', '').replaceAll(/\s+/g, ' ').trim();
  const shown = plain(HELP);
  const { conditions, targets } = KINDS;
  const wanted = [
    ...VARIABLES.map(({ name, default: value, defaultOtherwise, meaning }) =>
      [`${name}=${value}`, ...(defaultOtherwise === undefined ? [] : [`(${defaultOtherwise})`]), meaning].join(' '),
    ),
    ...[...conditions, ...targets].map(({ usage, meaning }) => `${usage} ${meaning}`),
  ];
  const places = wanted.map((each) => shown.indexOf(plain(each)));
  assert.ok(!places.includes(-1), wanted[places.indexOf(-1)]);
  assert.deepEqual(
    places,
    places.toSorted((one, other) => one - other),
    'in the order of the code',
  );
});

test('formatHelp() has every exit code', () => {
  const line = lines.find((each) => each.startsWith('Exit codes: ')) ?? '';
  const codes = [...line.matchAll(/(?:: |, )(\d+) /g)].map(([, code]) => Number(code));
  assert.deepEqual(codes, Object.values(EXIT));
});

test('formatHelp() breaks what is long, and prints no mark of Markdown', () => {
  const wrapped = ['Variables, ', 'LASTSCRAPE_DONE_WHEN', 'LASTSCRAPE_QUIT']
    .flatMap(readBlock)
    .filter((line) => !line.startsWith('  A preset with'));
  const tooLong = wrapped.filter((line) => line.length > WIDTH);
  assert.deepEqual(tooLong, []);
  assert.ok(wrapped.some((line) => line.length > WIDTH - 10));
  const marked = lines.filter((line) => line.includes('`') || line !== line.trimEnd());
  assert.deepEqual(marked, []);
  assert.ok(HELP.endsWith('\n') && !HELP.endsWith('\n\n'));
});
