// OTLP over HTTP, in JSON: families become metrics of OpenTelemetry, as its "Prometheus and OpenMetrics
// Compatibility" maps them. (opentelemetry.io, "OTLP Specification 1.x"; the receiver's side is Prometheus
// 3.10 with --web.enable-otlp-receiver.)
//
// No startTimeUnixNano: an exposition does not say when a counter started, and the field is optional.

import { VERSION } from '../../base/version.ts';
import { type Label, readNumber } from '../../exposition/lexer.ts';
import type { Family, Sample } from '../../exposition/samples.ts';
import {
  compareNames,
  type EncodeParts,
  judgeStatus,
  openBatch,
  openLabelExporter,
  type PushKind,
  type PushRequest,
  SOME_TIME_MS,
} from './receiver.ts';

/** Receivers turn these into `job` and `instance`; no other attribute of the resource becomes a label. */
const RESOURCE_ATTRIBUTES: Readonly<Record<string, string>> = { job: 'service.name', instance: 'service.instance.id' };

const SIGNAL_PATH = '/v1/metrics';

/** What precedes the points of a metric. */
const METRICS = {
  gauge: '"gauge":{',
  sum: '"sum":{"aggregationTemporality":2,"isMonotonic":true,',
  histogram: '"histogram":{"aggregationTemporality":2,',
  summary: '"summary":{',
} as const;

type Metric = { readonly name: string; readonly help: string; readonly kind: keyof typeof METRICS };

/** `otlp+http://…`; appends `/v1/metrics` if it is missing, as with OTEL_EXPORTER_OTLP_ENDPOINT. */
export const otlp: PushKind = {
  name: 'otlp',
  findPath: ({ pathname, search }) => {
    const base = pathname.replace(/\/+$/, '');
    return `${base.endsWith(SIGNAL_PATH) ? base : base + SIGNAL_PATH}${search}`;
  },
  encode: encodeRequests,
  judge: (status, text) => {
    const judgement = judgeStatus(status);
    // A partial success is final: rejected points stay rejected.
    return judgement === 'accepted' && /"rejectedDataPoints"\s*:\s*"?[1-9]/.test(text) ? 'refused' : judgement;
  },
};

