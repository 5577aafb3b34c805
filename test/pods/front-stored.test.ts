// Real programs, scraped by one Prometheus directly and through a front: values, start times, histograms,
// exemplars and metadata of both are the same, but for `instance` and the front's own families.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Child } from '../support/child.ts';
import { gateFull } from '../support/programs.ts';
import type { Prometheus } from '../support/prometheus.ts';
import { until } from '../support/until.ts';
import { type FrontPod, START_MS, terminateAfter, withFrontPod } from './front-pod.ts';
import { frontProgram, gateFront } from './front-programs.ts';

const FILE = 'test/pods/front-stored.test.ts';
const skip = gateFront(FILE, ['prometheus', 'prometheus3', 'goClient', 'python', 'nodeExporter']);
const hasCollector = !(gateFull(`the OpenTelemetry Collector in ${FILE}`) || gateFront(FILE, ['collector']));

/** What has to be among what is stored: else nothing would be compared. */
type Feature = 'exemplar' | 'started' | 'histogram' | 'utf8';

/** A program whose numbers stand still. */
type ProgramCase = {
  readonly name: string;
  /** Serves on `port`; `sourcePort` is another free one. */
  readonly start: (pod: FrontPod, port: number, sourcePort: number) => Child;
  /** By the job of the scrape that shows them. */
  readonly shows: Readonly<Record<string, readonly Feature[]>>;
};

const job = (name: string) => join(import.meta.dirname, 'jobs', name);

const GO_SHOWS = {
  // Prometheus asks for protobuf without a word on UTF-8, so that names are escaped.
  defaults: ['exemplar', 'started', 'histogram'],
  openMetrics: ['exemplar', 'started', 'utf8'],
  text: ['utf8'],
  old: ['exemplar', 'histogram'],
} as const;

const PROGRAMS: readonly ProgramCase[] = [
  { name: 'client_golang', start: startGo, shows: GO_SHOWS },
  {
    name: 'prometheus_client',
    start: (pod, port) =>
      pod.start('prometheus_client', [frontProgram('python'), job('formats_job.py')], { JOB_PORT: `${port}` }),
    shows: { defaults: ['exemplar', 'started'], openMetrics: ['exemplar', 'started'], old: ['exemplar'] },
  },
  ...(['text', 'openMetrics'] as const).map((format) => ({
    name: `prom-client in ${format}`,
    start: (pod: FrontPod, port: number) =>
      pod.start(`prom-client in ${format}`, [process.execPath, job('formats-job.mjs')], {
        JOB_PORT: `${port}`,
        JOB_FORMAT: format,
      }),
    shows: format === 'text' ? {} : ({ defaults: ['exemplar'], text: ['exemplar'], old: ['exemplar'] } as const),
  })),
  { name: 'node_exporter', start: startNodeExporter, shows: {} },
  ...(hasCollector
    ? [{ name: 'the Collector', start: startCollector, shows: { defaults: ['exemplar'] } } as const]
    : []),
];

