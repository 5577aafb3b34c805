// Reads the few values of an exposition that lastscrape uses: the conditions' metrics, Locust's totals,
// promhttp's counters. Skips unreadable lines without losing the others. Pure; never throws.

import parsePrometheusTextFormat from 'parse-prometheus-text-format';
import { type Label, readNumber, readSampleLine } from './lexer.ts';
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
  /**
   * A `<prefix>_requests_*` sample has exactly Locust's labels, `method` and `name`: Locust was reached at
   * some time.
   */
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

export type ExpositionReader = {
  /** Takes the next piece of the body, of any size. */
  readonly write: (chunk: Uint8Array) => void;
  /** Returns what was read; the body has ended as HTTP says. */
  readonly end: () => Exposition;
  readonly sizeBytes: number;
};

const AGGREGATED: readonly Label[] = [
  ['method', ''],
  ['name', 'Aggregated'],
];
const UP = '_up';

/**
 * Opens a reader for one body; `selectors` are the samples to judge.
 *
 * `<prefix>` is what precedes `_up` in the first of `metricNames` that ends so (LOCUST_METRIC_NAMESPACE
 * changes it), else `locust`.
 */
export function openExposition(metricNames: readonly string[], selectors: readonly Selector[] = []): ExpositionReader {
  const prefix = metricNames.find((name) => name.endsWith(UP))?.slice(0, -UP.length) ?? 'locust';
  const metrics = new Map(metricNames.map((name) => [name, [] as (FoundSample | null)[]]));
  const requests = wantOne(`${prefix}_requests_num_requests`, AGGREGATED);
  const failures = wantOne(`${prefix}_requests_num_failures`, AGGREGATED);
  const users = wantOne(`${prefix}_users`, []);
  const finished = wantOne('promhttp_metric_handler_requests_total', [['code', '200']]);
  const inFlight = wantOne('promhttp_metric_handler_requests_in_flight', []);
  const selections = selectors.map(openSelection);
  let hasRequests = false;
  let isFront = false;
  let sizeBytes = 0;
  const filter = openSampleFilter(
    [
      ...[...metrics].map(([name, found]) => ({
        name,
        onSample: (sample: FoundSample | null) => found.push(sample) < 2,
      })),
      {
        name: `${prefix}_requests_`,
        isPrefix: true,
        contains: ['method', 'name'],
        onSample(sample) {
          // Other programs have other labels in such rows (fixtures/recordings, locust_exporter 0.4.0 to
          // 0.5.2).
          hasRequests = sample !== null && hasNames(sample.labels, ['method', 'name']);
          return !hasRequests;
        },
      },
      {
        name: 'lastscrape_build_info',
        contains: ['version'],
        onSample(sample) {
          isFront = sample !== null && hasNames(sample.labels, ['version']);
          return !isFront;
        },
      },
      ...[requests, failures, users, finished, inFlight].map(({ wanted }) => wanted),
      ...selections.flatMap(({ wanted }) => wanted),
    ],
    readSample,
  );

  return {
    get sizeBytes() {
      return sizeBytes;
    },
    write(chunk) {
      sizeBytes += chunk.length;
      filter.write(chunk);
    },
    end() {
      filter.end();
      const finishedCount = finished.found.value;
      const inFlightCount = inFlight.found.value;
      return {
        metrics: new Map([...metrics].map(([name, found]) => [name, chooseReading(found)])),
        selected: selections.map(({ end }) => end()),
        hasRequests,
        requests: requests.found.value,
        failures: failures.found.value,
        users: users.found.value,
        scrapes: finishedCount === null || inFlightCount === null ? null : { finishedCount, inFlightCount },
        isFront,
      };
    },
  };
}

