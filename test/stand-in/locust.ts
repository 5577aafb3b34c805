// A stand-in for a Locust master after the recording locust-2.47.0/B-autostart-autoquit5: its phases, JSON
// and ports, with other times, and totals that rise in between.

import { readFileSync } from 'node:fs';
import { Server as HttpServer, type ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort, listen } from '../support/listen.ts';

/** What happened, in the order of a run that goes well; `exited` may follow any of the others. */
type LocustEventKind =
  | 'masterPortOpened'
  | 'webPortOpened'
  | 'spawning'
  | 'running'
  | 'stopped'
  | 'autoquit'
  | 'webPortClosed'
  | 'exited';

export type LocustEvent = {
  readonly kind: LocustEventKind;
  /** Requests that the test has really made by now; Locust's page may still show fewer. */
  readonly requests: number;
};

/** How long each phase takes, in ms, as recorded. */
const TIMES = {
  /** From the start of the process to the master port. */
  startMs: 2_500,
  /** From the master port to the web port. */
  webDelayMs: 150,
  /** Waiting for the worker. */
  readyMs: 4_000,
  spawnMs: 2_000,
  /** From all users spawned to the end of the run time. */
  runMs: 6_000,
  /** From the stop to the autoquit (Locust waits a second longer than it was set to). */
  autoquitMs: 6_000,
  /** From the autoquit to the closing of the web port. */
  webCloseMs: 500,
  /** From there to the exit, which closes the master port. */
  exitMs: 1_700,
  /** How often the worker reports: between reports the page's totals stand still. */
  reportMs: 3_000,
  /** How long /stats/requests is cached. */
  cacheMs: 2_000,
};

type LocustOptions = Partial<typeof TIMES> & {
  readonly onEvent?: (event: LocustEvent) => void;
};

export type Locust = Awaited<ReturnType<typeof openLocust>>;

const RECORDINGS = join(import.meta.dirname, '../../fixtures/recordings/locust-2.47.0');

/** Requests of the whole run, as recorded. */
const FINAL_REQUESTS = 219;

type Row = { num_requests: number; num_failures: number; name: string };
type Stats = { state: string; stats: Row[] };

/** Starts a run and returns at once: the ports are known now and open later. */
export async function openLocust({ onEvent, ...options }: LocustOptions = {}) {
  const times = { ...TIMES, ...options };
  const masterPort = await findFreePort();
  const webPort = await findFreePort();
  const recorded = {
    ready: readStats('01'),
    spawning: readStats('02'),
    running: readStats('03'),
    counting: readStats('04'),
    stopped: readStats('05'),
  };

  let phase: 'starting' | 'ready' | 'spawning' | 'running' | 'stopped' = 'starting';
  let runningSinceMs = 0;
  const stopsRun = new AbortController();
  let cached: { body: string; atMs: number } | undefined;
  const sockets = new Set<Socket>();
  const master = trackSockets(new NetServer(), sockets);
  const web = trackSockets(new HttpServer({ keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 }), sockets);
  web.on('request', (request, response) => {
    if (request.url !== '/stats/requests') response.writeHead(404).end();
    else answerStats(response);
  });

  function tell(kind: LocustEventKind): void {
    onEvent?.({ kind, requests: countRequests() });
  }

  function countRequests(): number {
    if (phase === 'stopped') return FINAL_REQUESTS;
    if (phase !== 'running') return 0;
    return Math.floor(FINAL_REQUESTS * Math.min(1, (performance.now() - runningSinceMs) / times.runMs));
  }

  function countReported(): number {
    if (phase !== 'running') return countRequests();
    const elapsedMs = performance.now() - runningSinceMs;
    const reportedMs = Math.floor(elapsedMs / times.reportMs) * times.reportMs;
    return Math.floor(FINAL_REQUESTS * Math.min(1, reportedMs / times.runMs));
  }

  function answerStats(response: ServerResponse): void {
    const nowMs = performance.now();
    if (cached === undefined || nowMs - cached.atMs >= times.cacheMs) cached = { body: renderStats(), atMs: nowMs };
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(cached.body);
  }

  function renderStats(): string {
    const requests = countReported();
    switch (phase) {
      case 'starting':
      case 'ready':
        return JSON.stringify(recorded.ready);
      case 'spawning':
        return JSON.stringify(recorded.spawning);
      case 'running':
        return JSON.stringify(
          requests === 0 ? recorded.running : { ...withTotals(recorded.counting, requests), state: 'running' },
        );
      case 'stopped':
        return JSON.stringify(withTotals(recorded.stopped, requests));
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    const pause = (ms: number) => sleep(ms, undefined, { signal });
    await pause(times.startMs);
    await listen(master, '127.0.0.1', masterPort);
    tell('masterPortOpened');
    await pause(times.webDelayMs);
    phase = 'ready';
    await listen(web, '127.0.0.1', webPort);
    tell('webPortOpened');
    await pause(times.readyMs);
    phase = 'spawning';
    tell('spawning');
    await pause(times.spawnMs);
    runningSinceMs = performance.now();
    phase = 'running';
    tell('running');
    await pause(times.runMs);
    phase = 'stopped';
    tell('stopped');
    await pause(times.autoquitMs);
    tell('autoquit');
    await pause(times.webCloseMs);
    // The listener only: connections that are open are served until the exit (recording Z1).
    NetServer.prototype.close.call(web);
    tell('webPortClosed');
    await pause(times.exitMs);
  }

  const exited = run(stopsRun.signal)
    .catch((error: unknown) => {
      if (!stopsRun.signal.aborted) throw error;
    })
    // Also when a port was taken: what stays open would keep a test's process alive for ever.
    .finally(exit);

  async function exit(): Promise<void> {
    await Promise.all([closeServer(master), closeServer(web), ...[...sockets].map((socket) => socket.destroy())]);
    tell('exited');
  }

  function kill(): Promise<void> {
    stopsRun.abort();
    return exited;
  }

  return {
    masterPort,
    /** The web page's address, without a path: what the exporter gets. */
    webUrl: `http://127.0.0.1:${webPort}`,
    /** Requests made so far; the final number once `exited` has resolved. */
    get requests() {
      return countRequests();
    },
    exited,
    /** As SIGKILL: both ports close now. */
    kill,
    [Symbol.asyncDispose]: kill,
  };
}

function readStats(number: string): Stats {
  return JSON.parse(readFileSync(join(RECORDINGS, `B-autostart-autoquit5.stats.${number}.json`), 'utf8'));
}

/** The recorded rows with other totals in the recorded proportions; the Aggregated row is last. */
function withTotals(stats: Stats, requests: number): Stats {
  const whole = stats.stats.at(-1)?.num_requests ?? 0;
  let left = requests;
  const rows = stats.stats.map((row, index) => {
    const isLastName = index === stats.stats.length - 2;
    const share = row.name === 'Aggregated' ? requests : Math.round((requests * row.num_requests) / whole);
    const count = isLastName ? left : share;
    left -= count;
    return { ...row, num_requests: count };
  });
  return { ...stats, stats: rows };
}

function trackSockets<S extends NetServer>(server: S, sockets: Set<Socket>): S {
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  return server;
}

/** Resolves when the port refuses; open connections live on. */
function closeServer(server: NetServer): Promise<void> {
  if (!server.listening) return Promise.resolve();
  NetServer.prototype.close.call(server);
  // The kernel's socket is closed in this turn of the event loop.
  return new Promise((resolve) => setImmediate(resolve));
}
