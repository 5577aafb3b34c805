import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VERSION } from '../../../src/base/version.ts';
import { otlp } from '../../../src/tell/receivers/otlp.ts';
import type { PushJudgement } from '../../../src/tell/receivers/receiver.ts';
import { encode } from './encode-push.ts';

test('otlp.findPath() appends the path of metrics unless it is there', () => {
  const paths = [
    ['http://collector:4318', '/v1/metrics'],
    ['http://collector:4318/', '/v1/metrics'],
    ['http://prometheus/api/v1/otlp', '/api/v1/otlp/v1/metrics'],
    ['http://prometheus/api/v1/otlp/v1/metrics/?a=b', '/api/v1/otlp/v1/metrics?a=b'],
  ] as const;
  for (const [url, path] of paths) assert.equal(otlp.findPath(new URL(url), []), path);
});

test('otlp.judge() takes a partial success for a refusal', () => {
  const table: readonly (readonly [status: number, text: string, judgement: PushJudgement])[] = [
    [200, '{}', 'accepted'],
    [200, '{"partialSuccess":{"rejectedDataPoints":"0","errorMessage":"careful"}}', 'accepted'],
    [200, '{"partialSuccess":{"rejectedDataPoints":"12","errorMessage":"too old"}}', 'refused'],
    [200, '{"partialSuccess": {"rejectedDataPoints": 1}}', 'refused'],
    [503, '{"rejectedDataPoints":12}', 'retry'],
    [400, '', 'refused'],
  ];
  for (const [status, text, judgement] of table) assert.equal(otlp.judge(status, text), judgement, text);
});

type Points = { readonly dataPoints: readonly Readonly<Record<string, unknown>>[] };
type Metric = { readonly name: string } & { readonly [kind in 'gauge' | 'sum' | 'histogram']?: Points };
type Body = {
  readonly resourceMetrics: readonly [
    { readonly resource: unknown; readonly scopeMetrics: readonly [{ scope: unknown; metrics: readonly Metric[] }] },
  ];
};

async function encodeMetrics(body: string): Promise<readonly (readonly Metric[])[]> {
  const requests = await encode(otlp, body);
  return requests.map((request) => {
    const { resourceMetrics } = JSON.parse(request.body.toString()) as Body;
    return resourceMetrics[0].scopeMetrics[0].metrics;
  });
}

const attribute = (key: string, stringValue: string) => ({ key, value: { stringValue } });
const timeUnixNano = '1700000000000000000';

type Point = { readonly attributes: readonly ReturnType<typeof attribute>[]; readonly timeUnixNano: string };

/** Of each metric a line with all but its points, and one for each of these, which have the time of the push. */
async function showMetrics(body: readonly string[]): Promise<readonly string[]> {
  const [metrics = []] = await encodeMetrics(body.join('\n'));
  return metrics.flatMap(({ name, ...metric }) => {
    let points: readonly unknown[] = [];
    const head = JSON.stringify(metric, (key, value) => {
      if (key !== 'dataPoints') return value;
      points = value;
    });
    const lines = points.map((each) => {
      const { attributes, timeUnixNano: time, ...fields } = each as Point;
      assert.equal(time, timeUnixNano);
      const labels = attributes.map(({ key, value }) => `${key}=${value.stringValue}`);
      return `  {${labels}} ${JSON.stringify(fields)}`;
    });
    return [`${name} ${head}`, ...lines];
  });
}

