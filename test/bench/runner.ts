// Starts the measured programs and their exporters as processes that end with the runner; they are copies,
// which no build replaces and no other process has in memory.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { makeFolder } from '../support/folder.ts';
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
  copy(file: string, name: string): string;
  /** Starts a program with PATH and these variables. Its stdout is read by the one who asks. */
  start(command: readonly string[], env: Readonly<Record<string, string>>): Running;
  /** Starts exposition-main.ts. `isSame`: all its pages are alike. */
  openExposition(bodyBytes: number, how?: { readonly holdMs?: number; readonly isSame?: boolean }): Promise<Exposition>;
};

const PATH = readTestVariable('PATH') ?? '';

export function openRunner(): Runner {
  const stack = new AsyncDisposableStack();
  const folder = makeFolder();
  const start: Runner['start'] = (command, env) => {
    const [file = '', ...args] = command;
    const child = spawn(file, args, { cwd: folder, env: { PATH, ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
    const exited = once(child, 'exit').then(([code]): number | null => code);
    const { pid } = child;
    if (pid === undefined) throw new Error(`Cannot start ${file}`);
    stack.defer(() => stop({ child, pid, exited }));
    return { child, pid, exited };
  };
  const openExposition: Runner['openExposition'] = async (bodyBytes, { holdMs = 0, isSame = false } = {}) => {
    const file = join(import.meta.dirname, 'exposition-main.ts');
    const command = [process.execPath, file, `${bodyBytes}`, `${holdMs}`, '0', ...(isSame ? ['same'] : [])];
    const running = start(command, {});
    const [line] = await once(running.child.stdout?.setEncoding('utf8') ?? running.child, 'data');
    const [, port = '', mainPort = ''] = /^ready (\d+) (\d+)$/m.exec(line) ?? [];
    const { pid } = running;
    return { url: `http://127.0.0.1:${port}`, mainPort: Number(mainPort), pid, stop: () => stop(running) };
  };
  return {
    copy(file, name) {
      copyFileSync(file, join(folder, name));
      return join(folder, name);
    },
    start,
    openExposition,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

export type Starter = Awaited<ReturnType<typeof openStarter>>;

/** Opens an exporter that knows when a program made its first look. */
export async function openStarter() {
  let onRequest = (): void => {};
  const server = createServer((_request, response) => {
    onRequest();
    response.end('locust_up 1\n');
  });
  const port = await listen(server);
  return {
    exposition: { url: `http://127.0.0.1:${port}`, mainPort: port },
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
export function watchEnv({ url, mainPort }: Pick<Exposition, 'url' | 'mainPort'>): Record<string, string> {
  return { LASTSCRAPE_METRICS_URL: `${url}/metrics`, LASTSCRAPE_DONE_WHEN: `metric:locust_up,port:${mainPort}` };
}

/** How many polls and scrapes it has answered. */
export async function readLookCount({ url }: Pick<Exposition, 'url'>): Promise<number> {
  return Number(await (await fetch(`${url}/looks`)).text());
}

/** Leaves its stdout unread. */
export function discard(running: Running): Running {
  running.child.stdout?.resume();
  return running;
}

/** Kills it; a curl started by a shell exits on its own. */
export async function stop({ child, exited }: Running): Promise<void> {
  child.kill('SIGKILL');
  await exited;
}
