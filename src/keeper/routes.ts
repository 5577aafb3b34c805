// What the keeper answers at its two ports: hand-overs of pods at one, what Prometheus asks for at the other.
// On the front's server, and by its rule of who a scraper is. Never trusts a client.

import { type Clock, waitUnless } from '../base/waits.ts';
import { type KeepLimits, REFUSALS, type Refusal } from '../decide/keep/keep.ts';
import type { LogEntry } from '../decide/messages.ts';
import { readAccept } from '../decide/serve/pages.ts';
import { openServing, readRequestPath, SERVER_LIMITS } from '../front/listen.ts';
import { type Exchange, sendBody, sendText } from '../front/send-answer.ts';
import { describeClient, describeScraper, readScrapeDeadline, settleConnections } from '../front/server.ts';
import { formatKeeperMetrics } from './metrics.ts';
import { PAGE_PATH, type Pages } from './pages.ts';
import { type ProvenPod, Refused } from './request.ts';
import { openTurns } from './turns.ts';

/** What the routes need. `prove`: who the pod with that token is; null: nobody is asked. */
export type RoutesParts = {
  readonly pages: Pages;
  readonly limits: KeepLimits;
  readonly clock: Clock;
  readonly prove: ((token: string) => Promise<ProvenPod>) | null;
  readonly log: (entry: LogEntry) => void;
};

/** A pod gives up after 2 s. */
const HAND_OVER_LIMITS = { ...SERVER_LIMITS, connectionsCount: 256, requestMs: 5_000, idleMs: 10_000 };
/** One Prometheus scrapes every page, many at once. */
const SERVE_LIMITS = { ...SERVER_LIMITS, connectionsCount: 512, addressCount: 256 };
/** Hand-overs written at once: each has a compressor of 300 KB. One address must not keep others out. */
const TAKEN_AT_ONCE = { maxCount: 8, ofOneMaxCount: 2 };
/** Of one reason. */
const LOGGED_EVERY_MS = 60_000;

const REFRESH_HEADER = 'x-prometheus-refresh-interval-seconds';

/** The server for pods, not listening yet. */
export function openHandOverServer({ pages, clock, prove, log }: RoutesParts) {
  const refused: Partial<Record<Refusal, number>> = {};
  const loggedAtMs = new Map<Refusal, number>();
  const turns = openTurns(TAKEN_AT_ONCE);
  const serving = openServing(clock, take, HAND_OVER_LIMITS);

  function take(exchange: Exchange): () => Promise<void> {
    const { method, url = '' } = exchange.request;
    const path = readRequestPath(url);
    const isRead = method === 'GET' || method === 'HEAD';
    if (path === '/hand-over' && (method === 'POST' || isRead)) {
      return () => answerHandOver(exchange, method === 'POST');
    }
    exchange.request.resume();
    if (isRead && path === '/-/healthy') return () => sendText(exchange, 200, 'ok');
    return () => sendText(exchange, 404, 'not found; here is POST /hand-over, for pods');
  }

  async function answerHandOver(exchange: Exchange, isPost: boolean): Promise<void> {
    const { request, connection } = exchange;
    try {
      const token = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
      const proven = prove === null ? null : await prove(token);
      const isWanted = () => !connection.gone.aborted;
      const { address } = connection;
      const work = () => (isWanted() ? pages.take({ body: request, proven, address, isWanted }) : Promise.resolve());
      const why = pages.findRefusal();
      const isStopping = why === 'stopping';
      if (why !== null && (isStopping || !isPost)) throw new Refused(why);
      if (isPost) await turns.run(address, work);
      await sendText(exchange, isPost ? 201 : 200, isPost ? 'kept' : 'it would be kept');
    } catch (error) {
      // What is left of the body is read too, or the answer would be lost.
      request.resume();
      if (connection.gone.aborted) return;
      await refuse(exchange, toRefused(error));
    }
  }

  async function refuse(exchange: Exchange, { reason, message }: Refused): Promise<void> {
    const nowMs = clock.nowMs();
    refused[reason] = (refused[reason] ?? 0) + 1;
    const [status, text] = REFUSALS[reason];
    const why = message === '' ? text : `${text}: ${message}`;
    if (nowMs - (loggedAtMs.get(reason) ?? Number.NEGATIVE_INFINITY) >= LOGGED_EVERY_MS) {
      loggedAtMs.set(reason, nowMs);
      const fields = { why, from: exchange.connection.address, status, times: refused[reason] };
      log({ id: 'handOverRefused', fields });
    }
    await sendText(exchange, status, why);
  }

  return { ...serving, refused };
}

