// What is known of Locust by its page and CSV, and the exposition that locust_exporter makes of it: which is
// newer, and when Locust was reset. Rows outlive Locust; the plain gauges are there while it answers. Pure.
// Names, HELP, types and labels: main.go of locust_exporter 0.5.0 and 0.5.2; 0.4.0 and 0.4.3 have the same.

import type { Family, Sample } from '../../exposition/exposition-text.ts';
import type { PageView } from './pace.ts';
import { type LocustRow, type LocustStats, ROW_FIELDS } from './page.ts';
import { openRows, type Row, type Rows } from './rows.ts';

/** What Locust has shown so far. */
export type LocustMemory = {
  /** Takes an answer of /stats/requests, which Locust may have cached for some seconds. */
  readonly takeStats: (stats: LocustStats) => void;
  /** Takes the rows of /stats/requests/csv, which are current. */
  readonly takeCsv: (rows: Iterable<LocustRow>) => void;
  readonly isShown: (method: string, name: string) => boolean;
  /** Of the total row; null: unknown. */
  readonly readTotals: () => { readonly requests: number | null; readonly failures: number | null };
  /** In the order of their names; `view`: what the newest answer of the page was. */
  readonly listFamilies: (view: PageView['kind']) => readonly Family[];
};

/** Rows of the page (web.py). */
const PAGE_ROWS_COUNT = 500;
/** Beyond it, rows that left the page are dropped: a name may be new with each request. */
const ROWS_MAX_COUNT = 10_000;
/** The same for errors: a text may be new as well. */
const ERRORS_MAX_COUNT = 2_000;
/** Of the numbers of a row: its fields, and 20 quantiles. */
const COLUMNS_MAX_COUNT = ROW_FIELDS.length + 20;

/** The totals by their columns: of all requests, and of the failed ones. */
const TOTAL_FIELDS = ['num_requests', 'num_failures'] as const;
const TOTALS = TOTAL_FIELDS.map((field) => [field, ROW_FIELDS.indexOf(field)] as const);
const TOTAL_KEY = ['', 'Aggregated'] as const;

/** `namespace`: what all names begin with; `locust` unless LOCUST_METRIC_NAMESPACE says otherwise. */
export function openLocustMemory(namespace: string): LocustMemory {
  const requests = openRequests();
  const errors = openRows(['error', 'method', 'name'], (): Count => [0]);
  const workers = openRows(['id', 'state'], (): Count => [0]);
  let gauges: LocustStats['gauges'] = new Map();
  const makeFamily = (suffix: string, samples: Iterable<Sample>): Family => ({
    name: `${namespace}_${suffix}`,
    help: HELP.get(suffix) ?? '',
    type: 'gauge',
    samples,
  });
  return {
    takeStats(stats) {
      if (!requests.takePage(stats.rows)) errors.clear();
      takeErrors(errors, stats.errors);
      // Only a worker's current state: the exporter keeps a row of each state.
      workers.clear();
      for (const { id, state, userCount } of stats.workers) workers.add([id, state]).known[0] = userCount;
      ({ gauges } = stats);
    },
    takeCsv(rows) {
      if (!requests.takeCsv(rows)) errors.clear();
    },
    isShown: requests.isShown,
    readTotals() {
      const total = requests.findTotal()?.known;
      const [all = null, failures = null] = TOTALS.map(([, column]) => total && readShown(total, column));
      return { requests: all, failures };
    },
    listFamilies(view) {
      const plain = new Map(view === 'stats' ? gauges : []);
      // Of the same moment as the totals, which stay when Locust is gone.
      const ratio = findCsvFailRatio(requests.findTotal()?.known);
      if (ratio !== null) plain.set('requests_fail_ratio', ratio);
      plain.set('up', view === 'stats' || view === 'other' ? 1 : 0);
      const families: (readonly [string, Iterable<Sample>])[] = [
        ['errors', errors.list(([count]) => count)],
        ...ROW_FIELDS.map((field, index) => [`requests_${field}`, requests.list(index)] as const),
        ['requests_response_time_percentile', requests.listPercentiles()],
        ['worker_detail', workers.list(([count]) => count)],
        ...[...plain].map(([suffix, value]) => [suffix, [{ labels: '', value }]] as const),
      ];
      return families.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([suffix, samples]) => makeFamily(suffix, samples));
    },
  };
}

/** Of errors, or of users of a worker. */
type Count = [number];

/** The numbers of a row by column: the page's, and of the CSV those that are newer. A hole: unknown. */
type Numbers = { readonly page: number[]; readonly csv: number[] };

function readShown({ page, csv }: Numbers, column: number): number | undefined {
  return csv[column] ?? page[column];
}

