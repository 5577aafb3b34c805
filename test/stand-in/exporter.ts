// The stand-in for locust_exporter, which no registry has: answers as 0.5.0 and 0.5.2 do (exporter.test.ts), without
// the families of the Go runtime. The page is lastscrape's own, which memory.test.ts holds against the recordings.

import { Agent, get, Server as HttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { type Family, formatLabels, listLines } from '../../src/exposition/exposition-text.ts';
import { openLocustMemory } from '../../src/front/locust/memory.ts';
import { type LocustRow, readLocustStats } from '../../src/front/locust/page.ts';
import { listen } from '../support/listen.ts';

/** What a test may change at any moment; it holds for the requests that begin afterwards. */
export type ExporterFaults = {
  /** /metrics is never answered and stays in flight until the exporter ends. */
  hangs: boolean;
  /** /quitquitquit answers 200 with the page, as of 0.4.3 and a dozen other exporters. */
  outlivesQuit: boolean;
};

type ExporterOptions = {
  /** Where Locust's web page is, without a path: `http://127.0.0.1:8089`. */
  readonly locustUrl: string;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: a free one. */
  readonly port?: number;
  /** How long one fetch from Locust may take, default 5000 ms as in the real one. */
  readonly fetchTimeoutMs?: number;
  readonly faults?: Partial<ExporterFaults>;
  /** Called inside the quit handler, before anything is closed: a process of its own exits here. */
  readonly onQuit?: (method: string) => void;
  /** Called for each answer to a scrape, also where the client has gone. */
  readonly onScrape?: () => void;
};

export type Exporter = Awaited<ReturnType<typeof openExporter>>;

const PAGE =
  '<html><head><title>Locust Exporter</title></head><body><h1>Locust Exporter</h1>' +
  "<p><a href='/metrics'>Metrics</a></p></body></html>";
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Starts an exporter, and resolves once it listens. @throws if the port is taken */
export async function openExporter(options: ExporterOptions) {
  const { host = '127.0.0.1', fetchTimeoutMs = 5_000 } = options;
  const faults: ExporterFaults = { hangs: false, outlivesQuit: false, ...options.faults };
  const life = startLife();

  async function answerMetrics(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { hangs } = faults;
    life.inFlightCount += 1;
    // Only Locust's collector queues: the other counters are from the moment of the request.
    const own = countFamilies(life);
    const families = await collectInTurn(life, options.locustUrl, fetchTimeoutMs);
    // After its exit no process is left to count a scrape that was cut.
    if (hangs || !server.listening) return;
    life.inFlightCount -= 1;
    life.scrapeCount += 1;
    sendMetrics(request, response, [...families, ...own].flatMap((family) => [...listLines(family)]).join(''));
    options.onScrape?.();
  }

  function close(): Promise<void> {
    life.agent.destroy();
    if (!server.listening) return Promise.resolve();
    const closed = new Promise<void>((resolve) => {
      NetServer.prototype.close.call(server, () => resolve());
    });
    for (const socket of sockets) socket.destroy();
    return closed;
  }

  const sockets = new Set<Socket>();
  // Go closes no idle connection and knows no time limit for a request, by default.
  const server = new HttpServer({ keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.on('request', (request, response) => {
    const path = (request.url ?? '/').split('?')[0];
    if (path === '/metrics') void answerMetrics(request, response);
    else if (path === '/quitquitquit' && !faults.outlivesQuit) {
      options.onQuit?.(request.method ?? '');
      void close();
    } else sendPage(response);
  });
  const port = await listen(server, host, options.port);
  return {
    /** Without a path. */
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    port,
    /** False once it has quit or was closed. */
    get isOpen() {
      return server.listening;
    },
    faults,
    /** Ends at once, cutting what is in flight; harmless when it is gone already. */
    close,
    [Symbol.asyncDispose]: close,
  };
}

type Life = {
  readonly memory: ReturnType<typeof openLocustMemory>;
  scrapeCount: number;
  /** Keeps one connection to Locust: it outlives the closing of Locust's listener (recording Z1). */
  readonly agent: Agent;
  inFlightCount: number;
  /** The end of the last scrape in the queue. */
  queue: Promise<unknown>;
};

function startLife(): Life {
  return {
    memory: openLocustMemory('locust'),
    scrapeCount: 0,
    agent: new Agent({ keepAlive: true }),
    inFlightCount: 0,
    queue: Promise.resolve(),
  };
}

/** One lock around fetch and collect: scrapes that come at the same time are served one after the other. */
function collectInTurn(life: Life, locustUrl: string, timeoutMs: number): Promise<readonly Family[]> {
  const turn = life.queue.then(async () => {
    const url = new URL(`${locustUrl}/stats/requests`);
    const body = await fetchStats(url, life.agent, AbortSignal.timeout(timeoutMs)).catch(() => undefined);
    if (body === undefined) return life.memory.listFamilies('down');
    // Any body of a 2xx is a Locust that is up, a login page too (recording Q3-web-login).
    const stats = readLocustStats(body);
    // The exporter has no percentiles of rows, and looks for the current ones where Locust 1 had them: 0.
    const dropQuantiles = ({ numbers, ...row }: LocustRow): LocustRow => {
      return { ...row, numbers: new Map([...numbers].filter(([name]) => !name.startsWith('0.'))) };
    };
    const current = ['50', '95'].map((percent) => [`requests_current_response_time_percentile_${percent}`, 0] as const);
    if (stats !== null) {
      const gauges = new Map([...stats.gauges, ...current]);
      life.memory.takeStats({ ...stats, rows: stats.rows.map(dropQuantiles), gauges });
    }
    return life.memory.listFamilies(stats === null ? 'other' : 'stats');
  });
  life.queue = turn;
  return turn;
}

/** The body of a 2xx answer, or `undefined`. @throws where there is no answer, or a part of one */
function fetchStats(url: URL, agent: Agent, signal: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent, signal, headers: { 'User-Agent': 'Go-http-client/1.1' } });
    request.on('error', (error: NodeJS.ErrnoException) => {
      // As net/http does: a kept-alive connection that turns out to be dead is replaced once by a new one.
      if (request.reusedSocket && error.code === 'ECONNRESET') fetchStats(url, agent, signal).then(resolve, reject);
      else reject(error);
    });
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const isGood = Math.trunc((response.statusCode ?? 0) / 100) === 2;
        resolve(isGood ? Buffer.concat(chunks).toString() : undefined);
      });
    });
  });
}