test('otlp.encode() makes resource, scope and metrics of families', async () => {
  const body = [
    '# HELP a_total Its "help".',
    '# TYPE a_total counter',
    'a_total{job="own",empty="",text="\\"ä\\"\\n"} 1e21',
    'a_total 2',
    '# TYPE g gauge',
    'g NaN',
    'g{kind="inf"} +Inf',
    'g{kind="minus"} -Inf',
    'u 1',
  ].join('\n');
  const [request, ...others] = await encode(otlp, body, {
    url: 'http://collector:4318',
    labels: [
      ['job', 'load'],
      ['instance', 'a:1'],
      ['pod', 'p'],
    ],
  });
  assert.deepEqual(others, []);
  assert.equal(request?.method, 'POST');
  assert.equal(request.path, '/v1/metrics');
  assert.deepEqual(request.headers, { 'Content-Type': 'application/json' });
  const pod = attribute('pod', 'p');
  assert.deepEqual(JSON.parse(request.body.toString()), {
    resourceMetrics: [
      {
        resource: { attributes: [attribute('service.name', 'load'), attribute('service.instance.id', 'a:1')] },
        scopeMetrics: [
          {
            scope: { name: 'lastscrape', version: VERSION },
            metrics: [
              {
                name: 'a_total',
                description: 'Its "help".',
                sum: {
                  aggregationTemporality: 2,
                  isMonotonic: true,
                  dataPoints: [
                    {
                      attributes: [pod, attribute('exported_job', 'own'), attribute('text', '"ä"\n')],
                      timeUnixNano,
                      asDouble: 1e21,
                    },
                    { attributes: [pod], timeUnixNano, asDouble: 2 },
                  ],
                },
              },
              {
                name: 'g',
                gauge: {
                  dataPoints: [
                    { attributes: [pod], timeUnixNano, asDouble: 'NaN' },
                    { attributes: [pod, attribute('kind', 'inf')], timeUnixNano, asDouble: 'Infinity' },
                    { attributes: [pod, attribute('kind', 'minus')], timeUnixNano, asDouble: '-Infinity' },
                  ],
                },
              },
              { name: 'u', gauge: { dataPoints: [{ attributes: [pod], timeUnixNano, asDouble: 1 }] } },
            ],
          },
        ],
      },
    ],
  });
});

test('otlp.encode() makes counts between bounds of the buckets of a histogram', async () => {
  const shown = await showMetrics([
    '# TYPE h histogram',
    'h_bucket{a="1",le="0.5"} 2',
    'h_bucket{a="1",le="1e+06"} 5',
    'h_bucket{a="1",le="+Inf"} 9',
    'h_sum{a="1"} 12.5',
    'h_count{a="1"} 9',
    // Without the infinite bucket, the sum, and in the second the count; a count that falls, and one that is no whole number.
    'h_bucket{a="2",le="1"} 3',
    'h_bucket{a="2",le="2"} 2',
    'h_count{a="2"} 7.4',
    'h_bucket{a="3",le="1"} 4',
    'h_bucket{a="3",le="2"} 6',
    'h_bucket{a="3",le="4"} 7',
    'h_sum{a="4"} NaN',
    'h_count{a="4"} 1e300',
    'h{a="5"} 5',
    'h_bucket{a="7",le="1"} 1',
    'h_count{a="7"} 1',
    'h_bucket{a="8",le="1"} 3',
    'h_count{a="8"} 0',
    'h_bucket{a="9",le="+Inf"} 0',
    'h_count{a="9"} 2',
    'h_sum{a="6"} 6',
    // In whatever order; and without a bound.
    'h_bucket{le="+Inf",z="2",a="10"} 3',
    'h_bucket{a="10",le="0.5",z="2"} 1',
    'h_count{z="2",a="10"} 3',
    'h_bucket{a="10"} 4',
    'h_bucket{le="x",a="10"} 5',
    'h_bucket{a="10",le=""} 6',
  ]);
  assert.deepEqual(shown, [
    'h {"gauge":{}}',
    '  {a=5} {"asDouble":5}',
    'h_bucket {"gauge":{}}',
    '  {a=10} {"asDouble":4}',
    '  {le=x,a=10} {"asDouble":5}',
    '  {a=10} {"asDouble":6}',
    'h {"histogram":{"aggregationTemporality":2}}',
    '  {a=1} {"count":"9","sum":12.5,"bucketCounts":["2","3","4"],"explicitBounds":[0.5,1000000]}',
    '  {a=2} {"count":"7","bucketCounts":["3","0","5"],"explicitBounds":[1,2]}',
    '  {a=3} {"count":"7","bucketCounts":["4","2","1","0"],"explicitBounds":[1,2,4]}',
    '  {a=4} {"count":"9007199254740991","sum":"NaN","bucketCounts":["9007199254740991"],"explicitBounds":[]}',
    '  {a=7} {"count":"1","bucketCounts":["1","0"],"explicitBounds":[1]}',
    '  {a=8} {"count":"0","bucketCounts":["3","0"],"explicitBounds":[1]}',
    '  {a=9} {"count":"2","bucketCounts":["0"],"explicitBounds":[]}',
    // Nothing says how many.
    'h_sum {"gauge":{}}',
    '  {a=6} {"asDouble":6}',
    'h {"histogram":{"aggregationTemporality":2}}',
    '  {a=10,z=2} {"count":"3","bucketCounts":["1","2"],"explicitBounds":[0.5]}',
  ]);
});

