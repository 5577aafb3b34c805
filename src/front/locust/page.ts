// Reads what Locust answers to /stats/requests, in JSON as Locust 2.8 to 2.47 write it and their `NaN`, which is none. Pure; never throws.
// Source: web.py and stats.py of Locust (fixtures/recordings: 2.12 and 2.47).

import { type Json, parseObject, toObject } from '../../base/json.ts';

/** The numbers of a row of requests that have a family of their own, by their names in JSON and in the exporter. */
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

/** What is known of the requests of one method and name; a number that is missing is not known. */
export type LocustRow = {
  readonly method: string;
  readonly name: string;
  readonly values: Readonly<Partial<Record<RowField, number>>>;
  /** In ms, by the quantile as it is written, such as `0.95`. */
  readonly percentiles: ReadonlyMap<string, number>;
};

export type LocustError = {
  readonly method: string;
  readonly name: string;
  readonly error: string;
  readonly occurrences: number;
};

export type LocustWorker = { readonly id: string; readonly state: string; readonly userCount: number };

/** One answer; null is "not in it". */
export type LocustStats = {
  /** `ready`, `spawning`, `running`, `cleanup`, `stopping`, `stopped` or `missing` (runners.py). */
  readonly state: string | null;
  readonly rows: readonly LocustRow[];
  readonly errors: readonly LocustError[];
  readonly workers: readonly LocustWorker[];
  readonly userCount: number | null;
  readonly failRatio: number | null;
  /** Of the last seconds, in ms. */
  readonly currentPercentile50: number | null;
  readonly currentPercentile95: number | null;
};

/** The states in which requests are made. */
export function isRunningState(state: string | null): boolean {
  return state === 'running' || state === 'spawning' || state === 'hatching';
}

/** Reads an answer; null where it is no JSON object: a login page, a proxy's own page. */
export function readLocustStats(text: string): LocustStats | null {
  const top = parsePython(text);
  if (top === null) return null;
  return {
    state: typeof top['state'] === 'string' ? top['state'] : null,
    rows: readList(top['stats']).map(readRow),
    errors: readList(top['errors']).map((error) => ({
      method: readText(error['method']),
      name: readText(error['name']),
      error: cutText(readText(error['error']), ERROR_MAX_LENGTH),
      occurrences: readNumber(error['occurrences']),
    })),
    workers: readList(top['workers']).map((worker) => ({
      id: readText(worker['id']),
      state: readText(worker['state']),
      userCount: readNumber(worker['user_count']),
    })),
    userCount: readOptional(top['user_count']),
    failRatio: readOptional(top['fail_ratio']),
    currentPercentile50: readCurrent(top, '0.5', ['1', '50']),
    currentPercentile95: readCurrent(top, '0.95', ['2', '95']),
  };
}

/** 500 errors with a page of HTML each took 64 MiB and more; and beyond 2,048 letters others than Prometheus refuse a label (Mimir). */
const ERROR_MAX_LENGTH = 1_024;
/** Each letter is six bytes of JSON at most, so that what is left of a text is enough for its part that is shown. */
const ERROR_MAX_BYTES = 6 * ERROR_MAX_LENGTH;
const ERROR_KEY = '"error":';
const [BLANK, QUOTE, BACKSLASH, LETTER_U] = [0x20, 0x22, 0x5c, 0x75];

/** Takes out of an answer what is not shown of long texts of errors; overwrites it, for as a text it would be too large. */
export function cutErrors(bytes: Buffer): Buffer {
  let keptBytes = 0;
  let from = 0;
  // The key within a text has backslashes before its quotes.
  for (let at = bytes.indexOf(ERROR_KEY); at !== -1; at = bytes.indexOf(ERROR_KEY, at)) {
    at += ERROR_KEY.length;
    while (bytes[at] === BLANK) at++;
    if (bytes[at] !== QUOTE) continue;
    const end = findTextEnd(bytes, at + 1);
    if (end === -1) break;
    if (end - at - 1 > ERROR_MAX_BYTES) {
      const cutAt = findEscapeStart(bytes, at + 1 + ERROR_MAX_BYTES);
      bytes.copyWithin(keptBytes, from, cutAt);
      keptBytes += cutAt - from;
      from = end;
    }
    at = end + 1;
  }
  bytes.copyWithin(keptBytes, from);
  return bytes.subarray(0, keptBytes + bytes.length - from);
}

/** -1: it has none. */
function findTextEnd(bytes: Buffer, from: number): number {
  let at = bytes.indexOf(QUOTE, from);
  while (isEscaped(bytes, at)) at = bytes.indexOf(QUOTE, at + 1);
  return at;
}

function isEscaped(bytes: Buffer, at: number): boolean {
  let count = 0;
  while (bytes[at - 1 - count] === BACKSLASH) count++;
  return count % 2 === 1;
}

/** The start of the escape that this byte is in, or else the byte: half a letter is behind what is shown, half an escape is no JSON. */
function findEscapeStart(bytes: Buffer, at: number): number {
  for (let start = at - 5; start < at; start++) {
    if (bytes[start] !== BACKSLASH || isEscaped(bytes, start)) continue;
    if (start + (bytes[start + 1] === LETTER_U ? 6 : 2) > at) return start;
  }
  return at;
}

/** The method or name may be anything; Python's `None` is an empty one. */
function readRow(row: Json): LocustRow {
  const values = Object.fromEntries(ROW_FIELDS.map((field) => [field, readNumber(row[field])]));
  const percentiles = new Map<string, number>();
  for (const [key, value] of Object.entries(row)) {
    const quantile = /^response_time_percentile_(0\.\d+)$/.exec(key)?.[1] ?? OLD_PERCENTILES.get(key);
    if (quantile !== undefined && typeof value === 'number') percentiles.set(quantile, value);
  }
  return { method: readText(row['method']), name: readText(row['name']), values, percentiles };
}

/** In 2.8 to 2.33, where they are not named by the quantile. */
const OLD_PERCENTILES: ReadonlyMap<string, string> = new Map([
  ['ninetieth_response_time', '0.9'],
  ['ninety_ninth_response_time', '0.99'],
]);

/**
 * A percentile of the last seconds: `…_50` and `…_95` in 2.8 and 2.12, `…_1` and `…_2` in 2.15, and an object by quantile from 2.24 on,
 * which there has 0.95 only. Without requests in those seconds it is `null`, which the exporter shows as 0.
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

/** A longer one is cut: a line of a body must not become too long to be read. */
const TEXT_MAX_LENGTH = 65_536;

function readText(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, TEXT_MAX_LENGTH).toWellFormed() : '';
}

/** A copy, for a part of a text keeps the whole of it in memory. */
function cutText(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : Buffer.from(text.slice(0, maxLength)).toString().toWellFormed();
}

/** What is missing, or is no number, is 0, as in the exporter. */
function readNumber(value: unknown): number {
  if (typeof value === 'number') return value;
  return value === 'NaN' || value === 'Infinity' || value === '-Infinity' ? Number(value) : 0;
}

function readOptional(value: unknown): number | null {
  return value === undefined ? null : readNumber(value);
}
