// The rows in columns, held against objects that do the same the slow way.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COLUMNS_MAX_COUNT, openRows } from '../../../src/front/locust/rows.ts';

/** The same numbers each time. */
function openRandom() {
  let state = 20_261_122;
  return (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

test('openRows() finds, sorts and drops as a map of objects does', () => {
  const random = openRandom();
  const maxCount = 700;
  const rows = openRows(['method', 'name'], maxCount);
  type Row = { readonly key: string[]; readonly values: (number | undefined)[]; isInPass: boolean };
  const reference = new Map<string, Row>();
  for (let turn = 0; turn < 30; turn++) {
    if (turn === 20) {
      rows.clear();
      reference.clear();
    }
    rows.begin();
    for (const row of reference.values()) row.isInPass = false;
    for (let count = 0; count < 200; count++) {
      const key = [['GET', 'P"', ''][random(3)] ?? '', `${['é', '', '~\n'][random(3)]}${random(900)}`];
      const row = reference.get(key.join(' ')) ?? { key, values: [], isInPass: false };
      assert.equal(rows.isInPass(rows.find(key)), row.isInPass);
      const place = rows.findOrAdd(key);
      row.isInPass = true;
      reference.set(key.join(' '), row);
      const [column, value] = [random(3), random(1_000)];
      rows.set(place, column, value);
      row.values[column] = value;
      assert.equal(rows.find(key), place);
      for (const each of [0, 1, 2]) assert.equal(rows.get(place, each), row.values[each]);
    }
    rows.end();
    for (const [key, { isInPass }] of reference) {
      if (reference.size > maxCount && !isInPass) reference.delete(key);
    }
    assert.equal(rows.count(), reference.size);
    // Not every pass is listed.
    if (turn % 3 === 0) continue;
    const compare = (a: string | undefined, b: string | undefined) =>
      Buffer.compare(Buffer.from(a ?? ''), Buffer.from(b ?? ''));
    const sorted = [...reference.values()].toSorted(
      ({ key: a }, { key: b }) => compare(a[0], b[0]) || compare(a[1], b[1]),
    );
    const escapeText = (text: string | undefined) => text?.replaceAll('"', '\\"').replaceAll('\n', '\\n');
    const listed = sorted.map(({ key: [method, name], values }) => ({
      labels: `{method="${escapeText(method)}",name="${escapeText(name)}"}`,
      values,
    }));
    assert.deepEqual(
      [...rows.listPlaces()].map(({ labels }) => labels),
      listed.map(({ labels }) => labels),
    );
    for (const column of [0, 1, 2]) {
      assert.deepEqual(
        [...rows.list(column)],
        listed.flatMap(({ labels, values }) =>
          values[column] === undefined ? [] : [{ labels, value: values[column] }],
        ),
      );
    }
  }
  assert.ok(reference.size === maxCount, 'some were dropped');
  assert.deepEqual([rows.find(['GET', 'never']), rows.get(-1, 0), rows.getKnown(-1)], [-1, undefined, 0]);
  assert.deepEqual([...rows.list(9)], []);
});

test('openRows() knows nothing of a row that takes the place of another one', () => {
  const rows = openRows(['name'], 1);
  rows.begin();
  const first = rows.findOrAdd(['a']);
  rows.set(first, 0, 5);
  rows.begin();
  rows.findOrAdd(['b']);
  rows.end();
  assert.equal(rows.find(['a']), -1);
  assert.equal(rows.findOrAdd(['c']), first);
  assert.equal(rows.get(first, 0), undefined);
  const names = [...rows.listPlaces()].map(({ labels }) => labels);
  assert.deepEqual(names, ['{name="b"}', '{name="c"}']);
});

test('openRows() keeps every column for itself, and distinguishes keys whose joined texts are the same', () => {
  const rows = openRows(['method', 'name'], 9);
  const place = rows.findOrAdd(['1 a', 'b']);
  assert.notEqual(rows.findOrAdd(['1 ', 'ab']), place);
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

test('openRows() sorts by the third label where the first two are the same', () => {
  const rows = openRows(['error', 'method', 'name'], 9);
  for (const key of ['aab', 'bba', 'aba', 'aaa', 'bab']) rows.findOrAdd([...key]);
  const keys = [...rows.listPlaces()].map(({ labels }) => labels.replaceAll(/[^"]*"(.)"}?/g, '$1'));
  assert.deepEqual(keys, ['aaa', 'aab', 'aba', 'bab', 'bba']);
});