function openRequests() {
  const rows = openRows(['method', 'name'], (): Numbers => ({ page: [], csv: [] }));
  const columns = new Map<string, number>(ROW_FIELDS.map((field, index) => [field, index]));

  /** Puts numbers into a list, and takes older ones out of another. */
  function put(taken: LocustRow, numbers: number[], older: number[] = []): void {
    for (const [name, value] of taken.numbers) {
      if (columns.size < COLUMNS_MAX_COUNT && !columns.has(name)) columns.set(name, columns.size);
      const column = columns.get(name);
      if (column === undefined) continue;
      numbers[column] = value;
      delete older[column];
    }
  }
  function putPageRow(taken: LocustRow): void {
    const { known } = rows.add([taken.method, taken.name]);
    // Locust caches the page for 2 s, and longer where it is slow: the CSV may be newer.
    const isOlder = isFall(taken, (column) => readShown(known, column));
    put(taken, known.page, isOlder ? [] : known.csv);
  }
  /** False: a total fell, so that Locust was reset after all that is known. */
  function putCsv(taken: Iterable<LocustRow>): boolean {
    for (const each of taken) {
      const key = [each.method, each.name];
      const before = rows.find(key)?.known;
      if (isFall(each, (column) => before && readShown(before, column))) return false;
      if (!isShown(each.method, each.name)) continue;
      put(each, rows.add(key).known.csv);
    }
    return true;
  }
  /** Whether a row of the CSV is shown: the page has at most 500 rows, and others were never on it. */
  function isShown(method: string, name: string): boolean {
    if (method === '' && name === 'Aggregated') return true;
    return !isHidden(name) && (rows.count() < PAGE_ROWS_COUNT || rows.find([method, name]) !== undefined);
  }

  return {
    /** Takes a page, which Locust may have cached. False: Locust was reset, and old rows are gone. */
    takePage(taken: readonly LocustRow[]): boolean {
      const shown = taken.filter(({ name }) => !isHidden(name));
      const known = shown.map(({ method, name }) => rows.find([method, name])?.known);
      const isOnPage = (numbers: Numbers | undefined) => numbers !== undefined && numbers.page.length > 0;
      const beforeCount = rows.listRows().filter((row) => isOnPage(row.known)).length;
      // A page with room for more has every row, the total's included; and a total never falls within a run.
      const isWhole = taken.length > 0 && taken.length < PAGE_ROWS_COUNT;
      const isReset =
        (isWhole && known.filter(isOnPage).length < beforeCount) ||
        shown.some((row, index) => isFall(row, (column) => known[index]?.page[column]));
      if (isReset) rows.clear();
      for (const row of shown) putPageRow(row);
      rows.trim(ROWS_MAX_COUNT);
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
    list: (column: number) => rows.list((numbers) => readShown(numbers, column)),
    listPercentiles: () => listPercentiles(rows.listRows(), [...columns].slice(ROW_FIELDS.length)),
    findTotal: () => rows.find(TOTAL_KEY),
  };
}

/** Row by row; each row's quantiles in the order of their text, as Go sorts them. */
function* listPercentiles(
  rows: readonly Row<Numbers>[],
  columns: readonly (readonly [quantile: string, column: number])[],
): Generator<Sample> {
  const sorted = columns.toSorted(([a], [b]) => (a < b ? -1 : 1));
  for (const { labels, known } of rows) {
    const others = labels.slice(0, -1);
    for (const [quantile, column] of sorted) {
      const value = readShown(known, column);
      if (value !== undefined) yield { labels: `${others},quantile="${quantile}"}`, value };
    }
  }
}

/** The exporter leaves these out: names of Locust 0.x's own rows. */
function isHidden(name: string): boolean {
  return name === 'Total' || name === '//stats/requests';
}

/** Whether a total is lower than `readBefore` says that it was; an unknown one is not. */
function isFall({ numbers }: LocustRow, readBefore: (column: number) => number | undefined): boolean {
  return TOTALS.some(([field, column]) => {
    const [value, before] = [numbers.get(field), readBefore(column)];
    return value !== undefined && before !== undefined && value < before;
  });
}

/** The share of failures, as stats.py has it. null: the totals are the page's, its own ratio is as new. */
function findCsvFailRatio(total: Numbers | undefined): number | null {
  if (total === undefined || TOTALS.every(([, column]) => total.csv[column] === undefined)) return null;
  const [requests = 0, failures = 0] = TOTALS.map(([, column]) => readShown(total, column));
  if (requests === 0) return failures === 0 ? 0 : 1;
  return failures / requests;
}

function takeErrors(errors: Rows<Count>, taken: LocustStats['errors']): void {
  const onPage = new Set<unknown>();
  for (const { method, name, error, occurrences } of taken) {
    const { known } = errors.add([error, method, name]);
    // Two long texts may be the same once they are cut.
    known[0] = occurrences + (onPage.has(known) ? known[0] : 0);
    onPage.add(known);
  }
  errors.trim(ERRORS_MAX_COUNT);
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
