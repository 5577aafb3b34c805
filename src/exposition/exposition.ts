// Reads the few values of an exposition that lastscrape uses: the conditions' metrics, Locust's totals,
// promhttp's counters. Skips unreadable lines without losing the others. Pure; never throws.

import parsePrometheusTextFormat from 'parse-prometheus-text-format';
import { copyText, cut, findNearest } from '../base/text.ts';
import { formatLabels } from './exposition-text.ts';
import type { Format } from './format.ts';
import { type Label, readNumber, readSampleLine } from './lexer.ts';
import type { BodyReader } from './line-cutter.ts';
import { type FoundSample, openSampleFilter, type WantedSample } from './sample-filter.ts';

/** Larger bodies are neither read to the end nor kept. Locust exporters were seen at 0.9 MB. */
export const BODY_MAX_BYTES = 64 * 1024 * 1024;

/** A metric's one value, or why it is unknown. */
export type Reading =
  | { readonly kind: 'value'; readonly value: number }
  | { readonly kind: 'unknown'; readonly why: string };

/** What one body shows; null if it is missing or unreadable. */
export type Exposition = {
  /** For each metric asked for: its one sample without labels. */
  readonly metrics: ReadonlyMap<string, Reading>;
  /** For each selector, in order. */
  readonly selected: readonly SelectorReading[];
  /** A `<prefix>_requests_*` sample has exactly Locust's labels, `method` and `name`: it was reached once. */
  readonly hasRequests: boolean;
  /** The total row (`method=""`, `name="Aggregated"`) of `<prefix>_requests_num_requests`. */
  readonly requests: number | null;
  /** The total row of `<prefix>_requests_num_failures`. */
  readonly failures: number | null;
  /** `<prefix>_users`; only while Locust is up. */
  readonly users: number | null;
  /** promhttp's counter for code 200 and its gauge; null unless the body has both. */
  readonly scrapes: { readonly finishedCount: number; readonly inFlightCount: number } | null;
  /** The body comes from the front of another lastscrape. */
  readonly isFront: boolean;
};

export type ExpositionReader = BodyReader<void, Exposition>;

const AGGREGATED: readonly Label[] = [
  ['method', ''],
  ['name', 'Aggregated'],
];
const UP = '_up';

/**
 * Opens a reader for one body; `selectors` are the samples to judge. `<prefix>` is what precedes
 * `_up` in the first of `metricNames` that ends so (LOCUST_METRIC_NAMESPACE changes it), else `locust`.
 */
export function openExposition(
  metricNames: readonly string[],
  selectors: readonly Selector[] = [],
  format: Format = 'text',
): ExpositionReader {
  const prefix = metricNames.find((name) => name.endsWith(UP))?.slice(0, -UP.length) ?? 'locust';
  const metrics = new Map(metricNames.map((name) => [name, [] as (FoundSample | null)[]]));
  const requests = findNumber(`${prefix}_requests_num_requests`, AGGREGATED);
  const failures = findNumber(`${prefix}_requests_num_failures`, AGGREGATED);
  const users = findNumber(`${prefix}_users`, []);
  const finished = findNumber('promhttp_metric_handler_requests_total', [['code', '200']]);
  const inFlight = findNumber('promhttp_metric_handler_requests_in_flight', []);
  // Other programs have other labels in such rows (fixtures/recordings, locust_exporter 0.4.0 to 0.5.2).
  const row = findFirst({ name: `${prefix}_requests_`, isPrefix: true }, ['method', 'name']);
  const front = findFirst({ name: 'lastscrape_build_info' }, ['version']);
  const selections = selectors.map(openSelection);
  const names = openNames();
  const filter = openSampleFilter(
    [
      ...[...metrics].map(([name, found]) => ({
        name,
        onSample: (sample: FoundSample | null) => found.push(sample) < 2,
      })),
      ...[row, front, requests, failures, users, finished, inFlight].map(({ wanted }) => wanted),
      ...selections.flatMap(({ wanted }) => wanted),
      ...(selections.length === 0 ? [] : names.wanted),
    ],
    (line) => readSample(line, format),
  );

  return {
    write: filter.write,
    end() {
      filter.end();
      const [finishedCount, inFlightCount] = [finished.value(), inFlight.value()];
      return {
        metrics: new Map([...metrics].map(([name, found]) => [name, chooseReading(found)])),
        selected: selections.map(({ end }) => end(names.found)),
        hasRequests: row.value() !== null,
        requests: requests.value(),
        failures: failures.value(),
        users: users.value(),
        scrapes: finishedCount === null || inFlightCount === null ? null : { finishedCount, inFlightCount },
        isFront: front.value() !== null,
      };
    },
  };
}

/** Finds the first sample that `isMeant`, with labels of exactly these names, in any order. */
function findFirst(
  { contains = [], ...wanted }: Omit<WantedSample, 'onSample'>,
  names: readonly string[],
  isMeant: (sample: FoundSample) => boolean = () => true,
) {
  let value: number | null = null;
  function onSample(sample: FoundSample | null): boolean {
    const labels = sample?.labels ?? [];
    const hasNames = labels.length === names.length && names.every((name) => labels.some(([each]) => each === name));
    if (sample !== null && hasNames && isMeant(sample)) value = sample.value;
    return value === null;
  }
  return { value: () => value, wanted: { ...wanted, contains: [...names, ...contains], onSample } };
}

