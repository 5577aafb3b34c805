// Rows of labels and numbers, 10,000 of them in a few MB. Does not know their source.

import { copyText } from '../../base/text.ts';
import { formatLabels, makeByteKey, type Sample } from '../../exposition/exposition-text.ts';

/** The values of a row's labels, in the order of their names. */
export type Key = readonly string[];

/** One row, until it is dropped. */
export type Row = {
  /** As the exposition has them. */
  readonly labels: string;
  /** By what Go sorts it: the bytes of each label's value. */
  readonly order: Key;
  /** By column; a hole: unknown. */
  readonly numbers: number[];
  /** The newest pass that it was in. */
  pass: number;
};

export type RowStore = ReturnType<typeof openRows>;

/** Opens a store without rows; `maxCount`: see `end`. */
export function openRows(labelNames: readonly string[], maxCount: number) {
  const rows = new Map<string, Row>();
  let sorted: Row[] = [];
  let isSorted = true;
  let pass = 0;

  function add(key: Key): Row {
    const labels = copyText(formatLabels(labelNames.map((name, index) => [name, key[index] as string])));
    const row: Row = { labels, order: key.map(makeByteKey), numbers: [], pass };
    rows.set(copyText(joinKey(key)), row);
    sorted.push(row);
    isSorted = false;
    return row;
  }
  /** Rows added since the last time stand at the end: of a sorted run V8's sort looks at each row once. */
  function sort(): readonly Row[] {
    if (!isSorted) sorted.sort(compareRows);
    isSorted = true;
    return sorted;
  }

  return {
    find: (key: Key): Row | undefined => rows.get(joinKey(key)),
    /** Keeps the row in the pass. */
    findOrAdd(key: Key): Row {
      const row = rows.get(joinKey(key)) ?? add(key);
      row.pass = pass;
      return row;
    },
    begin(): void {
      pass++;
    },
    isInPass: (row: Row | undefined) => row?.pass === pass,
    /** Ends a pass: drops rows beyond the limit that are not in it, the oldest first. */
    end(): void {
      const dropped = new Set<Row>();
      for (const [key, row] of rows) {
        if (rows.size <= maxCount) break;
        if (row.pass === pass) continue;
        rows.delete(key);
        dropped.add(row);
      }
      if (dropped.size > 0) sorted = sorted.filter((row) => !dropped.has(row));
    },
    clear(): void {
      rows.clear();
      sorted = [];
    },
    /** How many rows have a number in this column. Default: all rows. */
    count: (column?: number) =>
      column === undefined ? rows.size : sorted.filter(({ numbers }) => numbers[column] !== undefined).length,
    /** All rows, in the order in which Go sorts their labels: byte by byte. */
    listRows: sort,
    /** The known numbers of a column, in the same order. */
    *list(column: number): Generator<Sample> {
      for (const { labels, numbers } of sort()) {
        const value = numbers[column];
        if (value !== undefined) yield { labels, value };
      }
    },
  };
}

function compareRows({ order: left }: Row, { order: right }: Row): number {
  const index = left.findIndex((text, at) => text !== right[at]);
  return (left[index] as string) < (right[index] as string) ? -1 : 1;
}

/** Two keys have different texts. */
function joinKey(key: Key): string {
  let text = '';
  for (const value of key) text += `${value.length} ${value}`;
  return text;
}
