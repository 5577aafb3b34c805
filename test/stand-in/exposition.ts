// What locust_exporter shows: its memory of Locust's answers, and how it reads one, mistakes included. No
// I/O. Source: locust_exporter's main.go at v0.5.0 and v0.5.2, Go's encoding/json.

import { type Json, parseObject, toObject, toText } from '../../src/base/json.ts';
import {
  type Family,
  formatLabels,
  listLines,
  makeByteKey,
  makeGauge,
  type Sample,
} from '../../src/exposition/exposition-text.ts';
import { findHelp } from '../../src/front/locust/memory.ts';
import { ROW_FIELDS } from '../../src/front/locust/page.ts';

/** Writes families in the text format 0.0.4, ordered by name as a registry does; samples keep their order. */
export function writeExposition(families: readonly Family[]): string {
  const ordered = families.toSorted((a, b) => (makeByteKey(a.name) < makeByteKey(b.name) ? -1 : 1));
  return ordered.flatMap((family) => [...listLines(family)]).join('');
}

/**
 * What the exporter remembers of Locust: vectors keep every row they ever had, plain gauges exist only in the
 * answer to a fetch that succeeded.
 */
export class LocustMemory {
  readonly #vectors = new Map<string, Map<string, Row>>();

  /**
   * Takes the answer of one fetch and returns the families of this scrape.
   * @param body what Locust answered with a 2xx, or `undefined` if the fetch failed. A body that is not JSON
   * is no failure: up is 1 and every plain gauge 0, as in the recordings 14-nan and Q3-web-login.
   */
  collect(body: string | undefined): Family[] {
    const plain = body === undefined ? [] : this.#collectPlain(readLocustStats(body));
    const vectors = VECTORS.map(
      (suffix): Family => ({
        name: `locust_${suffix}`,
        help: findHelp(suffix),
        type: 'gauge',
        samples: [...(this.#vectors.get(suffix)?.values() ?? [])].toSorted(compareLabelValues),
      }),
    );
    return [...plain, ...vectors, locustGauge('up', body === undefined ? 0 : 1)];
  }

  #collectPlain(stats: ReturnType<typeof readLocustStats>): Family[] {
    for (const row of stats.rows) {
      // The exporter's filter for Locust 0.x; today the row of totals is "Aggregated".
      if (row.name === 'Total' || row.name === '//stats/requests') continue;
      const labels = [
        ['method', row.method],
        ['name', row.name],
      ] as const;
      for (const [index, field] of ROW_FIELDS.entries()) {
        this.#set(`requests_${field}`, labels, row.values[index] ?? 0);
      }
    }
    for (const { method, name: request, error, occurrences } of stats.errors) {
      const labels = [
        ['error', error],
        ['method', method],
        ['name', request],
      ] as const;
      this.#set('errors', labels, occurrences);
    }
    for (const { id, state, userCount } of stats.workers) {
      const labels = [
        ['id', id],
        ['state', state],
      ] as const;
      this.#set('worker_detail', labels, userCount);
    }
    const inState = (state: string) => stats.workers.filter((worker) => worker.state === state).length;
    const running = stats.state === 'hatching' ? 1 : stats.state === 'running' ? 2 : 0;
    return [
      locustGauge('users', stats.userCount),
      locustGauge('requests_fail_ratio', stats.failRatio),
      // Locust has moved these two into an object (before 2.47); the exporter still looks for the old keys.
      locustGauge('requests_current_response_time_percentile_95', stats.percentile95),
      locustGauge('requests_current_response_time_percentile_50', stats.percentile50),
      locustGauge('workers_count', stats.workers.length),
      locustGauge('workers_running_count', inState('running')),
      locustGauge('workers_hatching_count', inState('hatching')),
      locustGauge('workers_missing_count', inState('missing')),
      locustGauge('running', running),
    ];
  }

  #set(suffix: string, labels: readonly (readonly [name: string, value: string])[], value: number): void {
    const vector = this.#vectors.get(suffix) ?? new Map<string, Row>();
    this.#vectors.set(suffix, vector);
    const keys = labels.map(([, text]) => makeByteKey(text));
    vector.set(JSON.stringify(labels), { labels: formatLabels(labels), value, keys });
  }
}

function locustGauge(suffix: string, value: number): Family {
  return makeGauge(`locust_${suffix}`, findHelp(suffix), value);
}

/** A sample, and what it is ordered by. */
type Row = Sample & { readonly keys: readonly string[] };

const VECTORS: readonly string[] = [...ROW_FIELDS.map((field) => `requests_${field}`), 'errors', 'worker_detail'];

/** Reads as Go's json.Unmarshal with its error ignored: what is missing or of another type is zero. */
function readLocustStats(body: string) {
  const top = parseObject(body) ?? {};
  return {
    rows: readList(top['stats']).map((row) => ({
      ...readNames(row),
      values: ROW_FIELDS.map((field) => (field.startsWith('num_') ? readInteger : readNumber)(row[field])),
    })),
    errors: readList(top['errors']).map((row) => ({
      ...readNames(row),
      error: readText(row['error']),
      occurrences: readInteger(row['occurrences']),
    })),
    workers: readList(top['workers']).map((row) => ({
      id: readText(row['id']),
      state: readText(row['state']),
      userCount: readInteger(row['user_count']),
    })),
    state: readText(top['state']),
    userCount: readInteger(top['user_count']),
    failRatio: readNumber(top['fail_ratio']),
    percentile95: readNumber(top['current_response_time_percentile_95']),
    percentile50: readNumber(top['current_response_time_percentile_50']),
  };
}

function readNames(row: Json): { readonly method: string; readonly name: string } {
  return { method: readText(row['method']), name: readText(row['name']) };
}

function readList(value: unknown): Json[] {
  return Array.isArray(value) ? value.map(toObject) : [];
}

/** Go's decoder turns a lone surrogate into U+FFFD. */
function readText(value: unknown): string {
  return toText(value).toWellFormed();
}

function readNumber(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

function readInteger(value: unknown): number {
  return Number.isInteger(value) ? readNumber(value) : 0;
}

/** Samples of one family are ordered by the values of their labels, in the order of the labels' names. */
function compareLabelValues(a: Row, b: Row): number {
  for (const [index, key] of a.keys.entries()) {
    const other = b.keys[index] ?? '';
    if (key !== other) return key < other ? -1 : 1;
  }
  return 0;
}
