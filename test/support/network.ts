// A pod's network: a namespace of its own, so that programs use their usual ports and pods run side by side.

import { request } from 'node:http';
import { join } from 'node:path';
import { type Child, startChild } from './child.ts';
import type { InsidePlan } from './inside.ts';
import { readTestVariable } from './programs.ts';
import { until } from './until.ts';

/** One pod's network. Disposing of it ends the process inside and with it the namespace. */
export type Network = ReturnType<typeof networkAround>;

/** An HTTP answer, read whole. */
export type Answer = { readonly status: number; readonly body: string };

/** The environment of every program of a pod: nothing of the test's own, such as LASTSCRAPE_TEST_…. */
export function baseEnv(directory: string): Record<string, string> {
  return { PATH: readTestVariable('PATH') ?? '', HOME: directory, LANG: 'C.UTF-8', TZ: 'UTC' };
}

/** The defaults of Locust, its exporter, Prometheus and node_exporter. */
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

/** 90 s: three Locusts at a time import themselves in 10 s on two busy cores. */
const OPEN_MS = 90_000;

/** Makes a pod's network; `directory` gets its socket. */
export async function openNetwork(directory: string): Promise<Network> {
  const plan: InsidePlan = { directory, targetPort: DEFAULT_PORTS.target };
  const inside = [process.execPath, join(import.meta.dirname, 'inside.ts'), JSON.stringify(plan)];
  const anchor = startChild({
    name: 'the process inside',
    command: dieWithTest(['unshare', '--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', ...inside]),
    env: baseEnv(directory),
    cwd: directory,
  });
  try {
    await anchor.waitForLine(/^ready$/, INSIDE_START_MS);
  } catch (error) {
    await anchor[Symbol.asyncDispose]();
    throw error;
  }
  return networkAround(anchor, directory);
}

function networkAround(anchor: Child, directory: string) {
  const control = join(directory, 'control.sock');
  let newestPort = FIRST_NEW_PORT;
  return {
    ports: DEFAULT_PORTS,
    /** An unused port of 127.0.0.1, another one at each call. */
    newPort: async () => newestPort++,
    wrap: (command: readonly string[]) => dieWithTest(['nsenter', `--net=/proc/${anchor.pid}/ns/net`, ...command]),
    /** A GET to a port of 127.0.0.1; where none answers: 502. */
    get: (port: number, path: string) => get(control, `/get?port=${port}&path=${encodeURIComponent(path)}`),
    /** Waits until a program listens. */
    waitForPort: (port: number) =>
      until(`port ${port} open`, OPEN_MS, async () => {
        const { body } = await get(control, `/probe?port=${port}`);
        return body === 'open' || undefined;
      }),
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
