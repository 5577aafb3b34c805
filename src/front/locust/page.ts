// Reads Locust's /stats/requests: JSON of 2.8 to 2.47, with the `NaN` of Python. Pure; never throws.
// Source: web.py and stats.py of Locust (fixtures/recordings: 2.12 and 2.47).

import { type Json, parseObject, toObject, toText } from '../../base/json.ts';

/** The numbers of a row that have a family each, by their names in JSON and in the exporter. */
export const ROW_FIELDS = [
  'avg_content_length',
  'avg_response_time',
  'current_fail_per_sec',
  'current_rps',
  'max_response_time',
  'median_response_time',
  'min_response_time',
  'num_failures',
  'num_requests',
] as const;

export type RowField = (typeof ROW_FIELDS)[number];

/** The requests of one method and name; a missing number is unknown. */
export type LocustRow = {
  readonly method: string;
  readonly name: string;
  /** By `RowField`; percentiles, in ms, by quantile, such as `0.95`. */
  readonly numbers: ReadonlyMap<string, number>;
};

/** An error that requests of this name had, and how often. */
export type LocustError = Pick<LocustRow, 'method' | 'name'> & { readonly error: string; readonly occurrences: number };

/** What Locust's page shows. */
export type LocustStats = {
  /** `running`, `stopped` and others; null: it does not say. */
  readonly state: string | null;
  readonly rows: readonly LocustRow[];
  readonly errors: readonly LocustError[];
  readonly workers: readonly { readonly id: string; readonly state: string; readonly userCount: number }[];
  /** By what follows the namespace in their names, such as `users`; what Locust does not name is left out. */
  readonly gauges: ReadonlyMap<string, number>;
};

/** Whether users may run. */
export function isRunningState(state: string | null): boolean {
  return state === 'running' || state === 'spawning' || state === 'hatching';
}

/** Reads an answer; null unless it is a JSON object: a login page, another program's page. */
export function readLocustStats(text: string): LocustStats | null {
  const top = parsePython(text.replace(ERROR, (found) => SHOWN_ERROR.exec(found)?.[0] ?? found));
  if (top === null) return null;
  // `ready`, `spawning`, `running`, `cleanup`, `stopping`, `stopped` or `missing` (runners.py).
  const state = typeof top['state'] === 'string' ? top['state'] : null;
  const rows: readonly LocustRow[] = readList(top['stats']).map(readRow);
  const errors = readList(top['errors']).map((error) => ({
    method: readText(error['method']),
    name: readText(error['name']),
    error: readText(error['error']),
    occurrences: readNumber(error['occurrences']),
  }));
  const workers = readList(top['workers']).map((worker) => ({
    id: readText(worker['id']),
    state: readText(worker['state']),
    userCount: readNumber(worker['user_count']),
  }));
  const countIn = (...states: readonly string[]) => workers.filter((worker) => states.includes(worker.state)).length;
  // Locust 1.0 renamed hatching to spawning, which the exporter does not know.
  const running = state === 'running' ? 2 : state === 'spawning' || state === 'hatching' ? 1 : 0;
  const gauges: readonly (readonly [suffix: string, value: number | null])[] = [
    ['users', readOptional(top['user_count'])],
    ['requests_fail_ratio', readOptional(top['fail_ratio'])],
    ['requests_current_response_time_percentile_50', readCurrent(top, '0.5', ['1', '50'])],
    ['requests_current_response_time_percentile_95', readCurrent(top, '0.95', ['2', '95'])],
    ['workers_count', workers.length],
    ['workers_running_count', countIn('running')],
    ['workers_hatching_count', countIn('spawning', 'hatching')],
    ['workers_missing_count', countIn('missing')],
    ['running', state === null ? null : running],
  ];
  return {
    state,
    rows,
    errors,
    workers,
    gauges: new Map(gauges.filter((gauge): gauge is readonly [string, number] => gauge[1] !== null)),
  };
}

/** The text of an error. Where a text has this key, there are backslashes before the quotes. */
const ERROR = /"error": *"[^"\\]*(?:\\.[^"\\]*)*/gs;
/**
 * What is read of it: 500 errors with a page of HTML each took 64 MiB; and Mimir rejects labels above 2,048
 * letters.
 */
const SHOWN_ERROR = /"error": *"(?:[^"\\]|\\u.{4}|\\.){0,1024}/s;

function readRow(row: Json): LocustRow {
  const numbers = new Map<string, number>(ROW_FIELDS.map((field) => [field, readNumber(row[field])]));
  for (const [key, value] of Object.entries(row)) {
    const quantile = /^response_time_percentile_(0\.\d+)$/.exec(key)?.[1] ?? OLD_PERCENTILES.get(key);
    if (quantile !== undefined && typeof value === 'number') numbers.set(quantile, value);
  }
  return { method: readText(row['method']), name: readText(row['name']), numbers };
}

/** Their names in 2.8 to 2.33. */
const OLD_PERCENTILES: ReadonlyMap<string, string> = new Map([
  ['ninetieth_response_time', '0.9'],
  ['ninety_ninth_response_time', '0.99'],
]);

/**
 * A percentile of the last seconds: `…_50` and `…_95` in 2.8 and 2.12, `…_1`, `…_2` in 2.15, an object
 * from 2.24 on, with only 0.95. Without requests it is `null`, which the exporter shows as 0.
 */
function readCurrent(top: Json, quantile: string, names: readonly string[]): number | null {
  const found = [
    toObject(top['current_response_time_percentiles'])[`response_time_percentile_${quantile}`],
    ...names.map((name) => top[`current_response_time_percentile_${name}`]),
  ].find((value) => value !== undefined);
  return found === undefined ? null : readNumber(found);
}

/** Parses JSON, and what Python writes: `NaN` and `Infinity` are read as strings (recording 14-nan). */
function parsePython(text: string): Json | null {
  const quote = (token: string) => (token.startsWith('"') ? token : `"${token}"`);
  return parseObject(text) ?? parseObject(text.replace(STRING_OR_NO_NUMBER, quote));
}

const STRING_OR_NO_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\b(?:NaN|Infinity)\b/gs;

function readList(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.map(toObject) : [];
}

/** Longer texts are cut: Prometheus must be able to read the line. */
const TEXT_MAX_LENGTH = 65_536;

function readText(value: unknown): string {
  return toText(value).slice(0, TEXT_MAX_LENGTH).toWellFormed();
}

/** What is missing or not a number is 0, as in the exporter. */
function readNumber(value: unknown): number {
  if (typeof value === 'number') return value;
  return value === 'NaN' || value === 'Infinity' || value === '-Infinity' ? Number(value) : 0;
}

function readOptional(value: unknown): number | null {
  return value === undefined ? null : readNumber(value);
}
