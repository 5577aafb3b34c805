// Expositions of real programs, pushed to the real receivers, and what these have then: the same series, values and types that a
// real Prometheus has of a scrape of the same exposition, but for what is listed here as renamed.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { otlp } from '../../src/push/otlp.ts';
import { pushgateway } from '../../src/push/pushgateway.ts';
import { remoteWrite } from '../../src/push/remote-write.ts';
import { gateFront } from '../support/front-programs.ts';
import {
  type Exposition,
  formatSeries,
  push,
  type Receiver,
  readSeriesValues,
  type SeriesValues,
  type Source,
  serveExpositions,
  startPrometheusReceiver,
  startPushgateway,
} from '../support/push-receivers.ts';
import { readRecordedBody, readRecordedHeader } from '../support/recording.ts';
import { until } from '../support/until.ts';

const skip = gateFront('test/pods/push-receivers.test.ts', ['prometheus', 'prometheus3', 'pushgateway']);

const AWKWARD = [
  '# HELP awkward_bytes_total Lines\\nand \\\\ backslashes',
  '# TYPE awkward_bytes_total counter',
  'awkward_bytes_total{path="C:\\\\temp\\n\\"x\\"",empty="",umlaut="ä€😀"} 1.7976931348623157e+308',
  'awkward_bytes_total{job="own",instance="own",exported_job="taken"} 5e-324',
  'awkward_bytes_total{a="{}, =#",Zone="before __name__"} 9007199254740993',
  '# TYPE awkward_gauge gauge',
  'awkward_gauge{kind="nan"} NaN',
  'awkward_gauge{kind="inf"} +Inf',
  'awkward_gauge{kind="minus"} -Inf',
  'awkward_gauge{kind="zero"} -0',
  'untyped_without_a_type_line 12.5',
  '# TYPE awkward_seconds histogram',
  ...['a', 'b'].flatMap((name) => [
    `awkward_seconds_bucket{name="${name}",le="0.005"} 3`,
    `awkward_seconds_bucket{name="${name}",le="2.5"} 7`,
    `awkward_seconds_bucket{name="${name}",le="+Inf"} 11`,
    `awkward_seconds_sum{name="${name}"} 12.5`,
    `awkward_seconds_count{name="${name}"} 11`,
  ]),
  '# TYPE awkward_summary summary',
  'awkward_summary{quantile="0.5"} NaN',
  'awkward_summary{quantile="0.99"} 4',
  'awkward_summary_sum 12',
  'awkward_summary_count 3',
  '# TYPE many gauge',
  ...Array.from({ length: 4500 }, (_, index) => `many{number="${index}"} ${index / 7}`),
  '',
].join('\n');

const FOLDER = new URL('../../fixtures/recordings/expositions/', import.meta.url);
const EXPOSITIONS: readonly Exposition[] = [
  ...readdirSync(FOLDER)
    .filter((name) => name.endsWith('.txt'))
    // The other format, which lastscrape never asks for.
    .filter((name) => !readRecordedHeader(`expositions/${name}`, 'Content-Type').includes('openmetrics'))
    .map((name) => ({ job: name.replace('.txt', ''), body: readRecordedBody(`expositions/${name}`) })),
  ...['07-stopped.11.txt', '13-odd-names-stopped.txt', '14-nan-running.txt'].map((name) => ({
    job: `locust-${name.slice(0, 2)}`,
    body: readRecordedBody(`exporter-0.5.0-locust-2.47.0/${name}`),
  })),
  { job: 'awkward', body: Buffer.from(AWKWARD) },
];

const ACCEPTED_MS = 60_000;

/** What Prometheus adds to every scrape. */
const OWN_SERIES = /^\[\["__name__","(?:up|scrape_duration_seconds|scrape_samples_scraped|scrape_samples_post_metric_relabeling|scrape_series_added)"\]\]$/;

/** What a Prometheus has of its own scrape, once it had one. */
async function readScraped(receiver: Receiver, job: string): Promise<SeriesValues> {
  return until(`a scrape of ${job}`, ACCEPTED_MS, async () => {
    const values = await readSeriesValues(receiver, `{job="${job}",instance="scraped"}`);
    const own = [...values].filter(([series]) => !OWN_SERIES.test(series));
    return values.get(formatSeries({ __name__: 'up' })) === 1 && own.length > 0 ? new Map(own) : undefined;
  });
}

function listPushLabels(job: string) {
  return [
    ['job', job],
    ['instance', 'pushed'],
  ] as const;
}

function sorted(values: SeriesValues): readonly (readonly [string, number])[] {
  return [...values].sort(([left], [right]) => (left < right ? -1 : 1));
}

describe('real receivers of pushes', { skip, concurrency: 1 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'lastscrape-push-'));
  let source: Source;
  let gateway: Receiver;
  let old: Receiver;
  let young: Receiver;

  before(async () => {
    source = await serveExpositions(EXPOSITIONS);
    [gateway, old, young] = await Promise.all([
      startPushgateway(directory),
      startPrometheusReceiver(directory, 'prometheus', source, EXPOSITIONS),
      startPrometheusReceiver(directory, 'prometheus3', source, EXPOSITIONS),
    ]);
  });
  after(async () => {
    await Promise.all([gateway, old, young].map((receiver) => receiver?.[Symbol.asyncDispose]()));
    await source?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  });

  for (const { job, body } of EXPOSITIONS) {
    it(`remote write of ${job} is what Prometheus 2.42 scrapes`, async () => {
      const expected = await readScraped(old, job);
      const results = await push(remoteWrite, old.url, body, listPushLabels(job));
      for (const result of results) assert.equal(result.judgement, 'accepted', JSON.stringify(result));
      assert.deepEqual(sorted(await readSeriesValues(old, `{job="${job}",instance="pushed"}`)), sorted(expected));
    });
    it(`remote write of ${job} is what Prometheus 3 scrapes`, async () => {
      const expected = await readScraped(young, job);
      const results = await push(remoteWrite, young.url, body, listPushLabels(job));
      for (const result of results) assert.equal(result.judgement, 'accepted', JSON.stringify(result));
      assert.deepEqual(sorted(await readSeriesValues(young, `{job="${job}",instance="pushed"}`)), sorted(expected));
    });
    it(`OTLP of ${job} is what Prometheus 3 scrapes`, async () => {
      const expected = await readScraped(young, job);
      const results = await push(otlp, new URL('/api/v1/otlp', young.url), body, [
        ['job', job],
        ['instance', 'otlp'],
      ]);
      for (const result of results) assert.equal(result.judgement, 'accepted', JSON.stringify(result));
      assert.deepEqual(sorted(await readSeriesValues(young, `{job="${job}",instance="otlp"}`)), sorted(expected));
    });
  }
});
