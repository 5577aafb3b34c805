// A network of small pods, each a job with its own front, and their scrapers: real programs. The test plays
// the kubelet: SIGTERM to a native sidecar, 1 s after the last container ended.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Child, startChild } from '../support/child.ts';
import { makeFolder } from '../support/folder.ts';
import { baseEnv, type Network, openNetwork } from '../support/network.ts';
import { type Prometheus, type PrometheusProcess, prometheusAt, runPrometheus } from '../support/prometheus.ts';
import type { ReportFields } from '../support/proof.ts';
import { until } from '../support/until.ts';
import { type FrontProgram, frontProgram, LASTSCRAPE } from './front-programs.ts';

export type FrontPod = AsyncDisposable & {
  readonly network: Network;
  readonly directory: string;
  /** Starts a program in the network; `env` is added to the little that every program gets. */
  start(name: string, command: readonly string[], env?: Readonly<Record<string, string>>): Child;
  /** Starts lastscrape with a front as the last native sidecar, and waits until its startupProbe passes. */
  startFront(start: FrontStart): Promise<Front>;
  startPrometheus(start: PrometheusProcess & { readonly program?: FrontProgram }): Promise<Prometheus>;
};

export type FrontStart = {
  /** LASTSCRAPE_METRICS_URL. */
  readonly source: string;
  readonly port: number;
  /** Beside these, `sigterm` as the end and polls every 250 ms. */
  readonly env?: Readonly<Record<string, string>>;
};

export type Front = { readonly port: number; readonly child: Child };

/** 90 s: two busy cores carry dozens of programs, each of which needs some 0.3 s of them to start. */
export const START_MS = 90_000;

/** TTL 90 s: lastscrape never holds longer. */
export const END_MS = 120_000;

/** The kubelet's SIGTERM to native sidecars comes about 1 s after the last regular container (1.36.3). */
const KUBELET_MS = 1000;

/** How often the front polls by default: what the README proposes for a program's own page. */
export const POLL = '250ms';

/** Opens the network, plays the test in it, and ends everything; a failure shows what each program said. */
export async function withFrontPod<Result>(play: (pod: FrontPod) => Promise<Result>): Promise<Result> {
  const directory = makeFolder();
  await using stack = new AsyncDisposableStack();
  const network = stack.use(await openNetwork(directory));
  const children: Child[] = [];
  const keep = (child: Child): Child => {
    children.push(child);
    return stack.use(child);
  };
  const start: FrontPod['start'] = (name, command, env = {}) =>
    keep(startChild({ name, command: network.wrap(command), env: { ...baseEnv(directory), ...env }, cwd: directory }));
  try {
    return await play({
      network,
      directory,
      start,
      async startFront({ source, port, env }) {
        const child = start(`lastscrape at ${port}`, LASTSCRAPE, {
          LASTSCRAPE_FRONT: String(port),
          LASTSCRAPE_METRICS_URL: source,
          LASTSCRAPE_DONE_WHEN: 'sigterm',
          LASTSCRAPE_POLL: POLL,
          LASTSCRAPE_TERMINATION_LOG: join(directory, `message-${port}`),
          ...env,
        });
        const ended = child.exited.then(() => {
          throw new Error(`Cannot wait for the front: it ended; ${child.tail()}`);
        });
        const ready = until(`the front at ${port} ready`, START_MS, async () =>
          (await network.get(port, '/-/ready')).status === 200 ? true : undefined,
        );
        await Promise.race([ready, ended]);
        return { port, child };
      },
      async startPrometheus({ program = 'prometheus', ...process }) {
        const child = keep(await runPrometheus({ network, directory, command: [frontProgram(program)], ...process }));
        return prometheusAt(child, network, process.port ?? network.ports.prometheus);
      },
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    });
  } catch (error) {
    process.stderr.write(`What the programs printed last:\n${children.map((child) => child.tail()).join('\n')}\n`);
    throw error;
  }
}

/** A Prometheus that scrapes these ports of 127.0.0.1, each with `instance="127.0.0.1:PORT"`. */
export function scrapeConfig(interval: string, targets: readonly (number | string)[], more = ''): string {
  const addresses = targets.map((target) => (typeof target === 'number' ? `127.0.0.1:${target}` : target));
  return `global:
  scrape_interval: ${interval}
  scrape_timeout: ${interval}
scrape_configs:
  - job_name: pod
    static_configs:
      - targets: ${JSON.stringify(addresses)}
${more}`;
}

/** Waits until a container is gone, and sends what the kubelet then sends to a native sidecar. */
export async function terminateAfter(main: Child, sidecar: Child): Promise<void> {
  await main.waitForExit(END_MS);
  await delay(KUBELET_MS);
  sidecar.signal('SIGTERM');
}

/** The report of a front that ended well: exit code 0, and the report as the last line of its log. */
export async function readReport({ child }: Front): Promise<ReportFields> {
  const exit = await child.waitForExit(END_MS);
  const last: ReportFields & { readonly msg: string } = JSON.parse(
    child.lines.findLast(({ stream }) => stream === 'stdout')?.text ?? '{}',
  );
  assert.equal(last.msg, 'report', `the last line of the log is the report; ${child.tail()}`);
  assert.equal(exit.code, 0, `the exit code of lastscrape; ${child.tail()}`);
  return last;
}

/** Waits until each target was scraped once, well or not: Prometheus takes 5 s to find its targets. */
export async function waitForScrapes(prometheus: Prometheus, targetsCount: number): Promise<void> {
  await until('a scrape of each target', START_MS, async () =>
    (await prometheus.query('count(up)'))[0] === targetsCount ? true : undefined,
  );
}

/** Waits until a scrape that began from now on has failed: then everything before it is stored. */
export async function waitForDown(prometheus: Prometheus, instance: string): Promise<void> {
  const sinceSeconds = Date.now() / 1000;
  await until(`${instance} down in Prometheus`, END_MS, async () => {
    const [series] = await prometheus.readSeries(`up{instance="${instance}"}`);
    return series?.samples.some(({ atSeconds, value }) => atSeconds > sinceSeconds && value === 0) || undefined;
  });
}
