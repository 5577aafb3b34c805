// The front's HTTP server: routes, limits, and which scrapes were handed over. Never trusts a client: no
// request may keep the next one from its answer, and nothing here throws.

import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, waitUnless } from '../base/waits.ts';
import { readAccept } from '../decide/serve/pages.ts';
import { isScraper, SCRAPE_TIMEOUT_HEADER, type ScraperRequest, type ServedScrape } from '../decide/serve/scrapers.ts';
import type { Connection, Connections } from './connections.ts';
import { describeListenProblem, openServing, readRequestPath, SERVER_LIMITS, type ServerLimits } from './listen.ts';
import { type AnswerBody, type Exchange, sendBody, sendText } from './send-answer.ts';

/** A scrape that waits for its answer. */
export type ScrapeRequest = {
  /** When its headers had come. */
  readonly startedAtMs: number;
  readonly accept: string;
  /** Who it is, of scrapers that count; null: a person, a probe. */
  readonly scraper: ScraperRequest | null;
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
  /** A GET of a scraper has come, with this Accept. */
  readonly onRequest: (request: ScraperRequest, accept: string) => void;
  readonly onServed: (served: Served<Answer>) => void;
};

/** How many connections the kernel may hold back: Node's default. */
const BACKLOG_COUNT = 511;

/** Of a User-Agent. */
const AGENT_LENGTH_MAX = 100;

export type Server = {
  readonly port: number;
  /** Answers to scrapes that have begun and not ended. */
  readonly inFlightCount: () => number;
  /** Takes what waits in the kernel, after a standstill for example: its scrapes are in flight then. */
  readonly settle: () => Promise<void>;
  /** Closes every connection at once; from now on only /-/healthy is answered with a 200. */
  readonly retire: () => void;
  /** Stops listening and closes every connection at once. Never rejects. */
  readonly close: () => Promise<void>;
};

/**
 * Listens. `host` null: all addresses, IPv6 where it exists; `port` 0: any that is free. `problem`: what is
 * wrong and what to do, to follow `Cannot use LASTSCRAPE_FRONT: `. Never rejects.
 */
