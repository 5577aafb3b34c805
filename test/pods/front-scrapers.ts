// The scrapers of a front, each a real program as people run it, and what each has stored.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Child } from '../support/child.ts';
import type { Prometheus } from '../support/prometheus.ts';
import type { ReportFields } from '../support/proof.ts';
import { readLast } from '../support/proof.ts';
import { readSettled, until } from '../support/until.ts';
import { jobCommand, readResult, WORKED } from './front-jobs.ts';
import { type FrontPod, readReport, START_MS, scrapeConfig, terminateAfter } from './front-pod.ts';
import { type FrontProgram, frontProgram } from './front-programs.ts';

/** One who scrapes: the newest value that it has of a metric from the front at that port; undefined: none. */
export type Scraper = {
  readonly name: string;
  readonly readNewest: (metric: string, port: number) => Promise<number | undefined>;
};

export type OpenScrapers = (pod: FrontPod, ports: readonly number[]) => Promise<readonly Scraper[]>;

export type ScraperStart = {
  readonly name: string;
  readonly interval: string;
  /** The address that it scrapes, which is also the one that it comes from; default 127.0.0.1. */
  readonly address?: string;
  readonly program?: FrontProgram;
  /** Lines of the scrape_config, each indented by four. */
  readonly settings?: string;
};

/** What a job's end came to. */
export type FinalResult = {
  readonly final: number;
  readonly stored: Readonly<Record<string, number | undefined>>;
  readonly report: ReportFields;
};

/** Prometheus commits a scrape within milliseconds, and an agent sends it on within 5 s. */
const COMMIT_MS = 60_000;

/**
 * Plays `count` Python jobs, each with a snapshot of its last number, before these scrapers, all of which
 * have scraped each front before its job begins.
 */
export async function playFinals(
  pod: FrontPod,
  open: OpenScrapers,
  count: number,
  workMs: number,
): Promise<readonly FinalResult[]> {
  const pods = await Promise.all(
    Array.from({ length: count }, async () => {
      const sourcePort = await pod.network.newPort();
      const source = `http://127.0.0.1:${sourcePort}/metrics`;
      const front = await pod.startFront({ source, port: await pod.network.newPort() });
      return { sourcePort, front };
    }),
  );
  const scrapers = await open(
    pod,
    pods.map(({ front }) => front.port),
  );
  for (const { front } of pods) {
    for (const { name, readNewest } of scrapers) {
      await until(`a scrape of ${front.port} by ${name}`, START_MS, async () =>
        (await readNewest('up', front.port)) === undefined ? undefined : true,
      );
    }
  }
  return Promise.all(
    pods.map(async ({ sourcePort, front }, index): Promise<FinalResult> => {
      // Their ends fall anywhere in a second.
      await delay((1000 * index) / count);
      const job = pod.start(`the job at ${sourcePort}`, jobCommand('python'), {
        JOB_PORT: `${sourcePort}`,
        JOB_MS: `${workMs}`,
        JOB_SNAPSHOT_URL: `http://127.0.0.1:${front.port}/-/snapshot`,
      });
      await terminateAfter(job, front.child);
      const { final } = await readResult(job);
      const report = await readReport(front);
      const stored: Record<string, number | undefined> = {};
      for (const { name, readNewest } of scrapers) {
        stored[name] = await readSettled<number | undefined>(final, COMMIT_MS, () => readNewest(WORKED, front.port));
      }
      return { final, stored, report };
    }),
  );
}

export async function openPrometheus(
  pod: FrontPod,
  ports: readonly number[],
  { name, interval, address = '127.0.0.1', program = 'prometheus', settings = '' }: ScraperStart,
): Promise<Scraper> {
  // As the Prometheus operator does: replicas differ in a label, and so in when they scrape.
  const replica = `  external_labels: { replica: "${name}" }\n`;
  const targets = ports.map((port) => `${address}:${port}`);
  const prometheus = await pod.startPrometheus({
    program,
    port: await pod.network.newPort(),
    folder: `prometheus-${name}`,
    config: scrapeConfig(interval, targets, settings).replace('scrape_configs:', `${replica}scrape_configs:`),
  });
  return { name, readNewest: (metric, port) => readFrom(prometheus, metric, port) };
}

/** A Prometheus in agent mode, which keeps nothing, and the one that it sends everything to. */
export async function openAgent(pod: FrontPod, ports: readonly number[], interval: string): Promise<Scraper> {
  const receiverPort = await pod.network.newPort();
  const receiver = await pod.startPrometheus({
    port: receiverPort,
    folder: 'receiver',
    config: 'scrape_configs: []\n',
    args: ['--web.enable-remote-write-receiver'],
  });
  const remoteWrite = `remote_write:\n  - url: http://127.0.0.1:${receiverPort}/api/v1/write\n`;
  await pod.startPrometheus({
    port: await pod.network.newPort(),
    folder: 'agent',
    config: scrapeConfig(interval, ports, remoteWrite),
    isAgent: true,
    args: ['--enable-feature=agent'],
  });
  return { name: 'agent', readNewest: (metric, port) => readFrom(receiver, metric, port) };
}

/** The OpenTelemetry Collector, which prints each number that its Prometheus receiver hands on. */
export async function openCollector(pod: FrontPod, ports: readonly number[], interval: string): Promise<Scraper> {
  const targets = ports.map((port) => `127.0.0.1:${port}`);
  const scrape = { job_name: 'pod', scrape_interval: interval, static_configs: [{ targets }] };
  const config = {
    receivers: { prometheus: { config: { scrape_configs: [scrape] } } },
    exporters: { debug: { verbosity: 'detailed', use_internal_logger: false } },
    service: {
      telemetry: { metrics: { level: 'none' } },
      pipelines: { metrics: { receivers: ['prometheus'], exporters: ['debug'] } },
    },
  };
  const path = join(pod.directory, 'collector.yaml');
  writeFileSync(path, JSON.stringify(config));
  const child = pod.start('the Collector', [frontProgram('collector'), '--config', path]);
  await child.waitForLine(/Everything is ready/, START_MS);
  return { name: 'collector', readNewest: async (metric, port) => readPrinted(child, metric, port) };
}

// A resource has its target once, then metrics: a name, and its points. A stale point has a flag and 0.
function readPrinted(child: Child, metric: string, port: number): number | undefined {
  let isTarget = false;
  let isMetric = false;
  let newest: number | undefined;
  for (const { text } of child.lines) {
    if (text.startsWith('Resource attributes:')) isTarget = false;
    if (text.includes(`service.instance.id: Str(127.0.0.1:${port})`)) isTarget = true;
    const name = /^ +-> Name: (\S+)$/.exec(text)?.[1];
    if (name !== undefined) isMetric = name === metric;
    const value = /^Value: (\S+)$/.exec(text)?.[1];
    if (isTarget && isMetric && value !== undefined) newest = Number(value);
  }
  return newest;
}

function readFrom(prometheus: Prometheus, metric: string, port: number): Promise<number | undefined> {
  return readLast(prometheus, `${metric}{instance=~".+:${port}"}`);
}
