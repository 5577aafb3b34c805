// What is known of Locust, by its page and its CSV, and the exposition that locust_exporter makes of it. Rows stay when Locust is
// gone; the plain gauges are there only while it answers. Pure.
// Names, HELP, types and labels: main.go of locust_exporter 0.5.0 and 0.5.2, of which 0.4.0 and 0.4.3 do not differ in them.

import { type Family, formatLabels, makeByteKey, type Sample } from '../../exposition/exposition-text.ts';
import { type LocustRow, type LocustStats, type LocustWorker, ROW_FIELDS } from './page.ts';
import { COLUMNS_MAX_COUNT, openRows, type RowStore } from './rows.ts';

export type LocustMemory = {
  /** Takes an answer of /stats/requests, which Locust may have kept for some seconds. */
  readonly takeStats: (stats: LocustStats) => void;
  /** Takes the rows of /stats/requests/csv, which are of the moment when they were asked for; goes through them twice after a reset. */
  readonly takeCsv: (rows: Iterable<LocustRow>) => void;
  /** A row of the CSV that is shown: the others were never on the page, which has 500 rows at most. */
  readonly isShown: (method: string, name: string) => boolean;
  /** Of the families that count requests and failures the total row alone. */
  readonly listTotals: () => readonly Family[];
  /** In the order of their names. `isUp`: Locust answered; `stats`: what, null where that is unknown. */
  readonly listFamilies: (isUp: boolean, stats: LocustStats | null) => readonly Family[];
};

/** Rows of the page (web.py). */
const PAGE_ROWS_COUNT = 500;
/** Beyond so many, rows and errors that are on the page no more are forgotten: a name or an error text may be new with each request. */
const ROWS_MAX_COUNT = 10_000;
const ERRORS_MAX_COUNT = 2_000;

type Entry = { readonly labels: string; readonly keys: readonly string[] };
type KnownCount = Entry & { count: number };

// The columns of the rows: what the page said last of the totals, the numbers that are shown, and from FIRST_QUANTILE on the percentiles.
const PAGE_TOTALS = [0, 1] as const;
const FIRST_FIELD = 2;
const FIRST_QUANTILE = FIRST_FIELD + ROW_FIELDS.length;
const COLUMN_OF_FIELD: ReadonlyMap<string, number> = new Map(
  ROW_FIELDS.map((field, index) => [field, FIRST_FIELD + index]),
);
const TOTALS = ['num_requests', 'num_failures'] as const;
const TOTAL_LABELS = '{method="",name="Aggregated"}';
const TOTAL_COLUMNS = TOTALS.map((field) => COLUMN_OF_FIELD.get(field) as number);

