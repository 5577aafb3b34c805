// What `--check` tries of a front: whether it could listen where it is to, and what it would serve. Answers nobody, and is imported
// for `--check` only.

import { once } from 'node:events';
import { createServer } from 'node:net';
import { SYSTEM_CLOCK } from '../base/clock.ts';
import type { FrontAddress } from '../config/front-address.ts';
import type { SourceParts } from '../front/open-source.ts';
import type { ExporterReading } from '../observe/condition.ts';
import { makeFailedReading, READ_TIMEOUT_MS } from '../observe/exporter.ts';

/** Why it could not. */
export type ListenProblem = {
  /** Somebody listens there: who, cannot be told. */
  readonly isTaken: boolean;
  /** What is; what to do. */
  readonly problem: string;
};

/** null: it could. Never rejects. */
export async function findListenProblem({ host, port }: FrontAddress): Promise<ListenProblem | null> {
  const { ALL_HOSTS, describeListenProblem, listen, listListenHosts } = await import('../front/listen.ts');
  const server = createServer((socket) => socket.destroy());
  // HTTP is not spoken before a connection comes.
  const code = await listen(server as Parameters<typeof listen>[0], listListenHosts(host, ALL_HOSTS), port);
  if (code !== null) return { isTaken: code === 'EADDRINUSE', problem: describeListenProblem(host, port, code) };
  server.close();
  await once(server, 'close');
  return null;
}

/** Reads once what the front would serve, as it would: what it could not serve is `failed`. `signal` ends it early. Never rejects. */
export async function readSource(
  url: URL,
  metricNames: readonly string[],
  signal: AbortSignal,
  locust?: Required<SourceParts>['locust'],
  selectors: Required<SourceParts>['selectors'] = [],
): Promise<ExporterReading> {
  const { openSource } = await import('../front/open-source.ts');
  const source = openSource({
    url,
    metricNames,
    selectors,
    clock: SYSTEM_CLOCK,
    log: () => {},
    ...(locust === undefined ? {} : { locust }),
  });
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(`timed out after ${READ_TIMEOUT_MS / 1_000} s`), READ_TIMEOUT_MS);
  try {
    const read = source.read(AbortSignal.any([signal, late.signal]));
    const begun = await read.begun;
    const [reading, end] = await Promise.all([read.ended, begun.kind === 'answered' ? begun.body.ended : null]);
    return end?.kind === 'whole' && !end.isReadable ? makeFailedReading(end.why, false) : reading;
  } finally {
    clearTimeout(timer);
    await source.close();
  }
}
