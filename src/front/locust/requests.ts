// The numbers of Locust's requests, by page and CSV: which is newer, and when Locust was reset. Pure.

import type { Sample } from '../../exposition/exposition-text.ts';
import { type LocustRow, ROW_FIELDS, type RowField } from './page.ts';
import { openRows, type Row, type RowStore } from './rows.ts';

/** The totals: of all requests, and of the failed ones. */
export const TOTAL_FIELDS = ['num_requests', 'num_failures'] as const;
type TotalField = (typeof TOTAL_FIELDS)[number];

/** Rows of the page (web.py). */
const PAGE_ROWS_COUNT = 500;
/** Beyond it, rows that left the page are dropped: a name may be new with each request. */
const ROWS_MAX_COUNT = 10_000;

// Columns: the page's last totals, the numbers shown, which of these are the CSV's (bits), percentiles.
const PAGE_TOTALS = [0, 1] as const;
const FIRST_FIELD = 2;
const SHOWN_TOTALS = TOTAL_FIELDS.map(findColumn);
const CSV_COLUMNS = FIRST_FIELD + ROW_FIELDS.length;
const FIRST_QUANTILE = CSV_COLUMNS + 1;
const QUANTILES_MAX_COUNT = 20;

const TOTAL_KEY = ['', 'Aggregated'] as const;
const TOTAL_LABELS = '{method="",name="Aggregated"}';

/** Opens it without rows. */
export function openLocustRequests() {
  const rows = openRows(['method', 'name'], ROWS_MAX_COUNT);
  const quantiles = new Map<string, number>();

  function putPageRow(taken: LocustRow): void {
    const row = rows.findOrAdd([taken.method, taken.name]);
    const { numbers } = row;
    const ofCsv = numbers[CSV_COLUMNS] ?? 0;
    // Locust caches the page for 2 s, and longer where it is slow: the CSV may be newer.
    const isOlder = ofCsv !== 0 && isFall(row, SHOWN_TOTALS, taken);
    const isNewer = (column: number) =>
      column < FIRST_QUANTILE ? (ofCsv & (1 << column)) !== 0 : numbers[column] !== undefined;
    putValues(numbers, quantiles, taken, isOlder ? isNewer : () => false);
    if (!isOlder) numbers[CSV_COLUMNS] = 0;
    for (const [index, field] of TOTAL_FIELDS.entries()) {
      numbers[PAGE_TOTALS[index] as number] = taken.values[field] as number;
    }
  }
  function putCsvRow(taken: LocustRow): void {
    const { numbers } = rows.findOrAdd([taken.method, taken.name]);
    numbers[CSV_COLUMNS] = putValues(numbers, quantiles, taken, () => false);
  }
  /** False: a total fell, so that Locust was reset after all that is known. */
  function putCsv(taken: Iterable<LocustRow>): boolean {
    for (const row of taken) {
      if (isFall(rows.find([row.method, row.name]), SHOWN_TOTALS, row)) return false;
      if (isShown(row.method, row.name)) putCsvRow(row);
    }
    return true;
  }
  /** Whether a row of the CSV is shown: the page has at most 500 rows, and others were never on it. */
  function isShown(method: string, name: string): boolean {
    if (method === '' && name === 'Aggregated') return true;
    return !isHidden(name) && (rows.count() < PAGE_ROWS_COUNT || rows.find([method, name]) !== undefined);
  }
  /** undefined: unknown. */
  function findTotal(field: TotalField): Sample | undefined {
    const value = rows.find(TOTAL_KEY)?.numbers[findColumn(field)];
    return value === undefined ? undefined : { labels: TOTAL_LABELS, value };
  }

  return {
    /** Takes a page, which Locust may have cached. False: Locust was reset, and old rows are gone. */
    takePage(taken: readonly LocustRow[]): boolean {
      const shown = taken.filter(({ name }) => !isHidden(name));
      const isReset = showsReset(rows, shown, taken.length);
      if (isReset) rows.clear();
      rows.begin();
      for (const row of shown) putPageRow(row);
      rows.end();
      return !isReset;
    },
    /** Takes the rows of a CSV, which are current; two passes after a reset. False: as in `takePage`. */
    takeCsv(taken: Iterable<LocustRow>): boolean {
      if (putCsv(taken)) return true;
      rows.clear();
      putCsv(taken);
      return false;
    },
    isShown,
    list: (field: RowField) => rows.list(findColumn(field)),
    listPercentiles: () => listPercentiles(rows, quantiles),
    findTotal,
    /** The share of failures if the totals are the CSV's. null: the page's own ratio is as new. */
    findCsvFailRatio(): number | null {
      if (!rows.find(TOTAL_KEY)?.numbers[CSV_COLUMNS]) return null;
      const [requests = 0, failures = 0] = TOTAL_FIELDS.map((field) => findTotal(field)?.value);
      return findRatio(failures, requests);
    },
  };
}

