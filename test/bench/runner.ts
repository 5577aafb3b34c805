// Starts the measured programs and their exporters as processes that end with the runner; they are copies,
// which no build replaces and no other process has in memory.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FLAGS } from '../../image/flags.ts';
import { listen } from '../support/listen.ts';
import { readTestVariable } from '../support/programs.ts';

/** The exposition of every measurement that does not say another one. */
export const SMALL_BYTES = 50_000;
/** From the start of a program until it costs what it costs in every minute. */
export const WARM_UP_SECONDS = 6;
/** Three of a kind run at a time: CPU time may be counted in hundredths of a second only. */
export const INSTANCE_COUNT = 3;

export type Running = { readonly child: ChildProcess; readonly pid: number; readonly exited: Promise<number | null> };

/** An exporter and the port of its main container. */
export type Exposition = {
  readonly url: string;
  readonly mainPort: number;
  readonly pid: number;
  readonly stop: () => Promise<void>;
};

/** Where the processes of a measurement belong. */
export type Runner = AsyncDisposable & {
  /** Copies a program into the runner's folder. @returns the copy's path */
  copy(file: string, name: string): string;
  /** Starts a program with PATH and these variables. Its stdout is read by the one who asks. */
  start(command: readonly string[], env: Readonly<Record<string, string>>): Running;
  /** Starts exposition-main.ts. */
  openExposition(bodyBytes: number, holdMs?: number): Promise<Exposition>;
  /** Starts relay-main.ts, with the flags of the binary. */
  openRelay(url: string): Promise<Pick<Exposition, 'url' | 'pid' | 'stop'>>;
  /** Starts client-page-main.ts. */
  openClientPage(bodyBytes: number): Promise<Exposition>;
};

/** An exporter in this process that hears of requests at once. */
export type Starter = Disposable & {
  readonly exposition: Exposition;
  /** When the next request comes. */
  readonly requested: () => Promise<void>;
};

const PATH = readTestVariable('PATH') ?? '';

export function openRunner(): Runner {
  const stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'lastscrape-bench-'));
  stack.defer(() => rmSync(folder, { recursive: true }));
  const start: Runner['start'] = (command, env) => {
    const [file = '', ...args] = command;
    const child = spawn(file, args, { cwd: folder, env: { PATH, ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
    const exited = once(child, 'exit').then(([code]): number | null => code);
    const { pid } = child;
    if (pid === undefined) throw new Error(`Cannot start ${file}`);
    stack.defer(() => stop({ child, pid, exited }));
    return { child, pid, exited };
  };
  const open = async (name: string, args: readonly number[]): Promise<Exposition> => {
    const running = start([process.execPath, join(import.meta.dirname, name), ...args.map(String)], {});
    const [line] = await once(running.child.stdout?.setEncoding('utf8') ?? running.child, 'data');
    const [, port = '', mainPort = ''] = /^ready (\d+) (\d+)$/m.exec(line) ?? [];
    const { pid } = running;
    return { url: `http://127.0.0.1:${port}`, mainPort: Number(mainPort), pid, stop: () => stop(running) };
  };
  const openRelay = async (url: string) => {
    const running = start([process.execPath, ...FLAGS, join(import.meta.dirname, 'relay-main.ts'), url], {});
    const [line] = await once(running.child.stdout?.setEncoding('utf8') ?? running.child, 'data');
    const [, port = ''] = /^ready (\d+)$/m.exec(line) ?? [];
    return { url: `http://127.0.0.1:${port}/`, pid: running.pid, stop: () => stop(running) };
  };
  return {
    openRelay,
    copy(file, name) {
      copyFileSync(file, join(folder, name));
      return join(folder, name);
    },
    start,
    openExposition: (bodyBytes, holdMs = 0) => open('exposition-main.ts', [bodyBytes, holdMs]),
    openClientPage: (bodyBytes) => open('client-page-main.ts', [bodyBytes]),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Opens an exporter that knows when a program made its first look. */
export async function openStarter(): Promise<Starter> {
  let onRequest = (): void => {};
  const server = createServer((_request, response) => {
    onRequest();
    response.end('locust_up 1\n');
  });
  const port = await listen(server);
  return {
    exposition: { url: `http://127.0.0.1:${port}`, mainPort: port, pid: process.pid, stop: async () => {} },
    requested: () =>
      new Promise<void>((resolve) => {
        onRequest = resolve;
      }),
    [Symbol.dispose]: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** What lastscrape needs to watch an exposition; all else is default. */
export function watchEnv({ url, mainPort }: Exposition): Record<string, string> {
  return { LASTSCRAPE_METRICS_URL: `${url}/metrics`, LASTSCRAPE_DONE_WHEN: `metric:locust_up,port:${mainPort}` };
}

/** Nobody reads its stdout. */
export function discard(running: Running): Running {
  running.child.stdout?.resume();
  return running;
}

/** Kills it; a curl started by a shell exits on its own. */
export async function stop({ child, exited }: Running): Promise<void> {
  child.kill('SIGKILL');
  await exited;
}
