// The stand-in for locust_exporter, which no package registry has. It reads a Locust's /stats/requests and answers as
// the real one does (0.5.0 unless asked otherwise), byte for byte where a reader could tell; conformance.test.ts holds
// it against the recordings. Faults are for tests only and all off. It never listens beyond the host it is given.

import { Agent, get, Server as HttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import { gunzipSync, gzipSync } from 'node:zlib';
import { type Family, formatLabels, makeGauge } from '../../src/exposition/exposition-text.ts';
import { LocustMemory, writeExposition } from './exposition.ts';
import { GO_VERSION, readRuntimeFamilies, readStartSeconds } from './go-runtime.ts';

/** 0.4.3 has no quit endpoint (it answers 200 with its page and lives on); only 0.5.2 knows a namespace. */
export type ExporterVersion = '0.4.3' | '0.5.0' | '0.5.2';

/** What a request of /quitquitquit does. */
export type QuitBehaviour =
  /** The real one: gone inside the handler, no byte of an answer, scrapes in flight are cut. */
  | { readonly kind: 'exits' }
  /** As `exits`, `afterMs` later; no answer and everything else served until then. */
  | { readonly kind: 'exitsLate'; readonly afterMs: number }
  /** Answers with this status and the HTML page, and lives on (200: 0.4.3 and a dozen other exporters). */
  | { readonly kind: 'lives'; readonly statusCode: number }
  /** Drops the connection without a byte, as if it exited, and lives on. */
  | { readonly kind: 'drops' }
  /** Never answers, and lives on. */
  | { readonly kind: 'hangs' };

/** What a test may change at any moment; it holds for the requests that begin afterwards. */
export type ExporterFaults = {
  /** Time between a finished exposition and its answer, in ms; the scrape is in flight meanwhile. */
  delayMs: number;
  /** Status of /metrics; 500 and 503 have promhttp's text and its counter lines. */
  statusCode: 200 | 500 | 503;
  /** /metrics is never answered and stays in flight until the exporter ends. */
  hangs: boolean;
  /** Leaves the promhttp_* families out of the body, as the fork rvankruistum/locust-exporter does. */
  dropsCounters: boolean;
  quit: QuitBehaviour;
};

/** One finished scrape, told when its answer is handed to the socket, whether or not the client still listens. */
export type ScrapeEvent = {
  readonly method: string;
  /** Empty if the client sent none. */
  readonly userAgent: string;
  readonly statusCode: number;
  readonly isLocustUp: boolean;
  /** From the arrival of the request, queueing and the fetch from Locust included. */
  readonly tookMs: number;
};

export type ExporterOptions = {
  /** Where Locust's web page is, without a path: `http://127.0.0.1:8089`. */
  readonly locustUrl: string;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: a free one. */
  readonly port?: number;
  /** Default 0.5.0, which the operator runs. */
  readonly version?: ExporterVersion;
  /** LOCUST_METRIC_NAMESPACE; default `locust`. Versions before 0.5.2 ignore it. */
  readonly namespace?: string;
  /** How long one fetch from Locust may take, default 5000 ms as in the real one. */
  readonly fetchTimeoutMs?: number;
  readonly faults?: Partial<ExporterFaults>;
  /** Called inside the quit handler, before anything is closed: a process of its own exits here. */
  readonly onQuit?: (method: string) => void;
  readonly onScrape?: (scrape: ScrapeEvent) => void;
};

export type Exporter = AsyncDisposable & {
  /** `http://HOST:PORT`, without a path. */
  readonly url: string;
  readonly port: number;
  /** False once it has quit or was closed. */
  readonly isOpen: boolean;
  readonly faults: ExporterFaults;
  /** Begins again as a restarted container does: counters at 0, no rows; connections live on. */
  resetCounters(): void;
  /** Goes away as a crash does, and comes back on the same port with nothing remembered after `downMs` (default 0). */
  restart(downMs?: number): Promise<void>;
  /** Ends at once, cutting what is in flight; harmless when it is gone already. */
  close(): Promise<void>;
};

const PAGE =
  '<html><head><title>Locust Exporter</title></head><body><h1>Locust Exporter</h1>' +
  "<p><a href='/metrics'>Metrics</a></p></body></html>";
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
// net/http buffers this many bytes of an answer; one that ends within gets a Content-Length instead of chunks.
const GO_BUFFER_BYTES = 2_048;
// net/http's client gives up after 10 redirects.
const REDIRECT_COUNT = 10;

/**
 * Starts an exporter and resolves once it listens.
 * @throws if the port is taken.
 */
export async function openExporter(options: ExporterOptions): Promise<Exporter> {
  const { host = '127.0.0.1', version = '0.5.0', fetchTimeoutMs = 5_000 } = options;
  const namespace = version === '0.5.2' ? (options.namespace ?? 'locust') : 'locust';
  const faults: ExporterFaults = {
    delayMs: 0,
    statusCode: 200,
    hangs: false,
    dropsCounters: false,
    quit: version === '0.4.3' ? { kind: 'lives', statusCode: 200 } : { kind: 'exits' },
    ...options.faults,
  };
  let life = startLife(namespace);
  let server: HttpServer | undefined;
  let port = options.port ?? 0;

  async function answerMetrics(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const scrape = life;
    const servedBy = server;
    const startedMs = performance.now();
    const { delayMs, hangs, dropsCounters, statusCode } = faults;
    scrape.inFlightCount += 1;
    // The registry asks all its collectors at once: only Locust's queues, so the counters are those of this moment.
    const own = [
      ...readRuntimeFamilies(scrape.startedAtSeconds),
      buildFamily(),
      ...(dropsCounters ? [] : countFamilies(scrape)),
    ];
    const { families, isLocustUp } = await collectInTurn(scrape, options.locustUrl, fetchTimeoutMs);
    if (hangs) return;
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs).unref());
    // It has exited meanwhile: this scrape was cut, and nobody is left to count it.
    if (server !== servedBy) return;

    scrape.inFlightCount -= 1;
    scrape.counts.set(statusCode, (scrape.counts.get(statusCode) ?? 0) + 1);
    if (statusCode === 200) sendMetrics(request, response, writeExposition([...own, ...families]));
    else sendError(response, statusCode);
    options.onScrape?.({
      method: request.method ?? '',
      userAgent: request.headers['user-agent'] ?? '',
      statusCode,
      isLocustUp,
      tookMs: performance.now() - startedMs,
    });
  }

  function answerQuit(request: IncomingMessage, response: ServerResponse): void {
    const { quit } = faults;
    switch (quit.kind) {
      case 'exits':
        exit(request.method ?? '');
        return;
      case 'exitsLate':
        setTimeout(exit, quit.afterMs, request.method ?? '').unref();
        return;
      case 'lives':
        sendPage(response, quit.statusCode);
        return;
      case 'drops':
        request.socket.destroy();
        return;
      case 'hangs':
        return;
    }
  }

  function exit(method: string): void {
    options.onQuit?.(method);
    endNow();
  }

  function endNow(): Promise<void> {
    const ending = server;
    server = undefined;
    life.agent.destroy();
    if (ending === undefined) return Promise.resolve();
    const closed = new Promise<void>((resolve) => {
      NetServer.prototype.close.call(ending, () => resolve());
    });
    for (const socket of sockets) socket.destroy();
    return closed;
  }

  const sockets = new Set<Socket>();

  async function listen(): Promise<void> {
    // Go closes no idle connection and knows no time limit for a request, unless told.
    const next = new HttpServer({ keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 });
    next.on('connection', (socket) => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    });
    next.on('request', (request, response) => {
      const path = (request.url ?? '/').split('?')[0];
      if (path === '/metrics') void answerMetrics(request, response);
      else if (path === '/quitquitquit') answerQuit(request, response);
      else sendPage(response, 200);
    });
    await new Promise<void>((resolve, reject) => {
      next.once('error', reject);
      next.listen(port, host, resolve);
    });
    port = (next.address() as AddressInfo).port;
    server = next;
  }

  await listen();
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    port,
    get isOpen() {
      return server !== undefined;
    },
    faults,
    resetCounters() {
      life.agent.destroy();
      life = startLife(namespace);
    },
    async restart(downMs = 0) {
      await endNow();
      if (downMs > 0) await new Promise((resolve) => setTimeout(resolve, downMs));
      life = startLife(namespace);
      await listen();
    },
    close: endNow,
    [Symbol.asyncDispose]: endNow,
  };
}