/** Sets the numbers of a row but for those that are kept. @returns the columns of its fields, as bits */
function putValues(
  numbers: number[],
  quantiles: Map<string, number>,
  { values, percentiles }: LocustRow,
  isKept: (column: number) => boolean,
): number {
  let bits = 0;
  for (const [index, field] of ROW_FIELDS.entries()) {
    const value = values[field];
    const column = FIRST_FIELD + index;
    if (value === undefined) continue;
    bits |= 1 << column;
    if (!isKept(column)) numbers[column] = value;
  }
  for (const [quantile, value] of percentiles) {
    const column = findQuantile(quantiles, quantile);
    if (column !== null && !isKept(column)) numbers[column] = value;
  }
  return bits;
}

/** As stats.py has it. */
function findRatio(failures: number, requests: number): number {
  if (requests === 0) return failures === 0 ? 0 : 1;
  return failures / requests;
}

/** Whether Locust was reset between the pages before and this one. */
function showsReset(rows: RowStore, shown: readonly LocustRow[], pageCount: number): boolean {
  const known = shown.map(({ method, name }) => rows.find([method, name]));
  const knownCount = known.filter((row) => row?.numbers[PAGE_TOTALS[0]] !== undefined).length;
  // A page with room for more has every row, the total's included; and a total never falls within a run.
  const isWhole = pageCount > 0 && pageCount < PAGE_ROWS_COUNT;
  return (
    (isWhole && knownCount < rows.count(PAGE_TOTALS[0])) ||
    shown.some((row, index) => isFall(known[index], PAGE_TOTALS, row))
  );
}

/** Whether a total is lower than it was; an unknown one is not. */
function isFall(row: Row | undefined, columns: readonly number[], { values }: LocustRow): boolean {
  return TOTAL_FIELDS.some((field, index) => {
    const [value, before] = [values[field], row?.numbers[columns[index] as number]];
    return value !== undefined && before !== undefined && value < before;
  });
}

function findColumn(field: RowField): number {
  return FIRST_FIELD + ROW_FIELDS.indexOf(field);
}

/** The column of a quantile, a new one if needed; null: there are too many. */
function findQuantile(quantiles: Map<string, number>, quantile: string): number | null {
  const found = quantiles.get(quantile);
  if (found !== undefined) return found;
  if (quantiles.size === QUANTILES_MAX_COUNT) return null;
  const column = FIRST_QUANTILE + quantiles.size;
  quantiles.set(quantile, column);
  return column;
}

/** Row by row; each row's quantiles in the order of their text, as Go sorts them. */
function* listPercentiles(rows: RowStore, quantiles: ReadonlyMap<string, number>): Generator<Sample> {
  const sorted = [...quantiles].toSorted(([a], [b]) => (a < b ? -1 : 1));
  for (const { labels, numbers } of rows.listRows()) {
    const others = labels.slice(0, -1);
    for (const [quantile, column] of sorted) {
      const value = numbers[column];
      if (value !== undefined) yield { labels: `${others},quantile="${quantile}"}`, value };
    }
  }
}

/** The exporter leaves these out: names of Locust 0.x's own rows. */
function isHidden(name: string): boolean {
  return name === 'Total' || name === '//stats/requests';
}
