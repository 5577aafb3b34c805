// The front's HTTP server: routes, limits, and which scrapes were handed over. Never trusts a client: no
// request may keep the next one from its answer, and nothing here throws.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, waitUnless } from '../base/waits.ts';
import { readAccept } from '../decide/pages.ts';
import { isScraper, SCRAPE_TIMEOUT_HEADER, type ScraperRequest, type ServedScrape } from '../decide/scrapers.ts';
import { type Connection, type ConnectionLimits, type Connections, openConnections } from './connections.ts';
import { ALL_HOSTS, describeListenProblem, listen, listListenHosts } from './listen.ts';
import { readRequestPath, readScrapeDeadline, readScrapeTimeout } from './request.ts';
import { type AnswerBody, type Exchange, sendBody, sendText } from './send-answer.ts';

/** A scrape that waits for its answer. */
export type ScrapeRequest = {
  /** When its headers had come. */
  readonly startedAtMs: number;
  readonly accept: string;
  /** It comes from a scraper that counts. */
  readonly isScraper: boolean;
  /** How long a read for it may take; null: the scraper does not say. */
  readonly timeoutMs: number | null;
  /** The connection has ended; the reason is a string. */
  readonly signal: AbortSignal;
};

/** A 200. */
export type ScrapeAnswer = { readonly kind: 'body'; readonly body: AnswerBody };

/** A 503 with that reason. */
export type Unavailable = { readonly kind: 'unavailable'; readonly why: string };

/** A GET of a scraper that counts, whose 200 was handed over whole within the scraper's time-out. */
export type Served<Answer = ScrapeAnswer> = Omit<ServedScrape, 'served' | 'isByRefusal' | 'readAtMs'> & {
  readonly answer: Answer;
};

export type ServerParts<Answer extends ScrapeAnswer = ScrapeAnswer> = {
  readonly paths: readonly string[];
  /** Takes a snapshot by any method. Default: none. */
  readonly quitPath?: string;
  readonly clock: Clock;
  /** Never rejects. */
  readonly answer: (request: ScrapeRequest) => Promise<Answer | Unavailable>;
  /** Reads and keeps the source's answer now. Never rejects. */
  readonly snapshot: (signal: AbortSignal) => Promise<{ kind: 'kept' } | { kind: 'failed'; why: string }>;
  /** A GET of a scraper has come. */
  readonly onRequest: (request: ScraperRequest) => void;
  readonly onServed: (served: Served<Answer>) => void;
};

/** Limits for clients; tests have smaller ones. */
export type ServerLimits = ConnectionLimits & {
  readonly headersBytes: number;
  /** For a whole request: from connecting; on a kept connection from its first byte. */
  readonly requestMs: number;
  /** How often Node looks for slower requests; its default is 30 s. */
  readonly requestCheckMs: number;
  readonly takeMs: number;
  /** Pipelined requests that may wait on one connection. Scrapers send none. */
  readonly waitingCount: number;
  /** Where to listen without a host: at the first that exists. */
  readonly allHosts: readonly string[];
};

export const SERVER_LIMITS: ServerLimits = {
  connectionsCount: 64,
  addressCount: 16,
  headersBytes: 16 * 1024,
  requestMs: 10_000,
  requestCheckMs: 1_000,
  idleMs: 300_000,
  takeMs: 30_000,
  waitingCount: 2,
  allHosts: ALL_HOSTS,
};

/** How many connections the kernel may hold back: Node's default. */
const BACKLOG_COUNT = 511;

/** Of a User-Agent. */
const AGENT_LENGTH_MAX = 100;

export type Server = {
  readonly port: number;
  /** Answers to scrapes that have begun and not ended. */
  readonly inFlightCount: number;
  /** Takes what waits in the kernel, after a standstill for example: its scrapes are in flight then. */
  readonly settle: () => Promise<void>;
  /** Closes every connection at once; from now on only /-/healthy is answered with a 200. */
  readonly retire: () => void;
  /** Stops listening and closes every connection at once. May be called again. Never rejects. */
  readonly close: () => Promise<void>;
};