/** What each feature looks like in what is stored. */
const SIGNS: Readonly<Record<Feature, RegExp>> = {
  exemplar: /^exemplars /,
  started: /"started":\[\[/,
  histogram: /"buckets":/,
  utf8: /rows\.left 残り/,
};

/** The fewest, of client_golang with a native histogram, are 14. */
const SERIES_MIN_COUNT = 12;

/** Left out, as its value is of the moment: the time that a collector of node_exporter took. */
const OF_THE_MOMENT = /^node_scrape_collector_duration_seconds$/;

/** Rows come on a pipe that stays open. */
function startGo(pod: FrontPod, port: number): Child {
  const script = 'mkfifo "$1"; exec 3<>"$1"; printf "\\n\\n\\n\\n\\n" >&3; exec "$0" <&3';
  const command = ['sh', '-c', script, frontProgram('goClient'), join(pod.directory, `rows-${port}`)];
  return pod.start('client_golang', command, { JOB_PORT: `${port}` });
}

function startNodeExporter(pod: FrontPod, port: number): Child {
  const text = '# HELP odd A \\\\ and\\n a line.\n# TYPE odd untyped\nodd{a="\\"",b="\\n\\\\"} NaN\nodd 1e-300\n';
  writeFileSync(join(pod.directory, 'odd.prom'), text);
  return pod.start('node_exporter', [
    frontProgram('nodeExporter'),
    `--web.listen-address=127.0.0.1:${port}`,
    '--web.disable-exporter-metrics',
    '--collector.disable-defaults',
    ...['uname', 'os', 'netclass', 'textfile'].map((name) => `--collector.${name}`),
    `--collector.textfile.directory=${pod.directory}`,
  ]);
}

/** Passes on what the client_golang next to it shows. */
function startCollector(pod: FrontPod, port: number, sourcePort: number): Child {
  startGo(pod, sourcePort);
  const scrape = { job_name: 'go', scrape_interval: '1s', static_configs: [{ targets: [`127.0.0.1:${sourcePort}`] }] };
  const config = {
    receivers: { prometheus: { config: { scrape_configs: [scrape] } } },
    exporters: { prometheus: { endpoint: `127.0.0.1:${port}`, enable_open_metrics: true } },
    service: {
      telemetry: { metrics: { level: 'none' } },
      pipelines: { metrics: { receivers: ['prometheus'], exporters: ['prometheus'] } },
    },
  };
  const path = join(pod.directory, 'collector.yaml');
  writeFileSync(path, JSON.stringify(config));
  return pod.start('the Collector', [frontProgram('collector'), '--config', path]);
}

/** The scrapes of each Prometheus, by job, and their settings. A front keeps four formats. */
const SCRAPERS = {
  prometheus3: {
    features: 'exemplar-storage,native-histograms,created-timestamp-zero-ingestion',
    // Since 3.8 the feature is this setting.
    jobs: {
      defaults: { scrape_native_histograms: true },
      openMetrics: { scrape_protocols: ['OpenMetricsText1.0.0'] },
      text: { scrape_protocols: ['PrometheusText1.0.0'], fallback_scrape_protocol: 'PrometheusText1.0.0' },
    },
  },
  prometheus: { features: 'exemplar-storage,native-histograms', jobs: { old: {} } },
} as const;

type Scraper = { readonly name: string; readonly jobs: readonly string[]; readonly prometheus: Prometheus };

async function startScraper(pod: FrontPod, name: keyof typeof SCRAPERS, ports: readonly number[]): Promise<Scraper> {
  const { features, jobs } = SCRAPERS[name];
  const targets = ports.map((port) => `127.0.0.1:${port}`);
  const config = {
    global: { scrape_interval: '2s', scrape_timeout: '2s' },
    scrape_configs: Object.entries(jobs).map(([job_name, settings]) => {
      return { job_name, ...settings, static_configs: [{ targets }] };
    }),
  };
  const prometheus = await pod.startPrometheus({
    program: name,
    port: await pod.network.newPort(),
    folder: name,
    // JSON is YAML.
    config: JSON.stringify(config),
    args: [`--enable-feature=${features}`],
  });
  return { name, jobs: Object.keys(jobs), prometheus };
}

type Labels = Readonly<Record<string, string>>;
type Point = readonly [atSeconds: number, value: unknown];
type Series = { readonly metric: Labels; readonly values?: readonly Point[]; readonly histograms?: readonly Point[] };
/** By what it is of. */
type Stored = ReadonlyMap<string, unknown>;

function writeLabels({ instance: _, ...labels }: Labels): string {
  return JSON.stringify(Object.entries(labels).toSorted(([left], [right]) => (left < right ? -1 : 1)));
}

/** All that a Prometheus holds of a target; of a series what it was since, and the zero of its start. */
async function readStored({ ask }: Prometheus, job: string, port: number, sinceSeconds = 0): Promise<Stored> {
  const selector = encodeURIComponent(`{job="${job}",instance="127.0.0.1:${port}"}`);
  const isCompared = (name = '') => !/^(lastscrape|scrape)_/.test(name) && !OF_THE_MOMENT.test(name);
  const stored = new Map<string, unknown>();
  const { result } = await ask<{ result: readonly Series[] }>(`query?query=${selector}[10m]`);
  const scrapedAt = new Set(result.find(({ metric }) => metric['__name__'] === 'up')?.values?.map(([at]) => at));
  for (const { metric, values = [], histograms = [] } of result) {
    if (!isCompared(metric['__name__'])) continue;
    const points = [...values, ...histograms];
    const started = points.filter(([at]) => !scrapedAt.has(at));
    const scraped = points.filter(([at]) => scrapedAt.has(at) && at >= sinceSeconds).map(([, value]) => value);
    stored.set(`series ${writeLabels(metric)}`, { scraped: scraped.at(-1), ...(started.length > 0 && { started }) });
  }
  const range = `start=${Date.now() / 1000 - 600}&end=${Date.now() / 1000}`;
  type Exemplars = { readonly seriesLabels: Labels; readonly exemplars: readonly unknown[] };
  for (const { seriesLabels, exemplars } of await ask<readonly Exemplars[]>(
    `query_exemplars?query=${selector}&${range}`,
  ))
    stored.set(`exemplars ${writeLabels(seriesLabels)}`, exemplars);
  type Metadata = { readonly metric: string; readonly target: object };
  for (const { metric, target: _, ...said } of await ask<readonly Metadata[]>(
    `targets/metadata?match_target=${selector}`,
  ))
    if (isCompared(metric)) stored.set(`metadata ${metric}`, said);
  return stored;
}

/** What must be there is: two empty pages are the same as well. */
function checkShown(stored: Stored, { name, shows }: ProgramCase, job: string): void {
  const all = [...stored].map(([key, value]) => `${key} ${JSON.stringify(value)}`);
  const hasEnough = all.filter((each) => each.startsWith('series ')).length >= SERIES_MIN_COUNT;
  assert.ok(hasEnough, `${name}, ${job}: ${all.length}`);
  for (const feature of shows[job] ?? [])
    assert.ok(
      all.some((each) => SIGNS[feature].test(each)),
      `${name}, ${job}: ${feature}`,
    );
}

describe('a real Prometheus holds the same of a program and of its front', { skip }, () => {
  it('while it runs, and after its end', { timeout: 600_000 }, () =>
    withFrontPod(async (pod) => {
      const env = { LASTSCRAPE_SCRAPES: '1000', LASTSCRAPE_TTL: '10m', LASTSCRAPE_TERMINATION_GRACE: '10m' };
      const pairs = await Promise.all(
        PROGRAMS.map(async (program) => {
          const port = await pod.network.newPort();
          const child = program.start(pod, port, await pod.network.newPort());
          await pod.network.waitForPort(port);
          const source = `http://127.0.0.1:${port}/metrics`;
          return {
            program,
            port,
            child,
            front: await pod.startFront({ source, port: await pod.network.newPort(), env }),
          };
        }),
      );
      const ports = pairs.flatMap(({ port, front }) => [port, front.port]);
      const scrapers = await Promise.all([
        startScraper(pod, 'prometheus3', ports),
        startScraper(pod, 'prometheus', ports),
      ]);
      const rows = pairs.flatMap((pair) =>
        scrapers.flatMap(({ prometheus, jobs }) => jobs.map((job) => ({ ...pair, prometheus, job }))),
      );
      const lasts: Stored[] = [];
      for (const { program, port, front, prometheus, job } of rows) {
        const direct = await until(`the same of ${program.name}, ${job}`, START_MS, async () => {
          const found = await readStored(prometheus, job, port);
          checkShown(found, program, job);
          assert.deepEqual(await readStored(prometheus, job, front.port), found);
          return found;
        });
        lasts.push(direct);
      }
      await Promise.all(
        pairs.map(({ child, front }) => {
          child.signal('SIGKILL');
          return terminateAfter(child, front.child);
        }),
      );
      for (const [index, { program, front, prometheus, job }] of rows.entries()) {
        await until(`the same after the end of ${program.name}, ${job}`, START_MS, async () => {
          const [ended] = await prometheus.readSeries(
            `lastscrape_main_ended{job="${job}",instance="127.0.0.1:${front.port}"}`,
          );
          const since = ended?.samples.find(({ value }) => value === 1)?.atSeconds;
          assert.ok(since !== undefined, 'no scrape since the end');
          assert.deepEqual(await readStored(prometheus, job, front.port, since), lasts[index]);
          return true;
        });
      }
    }),
  );
});
