// Reads the few values of an exposition that lastscrape uses: the conditions' metrics, Locust's totals, promhttp's counters.
// A line that cannot be read is counted and skipped; it never costs the other lines. Pure; never throws.

import parsePrometheusTextFormat from 'parse-prometheus-text-format';
import { openSampleFilter, type WantedLine } from './sample-filter.ts';
import { openSelection, type Selector, type SelectorReading } from './selector.ts';

/** Larger bodies are neither read to the end nor kept. Locust exporters were seen at 0.9 MB. */
export const BODY_MAX_BYTES = 64 * 1024 * 1024;

/** A metric's one value, or why it is not known. */
export type Reading =
  | { readonly kind: 'value'; readonly value: number }
  | { readonly kind: 'unknown'; readonly why: string };

/** What one body shows; null is "not in it, or unreadable". */
export type Exposition = {
  /** One for each metric that was asked for: its one sample without labels. */
  readonly metrics: ReadonlyMap<string, Reading>;
  /** One for each selector, in their order. */
  readonly selected: readonly SelectorReading[];
  /** There is a `<prefix>_requests_*` sample with exactly Locust's labels, `method` and `name`: Locust was once reached. */
  readonly hasRequests: boolean;
  /** The total row (`method=""`, `name="Aggregated"`) of `<prefix>_requests_num_requests`. */
  readonly requests: number | null;
  /** The same of `<prefix>_requests_num_failures`. */
  readonly failures: number | null;
  /** `<prefix>_users`; there only while Locust is up. */
  readonly users: number | null;
  /** promhttp's counter for code 200 and its gauge; null unless both are there. */
  readonly scrapes: { readonly finishedCount: number; readonly inFlightCount: number } | null;
  /** It is that of another lastscrape's front. */
  readonly isFront: boolean;
  /** Wanted lines that could not be read, or were too long. */
  readonly unreadableLineCount: number;
};

export type ExpositionReader = {
  /** Takes the next piece of the body, of any size. */
  readonly write: (chunk: Uint8Array) => void;
  /** Returns what was read; the body has ended as HTTP says. */
  readonly end: () => Exposition;
  readonly sizeBytes: number;
};

const AGGREGATED = ['method="",name="Aggregated"', 'name="Aggregated",method=""'];
const UP = '_up';

type Sample = {
  readonly value: number;
  /** As the line has them, without blanks and a last comma; empty: none. */
  readonly labels: string;
};

/**
 * Opens a reader for one body.
 *
 * `selectors`: the samples that are judged. `<prefix>` is that of the first of `metricNames` that ends in `_up` (LOCUST_METRIC_NAMESPACE changes it), else `locust`.
 */