/** `problem`: what is wrong and what to do, to follow `Cannot use LASTSCRAPE_FRONT: `. */
type OpenedServer =
  | { readonly kind: 'listening'; readonly server: Server }
  | { readonly kind: 'failed'; readonly problem: string };

/** Listens. `host` null: all addresses, IPv6 where it exists; `port` 0: any that is free. Never rejects. */
export async function openServer<Answer extends ScrapeAnswer>(
  at: { readonly host: string | null; readonly port: number },
  parts: ServerParts<Answer>,
  limits: ServerLimits = SERVER_LIMITS,
): Promise<OpenedServer> {
  const { connections, routes } = openServing(parts, limits);
  const http = createLimitedServer(limits);
  http.on('connection', (socket) => connections.accept(socket));
  http.on('request', routes.onRequest);
  const code = await listen(http, listListenHosts(at.host, limits.allHosts), at.port);
  if (code !== null) return { kind: 'failed', problem: describeListenProblem(at.host, at.port, code) };
  // A connection could not be accepted; the next one may be.
  http.on('error', () => {});
  let closed: Promise<void> | null = null;
  return {
    kind: 'listening',
    server: {
      port: (http.address() as AddressInfo).port,
      get inFlightCount() {
        return routes.inFlightCount();
      },
      settle: () => settleConnections(connections),
      retire() {
        connections.closeAll('the front closes');
        http.off('request', routes.onRequest).on('request', answerRetired);
      },
      close() {
        closed ??= new Promise((resolve) => {
          http.close(() => resolve());
          connections.closeAll('the front closes');
        });
        return closed;
      },
    },
  };
}

/** A server whose clients must be quick. */
export function createLimitedServer(limits: ServerLimits) {
  return createServer({
    maxHeaderSize: limits.headersBytes,
    headersTimeout: limits.requestMs,
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: limits.requestCheckMs,
    keepAliveTimeout: limits.idleMs,
  });
}

/** A livenessProbe must not fail, and the container be started again, while targets are quitting. */
function answerRetired(request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  response.on('error', () => {});
  const isHealthy = readRequestPath(request.url ?? '') === '/-/healthy';
  response.writeHead(isHealthy ? 200 : 503, { 'Content-Type': 'text/plain; charset=utf-8' });
  response.end(isHealthy ? 'ok\n' : 'the front has closed\n');
}

/** Takes what waits in the kernel. */
export async function settleConnections({ acceptedCount }: Pick<Connections, 'acceptedCount'>): Promise<void> {
  // libuv accepts one connection a turn, and reads it in the next one; a flood must not keep us here.
  for (let turns = 0, quietCount = 0; quietCount < 3 && turns < BACKLOG_COUNT; turns++) {
    const before = acceptedCount();
    await new Promise((resolve) => setImmediate(resolve));
    quietCount = acceptedCount() === before ? quietCount + 1 : 0;
  }
}

/** All of a server but the sockets: takes connections, and answers the requests of each. */
export function openServing<Answer extends ScrapeAnswer>(
  parts: ServerParts<Answer>,
  limits: ServerLimits = SERVER_LIMITS,
) {
  const connections = openConnections(parts.clock, limits);
  return { connections, routes: openRoutes(parts, connections, limits) };
}