function findNumber(name: string, labels: readonly Label[]) {
  return findFirst(
    { name, contains: quotePlain(labels) },
    labels.map(([label]) => label),
    (sample) => Number.isFinite(sample.value) && sample.value >= 0 && hasLabels(sample.labels, labels),
  );
}

/** The value of a metric that is there once and without labels, of the samples that were found. */
export function chooseReading(found: readonly (FoundSample | null)[]): Reading {
  const [first, second] = found;
  if (first === undefined) return { kind: 'unknown', why: 'not in the exposition' };
  if (second !== undefined) return { kind: 'unknown', why: 'there more than once' };
  if (first === null) return { kind: 'unknown', why: 'unreadable' };
  if (first.labels.length > 0) return { kind: 'unknown', why: 'it has labels' };
  if (!Number.isFinite(first.value)) return { kind: 'unknown', why: 'no finite number' };
  return { kind: 'value', value: first.value };
}

function readSample(line: string, format: Format): FoundSample | null {
  const sample = readSampleLine(line, format);
  if (sample === null) return null;
  // The parser throws on, or loses, much that Prometheus reads: it gets what the lexer found.
  const [family] = parsePrometheusTextFormat(`${sample.name} ${sample.value}\n`);
  return { labels: sample.labels, value: readNumber(family?.metrics[0]?.value as string) };
}

/** Selects a metric's samples with these labels, among others; an empty value matches a missing label too. */
export type Selector = {
  readonly name: string;
  /** Unescaped. */
  readonly labels: readonly (readonly [name: string, value: string])[];
};

/**
 * No sample of the name, none with the labels, several, or one number (NaN and infinities too). `nearest`:
 * names or labels like those asked for, or those of two that match; absent without any.
 */
export type SelectorReading =
  | { readonly kind: 'none' | 'unmatched' | 'several'; readonly nearest?: readonly string[] }
  | { readonly kind: 'value'; readonly value: number };

/** How many names, and lines of one name, are compared with an entry. */
const COMPARED_COUNT = 100;
/** A longer name or label set is cut, in characters. */
const COMPARED_LENGTH = 100;
/** A name with less in common is another metric: `locust_up` has 0.42 of `locust_request_fail_ratio`. */
const NAME_SCORE = 0.45;

/** Finds the names of a body: all with a TYPE, and those of its first lines, for programs that write none. */
function openNames() {
  const found = new Set<string>();
  let lineCount = 0;
  function take(line: string): boolean {
    const [, name] = /^(?:# TYPE )?([a-zA-Z_:][\w:]*)/.exec(line) ?? [];
    if (name !== undefined) found.add(shorten(name));
    return found.size < COMPARED_COUNT;
  }
  const first = (line: string) => take(line) && ++lineCount < COMPARED_COUNT;
  const [name, isPrefix] = ['# TYPE ', true];
  return {
    found,
    wanted: [
      { name, isPrefix, onLine: take },
      { name: '', isPrefix, onLine: first },
    ],
  };
}

function shorten(text: string): string {
  return copyText(cut(text, COMPARED_LENGTH));
}

/** Opens the search of one body for the sample that an entry of LASTSCRAPE_FAIL_IF selects. */
function openSelection({ name, labels }: Selector) {
  let isUnreadable = false;
  const matches: FoundSample[] = [];
  const others: string[] = [];
  const other: WantedSample = {
    name,
    onSample(sample) {
      if (sample !== null) others.push(showLabels(sample));
      return matches.length === 0 && others.length < COMPARED_COUNT;
    },
  };
  const matching: WantedSample = {
    name,
    contains: quotePlain(labels),
    onSample(sample) {
      if (sample === null) isUnreadable = true;
      else if (hasLabels(sample.labels, labels)) matches.push(sample);
      return !isUnreadable && matches.length < 2;
    },
    onTooLong() {
      isUnreadable = true;
    },
  };
  return {
    wanted: [matching, other],
    end(names: ReadonlySet<string>): SelectorReading {
      if (isUnreadable) return { kind: 'none' };
      const [match, second] = matches;
      if (second !== undefined) return withNearest('several', matches.map(showLabels));
      if (match !== undefined) return { kind: 'value', value: match.value };
      if (others.length === 0) return withNearest('none', findNearest(name, [...names], NAME_SCORE));
      return withNearest('unmatched', findNearest(showLabels({ labels }), [...new Set(others)], 0));
    },
  };
}

function showLabels({ labels }: Pick<FoundSample, 'labels'>): string {
  return shorten(formatLabels(labels));
}

function withNearest(kind: 'none' | 'unmatched' | 'several', nearest: readonly string[]): SelectorReading {
  return nearest.length === 0 ? { kind } : { kind, nearest };
}

/** The values that can be written in only one way: no empty ones (may be missing), and none with escapes. */
function quotePlain(labels: readonly Label[]): readonly string[] {
  return labels.flatMap(([, text]) => (/^$|[\\"\n]/.test(text) ? [] : [`"${text}"`]));
}

function hasLabels(labels: readonly Label[], wanted: readonly Label[]): boolean {
  return wanted.every(([name, value]) => (labels.findLast(([each]) => each === name)?.[1] ?? '') === value);
}
