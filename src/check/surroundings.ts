// What `--check` touches of the world: it reads and connects, but stops and writes nothing. Imported only for
// it.

import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { type Environment, readVariable } from '../base/parse.ts';
import { describeNamespace, isRunningBeside } from '../base/procfs.ts';
import { SYSTEM_CLOCK } from '../base/waits.ts';
import { type Config, hasReceivers } from '../config/config.ts';
import type { FrontAddress } from '../config/values.ts';
import { READ_TIMEOUT_MS } from '../decide/serve/reads.ts';
import type { ExporterReading } from '../observe/condition-kind.ts';
import { makeFailedReading, openExporter } from '../observe/exporter.ts';
import { findMessageProblem } from '../run/outcome.ts';
import { findTombstoneProblem } from '../run/own-tombstone.ts';
import { findOthers } from '../run/startup-checks.ts';
import type { Listener } from '../tell/telling.ts';

/** Why the front cannot listen. */
export type ListenProblem = {
  /** Another program listens there, maybe a lastscrape. */
  readonly isTaken: boolean;
  /** `what is; what to do`. */
  readonly problem: string;
};

/** What is around the process that checks. No call rejects; null: no problem. */
export type Surroundings = ReturnType<typeof findSurroundings>;

/** Marks of a pod: Kubernetes sets the variable in every container, and the kubelet mounts the files. */
const POD_VARIABLE = 'KUBERNETES_SERVICE_HOST';
const POD_FILES = ['/var/run/secrets/kubernetes.io', '/dev/termination-log'];

export function findSurroundings(env: Environment, ownPid: number) {
  return {
    env,
    isPod: readVariable(env, POD_VARIABLE) !== '' || POD_FILES.some((path) => existsSync(path)),
    readExporter: (config: ReadableConfig, signal: AbortSignal) =>
      readExporter(config, signal, readVariable(env, 'POD_IP')),
    describeNamespace: () => describeNamespace(ownPid),
    /** Whether a lastscrape that may hold the pod runs in this container, or is visible from it. */
    isRunningBeside: () => isRunningBeside(ownPid),
    /** PIDs of other lastscrapes, in a shared process namespace. */
    findOthers: () => findOthers(ownPid),
    findMessageProblem,
    findTombstoneProblem,
    findListenProblem,
    /** The receivers of push and webhook; connects to them if `isTried`. */
    async findListeners(
      config: Config,
      options: { readonly isTried: boolean; readonly signal: AbortSignal },
    ): Promise<readonly Listener[]> {
      if (!hasReceivers(config)) return [];
      const [{ findListeners }, { findIdentitySources }] = await Promise.all([
        import('../tell/telling.ts'),
        import('../pod/identity.ts'),
      ]);
      return findListeners(config, findIdentitySources(env), options);
    },
  };
}

/** Finds out whether the front can listen, by listening for a moment. */
export async function findListenProblem({ host, port }: FrontAddress): Promise<ListenProblem | null> {
  const { describeListenProblem, listen } = await import('../front/listen.ts');
  const server = createServer((socket) => socket.destroy());
  // `listen` is typed for an HTTP server; nothing of HTTP is used before a connection comes.
  const code = await listen(server as Parameters<typeof listen>[0], host, port);
  if (code !== null) return { isTaken: code === 'EADDRINUSE', problem: describeListenProblem(host, port, code) };
  server.close();
  await once(server, 'close');
  return null;
}

type ReadableConfig = Pick<Config, 'conditions' | 'metricsUrl' | 'front' | 'locust' | 'thresholds'>;

/** Reads the exporter once, or what the front would serve: `failed` if it cannot serve that. */
export async function readExporter(config: ReadableConfig, signal: AbortSignal, podIp = ''): Promise<ExporterReading> {
  const { conditions, metricsUrl, front, locust, thresholds } = config;
  const metricNames = conditions.flatMap(({ metricName }) => metricName ?? []);
  if (front === null) {
    const exporter = openExporter(metricsUrl, metricNames, thresholds);
    return exporter.read(signal).ended.finally(exporter.close);
  }
  const { openSource } = await import('../front/open-source.ts');
  const own = { selectors: thresholds, locust, podIp, clock: SYSTEM_CLOCK, log: () => {} };
  const source = openSource({ url: metricsUrl, metricNames, ...own });
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(`timed out after ${READ_TIMEOUT_MS / 1_000} s`), READ_TIMEOUT_MS);
  try {
    const read = source.read(AbortSignal.any([signal, late.signal]));
    const begun = await read.begun;
    const [reading, end] = await Promise.all([read.ended, begun.kind === 'answered' ? begun.body.ended : null]);
    return end?.kind === 'unreadable' ? makeFailedReading(end.why, false) : reading;
  } finally {
    clearTimeout(timer);
    await source.close();
  }
}