function openRoutes<Answer extends ScrapeAnswer>(
  parts: ServerParts<Answer>,
  connections: Connections,
  limits: ServerLimits,
) {
  const { clock } = parts;
  const paths = parts.paths.map((path) => readRequestPath(path));
  const found = [...new Set(parts.paths), '/-/healthy', '/-/ready'].map((path) => `GET ${path}`).join(', ');
  /** The newest answer of each connection; the next one waits for it. */
  const lastAnswers = new WeakMap<Connection, Promise<void>>();
  let inFlightCount = 0;

  function onRequest(request: IncomingMessage, response: ServerResponse): void {
    // An unwanted body is read too, or the next request would not be.
    request.resume();
    response.on('error', () => {});
    const connection = connections.find(request.socket);
    if (connection === undefined || connection.requestsCount > limits.waitingCount)
      return void request.socket.destroy();
    const exchange: Exchange = { request, response, connection, clock, takeMs: limits.takeMs };
    const startedAtMs = clock.nowMs();
    connection.beginRequest();
    const isScrape = isScrapeRequest(request);
    if (isScrape) inFlightCount++;
    const known = isScrape ? describeScraper(request, connection, connections, startedAtMs) : null;
    if (known !== null) parts.onRequest(known);
    const before = lastAnswers.get(connection) ?? Promise.resolve();
    lastAnswers.set(
      connection,
      before
        .then(() => (isScrape ? answerScrape(exchange, startedAtMs, known) : answerOther(exchange, parts, found)))
        .finally(() => {
          if (isScrape) inFlightCount--;
          connection.endRequest();
        }),
    );
  }

  function isScrapeRequest({ method, url = '' }: IncomingMessage): boolean {
    return (method === 'GET' || method === 'HEAD') && paths.includes(readRequestPath(url));
  }

  async function answerScrape(exchange: Exchange, startedAtMs: number, scraper: ScraperRequest | null): Promise<void> {
    const { request, connection } = exchange;
    const header = request.headers[SCRAPE_TIMEOUT_HEADER]?.toString();
    const scrape: ScrapeRequest = {
      startedAtMs,
      accept: readAccept(request.headers.accept),
      isScraper: scraper !== null,
      timeoutMs: readScrapeTimeout(header),
      signal: connection.gone,
    };
    const answer = await unlessGone(connection.gone, () => parts.answer(scrape));
    if (answer === null) return;
    if (answer.kind === 'unavailable') return sendText(exchange, 503, answer.why);
    const isWhole = await sendBody(exchange, answer.body);
    const atMs = clock.nowMs();
    // A stopped scraper has the answer in its kernel, and drops it later (measured with Prometheus 2.42).
    const isLate = atMs - startedAtMs >= readScrapeDeadline(header);
    if (isWhole && !isLate && scraper !== null) parts.onServed({ ...scraper, atMs, answer });
  }

  return { onRequest, inFlightCount: () => inFlightCount };
}

/** Null: it is no scraper's, or no GET. */
function describeScraper(
  { method, headers }: IncomingMessage,
  connection: Connection,
  connections: Connections,
  startedAtMs: number,
): ScraperRequest | null {
  const agent = headers['user-agent'] ?? '';
  if (method !== 'GET' || !isScraper({ hasTimeoutHeader: SCRAPE_TIMEOUT_HEADER in headers, agent })) return null;
  const { address } = connection;
  connection.scraperAgent = agent.slice(0, AGENT_LENGTH_MAX);
  const others = connections
    .list()
    .filter((other) => other !== connection && other.address === address)
    .filter(({ gone, scraperAgent }) => scraperAgent === connection.scraperAgent && !gone.aborted);
  return {
    startedAtMs,
    address,
    agent: connection.scraperAgent,
    connection: connection.number,
    openConnections: others.map(({ number }) => number),
  };
}

/** Answers all but scrapes. `found`: what is served here, for a 404. */
async function answerOther(
  exchange: Exchange,
  { quitPath, snapshot }: Pick<ServerParts, 'quitPath' | 'snapshot'>,
  found: string,
): Promise<void> {
  const { request, connection } = exchange;
  const path = readRequestPath(request.url ?? '');
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  if (isRead && (path === '/-/healthy' || path === '/-/ready')) return sendText(exchange, 200, 'ok');
  const isSnapshot = (request.method === 'POST' && path === '/-/snapshot') || path === quitPath;
  if (!isSnapshot) {
    return sendText(exchange, 404, `not found; here are ${found}, and POST /-/snapshot from within the pod`);
  }
  if (!connection.isLoopback) {
    return sendText(exchange, 403, 'forbidden: only from within the pod, at 127.0.0.1 or [::1]');
  }
  const result = await unlessGone(connection.gone, () => snapshot(connection.gone));
  if (result?.kind === 'kept') return sendText(exchange, 200, 'kept');
  if (result?.kind === 'failed') return sendText(exchange, 503, result.why);
}

/** null: the client hung up before. */
async function unlessGone<Value>(gone: AbortSignal, ask: () => Promise<Value>): Promise<Value | null> {
  return gone.aborted ? null : waitUnless(ask(), { signal: gone });
}