export async function openServer<Answer extends ScrapeAnswer>(
  at: { readonly host: string | null; readonly port: number },
  parts: ServerParts<Answer>,
  limits: ServerLimits = SERVER_LIMITS,
): Promise<{ kind: 'listening'; server: Server } | { kind: 'failed'; problem: string }> {
  const { http, connections, inFlightCount, retire, listen, close } = openRoutes(parts, limits);
  const code = await listen(at.host, at.port);
  if (code !== null) return { kind: 'failed', problem: describeListenProblem(at.host, at.port, code) };
  return {
    kind: 'listening',
    server: {
      port: (http.address() as AddressInfo).port,
      inFlightCount,
      settle: () => settleConnections(connections),
      retire,
      close,
    },
  };
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

/** Opens it without listening. */
export function openRoutes<Answer extends ScrapeAnswer>(
  parts: ServerParts<Answer>,
  limits: ServerLimits = SERVER_LIMITS,
) {
  const { clock } = parts;
  const paths = parts.paths.map((path) => readRequestPath(path));
  const found = [...new Set(parts.paths), '/-/healthy', '/-/ready'].map((path) => `GET ${path}`).join(', ');
  let inFlightCount = 0;
  let isRetired = false;
  const serving = openServing(clock, take, limits);

  function take(exchange: Exchange): () => Promise<void> {
    const { request, connection } = exchange;
    // An unwanted body is read too, or the next request would not be.
    request.resume();
    // A livenessProbe must not fail, and the container be started again, while targets are quitting.
    if (isRetired && readRequestPath(request.url ?? '') !== '/-/healthy') {
      return () => sendText(exchange, 503, 'the front has closed');
    }
    if (!isScrapeRequest(request)) return () => answerOther(exchange, parts, found);
    const startedAtMs = clock.nowMs();
    inFlightCount++;
    const scraper = describeScraper(request, connection, serving.connections, startedAtMs);
    const accept = readAccept(request.headers.accept, request.headers.authorization);
    if (scraper !== null) parts.onRequest(scraper, accept);
    return () => answerScrape(exchange, { startedAtMs, accept, scraper }).finally(() => inFlightCount--);
  }

  function isScrapeRequest({ method, url = '' }: IncomingMessage): boolean {
    return (method === 'GET' || method === 'HEAD') && paths.includes(readRequestPath(url));
  }

  async function answerScrape(exchange: Exchange, asked: Omit<ScrapeRequest, 'timeoutMs' | 'signal'>): Promise<void> {
    const { request, connection } = exchange;
    const { gone: signal } = connection;
    if (signal.aborted) return;
    const { startedAtMs, scraper } = asked;
    const header = request.headers[SCRAPE_TIMEOUT_HEADER]?.toString();
    const scrape = { ...asked, timeoutMs: readScrapeTimeout(header), signal };
    const answer = await waitUnless(parts.answer(scrape), { signal });
    if (answer === null) return;
    if (answer.kind === 'unavailable') return sendText(exchange, 503, answer.why);
    const isWhole = await sendBody(exchange, answer.body);
    const atMs = clock.nowMs();
    // A stopped scraper has the answer in its kernel, and drops it later (measured with Prometheus 2.42).
    const isLate = atMs - startedAtMs >= readScrapeDeadline(header);
    if (isWhole && !isLate && scraper !== null) parts.onServed({ ...scraper, atMs, answer });
  }

  return {
    ...serving,
    inFlightCount: () => inFlightCount,
    retire() {
      isRetired = true;
      serving.connections.closeAll('the front closes');
    },
  };
}

/** Null: it is no scraper's, or no GET. */
export function describeScraper(
  request: IncomingMessage,
  connection: Connection,
  connections: Connections,
  startedAtMs: number,
): ScraperRequest | null {
  const { method, headers } = request;
  const agent = headers['user-agent'] ?? '';
  if (method !== 'GET' || !isScraper({ hasTimeoutHeader: SCRAPE_TIMEOUT_HEADER in headers, agent })) return null;
  return describeClient(request, connection, connections, startedAtMs);
}

/** Whose request it is, as a scraper is told from others. */
export function describeClient(
  { headers }: IncomingMessage,
  connection: Connection,
  connections: Connections,
  startedAtMs: number,
): ScraperRequest {
  const { address } = connection;
  connection.scraperAgent = (headers['user-agent'] ?? '').slice(0, AGENT_LENGTH_MAX);
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
  const result = await waitUnless(snapshot(connection.gone), { signal: connection.gone });
  if (result?.kind === 'kept') return sendText(exchange, 200, 'kept');
  if (result?.kind === 'failed') return sendText(exchange, 503, result.why);
}

/** Reserved for the network and for our families. */
const RESERVE_MS = 500;
/** Reads are one at a time: a patient scraper must not keep the others from theirs. */
const MAX_SECONDS = 120;

/** When a scraper with this header hangs up, counted from its request; infinite if unknown. Above 0. */
export function readScrapeDeadline(header: string | undefined): number {
  return readSeconds(header) * 1000 || Number.POSITIVE_INFINITY;
}

/** How long a read may take with this X-Prometheus-Scrape-Timeout-Seconds. Above 0; null: unknown. */
export function readScrapeTimeout(header: string | undefined): number | null {
  const seconds = Math.min(readSeconds(header), MAX_SECONDS);
  return seconds > 0 ? Math.max(seconds * 500, seconds * 1000 - RESERVE_MS) : null;
}

/** 0 where it cannot be read. */
function readSeconds(header = ''): number {
  return /^\d+(?:\.\d+)?$/.test(header) ? Number(header) : 0;
}