/** What a restart of the container would lose. */
type Life = {
  readonly startedAtSeconds: number;
  readonly memory: LocustMemory;
  readonly counts: Map<number, number>;
  /** Keeps one connection to Locust: it outlives the closing of Locust's listener (recording Z1). */
  readonly agent: Agent;
  inFlightCount: number;
  /** The end of the last scrape in the queue. */
  queue: Promise<unknown>;
};

function startLife(namespace: string): Life {
  return {
    startedAtSeconds: readStartSeconds(Date.now() / 1_000),
    memory: new LocustMemory(namespace),
    counts: new Map(),
    agent: new Agent({ keepAlive: true }),
    inFlightCount: 0,
    queue: Promise.resolve(),
  };
}

/** One lock around fetch and collect: scrapes that come at the same time are served one after the other. */
function collectInTurn(
  life: Life,
  locustUrl: string,
  timeoutMs: number,
): Promise<{ families: Family[]; isLocustUp: boolean }> {
  const turn = life.queue.then(async () => {
    const body = await fetchStats(new URL(`${locustUrl}/stats/requests`), life.agent, timeoutMs);
    return { families: life.memory.collect(body), isLocustUp: body !== undefined };
  });
  life.queue = turn;
  return turn;
}

/** The body of a 2xx answer, or `undefined`: refused, late, cut, or another status. */
async function fetchStats(url: URL, agent: Agent, timeoutMs: number): Promise<string | undefined> {
  const signal = AbortSignal.timeout(timeoutMs);
  let target = url;
  try {
    for (let hops = 0; hops <= REDIRECT_COUNT; hops += 1) {
      const { statusCode, location, body } = await fetchOnce(target, agent, signal);
      if (statusCode >= 300 && statusCode < 400 && location !== undefined) target = new URL(location, target);
      else return statusCode >= 200 && statusCode < 300 ? body : undefined;
    }
  } catch {
    return undefined;
  }
  return undefined;
}

