// Rows of labels, their numbers in columns: 10,000 rows as objects took 40 MB. Does not know their source.

import { copyText } from '../../base/text.ts';
import { formatLabels, makeByteKey, type Sample } from '../../exposition/exposition-text.ts';

/** The values of a row's labels, in the order of their names. */
export type Key = readonly string[];

/** A store of rows; a row's place is its own until the row is dropped. */
export type RowStore = ReturnType<typeof openRows>;

/** One bit of a number for each. */
export const COLUMNS_MAX_COUNT = 32;
const FIRST_CAPACITY = 512;

/** Opens a store without rows; `maxCount`: see `end`. */
export function openRows(labelNames: readonly string[], maxCount: number) {
  const places = new Map<string, number>();
  const numbers = openColumns();
  // By place; of the keys one list for each label.
  let labels: string[] = [];
  let keys: string[][] = labelNames.map(() => []);
  let free: number[] = [];
  let order: number[] = [];
  let isSorted = true;

  function add(key: Key): number {
    const place = free.pop() ?? labels.length;
    places.set(copyText(joinKey(key)), place);
    labels[place] = copyText(formatLabels(labelNames.map((name, index) => [name, key[index] as string])));
    for (const [index, values] of keys.entries()) values[place] = makeByteKey(key[index] as string);
    numbers.reset(place);
    order.push(place);
    isSorted = false;
    return place;
  }
  function compare(left: number, right: number): number {
    let values = keys[0] as string[];
    for (let index = 1; index < keys.length && values[left] === values[right]; index++)
      values = keys[index] as string[];
    return (values[left] as string) < (values[right] as string) ? -1 : 1;
  }
  /** Rows added since the last time stand at the end: of a sorted run V8's sort looks at each row once. */
  function sort(): readonly number[] {
    if (!isSorted) order.sort(compare);
    isSorted = true;
    return order;
  }

  return {
    ...numbers,
    /** The row's place; -1: unknown. */
    find: (key: Key) => places.get(joinKey(key)) ?? -1,
    /** Keeps the row in the pass. */
    findOrAdd(key: Key): number {
      const place = places.get(joinKey(key)) ?? add(key);
      numbers.touch(place);
      return place;
    },
    /** Ends a pass: drops rows beyond the limit that are not in it, the oldest first. */
    end(): void {
      const dropped = new Set<number>();
      for (const [key, place] of places) {
        if (places.size <= maxCount) break;
        if (numbers.isInPass(place)) continue;
        places.delete(key);
        free.push(place);
        dropped.add(place);
      }
      if (dropped.size > 0) order = order.filter((place) => !dropped.has(place));
    },
    clear(): void {
      places.clear();
      labels = [];
      keys = labelNames.map(() => []);
      free = [];
      order = [];
    },
    /** How many rows have a number in this column. Default: all rows. */
    count: (column?: number) =>
      column === undefined ? places.size : order.filter((place) => numbers.get(place, column) !== undefined).length,
    /** All rows, in the order in which Go sorts their labels: byte by byte. */
    *listPlaces(): Generator<{ readonly labels: string; readonly place: number }> {
      for (const place of sort()) yield { labels: labels[place] as string, place };
    },
    /** The known numbers of a column, in the same order. */
    *list(column: number): Generator<Sample> {
      for (const place of sort()) {
        const value = numbers.get(place, column);
        if (value !== undefined) yield { labels: labels[place] as string, value };
      }
    },
  };
}

/** The numbers by place, and the pass in which each place was last kept. */
function openColumns() {
  const columns: (Float64Array | undefined)[] = [];
  let known = new Uint32Array(0);
  let passes = new Uint32Array(0);
  let pass = 1;
  function grow(): void {
    const capacity = Math.max(FIRST_CAPACITY, known.length * 2);
    known = enlarge(new Uint32Array(capacity), known);
    passes = enlarge(new Uint32Array(capacity), passes);
    for (const [index, column] of columns.entries()) {
      if (column !== undefined) columns[index] = enlarge(new Float64Array(capacity), column);
    }
  }
  return {
    reset(place: number): void {
      if (place >= known.length) grow();
      known[place] = 0;
    },
    begin(): void {
      pass++;
    },
    touch(place: number): void {
      passes[place] = pass;
    },
    isInPass: (place: number) => passes[place] === pass,
    /** Which columns of the row have a number, as bits; 0 for an unknown row. */
    getKnown: (place: number) => known[place] ?? 0,
    get: (place: number, column: number) =>
      ((known[place] ?? 0) & (1 << column)) === 0 ? undefined : columns[column]?.[place],
    set(place: number, column: number, value: number): void {
      columns[column] ??= new Float64Array(known.length);
      columns[column][place] = value;
      known[place] = (known[place] as number) | (1 << column);
    },
  };
}

function enlarge<Numbers extends Uint32Array | Float64Array>(made: Numbers, before: Numbers): Numbers {
  made.set(before);
  return made;
}

/** Two keys have different texts. */
function joinKey(key: Key): string {
  let text = '';
  for (const value of key) text += `${value.length} ${value}`;
  return text;
}