function countFamilies({ scrapeCount, inFlightCount }: Life): Family[] {
  return [
    {
      name: 'promhttp_metric_handler_requests_in_flight',
      help: 'Current number of scrapes being served.',
      type: 'gauge',
      samples: [{ labels: '', value: inFlightCount }],
    },
    {
      name: 'promhttp_metric_handler_requests_total',
      help: 'Total number of scrapes by HTTP status code.',
      type: 'counter',
      samples: [200, 500, 503].map((code) => ({
        labels: formatLabels([['code', String(code)]]),
        value: code === 200 ? scrapeCount : 0,
      })),
    },
  ];
}

function sendMetrics(request: IncomingMessage, response: ServerResponse, text: string): void {
  beGo(response);
  response.setHeader('Content-Type', METRICS_TYPE);
  response.setHeader('Date', new Date().toUTCString());
  if (acceptsGzip(request)) {
    const bytes = gzipSync(text);
    response.setHeader('Content-Encoding', 'gzip');
    response.setHeader('Content-Length', bytes.byteLength);
    response.end(bytes);
    return;
  }
  // With the families of the Go runtime a page is longer than net/http's buffer of 2 KB, and comes in chunks.
  response.write(text);
  response.end();
}

/** As promhttp: a part of the list that is `gzip`, or begins with `gzip;` whatever follows. */
function acceptsGzip(request: IncomingMessage): boolean {
  const parts = String(request.headers['accept-encoding'] ?? '').split(',');
  return parts.map((part) => part.trim()).some((part) => part === 'gzip' || part.startsWith('gzip;'));
}

function sendPage(response: ServerResponse): void {
  beGo(response);
  response.setHeader('Date', new Date().toUTCString());
  response.setHeader('Content-Length', Buffer.byteLength(PAGE));
  response.setHeader('Content-Type', 'text/html; charset=utf-8');
  response.writeHead(200);
  response.end(PAGE);
}

/** Go sends neither Connection nor Keep-Alive, and keeps the connection. */
function beGo(response: ServerResponse): void {
  response.sendDate = false;
  response.removeHeader('Connection');
}