type LocustAnswer = { readonly statusCode: number; readonly location: string | undefined; readonly body: string };

function fetchOnce(url: URL, agent: Agent, signal: AbortSignal): Promise<LocustAnswer> {
  return new Promise((resolve, reject) => {
    const request = get(url, {
      agent,
      signal,
      headers: { 'User-Agent': 'Go-http-client/1.1', 'Accept-Encoding': 'gzip' },
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      // As net/http does: a kept-alive connection that turns out to be dead is replaced once by a new one.
      if (request.reusedSocket && error.code === 'ECONNRESET') fetchOnce(url, agent, signal).then(resolve, reject);
      else reject(error);
    });
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        try {
          const bytes = Buffer.concat(chunks);
          const body = response.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes;
          resolve({ statusCode: response.statusCode ?? 0, location: response.headers.location, body: body.toString() });
        } catch (error) {
          reject(error);
        }
      });
    });
  });
}

function buildFamily(): Family {
  return {
    name: 'locustexporter_build_info',
    help:
      "A metric with a constant '1' value labeled by version, revision, branch, and goversion from which " +
      'locustexporter was built.',
    type: 'gauge',
    samples: [
      {
        labels: formatLabels([
          ['branch', ''],
          ['goversion', GO_VERSION],
          ['revision', ''],
          ['version', ''],
        ]),
        value: 1,
      },
    ],
  };
}

function countFamilies({ counts, inFlightCount }: Life): Family[] {
  return [
    makeGauge('promhttp_metric_handler_requests_in_flight', 'Current number of scrapes being served.', inFlightCount),
    {
      name: 'promhttp_metric_handler_requests_total',
      help: 'Total number of scrapes by HTTP status code.',
      type: 'counter',
      samples: [200, 500, 503].map((code) => ({
        labels: formatLabels([['code', String(code)]]),
        value: counts.get(code) ?? 0,
      })),
    },
  ];
}

function sendMetrics(request: IncomingMessage, response: ServerResponse, text: string): void {
  const bytes = acceptsGzip(request) ? gzipSync(text) : Buffer.from(text);
  beGo(response);
  if (acceptsGzip(request)) response.setHeader('Content-Encoding', 'gzip');
  response.setHeader('Content-Type', METRICS_TYPE);
  response.setHeader('Date', new Date().toUTCString());
  if (bytes.byteLength <= GO_BUFFER_BYTES) response.setHeader('Content-Length', bytes.byteLength);
  response.writeHead(200);
  response.end(bytes);
}

/** As promhttp: a part of the list that is `gzip`, or begins with `gzip;` whatever follows. */
function acceptsGzip(request: IncomingMessage): boolean {
  const parts = String(request.headers['accept-encoding'] ?? '').split(',');
  return parts.map((part) => part.trim()).some((part) => part === 'gzip' || part.startsWith('gzip;'));
}

function sendError(response: ServerResponse, statusCode: 500 | 503): void {
  const text =
    statusCode === 500
      ? 'An error has occurred while serving metrics:\n\nfault of the stand-in\n'
      : 'Limit of concurrent requests reached (1), try again later.\n';
  beGo(response);
  response.setHeader('Content-Type', 'text/plain; charset=utf-8');
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.setHeader('Date', new Date().toUTCString());
  response.setHeader('Content-Length', Buffer.byteLength(text));
  response.writeHead(statusCode);
  response.end(text);
}

function sendPage(response: ServerResponse, statusCode: number): void {
  beGo(response);
  response.setHeader('Date', new Date().toUTCString());
  response.setHeader('Content-Length', Buffer.byteLength(PAGE));
  response.setHeader('Content-Type', 'text/html; charset=utf-8');
  response.writeHead(statusCode);
  response.end(PAGE);
}

/** Go sends neither Connection nor Keep-Alive, and keeps the connection all the same. */
function beGo(response: ServerResponse): void {
  response.sendDate = false;
  response.removeHeader('Connection');
}
