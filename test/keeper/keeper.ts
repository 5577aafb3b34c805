// A keeper for a test: `lastscrape keep` as its own process, what pods send it, and what Prometheus asks.

import { join } from 'node:path';
import type { HandOver } from '../../src/decide/keep/targets.ts';
import { startChild } from '../support/child.ts';
import { makeFolder } from '../support/folder.ts';
import { closedPort } from '../support/peer.ts';
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

type Target = { readonly targets: readonly string[]; readonly labels: Readonly<Record<string, string>> };

export type Keeper = Awaited<ReturnType<typeof startKeeper>>;

/** Where a keeper runs: what is left out is new, or what LASTSCRAPE_TEST_BINARY names. */
type Place = {
  readonly folder?: string;
  readonly ports?: readonly [handOver: number, serve: number];
  readonly wrap?: readonly string[];
  readonly command?: readonly string[];
};

/** Starts its process. `env`: more variables. */
export async function spawnKeeper(env: Readonly<Record<string, string>>, at: Place) {
  const folder = at.folder ?? join(makeFolder(), 'pages');
  const ports = at.ports ?? ([await closedPort(), await closedPort()] as const);
  const child = startChild({
    name: 'keeper',
    command: [...(at.wrap ?? []), ...(at.command ?? findPrograms().watcher), 'keep'],
    env: {
      LASTSCRAPE_KEEPER_FOLDER: folder,
      LASTSCRAPE_KEEPER_LISTEN: `127.0.0.1:${ports[0]}`,
      LASTSCRAPE_KEEPER_SERVE: `127.0.0.1:${ports[1]}`,
      LASTSCRAPE_KEEPER_AUTH: 'none',
      ...env,
    },
    cwd: folder.replace(/\/pages$/, ''),
  });
  return { child, folder, ports };
}

/** Starts a keeper, and waits until it listens. */
export async function startKeeper(env: Readonly<Record<string, string>> = {}, at: Place = {}) {
  const { child, folder, ports } = await spawnKeeper(env, at);
  const [handOverPort, servePort] = ports;
  await child.waitForLine(/keeping the pages/, READY_MS);
  const serveUrl = `http://127.0.0.1:${servePort}`;
  return {
    child,
    folder,
    ports,
    handOverUrl: `http://127.0.0.1:${handOverPort}/hand-over`,
    serveUrl,
    /** Hands over; the status and what was said. */
    async handOver(sent: Sent = {}): Promise<string> {
      const headers: Record<string, string> = sent.token === undefined ? {} : { authorization: `Bearer ${sent.token}` };
      const body = new Uint8Array(writeHandOver(sent));
      const response = await fetch(`http://127.0.0.1:${handOverPort}/hand-over`, { method: 'POST', body, headers });
      return `${response.status} ${(await response.text()).trim()}`;
    },
    /** Asks for targets, as Prometheus does. */
    async listTargets(refreshSeconds = 1): Promise<readonly Target[]> {
      const headers = { 'x-prometheus-refresh-interval-seconds': `${refreshSeconds}` };
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
    waitForLine: (pattern: RegExp) => child.waitForLine(pattern, READY_MS),
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

/** The pages that are listed, by pod. */
export async function readPages({ listTargets, scrape }: Keeper): Promise<Readonly<Record<string, string>>> {
  const pages: Record<string, string> = {};
  for (const { labels } of await listTargets()) {
    const { status, text } = await scrape(labels['__metrics_path__'] ?? '');
    pages[labels['__meta_kubernetes_pod_name'] ?? ''] = status === 200 ? text : `${status} ${text}`;
  }
  return pages;
}

export { until };
