// The rows of requests that are known, their numbers in columns: 10,000 rows as objects took 40 MB. Knows nothing of where they come from.

import { formatLabels, makeByteKey } from '../../exposition/exposition-text.ts';

export type RowStore = {
  /** The row's place, which is its own until it is forgotten; -1: it is not known. */
  readonly find: (method: string, name: string) => number;
  readonly findOrAdd: (method: string, name: string) => number;
  /** Between these two all that is newest is found or added; then what is too many and was not among it goes, the oldest first. */
  readonly begin: () => void;
  readonly end: () => void;
  readonly clear: () => void;
  readonly count: () => number;
  /** undefined: it is not known. */
  readonly get: (place: number, column: number) => number | undefined;
  readonly set: (place: number, column: number, value: number) => void;
  /** A set of columns as bits, for its owner; none of a new row. */
  readonly getMarks: (place: number) => number;
  readonly setMarks: (place: number, marks: number) => void;
  /** All rows, in the order of `list`. */
  readonly listPlaces: () => Generator<{ readonly labels: string; readonly place: number }>;
  /** The known numbers of a column, in the order of method and name as Go sorts them, byte by byte. */
  readonly list: (column: number) => Generator<{ readonly labels: string; readonly value: number }>;
};

/** One bit of a number for each. */
export const COLUMNS_MAX_COUNT = 31;
const FIRST_CAPACITY = 512;

/** Opens it without rows; beyond `maxCount` the oldest are forgotten. */
export function openRows(maxCount: number): RowStore {
  const places = new Map<string, number>();
  let capacity = 0;
  let free: number[] = [];
  let nextPlace = 0;
  // By place. A text of its own, for a part of a text keeps the whole of it in memory.
  let labels: string[] = [];
  let methodKeys: string[] = [];
  let nameKeys: string[] = [];
  let touchedIn = new Uint32Array(0);
  let known = new Uint32Array(0);
  let marks = new Uint32Array(0);
  let columns: (Float64Array | undefined)[] = [];
  let turn = 1;
  let order = new Uint32Array(0);
  let added: number[] = [];
  let hasGone = false;

  function grow(): void {
    capacity = Math.max(FIRST_CAPACITY, capacity * 2);
    const enlarge = <Numbers extends Uint32Array | Float64Array>(made: Numbers, before: Numbers): Numbers => {
      made.set(before);
      return made;
    };
    touchedIn = enlarge(new Uint32Array(capacity), touchedIn);
    known = enlarge(new Uint32Array(capacity), known);
    marks = enlarge(new Uint32Array(capacity), marks);
    columns = columns.map((column) => column && enlarge(new Float64Array(capacity), column));
  }
  function findOrAdd(method: string, name: string): number {
    const key = makeKey(method, name);
    const found = places.get(key);
    if (found !== undefined) {
      touchedIn[found] = turn;
      return found;
    }
    const place = free.pop() ?? nextPlace++;
    if (place >= capacity) grow();
    places.set(copyText(key), place);
    labels[place] = copyText(
      formatLabels([
        ['method', method],
        ['name', name],
      ]),
    );
    methodKeys[place] = makeByteKey(method);
    nameKeys[place] = makeByteKey(name);
    touchedIn[place] = turn;
    known[place] = 0;
    marks[place] = 0;
    added.push(place);
    return place;
  }
  function compare(left: number, right: number): number {
    const [a, b] = [methodKeys[left] as string, methodKeys[right] as string];
    if (a !== b) return a < b ? -1 : 1;
    return (nameKeys[left] as string) < (nameKeys[right] as string) ? -1 : 1;
  }
  /** Those that are new among those that are in order already. */
  function sort(): void {
    if (added.length === 0 && !hasGone) return;
    // A place that was left and taken again since is among both.
    const isAdded = new Set(added);
    const left = new Set(free);
    const news = [...isAdded].filter((place) => !left.has(place)).sort(compare);
    const sorted = new Uint32Array(places.size);
    let at = 0;
    let next = 0;
    for (const place of order) {
      if (left.has(place) || isAdded.has(place)) continue;
      while (next < news.length && compare(news[next] as number, place) < 0) sorted[at++] = news[next++] as number;
      sorted[at++] = place;
    }
    while (next < news.length) sorted[at++] = news[next++] as number;
    order = sorted;
    added = [];
    hasGone = false;
  }

  return {
    find: (method, name) => places.get(makeKey(method, name)) ?? -1,
    findOrAdd,
    begin() {
      turn++;
    },
    end() {
      if (places.size <= maxCount) return;
      for (const [key, place] of places) {
        if (places.size <= maxCount) break;
        if (touchedIn[place] === turn) continue;
        places.delete(key);
        free.push(place);
        hasGone = true;
      }
    },
    clear() {
      places.clear();
      free = [];
      nextPlace = 0;
      labels = [];
      methodKeys = [];
      nameKeys = [];
      added = [];
      order = new Uint32Array(0);
    },
    count: () => places.size,
    get: (place, column) =>
      ((known[place] as number) & (1 << column)) === 0 ? undefined : (columns[column] as Float64Array)[place],
    set(place, column, value) {
      columns[column] ??= new Float64Array(capacity);
      columns[column][place] = value;
      known[place] = (known[place] as number) | (1 << column);
    },
    getMarks: (place) => marks[place] as number,
    setMarks(place, given) {
      marks[place] = given;
    },
    *list(column) {
      sort();
      const bit = 1 << column;
      const values = columns[column];
      if (values === undefined) return;
      for (const place of order) {
        if (((known[place] as number) & bit) !== 0) {
          yield { labels: labels[place] as string, value: values[place] as number };
        }
      }
    },
    *listPlaces() {
      sort();
      for (const place of order) yield { labels: labels[place] as string, place };
    },
  };
}

/** No method and name have that of another two. */
function makeKey(method: string, name: string): string {
  return `${method.length} ${method}${name}`;
}

function copyText(text: string): string {
  return Buffer.from(text).toString();
}
