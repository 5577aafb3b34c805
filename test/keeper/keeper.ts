// A keeper for a test: `lastscrape keep` as its own process, what pods send it, and what Prometheus asks.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { HandOver } from '../../src/decide/keep/targets.ts';
import { runKeep } from '../../src/keeper/keep.ts';
import type { Host } from '../../src/run/host.ts';
import { type Child, startChild } from '../support/child.ts';
import { makeFolder } from '../support/folder.ts';
import { findFreePort } from '../support/listen.ts';
import { findPrograms } from '../support/programs.ts';
import { until } from '../support/until.ts';

const READY_MS = 60_000;

export const TEXT = '# TYPE jobs_done counter\njobs_done 5\n';

/** Pages of a hand-over, and whose they are. */
export type Sent = {
  readonly name?: string;
  readonly namespace?: string;
  readonly head?: Record<string, unknown>;
  readonly pages?: readonly string[];
  readonly token?: string;
};

/** The bytes of a hand-over. */
export function writeHandOver({ name = 'job-1', namespace = 'shop', head = {}, pages = [TEXT] }: Sent): Buffer {
  const handOver: HandOver = {
    pod: { namespace, name, uid: `uid-${name}`, ip: '', node: 'n1', labels: { app: 'shop' }, annotations: {} },
    target: { container: 'lastscrape', portName: 'lastscrape', port: 9469 },
    endedAtSeconds: 1_700_000_000,
    formats: pages.map((page) => ({
      accept: '',
      contentType: page.endsWith('# EOF\n')
        ? 'application/openmetrics-text; version=1.0.0'
        : 'text/plain; version=0.0.4',
      sizeBytes: Buffer.byteLength(page),
    })),
  };
  return Buffer.from(`${JSON.stringify({ ...handOver, ...head })}\n${pages.join('')}`);
}

export type Target = { readonly targets: readonly string[]; readonly labels: Readonly<Record<string, string>> };

export type Keeper = Awaited<ReturnType<typeof startKeeper>>;

const LATE = /the hand-over failed.*no time is left/;
const PLAYS_MAX_COUNT = 5;

/**
 * A test that is played again where the machine stood still for the 2 s of a hand-over. `isLate` waits until that is
 * known of a pod, which is held then.
 */
export function inTime(play: (isLate: (pod: Child) => Promise<boolean>) => Promise<'late' | 'played'>) {
  const isLate = async (pod: Child) =>
    (await Promise.allSettled([pod.waitForLine(LATE, READY_MS)]))[0].status === 'fulfilled';
  return async () => {
    for (let count = 1; (await play(isLate)) === 'late'; count++)
      assert.ok(count < PLAYS_MAX_COUNT, `${count} times no hand-over was in time`);
  };
}

/** Where a keeper runs: what is left out is new, or what LASTSCRAPE_TEST_BINARY names. */
type Place = {
  readonly folder?: string;
  readonly ports?: readonly [handOver: number, serve: number];
  readonly wrap?: readonly string[];
  readonly command?: readonly string[];
};

function setEnv(
  folder: string,
  ports: readonly [handOver: number, serve: number],
  more: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return {
    LASTSCRAPE_KEEPER_FOLDER: folder,
    LASTSCRAPE_KEEPER_LISTEN: `127.0.0.1:${ports[0]}`,
    LASTSCRAPE_KEEPER_SERVE: `127.0.0.1:${ports[1]}`,
    LASTSCRAPE_KEEPER_AUTH: 'none',
    ...more,
  };
}

const REQUESTS = {
  handOver: { method: 'POST', path: '/hand-over' },
  check: { method: 'POST', path: '/hand-over/check' },
  withdraw: { method: 'DELETE', path: '/hand-over' },
};

/** Starts its process. `env`: more variables. */
export async function spawnKeeper(env: Readonly<Record<string, string>>, at: Place) {
  const folder = at.folder ?? join(makeFolder(), 'pages');
  const ports = at.ports ?? ([await findFreePort(), await findFreePort()] as const);
  const child = startChild({
    name: 'keeper',
    command: [...(at.wrap ?? []), ...(at.command ?? findPrograms().watcher), 'keep'],
    env: setEnv(folder, ports, env),
    cwd: folder.replace(/\/pages$/, ''),
  });
  return { child, folder, ports };
}