export function openExposition(metricNames: readonly string[], selectors: readonly Selector[] = []): ExpositionReader {
  const prefix = metricNames.find((name) => name.endsWith(UP))?.slice(0, -UP.length) ?? 'locust';
  const samples = new Map(metricNames.map((name) => [name, [] as (Sample | null)[]]));
  let hasRequests = false;
  let isFront = false;
  let unreadableCount = 0;
  let sizeBytes = 0;

  function read(line: string): Sample | null {
    const sample = readSample(line);
    if (sample === null) unreadableCount++;
    return sample;
  }
  /** Keeps the first sample with exactly these labels, given in any of their orders, if it is a number that can be reported. */
  function wantOne(name: string, orders: readonly string[]) {
    const found: { value: number | null } = { value: null };
    const wanted: WantedLine = {
      name,
      isPrefix: false,
      labels: orders.filter((labels) => labels !== '').map((labels) => `{${labels}`),
      onLine(line) {
        const sample = read(line);
        if (sample === null || !orders.includes(sample.labels) || !Number.isFinite(sample.value) || sample.value < 0)
          return true;
        found.value = sample.value;
        return false;
      },
    };
    return { found, wanted };
  }

  const requests = wantOne(`${prefix}_requests_num_requests`, AGGREGATED);
  const failures = wantOne(`${prefix}_requests_num_failures`, AGGREGATED);
  const users = wantOne(`${prefix}_users`, ['']);
  const finished = wantOne('promhttp_metric_handler_requests_total', ['code="200"']);
  const inFlight = wantOne('promhttp_metric_handler_requests_in_flight', ['']);
  const selections = selectors.map((selector) => openSelection(selector, readSample));
  const filter = openSampleFilter([
    ...[...samples].map(([name, found]) => ({
      name,
      isPrefix: false,
      labels: [],
      onLine: (line: string) => found.push(read(line)) < 2,
    })),
    {
      name: `${prefix}_requests_`,
      isPrefix: true,
      labels: ['{method="', '{name="'],
      onLine(line) {
        const sample = read(line);
        hasRequests = sample !== null && LOCUST_LABELS.test(sample.labels);
        return !hasRequests;
      },
    },
    {
      name: 'lastscrape_build_info',
      isPrefix: false,
      labels: ['{version="'],
      onLine(line) {
        isFront = read(line) !== null;
        return !isFront;
      },
    },
    ...[requests, failures, users, finished, inFlight].map(({ wanted }) => wanted),
    ...selections.flatMap(({ wanted }) => wanted),
  ]);

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
        metrics: new Map([...samples].map(([name, found]) => [name, chooseReading(found)])),
        selected: selections.map(({ end }) => end()),
        hasRequests,
        requests: requests.found.value,
        failures: failures.found.value,
        users: users.found.value,
        scrapes: finishedCount === null || inFlightCount === null ? null : { finishedCount, inFlightCount },
        isFront,
        unreadableLineCount: unreadableCount + filter.tooLongCount,
      };
    },
  };
}

function chooseReading(found: readonly (Sample | null)[]): Reading {
  const [first, second] = found;
  if (first === undefined) return { kind: 'unknown', why: 'not in the exposition' };
  if (second !== undefined) return { kind: 'unknown', why: 'there more than once' };
  if (first === null) return { kind: 'unknown', why: 'unreadable' };
  if (first.labels !== '') return { kind: 'unknown', why: 'it has labels' };
  if (!Number.isFinite(first.value)) return { kind: 'unknown', why: 'no finite number' };
  return { kind: 'value', value: first.value };
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const TEXT = String.raw`"[^"\\]*(?:\\.[^"\\]*)*"`;
const LABEL = `[a-zA-Z_][a-zA-Z0-9_]*=${TEXT}`;
/** Of the rows of requests (fixtures/recordings, locust_exporter 0.4.0 to 0.5.2): another program's have others. */
const LOCUST_LABELS = new RegExp(`^(?:method=${TEXT},name=${TEXT}|name=${TEXT},method=${TEXT})$`, 's');
// No digit may match in two ways: `\d+\.?\d*` took 4 s for a line of 64 KiB of digits, in which no signal is seen.
const NUMBER = String.raw`[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|Inf|NaN)`;
/** A sample line with normalised blanks, a timestamp at its end or none; its groups are the labels and the value. */
const SAMPLE = new RegExp(`^${NAME}(?: ?{((?:${LABEL},)*(?:${LABEL})?)} ?| )(${NUMBER})(?: -?\\d+)?$`, 's');

/** Reads one line with normalised blanks; null where it is no sample with a number. */
function readSample(line: string): Sample | null {
  // The parser takes any text for a value, "" for garbage, and Number("") is 0; what is not SAMPLE it never sees, and on nothing
  // that is does it throw (held by the fuzz test).
  const [, labelsText = '', digits] = SAMPLE.exec(line) ?? [];
  if (digits === undefined) return null;
  const metric = parsePrometheusTextFormat(`${line}\n`)[0]?.metrics[0];
  return { value: Number(metric?.value?.replace('Inf', 'Infinity')), labels: labelsText.replace(/,$/, '') };
}
