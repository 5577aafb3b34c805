// A pod of real programs as the Locust operator makes it: master, worker, exporter, Prometheus, and the
// watcher. A test starts the containers that it needs; all end with the pod.
import { join } from 'node:path';
import { type Child, type Line, startChild } from './child.ts';
import { makeFolder } from './folder.ts';
import { baseEnv, type Network, openNetwork } from './network.ts';
import type { ExporterProgram, Programs } from './programs.ts';
import { type Prometheus, startPrometheus } from './prometheus.ts';

/** How a master is started where it differs from the operator's shape, which the recordings have too. */
export type MasterStart = {
  /** A path; default: the users who succeed at everything. */
  readonly locustfile?: string;
  /** Default `8s`. */
  readonly runTime?: string;
  /** Arguments after all others. */
  readonly extraArgs?: readonly string[];
};

type WatcherStart = {
  readonly env?: Readonly<Record<string, string>>;
  /** No variable at all, as in a pod, and no termination message to read. */
  readonly isBare?: boolean;
};

export type Pod = ReturnType<typeof podIn>;

export function locustfile(name: 'steady' | 'failing' | 'quit-at-end'): string {
  return join(import.meta.dirname, '../pods/locustfiles', `${name}.py`);
}

/** 90 s: three Locusts at a time import themselves in 10 s on two busy cores. */
export const START_MS = 90_000;

/** Opens the network of a pod; nothing runs in it yet. */
export async function openPod(programs: Programs, exporterProgram: ExporterProgram): Promise<Pod> {
  const directory = makeFolder();
  const stack = new AsyncDisposableStack();
  try {
    const network = stack.use(await openNetwork(directory));
    return podIn(network, directory, programs, exporterProgram, stack);
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

function podIn(
  network: Network,
  directory: string,
  programs: Programs,
  exporterProgram: ExporterProgram,
  stack: AsyncDisposableStack,
) {
  const { ports } = network;
  const children: Child[] = [];
  const terminationLog = join(directory, 'termination-log');

  const keep = (child: Child): Child => {
    children.push(child);
    return stack.use(child);
  };
  const start = (name: string, command: readonly string[], env: Readonly<Record<string, string>> = {}): Child =>
    keep(startChild({ name, command: network.wrap(command), env: { ...baseEnv(directory), ...env }, cwd: directory }));
  // Python would write its bytecode next to the locustfiles, into the checkout.
  const startLocust = (name: string, args: readonly string[]): Child =>
    start(name, [...present(programs.locust), ...args], { PYTHONDONTWRITEBYTECODE: '1' });

  return {
    network,
    directory,
    exporterProgram,
    /** Where the watcher writes its termination message, unless it was started bare. */
    terminationLog,
    /** Everything started so far, in that order. */
    children: children as readonly Child[],
    startExporter: () =>
      start('the exporter', exporterProgram.command, {
        LOCUST_EXPORTER_URI: `http://127.0.0.1:${ports.web}`,
        LOCUST_EXPORTER_WEB_LISTEN_ADDRESS: `:${ports.exporter}`,
      }),
    // Without collectors its own numbers are all that is left, and they are what a test wants of it.
    startNodeExporter: () =>
      start('node_exporter', [
        ...present(programs.nodeExporter),
        '--collector.disable-defaults',
        '--collector.loadavg',
        `--web.listen-address=:${ports.nodeExporter}`,
      ]),
    async startPrometheus(scrapeInterval: string, targetPort = ports.exporter): Promise<Prometheus> {
      const command = present(programs.prometheus);
      const prometheus = await startPrometheus({ network, command, directory, scrapeInterval, targetPort });
      keep(prometheus.child);
      return prometheus;
    },
    startWatcher({ env = {}, isBare = false }: WatcherStart = {}): Child {
      const message = isBare ? {} : { LASTSCRAPE_TERMINATION_LOG: terminationLog };
      return start('the watcher', programs.watcher, { ...message, ...env });
    },
    /** The watcher in the exporter's place, with the exporter's variables only. */
    startInPlace: () =>
      start('the watcher', programs.watcher, {
        LASTSCRAPE_TERMINATION_LOG: terminationLog,
        LOCUST_EXPORTER_URI: `http://localhost:${ports.web}`,
        LOCUST_EXPORTER_WEB_LISTEN_ADDRESS: `:${ports.exporter}`,
      }),
    startMaster: (options: MasterStart = {}) => startLocust('the master', masterArgs(network, options)),
    startWorker: (file = locustfile('steady')) =>
      startLocust('the worker', [
        ...['--locustfile', file, '--worker', '--master-host=127.0.0.1', `--master-port=${ports.master}`],
      ]),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

// The shape of operator 1.x and 2.x, with users and run time of the recordings.
function masterArgs({ ports }: Network, { locustfile: file, runTime, extraArgs }: MasterStart): readonly string[] {
  return [
    ...['--locustfile', file ?? locustfile('steady'), '--host', `http://127.0.0.1:${ports.target}`],
    ...['--run-time', runTime ?? '8s', '--users', '6', '--spawn-rate', '3'],
    ...['--master', `--master-port=${ports.master}`, '--expect-workers=1', '--autostart', '--autoquit', '5'],
    ...['--enable-rebalancing', '--only-summary'],
    ...(extraArgs ?? []),
  ];
}

function present(command: readonly string[] | undefined): readonly string[] {
  if (command === undefined) throw new Error('Bug: a pod was opened although its programs are missing');
  return command;
}

/** The total of Locust's own summary, when everything was counted. @throws without one */
export function readFinalTotal(master: Child): number {
  const match = master.lines.map((line) => /^\s+Aggregated\s+(\d+)\s/.exec(line.text)).find((found) => found !== null);
  if (match?.[1] === undefined) throw new Error(`Cannot find Locust's summary; ${master.tail()}`);
  return Number(match[1]);
}

/** When Locust's log says that a line was written (epoch ms); TZ is UTC for all programs of a pod. */
export function readLocustTime({ text }: Line): number {
  const match = /^\[(\S+) ([\d:]+),(\d+)\]/.exec(text);
  if (match === null) throw new Error(`Cannot read the time of Locust's line "${text}"`);
  return Date.parse(`${match[1]}T${match[2]}.${match[3]}Z`);
}