test('otlp.encode() makes a summary of one with sum and count, and gauges of one without', async () => {
  const shown = await showMetrics([
    '# HELP s Its help.',
    '# TYPE s summary',
    's{a="1",quantile="0.99"} 2',
    's{a="1",quantile="0.5"} NaN',
    's_sum{a="1"} 3',
    's_count{a="1"} 4',
    's{a="2",quantile="0.5"} 5',
    's_count{a="2"} 6',
    's_sum{a="3"} 7',
    's_bucket 1',
  ]);
  assert.deepEqual(shown, [
    's {"description":"Its help.","summary":{}}',
    '  {a=1} {"count":"4","sum":3,"quantileValues":[{"quantile":0.5,"value":"NaN"},{"quantile":0.99,"value":2}]}',
    ...['s {"gauge":{}}', '  {a=2,quantile=0.5} {"asDouble":5}'],
    ...['s_count {"gauge":{}}', '  {a=2} {"asDouble":6}'],
    ...['s_sum {"gauge":{}}', '  {a=3} {"asDouble":7}'],
    ...['s_bucket {"gauge":{}}', '  {} {"asDouble":1}'],
  ]);
});

test('otlp.encode() puts a histogram together that comes in parts, and ends it where the next family begins', async () => {
  const points = Array.from(
    { length: 150 },
    (_, index) => `h_bucket{a="${index}",le="+Inf"} 1\nh_count{a="${index}"} 1\n`,
  );
  const [metrics] = await encodeMetrics(`# TYPE h histogram\n${points.join('')}# TYPE i histogram\ni_count 2\ng 1\n`);
  const kinds = metrics?.map((metric) => [metric.name, Object.keys(metric)[1]]);
  assert.deepEqual(kinds, [
    ['h', 'histogram'],
    ['i', 'histogram'],
    ['g', 'gauge'],
  ]);
  assert.equal(metrics?.[0]?.histogram?.dataPoints.length, 150);
});

test('otlp.encode() sends at most 2000 points at once, and those with times of their own apart from the others', async () => {
  const body = Array.from({ length: 8001 }, (_, index) => `a{n="${index}"} 1${index % 2 === 0 ? ' 5' : ''}\n`).join('');
  const requests = await encodeMetrics(`# TYPE a counter\n${body}a{n="ancient"} 1 -7\na{n="first"} 1 0\n`);
  assert.deepEqual(
    requests.map((metrics) => {
      const points = metrics.flatMap(({ sum }) => sum?.dataPoints ?? []);
      return [metrics.length, points.length, new Set(points.map((each) => each['timeUnixNano']))];
    }),
    [
      [1, 2000, new Set(['5000000'])],
      [1, 2000, new Set([timeUnixNano])],
      [1, 2000, new Set(['5000000'])],
      [1, 2000, new Set([timeUnixNano])],
      [1, 3, new Set(['5000000', '0000000'])],
    ],
  );
});

test('otlp.encode() gives a histogram the time of its last line', async () => {
  const [metrics = []] = await encodeMetrics(
    '# TYPE h histogram\nh_bucket{le="1"} 1 500\nh_sum 4 600\nh_count 1 700\n',
  );
  assert.deepEqual(metrics[0]?.histogram?.dataPoints[0]?.['timeUnixNano'], '700000000');
});

test('otlp.encode() writes no time beyond 64 bits, which would spoil the request of other points', async () => {
  const [metrics = []] = await encodeMetrics(`# TYPE a counter\na 1 ${'9'.repeat(40)}\na{n="1"} 1 18446744073710\n`);
  const points = metrics.flatMap(({ sum }) => sum?.dataPoints ?? []);
  const times = points.map((point) => BigInt.asUintN(64, BigInt(String(point['timeUnixNano']))));
  assert.deepEqual(
    times,
    Array.from(points, () => 18_446_744_073_709_000_000n),
  );
  assert.equal(points.length, 2);
});

test('otlp.encode() sends at most 2000 points at once of what ends with the body', async () => {
  const body = Array.from({ length: 2001 }, (_, index) => `h_count{n="${index}"} 1\n`).join('');
  const requests = await encodeMetrics(`# TYPE h histogram\n${body}`);
  const sizes = requests.map((metrics) => metrics.map(({ histogram }) => histogram?.dataPoints.length));
  assert.deepEqual(sizes, [[2000], [1]]);
});

test('otlp.encode() sends nothing where there is no sample', async () => {
  assert.deepEqual(await encode(otlp, '# TYPE a counter\n'), []);
});
