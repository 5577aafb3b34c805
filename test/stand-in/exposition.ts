// What locust_exporter writes: Go's numbers, the order of its registry, and the memory of what Locust last said.
// No I/O here. Source: locust_exporter's main.go at v0.5.0 and v0.5.2, client_golang 1.11, Go's strconv and encoding/json;
// conformance.test.ts holds it against the recordings.

/** One line of a family. */
export type Sample = {
  /** Ordered by label name, as client_golang writes them. */
  readonly labels: readonly (readonly [name: string, value: string])[];
  readonly value: number;
  /** What follows the family's name on this line, such as `_sum`; absent for the name itself. */
  readonly suffix?: string;
};

/** One metric family; one without samples is not written, not even its HELP. */
export type Family = {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'summary';
  readonly samples: readonly Sample[];
};

/** Formats a number as Go's `strconv.FormatFloat(value, 'g', -1, 64)`: shortest digits, an exponent from 1e+06 on and below 1e-04. */
export function formatGoFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  if (value === Number.NEGATIVE_INFINITY) return '-Inf';
  if (value === 0) return '0';
  const [digits = '', exponent = ''] = value.toExponential().split('e');
  const power = Number(exponent);
  if (power >= -4 && power < 6) return String(value);
  return `${digits}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
}

/** Writes families as the text format 0.0.4, families ordered by name as a registry does; samples stay in the order given. */
export function writeExposition(families: readonly Family[]): string {
  const lines: string[] = [];
  const ordered = families
    .filter((family) => family.samples.length > 0)
    .toSorted((a, b) => compareBytes(a.name, b.name));
  for (const { name, help, type, samples } of ordered) {
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
    for (const { labels, value, suffix = '' } of samples) {
      const inner = labels.map(([label, text]) => `${label}="${escapeLabelValue(text)}"`).join(',');
      lines.push(`${name}${suffix}${inner === '' ? '' : `{${inner}}`} ${formatGoFloat(value)}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

/** Makes a gauge with one sample without labels. */
export function gauge(name: string, help: string, value: number): Family {
  return { name, help, type: 'gauge', samples: [{ labels: [], value }] };
}

/**
 * What the exporter remembers of Locust: the vectors keep every row they ever had (as of the last readable fetch by anyone),
 * the plain gauges exist only in the answer to a fetch that succeeded.
 */
export class LocustMemory {
  readonly #namespace: string;
  readonly #vectors = new Map<string, Map<string, Sample>>();

  /** @param namespace prefix of every name, `locust` unless LOCUST_METRIC_NAMESPACE says otherwise (0.5.2). */
  constructor(namespace: string) {
    this.#namespace = namespace;
  }

  /**
   * Takes the answer of one fetch and returns the families of this scrape.
   * @param body what Locust answered with a 2xx, or `undefined` if the fetch failed. A body that is not JSON (bare NaN, a
   * login page) is no failure: up is 1 and every plain gauge 0, as in the recordings 14-nan and Q3-web-login.
   */
  collect(body: string | undefined): Family[] {
    const name = (suffix: string) => `${this.#namespace}_${suffix}`;
    const plain = body === undefined ? [] : this.#collectPlain(readLocustStats(body), name);
    const vectors = VECTORS.map(
      ({ suffix, help }): Family => ({
        name: name(suffix),
        help,
        type: 'gauge',
        samples: [...(this.#vectors.get(suffix)?.values() ?? [])].toSorted(compareLabelValues),
      }),
    );
    const up = gauge(
      name('up'),
      'The current health status of the server (1 = UP, 0 = DOWN).',
      body === undefined ? 0 : 1,
    );
    return [...plain, ...vectors, up];
  }

  #collectPlain(stats: LocustStats, name: (suffix: string) => string): Family[] {
    for (const row of stats.rows) {
      // The exporter's own filter, from the time of Locust 0.x; the row of today's totals is called "Aggregated".
      if (row.name === 'Total' || row.name === '//stats/requests') continue;
      const labels = [
        ['method', row.method],
        ['name', row.name],
      ] as const;
      for (const field of ROW_FIELDS) this.#set(`requests_${field}`, labels, row.values[field]);
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
      gauge(name('users'), 'The current number of users.', stats.userCount),
      gauge(name('requests_fail_ratio'), '', stats.failRatio),
      // Locust has moved these two into an object (before 2.47); the exporter still looks for the old keys.
      gauge(name('requests_current_response_time_percentile_95'), '', stats.percentile95),
      gauge(name('requests_current_response_time_percentile_50'), '', stats.percentile50),
      gauge(name('workers_count'), 'The current number of workers.', stats.workers.length),
      gauge(name('workers_running_count'), 'The current number of running workers.', inState('running')),
      gauge(name('workers_hatching_count'), 'The current number of hatching workers.', inState('hatching')),
      gauge(name('workers_missing_count'), 'The current number of missing workers.', inState('missing')),
      gauge(name('running'), 'The current state of the execution (0 = STOPPED 1 = HATCHING 2 = RUNNING,).', running),
    ];
  }

  #set(suffix: string, labels: Sample['labels'], value: number): void {
    const vector = this.#vectors.get(suffix) ?? new Map<string, Sample>();
    this.#vectors.set(suffix, vector);
    vector.set(JSON.stringify(labels), { labels, value });
  }
}