/** Starts a keeper, and waits until it listens. */
export async function startKeeper(env: Readonly<Record<string, string>> = {}, at: Place = {}) {
  const { child, folder, ports } = await spawnKeeper(env, at);
  await child.waitForLine(/keeping the pages/, READY_MS);
  return {
    child,
    folder,
    ports,
    ...talkTo(ports),
    waitForLine: (pattern: RegExp) => child.waitForLine(pattern, READY_MS),
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

function openHost(env: Readonly<Record<string, string>>, clock: { readonly aheadMs: number }) {
  const lines: string[] = [];
  let onSignal: (name: 'SIGTERM') => void = () => {};
  const host: Host = {
    env,
    argv: [],
    stdin: () => assert.fail('stdin is not read'),
    stdout: (text) => lines.push(text),
    stderr: (text) => lines.push(text),
    onSignal: (listener) => {
      onSignal = listener;
    },
    onUncaught: () => {},
    pid: process.pid,
    kill: () => assert.fail('no signal'),
    nodeVersion: process.versions.node,
    nowMs: () => performance.now() + clock.aheadMs,
    wallMs: () => Date.now() + clock.aheadMs,
    cpuMs: () => 0,
  };
  return { host, lines, signal: () => onSignal('SIGTERM') };
}

/** Runs `lastscrape keep ARGUMENT` to its end; its exit code and what it printed. */
export async function runKeepOnce(
  argument: string | undefined,
  env: Readonly<Record<string, string>> = {},
  place: { readonly folder?: string; readonly ports?: readonly [handOver: number, serve: number] } = {},
): Promise<{ readonly code: number; readonly out: string }> {
  const folder = place.folder ?? join(makeFolder(), 'pages');
  const ports = place.ports ?? ([await findFreePort(), await findFreePort()] as const);
  const { host, lines } = openHost(setEnv(folder, ports, env), { aheadMs: 0 });
  const { code } = await runKeep(host, argument);
  return { code, out: lines.join('') };
}

/** Runs a keeper in this process, whose clock is ahead by what the test says, and waits until it listens. */
export async function startKeeperHere(
  env: Readonly<Record<string, string>>,
  clock: { readonly aheadMs: number },
  folder = join(makeFolder(), 'pages'),
) {
  const ports = [await findFreePort(), await findFreePort()] as const;
  const { host, lines, signal } = openHost(setEnv(folder, ports, env), clock);
  const exited = runKeep(host, undefined).then(({ code }) => code);
  await until(
    'the keeper',
    READY_MS,
    async () => lines.some((line) => line.includes('keeping the pages')) || undefined,
  );
  return {
    folder,
    lines,
    exited,
    ...talkTo(ports),
    signal,
    async [Symbol.asyncDispose]() {
      signal();
      signal();
      await exited;
    },
  };
}

/** What pods and Prometheus ask of a keeper at these ports. */
export function talkTo([handOverPort, servePort]: readonly [handOver: number, serve: number]) {
  const serveUrl = `http://127.0.0.1:${servePort}`;
  return {
    handOverUrl: `http://127.0.0.1:${handOverPort}/hand-over`,
    serveUrl,
    /** Hands over, asks whether it would be taken, or takes it back; the status and what was said. */
    async handOver(sent: Sent = {}, what: keyof typeof REQUESTS = 'handOver'): Promise<string> {
      const headers: Record<string, string> = sent.token === undefined ? {} : { authorization: `Bearer ${sent.token}` };
      const { method, path } = REQUESTS[what];
      const bytes = writeHandOver(sent);
      const body = new Uint8Array(what === 'handOver' ? bytes : bytes.subarray(0, bytes.indexOf(0x0a) + 1));
      for (;;) {
        const response = await fetch(`http://127.0.0.1:${handOverPort}${path}`, { method, body, headers });
        const text = await response.text();
        // On a busy machine this process itself may be slower than a keeper waits.
        if (response.status !== 408) return `${response.status} ${text.trim()}`;
      }
    },
    /** Asks for targets, as Prometheus does. */
    async listTargets(refreshSeconds = 1, more: Readonly<Record<string, string>> = {}): Promise<readonly Target[]> {
      const headers = { ...more, 'x-prometheus-refresh-interval-seconds': `${refreshSeconds}` };
      return (await fetch(`${serveUrl}/targets`, { headers })).json() as Promise<readonly Target[]>;
    },
    /** Scrapes a path, as Prometheus does. */
    async scrape(path: string, accept = 'text/plain'): Promise<{ status: number; type: string | null; text: string }> {
      const headers = { accept, 'x-prometheus-scrape-timeout-seconds': '10' };
      const response = await fetch(`${serveUrl}${path}`, { headers });
      return { status: response.status, type: response.headers.get('content-type'), text: await response.text() };
    },
    /** One of the keeper's own numbers. */
    async metric(name: string): Promise<number> {
      const text = await (await fetch(`${serveUrl}/metrics`)).text();
      return Number(
        text
          .split('\n')
          .find((line) => line.startsWith(`lastscrape_keeper_${name} `))
          ?.split(' ')[1],
      );
    },
  };
}

/** The pages that are listed, by pod. */
export async function readPages({
  listTargets,
  scrape,
}: Pick<Keeper, 'listTargets' | 'scrape'>): Promise<Readonly<Record<string, string>>> {
  const pages: Record<string, string> = {};
  for (const { labels } of await listTargets()) {
    const { status, text } = await scrape(labels['__metrics_path__'] ?? '');
    pages[labels['__meta_kubernetes_pod_name'] ?? ''] = status === 200 ? text : `${status} ${text}`;
  }
  return pages;
}

export { until };
