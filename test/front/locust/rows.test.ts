// The store of rows, held against objects that do the same the slow way.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openRows } from '../../../src/front/locust/rows.ts';
import { openRandom } from '../../support/random.ts';

const beginRow = (): number[] => [];

test('openRows() finds, sorts and drops as a map of objects does', () => {
  const random = openRandom(20_261_122);
  const maxCount = 700;
  const rows = openRows(['method', 'name'], beginRow);
  type Row = { readonly key: string[]; readonly values: (number | undefined)[] };
  const reference = new Map<string, Row>();
  for (let turn = 0; turn < 30; turn++) {
    if (turn === 20) {
      rows.clear();
      reference.clear();
    }
    for (let count = 0; count < 200; count++) {
      const key = [['GET', 'P"', ''][random(3)] ?? '', `${['é', '', '~\n'][random(3)]}${random(900)}`];
      const row = reference.get(key.join(' ')) ?? { key, values: [] };
      const found = rows.add(key);
      reference.delete(key.join(' '));
      reference.set(key.join(' '), row);
      const [column, value] = [random(3), random(1_000)];
      found.known[column] = value;
      row.values[column] = value;
      assert.equal(rows.find(key), found);
    }
    rows.trim(maxCount);
    for (const key of reference.keys()) if (reference.size > maxCount) reference.delete(key);
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
    const labels = rows.listRows().map(({ labels }) => labels);
    assert.deepEqual(
      labels,
      listed.map(({ labels }) => labels),
    );
    for (const column of [0, 1, 2]) {
      assert.deepEqual(
        [...rows.list((known) => known[column])],
        listed.flatMap(({ labels, values }) =>
          values[column] === undefined ? [] : [{ labels, value: values[column] }],
        ),
      );
    }
  }
  assert.ok(reference.size === maxCount, 'some were dropped');
  assert.equal(rows.find(['GET', 'never']), undefined);
  assert.deepEqual([...rows.list((known) => known[9])], []);
});

test('openRows() knows nothing of a row that was dropped', () => {
  const rows = openRows(['name'], beginRow);
  rows.add(['a']).known[0] = 5;
  rows.add(['b']);
  rows.trim(1);
  assert.equal(rows.find(['a']), undefined);
  assert.equal(rows.add(['a']).known[0], undefined);
  assert.equal(rows.count(), 2);
});

test('openRows() distinguishes keys whose joined texts are the same', () => {
  const rows = openRows(['method', 'name'], beginRow);
  assert.notEqual(rows.add(['1 a', 'b']), rows.add(['1 ', 'ab']));
});

test('openRows() sorts by the third label where the first two are the same', () => {
  const rows = openRows(['error', 'method', 'name'], beginRow);
  for (const key of ['aab', 'bba', 'aba', 'aaa', 'bab']) rows.add([...key]);
  const keys = rows.listRows().map(({ labels }) => labels.replaceAll(/[^"]*"(.)"}?/g, '$1'));
  assert.deepEqual(keys, ['aaa', 'aab', 'aba', 'bab', 'bba']);
});