const ROW_FIELDS = [
  'num_requests',
  'num_failures',
  'avg_response_time',
  'current_fail_per_sec',
  'min_response_time',
  'max_response_time',
  'current_rps',
  'median_response_time',
  'avg_content_length',
] as const;

const VECTORS: readonly { readonly suffix: string; readonly help: string }[] = [
  ...ROW_FIELDS.map((field) => ({ suffix: `requests_${field}`, help: '' })),
  { suffix: 'errors', help: 'The current number of errors.' },
  { suffix: 'worker_detail', help: 'The current status of a worker with user count' },
];

type LocustStats = {
  readonly rows: readonly {
    readonly method: string;
    readonly name: string;
    readonly values: Readonly<Record<(typeof ROW_FIELDS)[number], number>>;
  }[];
  readonly errors: readonly {
    readonly method: string;
    readonly name: string;
    readonly error: string;
    readonly occurrences: number;
  }[];
  readonly workers: readonly { readonly id: string; readonly state: string; readonly userCount: number }[];
  readonly state: string;
  readonly userCount: number;
  readonly failRatio: number;
  readonly percentile95: number;
  readonly percentile50: number;
};

/** Reads as Go's json.Unmarshal into a struct does when its error is ignored: what is missing or of another type is zero. */
function readLocustStats(body: string): LocustStats {
  const top = readFields(parseJson(body));
  return {
    rows: readList(top.stats).map((row) => ({
      method: readText(row.method),
      name: readText(row.name),
      values: {
        num_requests: readInteger(row.num_requests),
        num_failures: readInteger(row.num_failures),
        avg_response_time: readNumber(row.avg_response_time),
        current_fail_per_sec: readNumber(row.current_fail_per_sec),
        min_response_time: readNumber(row.min_response_time),
        max_response_time: readNumber(row.max_response_time),
        current_rps: readNumber(row.current_rps),
        median_response_time: readNumber(row.median_response_time),
        avg_content_length: readNumber(row.avg_content_length),
      },
    })),
    errors: readList(top.errors).map((row) => ({
      method: readText(row.method),
      name: readText(row.name),
      error: readText(row.error),
      occurrences: readInteger(row.occurrences),
    })),
    workers: readList(top.workers).map((row) => ({
      id: readText(row.id),
      state: readText(row.state),
      userCount: readInteger(row.user_count),
    })),
    state: readText(top.state),
    userCount: readInteger(top.user_count),
    failRatio: readNumber(top.fail_ratio),
    percentile95: readNumber(top.current_response_time_percentile_95),
    percentile50: readNumber(top.current_response_time_percentile_50),
  };
}

/** The keys that the exporter looks for, at any depth. */
type Fields = Partial<
  Record<
    | (typeof ROW_FIELDS)[number]
    | 'stats'
    | 'errors'
    | 'workers'
    | 'state'
    | 'user_count'
    | 'fail_ratio'
    | 'current_response_time_percentile_95'
    | 'current_response_time_percentile_50'
    | 'method'
    | 'name'
    | 'error'
    | 'occurrences'
    | 'id',
    unknown
  >
>;

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}

function readList(value: unknown): Fields[] {
  return Array.isArray(value) ? value.map(readFields) : [];
}

/** Go's decoder turns a lone surrogate into U+FFFD. */
function readText(value: unknown): string {
  return typeof value === 'string' ? value.toWellFormed() : '';
}

function readNumber(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

function readInteger(value: unknown): number {
  return Number.isInteger(value) ? readNumber(value) : 0;
}

function escapeLabelValue(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}

/** Go compares strings byte by byte, which differs from UTF-16 order beyond U+FFFF. */
function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Samples of one family are ordered by the values of their labels, in the order of the labels' names. */
function compareLabelValues(a: Sample, b: Sample): number {
  for (const [index, [, value]] of a.labels.entries()) {
    const order = compareBytes(value, b.labels[index]?.[1] ?? '');
    if (order !== 0) return order;
  }
  return 0;
}
