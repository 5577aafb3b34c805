// Starts lastscrape as a process: the built binary of LASTSCRAPE_TEST_BINARY, or else the sources.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { type ExporterFaults, openExporter } from '../stand-in/exporter.ts';
import { openLocust } from '../stand-in/locust.ts';
import { makeFolder } from './folder.ts';
import { listen } from './listen.ts';

/** The command to run, without arguments. */
export const COMMAND: readonly string[] =
  process.env['LASTSCRAPE_TEST_BINARY'] === undefined
    ? [process.execPath, join(import.meta.dirname, '../../bin/lastscrape.ts')]
    : [process.env['LASTSCRAPE_TEST_BINARY']];

export type Ended = {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly log: readonly Readonly<Record<string, unknown>>[];
  readonly report: Readonly<Record<string, unknown>> | undefined;
};

export type Watcher = ReturnType<typeof startWatcher>;

/** A failed test leaves its watcher behind, which would keep the tests alive: it ends with the pod. */
const living = new Set<ChildProcess>();

/** Starts it with exactly these variables, and with `args`; `command`: another way to start it. */
export function startWatcher(
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
  command: readonly string[] = COMMAND,
) {
  const [program = '', ...rest] = command;
  const child = spawn(program, [...rest, ...args], { env: { ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  living.add(child);
  child.once('close', () => living.delete(child));
  let stdout = '';
  let stderr = '';
  const waiting = new Set<() => void>();
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    for (const check of waiting) check();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = once(child, 'close').then(([code]): Ended => {
    const log = stdout.startsWith('{')
      ? stdout
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line))
      : [];
    return { code, stdout, stderr, log, report: log.at(-1) };
  });
  /** Resolves when a line with this message was printed; rejects when the process ends without. */
  function said(msg: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const check = () => {
        if (!stdout.includes(`"msg":"${msg}`)) return;
        waiting.delete(check);
        resolve();
      };
      waiting.add(check);
      check();
      ended.then(() => reject(new Error(`ended without "${msg}":\n${stdout}${stderr}`)));
    });
  }
  return { child, said, ended };
}

/** A pod of stand-ins around one watcher. */
export type Pod = Awaited<ReturnType<typeof openPod>>;

/** Opens a pod in which Locust runs until it is killed. */
export async function openPod({ faults = {} }: { readonly faults?: Partial<ExporterFaults> } = {}) {
  await using opened = new AsyncDisposableStack();
  const folder = makeFolder();
  const messagePath = join(folder, 'termination-log');
  const { promise: running, resolve: run } = Promise.withResolvers<void>();
  const locust = await openLocust({
    onEvent: ({ kind }) => kind === 'running' && run(),
    startMs: 0,
    webDelayMs: 0,
    readyMs: 0,
    spawnMs: 0,
    runMs: 600_000,
    autoquitMs: 0,
    webCloseMs: 0,
    exitMs: 0,
    reportMs: 50,
    cacheMs: 0,
  });
  opened.use(locust);
  await running;
  const exporter = opened.use(await openExporter({ locustUrl: locust.webUrl, faults }));
  opened.defer(() => {
    for (const child of living) child.kill('SIGKILL');
  });
  const all = opened.move();
  return {
    locust,
    exporter,
    messagePath,
    message: (): Readonly<Record<string, unknown>> => JSON.parse(readFileSync(messagePath, 'utf8')),
    env: {
      LASTSCRAPE_METRICS_URL: `${exporter.url}/metrics`,
      LASTSCRAPE_DONE_WHEN: `metric:locust_up,port:${locust.masterPort}`,
      LASTSCRAPE_TERMINATION_LOG: messagePath,
      LASTSCRAPE_POLL: '100ms',
      LASTSCRAPE_SETTLE: '0',
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

const SCRAPE_MS = 5_000;

/** Scrapes, as Prometheus would, until the exporter is gone or the watcher has ended. */
export async function scrapeToTheEnd({ exporter }: Pod, hasEnded = () => false): Promise<void> {
  while (exporter.isOpen && !hasEnded()) {
    // One that is cut off by the exporter's end may hang.
    const scraped = fetch(`${exporter.url}/metrics`, { signal: AbortSignal.timeout(SCRAPE_MS) });
    await scraped.then((answer) => answer.text()).catch(() => undefined);
  }
}

export async function untilReached({ exporter }: Pod): Promise<void> {
  for (;;) {
    const body = await (await fetch(`${exporter.url}/metrics`)).text();
    if (/^locust_up 1$/m.test(body) && body.includes('\nlocust_requests_num_requests{')) return;
  }
}

/** A port that listens until it is closed. */
export async function openPort(): Promise<Server & { readonly port: number }> {
  const server = createServer((socket) => socket.destroy());
  await listen(server);
  return Object.assign(server, { port: (server.address() as { port: number }).port });
}