/** Keeps the first sample with exactly these labels, in any order, whose value can be reported. */
function wantOne(name: string, labels: readonly Label[]) {
  const found: { value: number | null } = { value: null };
  const wanted: WantedSample = {
    name,
    contains: labels.filter(([, text]) => text !== '').map(([, text]) => `"${text}"`),
    onSample(sample) {
      if (sample === null || !hasExactly(sample.labels, labels)) return true;
      if (!Number.isFinite(sample.value) || sample.value < 0) return true;
      found.value = sample.value;
      return false;
    },
  };
  return { found, wanted };
}

function hasExactly(labels: readonly Label[], wanted: readonly Label[]): boolean {
  const isThere = ([name, value]: Label) => labels.some(([each, text]) => each === name && text === value);
  return labels.length === wanted.length && wanted.every(isThere);
}

function hasNames(labels: readonly Label[], names: readonly string[]): boolean {
  return labels.length === names.length && names.every((name) => labels.some(([each]) => each === name));
}

function chooseReading(found: readonly (FoundSample | null)[]): Reading {
  const [first, second] = found;
  if (first === undefined) return { kind: 'unknown', why: 'not in the exposition' };
  if (second !== undefined) return { kind: 'unknown', why: 'there more than once' };
  if (first === null) return { kind: 'unknown', why: 'unreadable' };
  if (first.labels.length > 0) return { kind: 'unknown', why: 'it has labels' };
  if (!Number.isFinite(first.value)) return { kind: 'unknown', why: 'no finite number' };
  return { kind: 'value', value: first.value };
}

/** Reads one line; null if it is not a sample. */
function readSample(line: string): FoundSample | null {
  const sample = readSampleLine(line);
  if (sample === null) return null;
  // The parser throws on, or loses, much that Prometheus reads: it gets what the lexer found, in the plainest
  // form.
  const [family] = parsePrometheusTextFormat(`${sample.name} ${sample.value}\n`);
  return { labels: sample.labels, value: readNumber(family?.metrics[0]?.value ?? '') };
}

/**
 * Selects samples of a metric that have these labels, among others; an empty value also matches a missing
 * label.
 */
export type Selector = {
  readonly name: string;
  /** Unescaped. */
  readonly labels: readonly (readonly [name: string, value: string])[];
};

/**
 * What one exposition shows: no sample of the name, none with the labels, several, or one number (NaN and
 * infinities too).
 */
export type SelectorReading =
  | { readonly kind: 'none' }
  | { readonly kind: 'unmatched' }
  | { readonly kind: 'several' }
  | { readonly kind: 'value'; readonly value: number };

export type Selection = {
  /** The samples that it must see. */
  readonly wanted: readonly WantedSample[];
  /** Ends the body; returns what was found. */
  readonly end: () => SelectorReading;
};

/** Opens the search of one body. */
export function openSelection({ name, labels }: Selector): Selection {
  let isThere = false;
  let isUnreadable = false;
  const values: number[] = [];
  const named: WantedSample = {
    name,
    onSample(sample) {
      isThere = sample !== null;
      return !isThere;
    },
  };
  const matching: WantedSample = {
    name,
    contains: labels.flatMap(([, text]) => (isPlain(text) ? [`"${text}"`] : [])),
    onSample(sample) {
      if (sample === null) isUnreadable = true;
      else if (hasLabels(sample.labels, labels)) values.push(sample.value);
      return !isUnreadable && values.length < 2;
    },
    onTooLong() {
      isUnreadable = true;
    },
  };
  return {
    wanted: [named, matching],
    end() {
      if (isUnreadable || !isThere) return { kind: 'none' };
      const [value] = values;
      if (value === undefined) return { kind: 'unmatched' };
      return values.length === 1 ? { kind: 'value', value } : { kind: 'several' };
    },
  };
}

/** Whether a value can be written in only one way: not if it is empty (may be missing), or has escapes. */
function isPlain(text: string): boolean {
  return text !== '' && !/[\\"\n]/.test(text);
}

function hasLabels(labels: Selector['labels'], wanted: Selector['labels']): boolean {
  return wanted.every(([name, value]) => (labels.findLast(([each]) => each === name)?.[1] ?? '') === value);
}
