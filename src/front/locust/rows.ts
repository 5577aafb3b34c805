// Rows of labels and numbers, 10,000 of them in a few MB. Does not know their source.

import { copyText } from '../../base/text.ts';
import { formatLabels, makeByteKey, type Sample } from '../../exposition/exposition-text.ts';

/** The values of a row's labels, in the order of their names. */
type Key = readonly string[];

/** One row, until it is dropped. */
export type Row = {
  /** As the exposition has them. */
  readonly labels: string;
  /** By what Go sorts it: the bytes of each label's value. */
  readonly order: string;
  /** By column; a hole: unknown. */
  readonly numbers: number[];
};

/**
 * Rows by the values of their labels.
 *
 *     const rows = openRows(['method', 'name']);
 *     rows.add(['GET', '/']).numbers[0] = 7;
 *     [...rows.list(0)]   // [{ labels: '{method="GET",name="/"}', value: 7 }]
 */
export type Rows = {
  readonly find: (key: Key) => Row | undefined;
  /** Finds the row, or makes it. */
  readonly add: (key: Key) => Row;
  /** Drops rows beyond the limit, first those that were not added for longest. */
  readonly trim: (maxCount: number) => void;
  readonly clear: () => void;
  /** How many rows have a number in this column. Default: all rows. */
  readonly count: (column?: number) => number;
  /** All rows, in the order in which Go sorts their labels: byte by byte. */
  readonly listRows: () => readonly Row[];
  /** The known numbers of a column, in the same order. */
  readonly list: (column: number) => Iterable<Sample>;
};

/** Opens a store without rows. */
export function openRows(labelNames: readonly string[]): Rows {
  /** By their labels, in the order in which they were last added. */
  const rows = new Map<string, Row>();
  let sorted: Row[] = [];
  let isSorted = true;

  const format = (key: Key) => formatLabels(labelNames.map((name, index) => [name, key[index] as string]));
  /** Rows added since the last time stand at the end: of a sorted run V8's sort looks at each row once. */
  function sort(): readonly Row[] {
    if (!isSorted) sorted.sort((one, other) => (one.order < other.order ? -1 : 1));
    isSorted = true;
    return sorted;
  }

  return {
    find: (key) => rows.get(format(key)),
    add(key) {
      const labels = format(key);
      let row = rows.get(labels);
      if (row === undefined) {
        // A label's value that has a NUL may be sorted otherwise.
        row = { labels: copyText(labels), order: makeByteKey(key.join('\0')), numbers: [] };
        sorted.push(row);
        isSorted = false;
      }
      rows.delete(row.labels);
      rows.set(row.labels, row);
      return row;
    },
    trim(maxCount) {
      if (rows.size <= maxCount) return;
      for (const labels of [...rows.keys()].slice(0, -maxCount)) rows.delete(labels);
      sorted = sorted.filter(({ labels }) => rows.has(labels));
    },
    clear() {
      rows.clear();
      sorted = [];
    },
    count: (column) =>
      column === undefined ? rows.size : sorted.filter(({ numbers }) => numbers[column] !== undefined).length,
    listRows: sort,
    *list(column: number): Generator<Sample> {
      for (const { labels, numbers } of sort()) {
        const value = numbers[column];
        if (value !== undefined) yield { labels, value };
      }
    },
  };
}
