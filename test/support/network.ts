// A pod's network: its own namespace where the test is root on Linux, so that programs use their usual ports
// and pods run side by side; otherwise, or with LASTSCRAPE_TEST_NETWORK=host, loopback with free ports.

import { execFileSync } from 'node:child_process';
import { request } from 'node:http';
import { join } from 'node:path';
import { type Child, startChild } from './child.ts';
import type { InsidePlan } from './inside.ts';
import { findFreePort } from './listen.ts';
import { readTestVariable } from './programs.ts';

/** The ports of a pod. */
export type Ports = typeof DEFAULT_PORTS;

/** One pod's network. Disposing of it ends the process inside and with it the namespace. */
export type Network = ReturnType<typeof networkAround>;

/** An HTTP answer, read whole. */
export type Answer = { readonly status: number; readonly body: string };

/** The environment of every program of a pod: nothing of the test's own, such as LASTSCRAPE_TEST_…. */
export function baseEnv(directory: string): Record<string, string> {
  return { PATH: readTestVariable('PATH') ?? '', HOME: directory, LANG: 'C.UTF-8', TZ: 'UTC' };
}

/** In a namespace: the defaults of Locust, its exporter, Prometheus and node_exporter. */
const DEFAULT_PORTS = {
  master: 5557,
  web: 8089,
  exporter: 9646,
  prometheus: 9090,
  nodeExporter: 9100,
  target: 8000,
};

/** Below the ports that the kernel gives to clients (32768 and up). */
const FIRST_NEW_PORT = 20_001;

/** 30 s: a Node that starts next to three Locusts on two cores needed 4 s. */
const INSIDE_START_MS = 30_000;

/** Makes a pod's network; `directory` gets its sockets. */
export async function openNetwork(directory: string): Promise<Network> {
  const kind = hasNamespaces() ? 'namespace' : 'host';
  const ports = kind === 'namespace' ? DEFAULT_PORTS : await findFreePorts();
  const plan: InsidePlan = {
    directory,
    targetPort: ports.target,
    doors: [ports.exporter, ports.prometheus, ports.nodeExporter],
  };
  const inside = [process.execPath, join(import.meta.dirname, 'inside.ts'), JSON.stringify(plan)];
  const anchor = startChild({
    name: 'the process inside',
    command:
      kind === 'namespace'
        ? dieWithTest(['unshare', '--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', ...inside])
        : inside,
    env: baseEnv(directory),
    cwd: directory,
  });
  try {
    await anchor.waitForLine(/^ready$/, INSIDE_START_MS);
  } catch (error) {
    await anchor[Symbol.asyncDispose]();
    throw error;
  }
  return networkAround(anchor, kind, ports, directory);
}

function networkAround(anchor: Child, kind: 'namespace' | 'host', ports: Ports, directory: string) {
  const control = join(directory, 'control.sock');
  const doors = new Set([ports.exporter, ports.prometheus, ports.nodeExporter]);
  let newestPort = FIRST_NEW_PORT;
  return {
    kind,
    ports,
    /** An unused port of 127.0.0.1, another one at each call. */
    newPort: async () => (kind === 'namespace' ? newestPort++ : findFreePort()),
    wrap: (command: readonly string[]) =>
      kind === 'namespace' ? dieWithTest(['nsenter', `--net=/proc/${anchor.pid}/ns/net`, ...command]) : command,
    /** A GET to a port of 127.0.0.1; where none answers: 502, or an error for one of `ports`. */
    get: (port: number, path: string) =>
      doors.has(port)
        ? get(join(directory, `${port}.sock`), path)
        : get(control, `/get?port=${port}&path=${encodeURIComponent(path)}`),
    async probe(port: number): Promise<'open' | 'refused' | 'unknown'> {
      const { body } = await get(control, `/probe?port=${port}`);
      return body === 'open' || body === 'refused' ? body : 'unknown';
    },
    /** Fills the backlog of a port whose program does not accept. Returns how many bare connects it took. */
    async crowd(port: number): Promise<number> {
      return Number((await get(control, `/crowd?port=${port}`)).body);
    },
    [Symbol.asyncDispose]: () => anchor[Symbol.asyncDispose](),
  };
}

// With util-linux at hand the kernel ends the programs of a test that was itself killed.
function dieWithTest(command: readonly string[]): readonly string[] {
  return ['setpriv', '--pdeathsig', 'KILL', ...command];
}

let namespaces: boolean | undefined;

function hasNamespaces(): boolean {
  namespaces ??= tryNamespace();
  return namespaces;
}

function tryNamespace(): boolean {
  if (readTestVariable('LASTSCRAPE_TEST_NETWORK') === 'host') return false;
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false;
  try {
    const [file = '', ...args] = dieWithTest(['unshare', '--net', 'sh', '-c', 'ip link set lo up']);
    execFileSync(file, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

async function findFreePorts(): Promise<Ports> {
  const ports = await Promise.all(Array.from({ length: Object.keys(DEFAULT_PORTS).length }, findFreePort));
  const [master = 0, web = 0, exporter = 0, prometheus = 0, nodeExporter = 0, target = 0] = ports;
  return { master, web, exporter, prometheus, nodeExporter, target };
}

function get(socketPath: string, path: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path, agent: false, timeout: 20_000 }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
      });
      response.once('end', () => resolve({ status: response.statusCode ?? 0, body }));
      response.once('error', reject);
    });
    asked.once('timeout', () => asked.destroy(new Error(`Cannot get ${path}: no answer within 20 s`)));
    asked.once('error', reject);
    asked.end();
  });
}
