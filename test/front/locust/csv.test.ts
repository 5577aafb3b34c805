// Locust's CSV: recorded ones, names that need their quotes, ones that are none, and ones that were cut.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readLocustCsv } from '../../../src/front/locust/csv.ts';
import { type LocustRow, ROW_FIELDS, readLocustStats } from '../../../src/front/locust/page.ts';
import { readRecordedText } from '../../support/recording.ts';

const ALL = () => true;

function readRows(text: string, isWanted: (method: string, name: string) => boolean): LocustRow[] | null {
  const rows = readLocustCsv(Buffer.from(text), isWanted);
  return rows === null ? null : [...rows];
}

for (const version of ['2.8.6', '2.15.1', '2.24.1', '2.33.2', '2.47.0']) {
  test(`readLocustCsv() reads what Locust ${version} has on its page, name by name`, () => {
    const path = `locust-2.8-to-2.47/${version}-stopped.stats-requests`;
    const rows = readRows(readRecordedText(`${path}.csv`), ALL);
    const page = readLocustStats(readRecordedText(`${path}.json`))?.rows;
    assert.equal(rows?.length, 6);
    const toKey = ({ method, name }: { method: string; name: string }) => [method, name];
    assert.deepEqual(rows.map(toKey).toSorted(), page?.map(toKey).toSorted());
    for (const { name, numbers } of rows) {
      const onPage = page?.find((row) => row.name === name)?.numbers;
      const isField = (column: string) => ROW_FIELDS.some((field) => field === column);
      for (const [column, number] of numbers) if (isField(column)) assert.equal(number, onPage?.get(column), name);
      const quantiles = [...numbers.keys()].filter((column) => !isField(column));
      assert.deepEqual(quantiles, [
        '0.5',
        '0.66',
        '0.75',
        '0.8',
        '0.9',
        '0.95',
        '0.98',
        '0.99',
        '0.999',
        '0.9999',
        '1',
      ]);
    }
    assert.equal(rows.find(({ name }) => name === 'Aggregated')?.numbers.get('0.9'), 50);
  });
}

const HEADER = 'Type,Name,Request Count,Failure Count,Average Content Size,99%\r\n';

test('readLocustCsv() reads quoted names, and leaves out what is not known', () => {
  const text = `${HEADER}GET,"a,""b""\r\n\n",1,0,nan,N/A\r\n"P,X",plain,2,1e+16,0.5,7\r\n,Aggregated,3,-1,x,\r\n`;
  const rows = readRows(text, ALL);
  const shown = rows?.map(({ method, name, numbers }) => [method, name, Object.fromEntries(numbers)]);
  assert.deepEqual(shown, [
    ['GET', 'a,"b"\r\n\n', { num_requests: 1, num_failures: 0, avg_content_length: Number.NaN }],
    ['P,X', 'plain', { num_requests: 2, num_failures: 1e16, avg_content_length: 0.5, 0.99: 7 }],
    ['', 'Aggregated', { num_requests: 3, num_failures: -1 }],
  ]);
});

test('readLocustCsv() reads the rows that are wanted', () => {
  const rows = readRows(
    `${HEADER}GET,a,1,0,0,0\r\nGET,b,2,0,0,0\r\n`,
    (method, name) => `${method} ${name}` === 'GET b',
  );
  const names = rows?.map(({ name }) => name);
  assert.deepEqual(names, ['b']);
});

test('readLocustCsv() takes nothing else for one, and of one that was cut the whole rows', () => {
  for (const text of [
    '',
    '<html>\r\n',
    'Name,Type,Request Count\r\n',
    'Type,Name',
    'Type,Size,Count\r\n',
    '{"stats":[]}\n',
  ]) {
    assert.equal(readRows(text, ALL), null, text);
  }
  const whole = `${HEADER}GET,"a""b",1,0,0,0\r\nGET,b,22,0,0,0\r\n`;
  for (let length = HEADER.length; length <= whole.length; length++) {
    const rows = readRows(whole.slice(0, length), ALL) ?? [];
    const counts = rows.map(({ name, numbers }) => [name, numbers.get('num_requests')]);
    assert.deepEqual(
      counts,
      [
        ['a"b', 1],
        ['b', 22],
      ].slice(0, rows.length),
    );
  }
});

test('readLocustCsv() leaves out numbers that no title stands for', () => {
  const rows = readRows('Type,Name,Request Count\r\nGET,/,3,4,5\r\n', () => true);
  assert.deepEqual(rows, [{ method: 'GET', name: '/', numbers: new Map([['num_requests', 3]]) }]);
});

test('readLocustCsv() reads records across its pieces, and each time the same', () => {
  const name = (index: number) => `"${'é'.repeat(index % 7)}\n""${'é\n'.repeat(index % 900)}${index}"`;
  const lines = Array.from({ length: 2_000 }, (_, index) => `GET,${name(index)},${index},0,1,2\r\n`);
  const rows = readLocustCsv(Buffer.from(HEADER + lines.join('')), ALL);
  assert.ok(rows !== null);
  for (const read of [[...rows], [...rows]]) {
    assert.equal(read.length, 2_000);
    for (const [index, row] of read.entries()) {
      assert.equal(row.name, name(index).slice(1, -1).replaceAll('""', '"'));
      assert.equal(row.numbers.get('num_requests'), index);
    }
  }
});

test('readLocustCsv() reads a record that is longer than its pieces', () => {
  for (const long of ['é'.repeat(80_000), 'é\n'.repeat(100_000)]) {
    const rows = readRows(`${HEADER}GET,"${long}\né",1,0,0,0\r\nGET,b,2,0,0,0\r\n`, ALL);
    const names = rows?.map(({ name }) => name);
    assert.deepEqual(names, [`${long}\né`, 'b']);
  }
});

test('readLocustCsv() gives a body up whose record is very long', () => {
  const rows = readRows(`${HEADER}GET,a,1,0,0,0\r\nGET,"${'x\n'.repeat(200_000)}",3,0,0,0\r\nGET,b,2,0,0,0\r\n`, ALL);
  const names = rows?.map(({ name }) => name);
  assert.deepEqual(names, ['a']);
});
