import assert from 'node:assert/strict';
import { test } from 'node:test';
import { otlp } from '../../../src/tell/receivers/otlp.ts';
import { remoteWrite } from '../../../src/tell/receivers/remote-write.ts';
import { encode, NOW_MS } from './encode-push.ts';
import { readWriteRequest, unpackSnappy } from './write-request.ts';

test("remoteWrite.findPath() is the given path, or by default Prometheus's own", () => {
  const paths = [
    ['http://prometheus:9090', '/api/v1/write'],
    ['http://prometheus:9090/?a=b', '/api/v1/write?a=b'],
    ['http://mimir/api/v1/push', '/api/v1/push'],
  ] as const;
  for (const [url, path] of paths) assert.equal(remoteWrite.findPath(new URL(url), []), path);
});

test('remoteWrite.encode() writes labels in order, values, times and types', async () => {
  const body = [
    '# HELP a_total Its ä.',
    '# TYPE a_total counter',
    'a_total{z="1",Z="2",empty="",job="own"} 1.5',
    'a_total{n="2"} NaN',
    '# TYPE h histogram',
    'h_bucket{le="+Inf"} 1',
    '# TYPE s summary',
    's_sum 1',
    '# TYPE g gauge',
    'g 1',
    '# HELP u Untyped.',
    'u 1',
    'unannounced 1',
  ].join('\n');
  const [request, ...others] = await encode(remoteWrite, body, {
    labels: [
      ['job', 'load'],
      ['instance', 'a:1'],
    ],
  });
  assert.deepEqual(others, []);
  assert.equal(request?.method, 'POST');
  assert.equal(request.path, '/api/v1/write');
  assert.deepEqual(request.headers, {
    'Content-Type': 'application/x-protobuf',
    'Content-Encoding': 'snappy',
    'X-Prometheus-Remote-Write-Version': '0.1.0',
  });
  const { series, metadata } = readWriteRequest(request.body);
  assert.deepEqual(series[0], {
    labels: [
      ['Z', '2'],
      ['__name__', 'a_total'],
      ['exported_job', 'own'],
      ['instance', 'a:1'],
      ['job', 'load'],
      ['z', '1'],
    ],
    samples: [{ value: 1.5, timestampMs: NOW_MS }],
  });
  const nan = Buffer.from('09010000000000f87f', 'hex');
  assert.ok(unpackSnappy(Buffer.from(request.body)).includes(nan), "Prometheus's own NaN (model/value)");
  const names = series.map(({ labels }) => labels.find(([name]) => name === '__name__')?.[1]);
  assert.deepEqual(names, ['a_total', 'a_total', 'h_bucket', 's_sum', 'g', 'u', 'unannounced']);
  // prompb/types.proto of prometheus/prometheus, MetricMetadata.MetricType.
  assert.deepEqual(metadata, [
    { type: 1, family: 'a_total', help: 'Its ä.' },
    { type: 3, family: 'h', help: '' },
    { type: 5, family: 's', help: '' },
    { type: 2, family: 'g', help: '' },
    { type: 0, family: 'u', help: 'Untyped.' },
  ]);
});

test('remoteWrite.encode() sends at most 2000 series at once, and those with times of their own apart from the others', async () => {
  const body = Array.from({ length: 8001 }, (_, index) => `a{n="${index}"} 1${index % 2 === 0 ? ' 5' : ''}\n`).join('');
  const requests = (await encode(remoteWrite, `# TYPE a gauge\n${body}`)).map(({ body: sent }) =>
    readWriteRequest(sent),
  );
  assert.deepEqual(
    requests.map(({ series }) => [series.length, new Set(series.map(({ samples }) => samples[0]?.timestampMs))]),
    [
      [2000, new Set([5])],
      [2000, new Set([NOW_MS])],
      [2000, new Set([5])],
      [2000, new Set([NOW_MS])],
      [1, new Set([5])],
    ],
  );
  const sizes = requests.map(({ metadata }) => metadata.length);
  assert.deepEqual(sizes, [1, 0, 0, 0, 0]);
  const sent = requests.flatMap(({ series }) => series.map(({ labels }) => labels.at(-1)?.[1]));
  assert.equal(new Set(sent).size, 8001);
});

test('remoteWrite.encode() and otlp.encode() send at most 1 MiB at once', async () => {
  const body = Array.from({ length: 1500 }, (_, index) => `a{n="${index}",text="${'ä'.repeat(450)}"} 1\n`).join('');
  for (const kind of [remoteWrite, otlp]) {
    const sizes = (await encode(kind, body)).map(({ body: sent }) => sent.length);
    assert.equal(sizes.length, 2);
    assert.ok(Math.max(...sizes) <= 1024 * 1024, sizes.join());
  }
});

test('remoteWrite.encode() takes the time 0 for one', async () => {
  const [request] = await encode(remoteWrite, 'a 1 0\n');
  assert.equal(request && readWriteRequest(request.body).series[0]?.samples[0]?.timestampMs, 0);
});

test('remoteWrite.encode() sends nothing where there is no sample', async () => {
  assert.deepEqual(await encode(remoteWrite, '# TYPE a counter\n'), []);
});