async function* encodeRequests({ families, labels, url }: EncodeParts): AsyncGenerator<PushRequest> {
  const path = otlp.findPath(url, labels);
  const headers = { 'Content-Type': 'application/json' };
  const resourceLabels = labels.flatMap(([name, value]): Label[] => {
    const attribute = RESOURCE_ATTRIBUTES[name];
    return attribute === undefined ? [] : [[attribute, value]];
  });
  const pointLabels = labels.filter(([name]) => RESOURCE_ATTRIBUTES[name] === undefined);
  const exportLabels = openLabelExporter(labels);
  const start =
    `{"resourceMetrics":[{"resource":{"attributes":${formatAttributes(resourceLabels)}},` +
    `"scopeMetrics":[{"scope":{"name":"lastscrape","version":${JSON.stringify(VERSION)}},"metrics":[`;
  // One timestamp out of bounds fails the whole request (Prometheus 3.10): points with timestamps go apart.
  const requests = openRequests(start, formatEnd);
  const timedRequests = openRequests(start);
  const toRequest = (body: PushRequest['body']): PushRequest => ({ method: 'POST', path, headers, body });

  // A histogram or summary is whole when the next family begins.
  let bucketed: Family | null = null;
  const points = openBucketPoints();
  const addPoint = (metric: Metric, own: readonly Label[], timestampMs: number | null, fields: string) => {
    const attributes = formatAttributes([...pointLabels, ...exportLabels(own)]);
    const point = `{"attributes":${attributes},${fields},"timeUnixNano":"${formatEnd(timestampMs ?? SOME_TIME_MS)}`;
    return (timestampMs === null ? requests : timedRequests).add(metric, point);
  };
  const addGauge = (name: string, own: readonly Label[], timestampMs: number | null, value: number) =>
    addPoint({ name, help: '', kind: 'gauge' }, own, timestampMs, formatNumber(value));
  function* takePoints(): Generator<PushRequest['body']> {
    if (bucketed === null) return;
    const { name, help, type } = bucketed;
    for (const { labels: own, steps, sum, count, timestampMs } of points.take()) {
      const total = count ?? steps.at(-1)?.value;
      if (type === 'histogram' && total !== undefined) {
        yield* addPoint({ name, help, kind: 'histogram' }, own, timestampMs, formatHistogram(steps, sum, total));
      } else if (type === 'summary' && sum !== null && count !== null) {
        yield* addPoint({ name, help, kind: 'summary' }, own, timestampMs, formatSummary(steps, sum, count));
      } else {
        // OTLP wants both in a summary, and a count in a histogram: here they would become a false 0.
        for (const { bound, value } of steps) {
          yield* addGauge(name, [...own, ['quantile', String(bound)]], timestampMs, value);
        }
        if (sum !== null) yield* addGauge(`${name}_sum`, own, timestampMs, sum);
        if (count !== null) yield* addGauge(`${name}_count`, own, timestampMs, count);
      }
    }
    bucketed = null;
  }
  function* addSamples(family: Family): Generator<PushRequest['body']> {
    const { name, help, type } = family;
    if (bucketed !== null && bucketed.name !== name) yield* takePoints();
    const isBucketed = type === 'histogram' || type === 'summary';
    if (isBucketed) bucketed = family;
    for (const sample of family.samples) {
      const { labels: own, timestampMs, value } = sample;
      if (isBucketed) {
        if (!points.add(family, sample)) yield* addGauge(sample.name, own, timestampMs, value);
      } else {
        const kind = type === 'counter' ? 'sum' : 'gauge';
        yield* addPoint({ name, help, kind }, own, timestampMs, formatNumber(value));
      }
    }
  }

  for await (const family of families()) for (const body of addSamples(family)) yield toRequest(body);
  for (const body of takePoints()) yield toRequest(body);
  for (const each of [requests, timedRequests]) for (const body of each.end()) yield toRequest(body);
}

/** Groups points into metrics and requests; both functions yield the bodies that are complete. */
function openRequests(start: string, formatTime?: (nowMs: number) => string) {
  const batch = openBatch('utf8', formatTime);
  let open: Metric | null = null;

  function endMetric(): void {
    if (open !== null) batch.write(']}}');
    open = null;
  }
  function* takeBody(): Generator<PushRequest['body']> {
    if (batch.pointCount === 0) return;
    endMetric();
    batch.write(']}]}]}');
    yield batch.take();
  }
  return {
    *add(metric: Metric, point: string): Generator<PushRequest['body']> {
      if (batch.isFullFor(point)) yield* takeBody();
      if (open !== null && open.name === metric.name && open.kind === metric.kind) {
        batch.write(',');
      } else {
        endMetric();
        batch.write(`${batch.pointCount === 0 ? start : ','}${formatHead(metric)}`);
        open = metric;
      }
      batch.add(point);
    },
    end: takeBody,
  };
}

function formatHead({ name, help, kind }: Metric): string {
  const description = help === '' ? '' : `"description":${JSON.stringify(help)},`;
  return `{"name":${JSON.stringify(name)},${description}${METRICS[kind]}"dataPoints":[`;
}

/** Labels with an empty value are left out. */
function formatAttributes(labels: readonly Label[]): string {
  let text = '';
  for (const [name, value] of labels) {
    if (value === '') continue;
    text += `${text === '' ? '' : ','}{"key":${JSON.stringify(name)},"value":{"stringValue":${JSON.stringify(value)}}}`;
  }
  return `[${text}]`;
}

