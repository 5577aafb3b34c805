// The rows in columns, held against objects that do the same the slow way.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COLUMNS_MAX_COUNT, openRows, type RowStore } from '../../../src/front/locust/rows.ts';

/** The same numbers each time. */
function openRandom() {
  let state = 20_261_122;
  return (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

test('openRows() finds, sorts and forgets as a map of objects does', () => {
  const random = openRandom();
  const maxCount = 700;
  const rows = openRows(maxCount);
  let reference = new Map<string, { method: string; name: string; values: (number | undefined)[]; isNew: boolean }>();
  for (let turn = 0; turn < 30; turn++) {
    if (turn === 20) {
      rows.clear();
      reference = new Map();
    }
    rows.begin();
    for (const row of reference.values()) row.isNew = false;
    for (let count = 0; count < 200; count++) {
      const [method, name] = [['GET', 'P"', ''][random(3)] as string, `${['é', '', '~\n'][random(3)]}${random(900)}`];
      const place = rows.findOrAdd(method, name);
      const key = JSON.stringify([method, name]);
      const row = reference.get(key) ?? { method, name, values: [], isNew: true };
      row.isNew = true;
      reference.set(key, row);
      const [column, value] = [random(3), random(1_000)];
      rows.set(place, column, value);
      row.values[column] = value;
      assert.equal(rows.find(method, name), place);
      for (const each of [0, 1, 2]) assert.equal(rows.get(place, each), row.values[each]);
    }
    rows.end();
    for (const [key, { isNew }] of reference) {
      if (reference.size > maxCount && !isNew) reference.delete(key);
    }
    assert.equal(rows.count(), reference.size);
    // Nobody reads them in every turn.
    if (turn % 3 === 0) continue;
    const bytes = (text: string) => Buffer.from(text);
    const sorted = [...reference.values()].toSorted(
      (a, b) => Buffer.compare(bytes(a.method), bytes(b.method)) || Buffer.compare(bytes(a.name), bytes(b.name)),
    );
    const escapeText = (text: string) => text.replaceAll('"', '\\"').replaceAll('\n', '\\n');
    const label = ({ method, name }: { method: string; name: string }) =>
      `{method="${escapeText(method)}",name="${escapeText(name)}"}`;
    assert.deepEqual(
      [...rows.listPlaces()].map(({ labels }) => labels),
      sorted.map(label),
    );
    for (const column of [0, 1, 2]) {
      assert.deepEqual(
        [...rows.list(column)],
        sorted.flatMap((row) =>
          row.values[column] === undefined ? [] : [{ labels: label(row), value: row.values[column] }],
        ),
      );
    }
  }
  assert.ok(reference.size === maxCount, 'some were forgotten');
  assert.equal(rows.find('GET', 'never'), -1);
  assert.deepEqual([...rows.list(9)], []);
});

test('openRows() knows nothing of a row that takes the place of another one', () => {
  const rows = openRows(1);
  rows.begin();
  const first = rows.findOrAdd('GET', 'a');
  rows.set(first, 0, 5);
  rows.setMarks(first, 1);
  rows.end();
  rows.begin();
  rows.findOrAdd('GET', 'b');
  rows.end();
  assert.equal(rows.find('GET', 'a'), -1);
  const third = rows.findOrAdd('GET', 'c');
  assert.equal(third, first);
  assert.deepEqual([rows.get(third, 0), rows.getMarks(third)], [undefined, 0]);
});

const listNames = (rows: RowStore) => [...rows.listPlaces()].map(({ labels }) => /name="(.*)"/.exec(labels)?.[1]);

test('openRows() lists what is there after a row was added alone, one was forgotten alone, and all were', () => {
  const rows = openRows(1);
  assert.deepEqual(listNames(rows), []);
  rows.begin();
  rows.findOrAdd('GET', 'b');
  rows.end();
  assert.deepEqual(listNames(rows), ['b']);
  rows.findOrAdd('GET', 'a');
  rows.end();
  assert.deepEqual(listNames(rows), ['a', 'b'], 'both are of this turn');
  rows.begin();
  rows.findOrAdd('GET', 'b');
  rows.end();
  assert.deepEqual(listNames(rows), ['b']);
  rows.clear();
  assert.deepEqual(listNames(rows), []);
});

test('openRows() keeps every column for itself', () => {
  const rows = openRows(1);
  const place = rows.findOrAdd('GET', 'a');
  const columns = Array.from({ length: COLUMNS_MAX_COUNT }, (_, column) => column);
  for (const column of columns) {
    assert.equal(rows.get(place, column), undefined);
    rows.set(place, column, column);
  }
  assert.deepEqual(
    columns.map((column) => rows.get(place, column)),
    columns,
  );
});