/** `namespace`: what all names begin with; `locust` unless LOCUST_METRIC_NAMESPACE says otherwise. */
export function openLocustMemory(namespace: string): LocustMemory {
  // Marked in it: the columns that the CSV gave, where it is newer than the page.
  const rows = openRows(ROWS_MAX_COUNT);
  const quantiles = new Map<string, number>();
  const errors = openVector<KnownCount>(ERRORS_MAX_COUNT);
  const workers = openVector<KnownCount>(ROWS_MAX_COUNT);

  /** Locust was reset, or another run began: nothing of before counts. */
  function forget(): void {
    rows.clear();
    errors.clear();
  }
  /** null: there are too many. */
  function findQuantile(quantile: string): number | null {
    const found = quantiles.get(quantile);
    if (found !== undefined) return found;
    const column = FIRST_QUANTILE + quantiles.size;
    if (column >= COLUMNS_MAX_COUNT) return null;
    quantiles.set(quantile, column);
    return column;
  }
  /** The totals only grow within a run; one that is not known tells nothing. */
  function isFall(place: number, columns: readonly number[], { values }: LocustRow): boolean {
    return (
      place !== -1 && TOTALS.some((field, index) => isLess(values[field], rows.get(place, columns[index] as number)))
    );
  }
  function takeRow(row: LocustRow): void {
    const place = rows.findOrAdd(row.method, row.name);
    // The page is kept for 2 s by Locust, and longer where it is slow: the CSV may have come from later.
    const ofCsv = rows.getMarks(place);
    const isOlder = ofCsv !== 0 && isFall(place, TOTAL_COLUMNS, row);
    if (!isOlder) rows.setMarks(place, 0);
    for (const [index, field] of TOTALS.entries())
      rows.set(place, PAGE_TOTALS[index] as number, row.values[field] as number);
    for (const [index, field] of ROW_FIELDS.entries()) {
      const value = row.values[field];
      const column = FIRST_FIELD + index;
      if (value !== undefined && !(isOlder && (ofCsv & (1 << column)) !== 0)) rows.set(place, column, value);
    }
    for (const [quantile, value] of row.percentiles) {
      const column = findQuantile(quantile);
      if (column !== null && !(isOlder && rows.get(place, column) !== undefined)) rows.set(place, column, value);
    }
  }
  function takeCsvRow(row: LocustRow): void {
    const place = rows.findOrAdd(row.method, row.name);
    let ofCsv = 0;
    for (const [index, field] of ROW_FIELDS.entries()) {
      const value = row.values[field];
      if (value === undefined) continue;
      ofCsv |= 1 << (FIRST_FIELD + index);
      rows.set(place, FIRST_FIELD + index, value);
    }
    rows.setMarks(place, ofCsv);
    for (const [quantile, value] of row.percentiles) {
      const column = findQuantile(quantile);
      if (column !== null) rows.set(place, column, value);
    }
  }
  /** False: it is of after a reset, which was not known. */
  function takeCsvRows(taken: Iterable<LocustRow>): boolean {
    for (const row of taken) {
      // It was made after all that is known, so that what is lower in it was reset.
      if (isFall(rows.find(row.method, row.name), TOTAL_COLUMNS, row)) return false;
      if (isShown(row.method, row.name)) takeCsvRow(row);
    }
    return true;
  }

  return {
    takeStats({ rows: taken, errors: takenErrors, workers: takenWorkers }) {
      const shown = taken.filter(({ name }) => !isHidden(name));
      // What the page shows never falls by itself.
      if (shown.some((row) => isFall(rows.find(row.method, row.name), PAGE_TOTALS, row))) forget();
      rows.begin();
      for (const row of shown) takeRow(row);
      rows.end();
      errors.begin();
      for (const { method, name, error, occurrences } of takenErrors) takeError(method, name, error, occurrences);
      errors.end();
      // A worker has the state that it is in: the exporter keeps a row of each that it was in.
      workers.clear();
      for (const worker of takenWorkers) takeWorker(worker);
    },
    takeCsv(taken) {
      if (takeCsvRows(taken)) return;
      forget();
      for (const row of taken) if (isShown(row.method, row.name)) takeCsvRow(row);
    },
    isShown,
    listFamilies(isUp, stats) {
      const vectors: (readonly [string, Iterable<Sample>])[] = [
        ['errors', listCounts(errors)],
        ...ROW_FIELDS.map((field, index) => [`requests_${field}`, rows.list(FIRST_FIELD + index)] as const),
        ['requests_response_time_percentile', listPercentiles(rows, quantiles)],
        ['worker_detail', listCounts(workers)],
      ];
      const gauges = [
        ['up', isUp ? 1 : 0] as const,
        ...(isUp && stats !== null ? listGauges({ ...stats, failRatio: findFailRatio(stats) }) : []),
      ];
      return [
        ...vectors,
        ...gauges.flatMap(([suffix, value]) => (value === null ? [] : [[suffix, [{ labels: '', value }]] as const])),
      ]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([suffix, samples]) => makeFamily(suffix, samples));
    },
    listTotals() {
      const place = rows.find('', 'Aggregated');
      return TOTALS.map((field, index) => {
        const value = place === -1 ? undefined : rows.get(place, TOTAL_COLUMNS[index] as number);
        return makeFamily(`requests_${field}`, value === undefined ? [] : [{ labels: TOTAL_LABELS, value }]);
      });
    },
  };

  /** Of the totals that are shown: where they are the CSV's, the page's own is older. */
  function findFailRatio({ failRatio }: LocustStats): number | null {
    const place = rows.find('', 'Aggregated');
    if (place === -1 || rows.getMarks(place) === 0) return failRatio;
    const [requests = 0, failures = 0] = TOTAL_COLUMNS.map((column) => rows.get(place, column));
    if (requests === 0) return failures === 0 ? 0 : 1;
    return failures / requests;
  }
  function makeFamily(suffix: string, samples: Iterable<Sample>): Family {
    return { name: `${namespace}_${suffix}`, help: findHelp(suffix), type: 'gauge', samples };
  }
  function isShown(method: string, name: string): boolean {
    if (method === '' && name === 'Aggregated') return true;
    return !isHidden(name) && (rows.find(method, name) !== -1 || rows.count() < PAGE_ROWS_COUNT);
  }
  function takeError(method: string, name: string, error: string, occurrences: number): void {
    const key = [error, method, name];
    // Two long texts are one where they are cut.
    const isAgain = errors.isFound(key);
    const entry = errors.findOrAdd(key, () => ({
      ...makeEntry([
        ['error', error],
        ['method', method],
        ['name', name],
      ]),
      count: 0,
    }));
    entry.count = isAgain ? entry.count + occurrences : occurrences;
  }
  function takeWorker({ id, state, userCount }: LocustWorker): void {
    const entry = workers.findOrAdd([id, state], () => ({
      ...makeEntry([
        ['id', id],
        ['state', state],
      ]),
      count: 0,
    }));
    entry.count = userCount;
  }
}

/** The exporter leaves these out: names of Locust 0.x's own rows. */
function isHidden(name: string): boolean {
  return name === 'Total' || name === '//stats/requests';
}