/** Buckets are cumulative in the text format; in OTLP each counts what lies between two bounds. */
function formatHistogram(steps: readonly BucketStep[], sum: number | null, total: number): string {
  const bounds = steps.filter(({ bound }) => Number.isFinite(bound));
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

function formatSummary(steps: readonly BucketStep[], sum: number, count: number): string {
  const quantiles = steps.map(
    ({ bound, value }) => `{"quantile":${formatDouble(bound)},"value":${formatDouble(value)}}`,
  );
  return `"count":${formatCount(count)},"sum":${formatDouble(sum)},"quantileValues":[${quantiles.join()}]`;
}

/** The last millisecond whose nanoseconds fit in 64 bits; a larger number would fail the whole request. */
const TIME_MAX_MS = 18_446_744_073_709;

/** The nanoseconds, and the end of the point. */
function formatEnd(timeMs: number): string {
  return `${Math.min(Math.max(0, timeMs), TIME_MAX_MS)}000000"}`;
}

/** 64-bit integers are strings in JSON (protobuf.dev, "ProtoJSON Format"). */
function formatCount(value: number): string {
  return `"${value > 0 ? Math.round(Math.min(value, Number.MAX_SAFE_INTEGER)) : 0}"`;
}

function formatNumber(value: number): string {
  return `"asDouble":${formatDouble(value)}`;
}

function formatDouble(value: number): string {
  return Number.isFinite(value) ? String(value) : `"${value}"`;
}

type BucketStep = { readonly bound: number; readonly value: number };

/** One histogram or summary as its lines come; two arrays take a fifth of the memory of objects. */
type OpenPoint = {
  /** By `le` or `quantile`; the infinite one, too, if a line has it. */
  readonly bounds: number[];
  readonly values: number[];
  /** Null if no line has it. */
  sum: number | null;
  count: number | null;
  /** The timestamp of the last line; null if it has none. */
  timestampMs: number | null;
};

/** `labels`: without `le` or `quantile`. `steps`: ascending. */
type BucketPoint = Pick<OpenPoint, 'sum' | 'count' | 'timestampMs'> & {
  readonly labels: readonly Label[];
  readonly steps: readonly BucketStep[];
};

/**
 * Joins the lines of one family by their labels: a point of OTLP is a dozen lines in the text format. Holds a
 * few numbers for each line.
 */
function openBucketPoints() {
  /** By their labels. */
  const points = new Map<string, OpenPoint>();

  function findPoint(labels: readonly Label[]): OpenPoint {
    const key = JSON.stringify(labels.toSorted(compareNames));
    const found = points.get(key);
    if (found !== undefined) return found;
    const made: OpenPoint = { bounds: [], values: [], sum: null, count: null, timestampMs: null };
    points.set(key, made);
    return made;
  }
  return {
    /** Takes a line; false if it belongs to no point, such as a bucket without a bound. */
    add({ name: family, type }: Family, { name, labels, value, timestampMs }: Sample): boolean {
      const [stepName, boundName] = type === 'histogram' ? [`${family}_bucket`, 'le'] : [family, 'quantile'];
      const isStep = name === stepName;
      if (!isStep && name !== `${family}_sum` && name !== `${family}_count`) return false;
      const bound = isStep ? readNumber(labels.find(([label]) => label === boundName)?.[1] ?? '') : 0;
      if (Number.isNaN(bound)) return false;
      const point = findPoint(isStep ? labels.filter(([label]) => label !== boundName) : labels);
      point.timestampMs = timestampMs;
      if (isStep) {
        point.bounds.push(bound);
        point.values.push(value);
      } else point[name === `${family}_sum` ? 'sum' : 'count'] = value;
      return true;
    },
    /** Removes the points, in the order of their first lines. */
    *take(): Generator<BucketPoint> {
      for (const [key, { bounds, values, sum, count, timestampMs }] of points) {
        points.delete(key);
        const steps = bounds.map((bound, index) => ({ bound, value: values[index] as number }));
        steps.sort((left, right) => left.bound - right.bound);
        yield { labels: JSON.parse(key), steps, sum, count, timestampMs };
      }
    },
  };
}
