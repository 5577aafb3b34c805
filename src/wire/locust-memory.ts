// What is known of Locust, by its page and its CSV, and the exposition that locust_exporter makes of it. Rows stay when Locust is
// gone; the plain gauges are there only while it answers. Pure.
// Names, HELP, types and labels: main.go of locust_exporter 0.5.0 and 0.5.2, of which 0.4.0 and 0.4.3 do not differ in them.

import { type Family, formatLabels, makeByteKey, type Sample } from './exposition-text.ts';
import { type LocustRow, type LocustStats, type LocustWorker, ROW_FIELDS, type RowField } from './locust-stats.ts';

export type LocustMemory = {
  /** Takes an answer of /stats/requests, which Locust may have kept for some seconds. */
  readonly takeStats: (stats: LocustStats) => void;
  /** Takes the rows of /stats/requests/csv, which are of the moment when they were asked for. */
  readonly takeCsv: (rows: readonly LocustRow[]) => void;
  /** A row of the CSV that is shown: the others were never on the page, which has 500 rows at most. */
  readonly isShown: (method: string, name: string) => boolean;
  /** In the order of their names. `isUp`: Locust answered; `stats`: what, null where that is unknown. */
  readonly listFamilies: (isUp: boolean, stats: LocustStats | null) => readonly Family[];
};

/** Rows of the page (web.py). */
const PAGE_ROWS_COUNT = 500;
/** Beyond so many, rows and errors that are on the page no more are forgotten: a name or an error text may be new with each request. */
const ROWS_MAX_COUNT = 10_000;
const ERRORS_MAX_COUNT = 2_000;

type Values = Readonly<Partial<Record<RowField, number>>>;
type Entry = { readonly labels: string; readonly keys: readonly string[] };
type KnownRow = Entry & {
  values: Values;
  percentiles: ReadonlyMap<string, number>;
  /** What each of the two said last. */
  stats: Values | null;
  csv: Values | null;
};
type KnownCount = Entry & { count: number };

/** `namespace`: what all names begin with; `locust` unless LOCUST_METRIC_NAMESPACE says otherwise. */
export function openLocustMemory(namespace: string): LocustMemory {
  const rows = openVector<KnownRow>(ROWS_MAX_COUNT);
  const errors = openVector<KnownCount>(ERRORS_MAX_COUNT);
  const workers = openVector<KnownCount>(ROWS_MAX_COUNT);

  function findOrAdd({ method, name }: Pick<LocustRow, 'method' | 'name'>): KnownRow {
    return rows.findOrAdd([method, name], () => ({
      ...makeEntry([
        ['method', method],
        ['name', name],
      ]),
      values: {},
      percentiles: new Map(),
      stats: null,
      csv: null,
    }));
  }
  /** Locust was reset, or another run began: nothing of before counts. */
  function forget(): void {
    rows.clear();
    errors.clear();
  }
  function takeRow(row: LocustRow): void {
    const known = findOrAdd(row);
    // The page is kept for 2 s by Locust, and longer where it is slow: the CSV may have come from later.
    const isOlder = known.csv !== null && isFall(known.csv, row.values);
    known.stats = row.values;
    known.values = isOlder ? { ...row.values, ...known.csv } : { ...known.values, ...row.values };
    known.percentiles = isOlder
      ? new Map([...row.percentiles, ...known.percentiles])
      : new Map([...known.percentiles, ...row.percentiles]);
    if (!isOlder) known.csv = null;
  }

  return {
    takeStats({ rows: taken, errors: takenErrors, workers: takenWorkers }) {
      const shown = taken.filter(({ name }) => !isHidden(name));
      // What the page shows never falls by itself.
      if (shown.some(({ method, name, values }) => isFall(rows.find([method, name])?.stats, values))) forget();
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
      // It was made after all that is known, so that what is lower in it was reset.
      if (taken.some(({ method, name, values }) => isFall(rows.find([method, name])?.values, values))) forget();
      for (const row of taken.filter(({ method, name }) => isShown(method, name))) {
        const known = findOrAdd(row);
        known.csv = row.values;
        known.values = { ...known.values, ...row.values };
        known.percentiles = new Map([...known.percentiles, ...row.percentiles]);
      }
    },
    isShown,
    listFamilies(isUp, stats) {
      const vectors: (readonly [string, Iterable<Sample>])[] = [
        ['errors', listCounts(errors)],
        ...ROW_FIELDS.map((field) => [`requests_${field}`, listValues(rows, field)] as const),
        ['requests_response_time_percentile', listPercentiles(rows)],
        ['worker_detail', listCounts(workers)],
      ];
      const gauges = [['up', isUp ? 1 : 0] as const, ...(isUp && stats !== null ? listGauges(stats) : [])];
      return [
        ...vectors,
        ...gauges.flatMap(([suffix, value]) => (value === null ? [] : [[suffix, [{ labels: '', value }]] as const])),
      ]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([suffix, samples]) => ({
          name: `${namespace}_${suffix}`,
          help: findHelp(suffix),
          type: 'gauge',
          samples,
        }));
    },
  };

  function isShown(method: string, name: string): boolean {
    return !isHidden(name) && (rows.find([method, name]) !== undefined || rows.count() < PAGE_ROWS_COUNT);
  }
  function takeError(method: string, name: string, error: string, occurrences: number): void {
    const entry = errors.findOrAdd([error, method, name], () => ({
      ...makeEntry([
        ['error', error],
        ['method', method],
        ['name', name],
      ]),
      count: 0,
    }));
    entry.count = occurrences;
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

const TOTALS = ['num_requests', 'num_failures'] as const;

/** The totals only grow within a run; one that is not known tells nothing. */
function isFall(before: Values | null | undefined, now: Values): boolean {
  if (before === null || before === undefined) return false;
  return TOTALS.some((field) => Number(now[field]) < Number(before[field]));
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

function* listValues(rows: VectorStore<KnownRow>, field: RowField): Generator<Sample> {
  for (const { labels, values } of rows.list()) {
    const value = values[field];
    if (value !== undefined) yield { labels, value };
  }
}

function* listPercentiles(rows: VectorStore<KnownRow>): Generator<Sample> {
  for (const { labels, percentiles } of rows.list()) {
    const others = labels.slice(0, -1);
    for (const [quantile, value] of [...percentiles].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      yield { labels: `${others},quantile="${quantile}"}`, value };
    }
  }
}

function* listCounts(counts: VectorStore<KnownCount>): Generator<Sample> {
  for (const { labels, count } of counts.list()) yield { labels, value: count };
}

type VectorStore<SomeEntry extends Entry> = {
  readonly find: (key: readonly string[]) => SomeEntry | undefined;
  readonly findOrAdd: (key: readonly string[], make: () => SomeEntry) => SomeEntry;
  /** Between these two all that is newest is found or added; then what is too many and was not among it goes. */
  readonly begin: () => void;
  readonly end: () => void;
  readonly clear: () => void;
  readonly count: () => number;
  /** In the order of their labels' values, as Go sorts them. */
  readonly list: () => readonly SomeEntry[];
};

function openVector<SomeEntry extends Entry>(maxCount: number): VectorStore<SomeEntry> {
  const entries = new Map<string, SomeEntry>();
  let touched = new Set<string>();
  let sorted: readonly SomeEntry[] | null = null;
  const join = (key: readonly string[]) => JSON.stringify(key);
  return {
    find: (key) => entries.get(join(key)),
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
    count: () => entries.size,
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
