// A real Prometheus with its own storage that scrapes one target, and what it stored, by its own HTTP API.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Child, startChild } from './child.ts';
import { baseEnv, type Network } from './network.ts';

export type Prometheus = ReturnType<typeof prometheusAt>;

export type Series = { readonly labels: Readonly<Record<string, string>>; readonly samples: readonly Sample[] };

/** One sample; Prometheus stamps it with the time when its scrape began (epoch seconds). */
export type Sample = { readonly atSeconds: number; readonly value: number };

type PrometheusStart = {
  readonly network: Network;
  readonly command: readonly string[];
  readonly directory: string;
  readonly scrapeInterval: string;
  readonly targetPort: number;
};

/** How one Prometheus of several in a network is started. */
export type PrometheusProcess = {
  readonly config: string;
  /** Default: the one of the network. */
  readonly port?: number;
  /** Of its storage, in the directory; default `prometheus`. */
  readonly folder?: string;
  /** With `--enable-feature=agent` or `--agent` in `args`, which has another storage. */
  readonly isAgent?: boolean;
  readonly args?: readonly string[];
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
  return prometheusAt(child, network, network.ports.prometheus);
}

/** What a running Prometheus on that port answers. */
export function prometheusAt(child: Child, network: Network, port: number) {
  /** The `data` that its API has at a path such as `query?query=up`. */
  const ask = async <Found>(path: string): Promise<Found> => {
    const { status, body } = await network.get(port, `/api/v1/${path}`);
    if (status !== 200) throw new Error(`Cannot ask Prometheus for ${path}: it answered ${status} ${body}`);
    return JSON.parse(body).data;
  };
  const query = async <Result>(expression: string) =>
    (await ask<{ readonly result: readonly Result[] }>(`query?query=${encodeURIComponent(expression)}`)).result;
  return {
    child,
    ask,
    /** Every raw sample of the matching series, oldest first; the last hour, stale series included. */
    readSeries: async (selector: string): Promise<readonly Series[]> =>
      (await query<ApiSeries>(`${selector}[1h]`)).map(({ metric, values }) => ({
        labels: metric,
        samples: values.map(([atSeconds, value]) => ({ atSeconds, value: Number(value) })),
      })),
    /** What an instant query answers now: one value for each series; empty where they are stale or missing. */
    query: async (expression: string): Promise<readonly number[]> =>
      (await query<{ readonly value: readonly [number, string] }>(expression)).map(({ value }) => Number(value[1])),
  };
}

/** Starts a Prometheus with the text of its configuration, and waits until it is ready. */
export async function runPrometheus(
  start: Pick<PrometheusStart, 'network' | 'command' | 'directory'> & PrometheusProcess,
): Promise<Child> {
  const { network, directory, port = network.ports.prometheus, folder = 'prometheus', isAgent = false } = start;
  const config = join(directory, `${folder}.yml`);
  writeFileSync(config, start.config);
  const child = startChild({
    name: 'Prometheus',
    command: network.wrap([
      ...start.command,
      `--config.file=${config}`,
      `--storage.${isAgent ? 'agent' : 'tsdb'}.path=${join(directory, folder)}`,
      `--web.listen-address=127.0.0.1:${port}`,
      ...(start.args ?? []),
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
