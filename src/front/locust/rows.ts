// Rows of labels and numbers, 10,000 of them in a few MB. Does not know their source.

import { copyText } from '../../base/text.ts';
import { formatLabels, makeByteKey, type Sample } from '../../exposition/exposition-text.ts';

type Key = readonly string[];

/** One row, until it is dropped. */
export type Row<Known> = {
  /** As the exposition has them. */
  readonly labels: string;
  /** By what Go sorts it: the bytes of each label's value. */
  readonly order: string;
  readonly known: Known;
};

/**
 * Rows by the values of their labels.
 *
 *     const rows = openRows(['method', 'name'], (): number[] => []);
 *     rows.add(['GET', '/']).known[0] = 7;
 *     [...rows.list(([count]) => count)]   // [{ labels: '{method="GET",name="/"}', value: 7 }]
 */
export type Rows<Known> = {
  readonly find: (key: Key) => Row<Known> | undefined;
  readonly add: (key: Key) => Row<Known>;
  /** Drops rows beyond the limit, first those that were not added for longest. */
  readonly trim: (maxCount: number) => void;
  readonly clear: () => void;
  readonly count: () => number;
  /** All rows, in the order in which Go sorts their labels: byte by byte. */
  readonly listRows: () => readonly Row<Known>[];
  /** A number of each, in the same order; undefined: it has none. */
  readonly list: (read: (known: Known) => number | undefined) => Iterable<Sample>;
};

/** Opens a store without rows. `begin`: what is known of a new one. */
export function openRows<Known>(labelNames: readonly string[], begin: () => Known): Rows<Known> {
  /** By their labels, in the order in which they were last added. */
  const rows = new Map<string, Row<Known>>();
  /** Null: rows came or went since. */
  let sorted: readonly Row<Known>[] | null = null;

  const format = (key: Key) => formatLabels(labelNames.map((name, index) => [name, key[index] as string]));
  function listRows(): readonly Row<Known>[] {
    sorted ??= [...rows.values()].sort((one, other) => (one.order < other.order ? -1 : 1));
    return sorted;
  }

  return {
    find: (key) => rows.get(format(key)),
    add(key) {
      const labels = format(key);
      let row = rows.get(labels);
      if (row === undefined) {
        // A label's value that has a NUL may be sorted otherwise.
        row = { labels: copyText(labels), order: makeByteKey(key.join('\0')), known: begin() };
        sorted = null;
      }
      rows.delete(row.labels);
      rows.set(row.labels, row);
      return row;
    },
    trim(maxCount) {
      if (rows.size <= maxCount) return;
      for (const labels of [...rows.keys()].slice(0, -maxCount)) rows.delete(labels);
      sorted = null;
    },
    clear() {
      rows.clear();
      sorted = null;
    },
    count: () => rows.size,
    listRows,
    *list(read) {
      for (const { labels, known } of listRows()) {
        const value = read(known);
        if (value !== undefined) yield { labels, value };
      }
    },
  };
}