function isLess(value: number | undefined, before: number | undefined): boolean {
  return value !== undefined && before !== undefined && value < before;
}

/** The HELP of each family, by what follows the namespace; the exporter has none for the numbers of requests. */
export function findHelp(suffix: string): string {
  return HELP.get(suffix) ?? '';
}

const HELP: ReadonlyMap<string, string> = new Map([
  ['errors', 'The current number of errors.'],
  ['requests_response_time_percentile', 'The response time in ms that this share of the requests did not exceed.'],
  ['running', 'The current state of the execution (0 = STOPPED 1 = HATCHING 2 = RUNNING,).'],
  ['up', 'The current health status of the server (1 = UP, 0 = DOWN).'],
  ['users', 'The current number of users.'],
  ['worker_detail', 'The current status of a worker with user count'],
  ['workers_count', 'The current number of workers.'],
  ['workers_hatching_count', 'The current number of hatching workers.'],
  ['workers_missing_count', 'The current number of missing workers.'],
  ['workers_running_count', 'The current number of running workers.'],
]);

/** null: Locust does not say. */
function listGauges(stats: LocustStats): readonly (readonly [suffix: string, value: number | null])[] {
  const { state, workers } = stats;
  const countIn = (...states: readonly string[]) => workers.filter((worker) => states.includes(worker.state)).length;
  // Locust 1.0 renamed hatching to spawning, of which the exporter knows nothing.
  const running = state === 'running' ? 2 : state === 'spawning' || state === 'hatching' ? 1 : 0;
  return [
    ['users', stats.userCount],
    ['requests_fail_ratio', stats.failRatio],
    ['requests_current_response_time_percentile_50', stats.currentPercentile50],
    ['requests_current_response_time_percentile_95', stats.currentPercentile95],
    ['workers_count', workers.length],
    ['workers_running_count', countIn('running')],
    ['workers_hatching_count', countIn('spawning', 'hatching')],
    ['workers_missing_count', countIn('missing')],
    ['running', state === null ? null : running],
  ];
}

/** Row by row; each row's quantiles in the order of their text, as Go sorts them. */
function* listPercentiles(rows: RowStore, quantiles: ReadonlyMap<string, number>): Generator<Sample> {
  const sorted = [...quantiles].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const endings = sorted.map(([quantile]) => `,quantile="${quantile}"}`);
  const columns = sorted.map(([, column]) => column);
  for (const { labels, place } of rows.listPlaces()) {
    const others = labels.slice(0, -1);
    for (const [index, column] of columns.entries()) {
      const value = rows.get(place, column);
      if (value !== undefined) yield { labels: `${others}${endings[index]}`, value };
    }
  }
}

function* listCounts(counts: VectorStore<KnownCount>): Generator<Sample> {
  for (const { labels, count } of counts.list()) yield { labels, value: count };
}

type VectorStore<SomeEntry extends Entry> = {
  /** Since `begin`. */
  readonly isFound: (key: readonly string[]) => boolean;
  readonly findOrAdd: (key: readonly string[], make: () => SomeEntry) => SomeEntry;
  /** Between these two all that is newest is found or added; then what is too many and was not among it goes. */
  readonly begin: () => void;
  readonly end: () => void;
  readonly clear: () => void;
  /** In the order of their labels' values, as Go sorts them. */
  readonly list: () => readonly SomeEntry[];
};

function openVector<SomeEntry extends Entry>(maxCount: number): VectorStore<SomeEntry> {
  const entries = new Map<string, SomeEntry>();
  let touched = new Set<string>();
  let sorted: readonly SomeEntry[] | null = null;
  const join = (key: readonly string[]) => JSON.stringify(key);
  return {
    isFound: (key) => touched.has(join(key)),
    findOrAdd(key, make) {
      const joined = join(key);
      touched.add(joined);
      const found = entries.get(joined);
      if (found !== undefined) return found;
      const made = make();
      entries.set(joined, made);
      sorted = null;
      return made;
    },
    begin() {
      touched = new Set();
    },
    end() {
      if (entries.size <= maxCount) return;
      for (const key of entries.keys()) {
        if (entries.size <= maxCount) break;
        if (!touched.has(key)) entries.delete(key);
      }
      sorted = null;
    },
    clear() {
      entries.clear();
      sorted = null;
    },
    list() {
      sorted ??= [...entries.values()].toSorted(compareKeys);
      return sorted;
    },
  };
}

function makeEntry(labels: readonly (readonly [name: string, value: string])[]): Entry {
  return { labels: formatLabels(labels), keys: labels.map(([, value]) => makeByteKey(value)) };
}

function compareKeys(a: Entry, b: Entry): number {
  // Two rows differ in one key at least.
  const index = a.keys.findIndex((key, at) => key !== b.keys[at]);
  return (a.keys[index] as string) < (b.keys[index] as string) ? -1 : 1;
}
