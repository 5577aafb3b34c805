// What is known of Locust, and the exposition that locust_exporter makes of it. Rows outlive Locust;
// the plain gauges are there only while it answers. Pure.
// Names, HELP, types and labels: main.go of locust_exporter 0.5.0 and 0.5.2; 0.4.0 and 0.4.3 have the same.

import { type Family, makeGauge, type Sample } from '../../exposition/exposition-text.ts';
import type { PageView } from './pace.ts';
import { type LocustRow, type LocustStats, ROW_FIELDS } from './page.ts';
import { openLocustRequests, TOTAL_FIELDS } from './requests.ts';
import { openRows, type RowStore } from './rows.ts';

export type LocustMemory = ReturnType<typeof openLocustMemory>;

/** Beyond it, errors that left the page are dropped: a text may be new with each request. */
const ERRORS_MAX_COUNT = 2_000;
const WORKERS_MAX_COUNT = 10_000;
/** The one column of errors and workers. */
const COUNT = 0;

/** `namespace`: what all names begin with; `locust` unless LOCUST_METRIC_NAMESPACE says otherwise. */
export function openLocustMemory(namespace: string) {
  const requests = openLocustRequests();
  const errors = openRows(['error', 'method', 'name'], ERRORS_MAX_COUNT);
  const workers = openRows(['id', 'state'], WORKERS_MAX_COUNT);
  let gauges: readonly Gauge[] = [];
  const makeFamily = (suffix: string, samples: Iterable<Sample>): Family => ({
    ...makeGauge(`${namespace}_${suffix}`, findHelp(suffix), 0),
    samples,
  });
  return {
    /** Takes an answer of /stats/requests, which Locust may have cached for some seconds. */
    takeStats(stats: LocustStats): void {
      if (!requests.takePage(stats.rows)) errors.clear();
      takeErrors(errors, stats.errors);
      // Only a worker's current state: the exporter keeps a row of each state.
      workers.clear();
      for (const { id, state, userCount } of stats.workers) {
        workers.findOrAdd([id, state]).numbers[COUNT] = userCount;
      }
      gauges = listGauges(stats);
    },
    /** Takes the rows of /stats/requests/csv, which are current. */
    takeCsv(rows: Iterable<LocustRow>): void {
      if (!requests.takeCsv(rows)) errors.clear();
    },
    isShown: requests.isShown,
    /** Only the total row of the families that count requests and failures. */
    listTotals: (): readonly Family[] =>
      TOTAL_FIELDS.map((field) => {
        const total = requests.findTotal(field);
        return makeFamily(`requests_${field}`, total === undefined ? [] : [total]);
      }),
    /** In the order of their names; `view`: what the newest answer of the page was. */
    listFamilies(view: PageView['kind']): readonly Family[] {
      const plain = new Map(view === 'stats' ? gauges : []);
      // Of the same moment as the totals, which stay when Locust is gone.
      const ratio = requests.findCsvFailRatio();
      if (ratio !== null) plain.set('requests_fail_ratio', ratio);
      plain.set('up', view === 'stats' || view === 'other' ? 1 : 0);
      const families: (readonly [string, Iterable<Sample>])[] = [
        ['errors', errors.list(COUNT)],
        ...ROW_FIELDS.map((field) => [`requests_${field}`, requests.list(field)] as const),
        ['requests_response_time_percentile', requests.listPercentiles()],
        ['worker_detail', workers.list(COUNT)],
        ...[...plain].map(([suffix, value]) => [suffix, [{ labels: '', value }]] as const),
      ];
      return families.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([suffix, samples]) => makeFamily(suffix, samples));
    },
  };
}

function takeErrors(errors: RowStore, taken: LocustStats['errors']): void {
  errors.begin();
  for (const { method, name, error, occurrences } of taken) {
    const key = [error, method, name];
    // Two long texts may be the same once they are cut.
    const known = errors.find(key);
    const others = errors.isInPass(known) ? (known?.numbers[COUNT] ?? 0) : 0;
    errors.findOrAdd(key).numbers[COUNT] = others + occurrences;
  }
  errors.end();
}

/** The HELP of a family, by what follows the namespace; empty for the numbers of requests. */
function findHelp(suffix: string): string {
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

type Gauge = readonly [suffix: string, value: number];

/** What Locust does not name is left out. */
function listGauges({ state, workers, ...stats }: LocustStats): readonly Gauge[] {
  const countIn = (...states: readonly string[]) => workers.filter((worker) => states.includes(worker.state)).length;
  // Locust 1.0 renamed hatching to spawning, which the exporter does not know.
  const running = state === 'running' ? 2 : state === 'spawning' || state === 'hatching' ? 1 : 0;
  const gauges: readonly (readonly [suffix: string, value: number | null])[] = [
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
  return gauges.filter((gauge): gauge is Gauge => gauge[1] !== null);
}
