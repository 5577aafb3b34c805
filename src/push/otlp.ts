// OTLP over HTTP, in JSON: families become metrics of OpenTelemetry, as its "Prometheus and OpenMetrics Compatibility" maps them.
// (opentelemetry.io, "OTLP Specification 1.x"; the receiver's side is Prometheus 3.10 with --web.enable-otlp-receiver.)
//
// No startTimeUnixNano: an exposition does not say since when a counter counts, and the fields may be missing.

import { type BucketPoint, openBucketPoints } from '../wire/bucket-points.ts';
import { openLabelExporter } from '../wire/exported-labels.ts';
import type { Family, Label } from '../wire/samples.ts';
import { formatUserAgent, judgeStatus, type PushKind, type PushParts, type PushRequest } from './push-kind.ts';

/** Of a request. */
const POINT_MAX_COUNT = 2000;
/** Of a request, unless one point is longer. */
const REQUEST_MAX_LENGTH = 1024 * 1024;

/** Those that receivers make `job` and `instance` of; the others become attributes of each point, as only those become labels. */
const RESOURCE_ATTRIBUTES: Readonly<Record<string, string>> = {
  job: 'service.name',
  instance: 'service.instance.id',
};

const SIGNAL_PATH = '/v1/metrics';

/** What stands round the points of a metric. */
const METRICS = {
  gauge: { start: '"gauge":{', end: '}' },
  sum: { start: '"sum":{"aggregationTemporality":2,"isMonotonic":true,', end: '}' },
  histogram: { start: '"histogram":{"aggregationTemporality":2,', end: '}' },
  summary: { start: '"summary":{', end: '}' },
} as const;

type Metric = { readonly name: string; readonly help: string; readonly kind: keyof typeof METRICS };