/** What a file system's errors mean; any other is a bug of ours, or the pod's end. */
function toRefused(error: unknown): Refused {
  if (error instanceof Refused) return error;
  const { code = '', message } = error as NodeJS.ErrnoException;
  return new Refused(code === 'ENOSPC' || code === 'EDQUOT' ? 'storageFull' : 'storageFailed', code || message);
}

/** The server for Prometheus, not listening yet. */
export function openServeServer(
  { pages, limits, clock }: RoutesParts,
  refused: Readonly<Partial<Record<Refusal, number>>>,
) {
  const serving = openServing(clock, take, SERVE_LIMITS);

  function take(exchange: Exchange): () => Promise<void> {
    const { request } = exchange;
    request.resume();
    const path = readRequestPath(request.url ?? '') ?? '';
    const startedAtMs = clock.nowMs();
    if (request.method !== 'GET' && request.method !== 'HEAD') return () => sendText(exchange, 405, 'only GET');
    if (path.startsWith(PAGE_PATH)) return () => answerPage(exchange, path.slice(PAGE_PATH.length), startedAtMs);
    switch (path) {
      case '/targets':
        return () => answerTargets(exchange, startedAtMs);
      case '/metrics':
        return () => sendMetrics(exchange, Buffer.from(formatKeeperMetrics(pages.count(), refused, limits)));
      case '/-/healthy':
        return () => sendText(exchange, 200, 'ok');
      case '/-/ready': {
        const why = pages.findRefusal();
        return () => sendText(exchange, why === null ? 200 : 503, why === null ? 'ok' : REFUSALS[why][1]);
      }
      default:
        return () => sendText(exchange, 404, 'not found; here are GET /targets, /metrics, /-/healthy and /-/ready');
    }
  }

  async function answerTargets(exchange: Exchange, startedAtMs: number): Promise<void> {
    const { request, connection } = exchange;
    const { host = '' } = request.headers;
    if (!/^[\w.[\]:-]{1,300}$/.test(host)) return sendText(exchange, 400, 'the header Host must be a host and a port');
    const refreshSeconds = Number(request.headers[REFRESH_HEADER]) || null;
    const client = describeClient(request, connection, serving.connections, startedAtMs);
    const read = pages.listTargets(client, refreshSeconds === null ? null : refreshSeconds * 1000, host);
    await sendBody(exchange, { read, sizeBytes: null, contentType: 'application/json' });
  }

  async function answerPage(exchange: Exchange, key: string, startedAtMs: number): Promise<void> {
    const { request, connection } = exchange;
    const scraper = describeScraper(request, connection, serving.connections, startedAtMs);
    try {
      const found = await pages.open(key, readAccept(request.headers.accept));
      if (found === null) return await sendText(exchange, 404, 'not kept, or not any more');
      const { page, fromBytes, format } = found;
      const { sizeBytes, contentType } = format;
      const body = { read: () => page.read(fromBytes, sizeBytes), sizeBytes, contentType, mustArrive: true };
      const isWhole = await sendBody(exchange, body);
      await page.close();
      const tookMs = clock.nowMs() - startedAtMs;
      const deadlineMs = readScrapeDeadline(request.headers['x-prometheus-scrape-timeout-seconds']?.toString());
      if (isWhole && scraper !== null && tookMs < deadlineMs) pages.addTake(key, scraper);
    } catch (error) {
      await sendText(exchange, 500, error instanceof Error ? error.message : String(error));
    }
  }

  return serving;
}

async function sendMetrics(exchange: Exchange, bytes: Buffer): Promise<void> {
  async function* read() {
    yield bytes;
  }
  await sendBody(exchange, { read, sizeBytes: bytes.length });
}

/** Stops both: what waits in the kernel is answered first. Never rejects. */
export async function closeServers(
  servers: readonly Pick<ReturnType<typeof openServing>, 'connections' | 'close'>[],
): Promise<void> {
  for (const { connections, close } of servers) {
    await settleConnections(connections);
    await waitUnless(close(), { timeoutMs: 1_000 });
  }
}
