// A real Prometheus with its own storage that scrapes one target, and what it stored, by its own HTTP API.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Child, startChild } from './child.ts';
import { baseEnv, type Network } from './network.ts';

/** A running Prometheus. */
export type Prometheus = {
  readonly child: Child;
  /** Every raw sample of the series that a selector matches, oldest first; the last hour, stale series included. */
  readSeries(selector: string): Promise<readonly Series[]>;
};

/** One series as stored. */
export type Series = { readonly labels: Readonly<Record<string, string>>; readonly samples: readonly Sample[] };

/** One sample; Prometheus stamps it with the time when its scrape began (epoch seconds). */
export type Sample = { readonly atSeconds: number; readonly value: number };

/** What to scrape and how often, as Prometheus writes durations. */
export type PrometheusStart = {
  readonly network: Network;
  readonly command: readonly string[];
  readonly directory: string;
  readonly scrapeInterval: string;
  readonly targetPort: number;
};

/** 60 s: an empty Prometheus 2.42 is ready within 1 s on an idle machine. */
const READY_MS = 60_000;

/** Starts Prometheus and waits until it is ready, which is when its scrapes begin. */
export async function startPrometheus(start: PrometheusStart): Promise<Prometheus> {
  const { network, scrapeInterval } = start;
  const config = `scrape_configs:
  - job_name: pod
    scrape_interval: ${scrapeInterval}
    scrape_timeout: ${scrapeInterval}
    static_configs:
      - targets: ["127.0.0.1:${start.targetPort}"]
`;
  const child = await runPrometheus({ ...start, config });
  return { child, readSeries: (selector) => readSeries(network, selector) };
}

/** Starts a Prometheus with the text of its configuration, and waits until it is ready. */
export async function runPrometheus(
  start: Pick<PrometheusStart, 'network' | 'command' | 'directory'> & { readonly config: string },
): Promise<Child> {
  const { network, directory } = start;
  const config = join(directory, 'prometheus.yml');
  writeFileSync(config, start.config);
  const child = startChild({
    name: 'Prometheus',
    command: network.wrap([
      ...start.command,
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(directory, 'prometheus')}`,
      `--web.listen-address=127.0.0.1:${network.ports.prometheus}`,
    ]),
    env: baseEnv(directory),
    cwd: directory,
  });
  try {
    await child.waitForLine(/Server is ready to receive web requests/, READY_MS);
  } catch (error) {
    await child[Symbol.asyncDispose]();
    throw error;
  }
  return child;
}

type ApiSeries = { readonly metric: Record<string, string>; readonly values: readonly [number, string][] };

async function readSeries(network: Network, selector: string): Promise<readonly Series[]> {
  const query = encodeURIComponent(`${selector}[1h]`);
  const { status, body } = await network.get(network.ports.prometheus, `/api/v1/query?query=${query}`);
  if (status !== 200) throw new Error(`Cannot query Prometheus for ${selector}: it answered ${status} ${body}`);
  const answer: { readonly data: { readonly result: readonly ApiSeries[] } } = JSON.parse(body);
  return answer.data.result.map(({ metric, values }) => ({
    labels: metric,
    samples: values.map(([atSeconds, value]) => ({ atSeconds, value: Number(value) })),
  }));
}