/** `otlp+http://…`; `/v1/metrics` is appended to the URL unless it ends so, as with OTEL_EXPORTER_OTLP_ENDPOINT. */
export const otlp: PushKind = {
  name: 'otlp',
  findPath: ({ pathname, search }) => {
    const base = pathname.replace(/\/+$/, '');
    return `${base.endsWith(SIGNAL_PATH) ? base : base + SIGNAL_PATH}${search}`;
  },
  encode: encodeRequests,
  judge: (status, text) => {
    // A 200 with a partial success is final, and what was rejected stays so.
    if (status === 200 && /"rejectedDataPoints"\s*:\s*"?[1-9]/.test(text)) return 'refused';
    return judgeStatus(status);
  },
};

async function* encodeRequests({ families, labels, url, nowMs, version }: PushParts): AsyncGenerator<PushRequest> {
  const path = otlp.findPath(url, labels);
  const headers = { 'Content-Type': 'application/json', 'User-Agent': formatUserAgent(version) };
  const resourceLabels = labels.flatMap(([name, value]): Label[] => {
    const attribute = RESOURCE_ATTRIBUTES[name];
    return attribute === undefined ? [] : [[attribute, value]];
  });
  const pointLabels = labels.filter(([name]) => RESOURCE_ATTRIBUTES[name] === undefined);
  const exportLabels = openLabelExporter(labels);
  const formatPoint = (own: readonly Label[], timestampMs: number | null, fields: string) =>
    `{"attributes":${formatAttributes([...pointLabels, ...exportLabels(own)])},"timeUnixNano":"${timestampMs ?? nowMs}000000",${fields}}`;
  const requests = openRequests(
    `{"resourceMetrics":[{"resource":{"attributes":${formatAttributes(resourceLabels)}},` +
      `"scopeMetrics":[{"scope":{"name":"lastscrape","version":${JSON.stringify(version)}},"metrics":[`,
    ']}]}]}',
  );
  const toRequest = (text: string): PushRequest => {
    const body = Buffer.from(text);
    return { method: 'POST', path, headers, body: () => body };
  };

  // A histogram or summary is whole when the next family begins.
  let bucketed: Family | null = null;
  const points = openBucketPoints();
  function* takePoints(): Generator<PushRequest> {
    if (bucketed === null) return;
    const { name, help, type } = bucketed;
    const isHistogram = type === 'histogram';
    const metric: Metric = { name, help, kind: isHistogram ? 'histogram' : 'summary' };
    for (const point of points.take()) {
      const fields = isHistogram ? formatHistogram(point) : formatSummary(point);
      for (const text of requests.add(metric, formatPoint(point.labels, point.timestampMs, fields)))
        yield toRequest(text);
    }
    bucketed = null;
  }

  for await (const family of families()) {
    const { name, help, type } = family;
    if (bucketed !== null && bucketed.name !== name) yield* takePoints();
    const isBucketed = type === 'histogram' || type === 'summary';
    if (isBucketed) bucketed = family;
    for (const sample of family.samples) {
      if (isBucketed && points.add(family, sample)) continue;
      const metric: Metric = isBucketed
        ? { name: sample.name, help: '', kind: 'gauge' }
        : { name, help, kind: type === 'counter' ? 'sum' : 'gauge' };
      const point = formatPoint(sample.labels, sample.timestampMs, `"asDouble":${formatDouble(sample.value)}`);
      for (const text of requests.add(metric, point)) yield toRequest(text);
    }
  }
  yield* takePoints();
  for (const text of requests.end()) yield toRequest(text);
}

/** Puts points together to metrics, and these to requests; both functions return the requests that have become full. */
function openRequests(start: string, end: string) {
  let pieces: string[] = [];
  let pointCount = 0;
  let length = 0;
  let open: Metric | null = null;

  function write(piece: string): void {
    pieces.push(piece);
    length += piece.length;
  }
  function endMetric(): void {
    if (open !== null) write(`]${METRICS[open.kind].end}}`);
    open = null;
  }
  function* takeRequest(): Generator<string> {
    if (pointCount === 0) return;
    endMetric();
    yield `${start}${pieces.join('')}${end}`;
    pieces = [];
    pointCount = 0;
    length = 0;
  }
  return {
    *add(metric: Metric, point: string): Generator<string> {
      if (pointCount === POINT_MAX_COUNT || length + point.length > REQUEST_MAX_LENGTH) yield* takeRequest();
      if (open !== null && open.name === metric.name && open.kind === metric.kind) {
        write(`,${point}`);
      } else {
        endMetric();
        write(`${pointCount === 0 ? '' : ','}${formatHead(metric)}${point}`);
        open = metric;
      }
      pointCount++;
    },
    end: takeRequest,
  };
}

function formatHead({ name, help, kind }: Metric): string {
  const description = help === '' ? '' : `"description":${JSON.stringify(help)},`;
  return `{"name":${JSON.stringify(name)},${description}${METRICS[kind].start}"dataPoints":[`;
}

/** One without a value is none. */
function formatAttributes(labels: readonly Label[]): string {
  let text = '';
  for (const [name, value] of labels) {
    if (value === '') continue;
    text += `${text === '' ? '' : ','}{"key":${JSON.stringify(name)},"value":{"stringValue":${JSON.stringify(value)}}}`;
  }
  return `[${text}]`;
}

/** Buckets count what is below their bound in the text format, and what is between two bounds in OTLP. */
function formatHistogram({ steps, sum, count }: BucketPoint): string {
  const bounds = steps.filter(({ bound }) => Number.isFinite(bound));
  const total = count ?? steps.at(-1)?.value ?? 0;
  const counts = [
    ...bounds.map(({ value }) => value),
    steps.find(({ bound }) => bound === Number.POSITIVE_INFINITY)?.value ?? total,
  ];
  const between = counts.map((value, index) => formatCount(value - (counts[index - 1] ?? 0)));
  return [
    `"count":${formatCount(total)}`,
    ...(sum === null ? [] : [`"sum":${formatDouble(sum)}`]),
    `"bucketCounts":[${between.join()}]`,
    `"explicitBounds":[${bounds.map(({ bound }) => bound).join()}]`,
  ].join();
}

function formatSummary({ steps, sum, count }: BucketPoint): string {
  const quantiles = steps.map(
    ({ bound, value }) => `{"quantile":${formatDouble(bound)},"value":${formatDouble(value)}}`,
  );
  return `"count":${formatCount(count ?? 0)},"sum":${formatDouble(sum ?? 0)},"quantileValues":[${quantiles.join()}]`;
}

/** A whole number of 64 bits is text in JSON (protobuf.dev, "ProtoJSON Format"). */
function formatCount(value: number): string {
  return `"${value > 0 ? Math.round(Math.min(value, Number.MAX_SAFE_INTEGER)) : 0}"`;
}

function formatDouble(value: number): string {
  return Number.isFinite(value) ? String(value) : `"${value}"`;
}
