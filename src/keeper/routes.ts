// What the keeper answers at its two ports: hand-overs of pods at one, what Prometheus asks for at the other.
// On the front's server, and by its rule of who a scraper is. Never trusts a client.

import { readUnacknowledged } from '../base/procfs.ts';
import { type Clock, waitUnless } from '../base/waits.ts';
import { type PageFormat, REFUSALS, type Refusal } from '../decide/keep/keep.ts';
import type { LogEntry } from '../decide/messages.ts';
import { readAccept } from '../decide/serve/pages.ts';
import type { ScraperRequest } from '../decide/serve/scrapers.ts';
import type { Connection } from '../front/connections.ts';
import { openServing, readRequestPath, SERVER_LIMITS, type ServerLimits } from '../front/listen.ts';
import { type Exchange, sendBody, sendText } from '../front/send-answer.ts';
import { describeClient, describeScraper, readScrapeDeadline, settleConnections } from '../front/server.ts';
import { decompress } from '../snapshot/packing.ts';
import { formatKeeperMetrics } from './metrics.ts';
import { type HandedOver, PAGE_PATH, type Pages } from './pages.ts';
import { type ProvenPod, Refused } from './request.ts';
import { openTurns } from './turns.ts';

/** What the routes need. `prove`: who the pod with that token is; null: nobody is asked. */
export type RoutesParts = {
  readonly pages: Pages;
  readonly clock: Clock;
  readonly prove: ((token: string) => Promise<ProvenPod>) | null;
  readonly log: (entry: LogEntry) => void;
};

/** One Prometheus scrapes every page, many at once. */
const SERVE_LIMITS = { ...SERVER_LIMITS, connectionsCount: 512, addressCount: 256 };
/** A pod gives up after 2 s; hundreds may end at once, by one connection each: who has more makes room. */
const HAND_OVER_LIMITS = { ...SERVE_LIMITS, addressCount: 2, waitingCount: 1, requestMs: 2_500, idleMs: 10_000 };
/** Tokens of an address checked at once: a connection to the API server each. */
const PROVING = { maxCount: 8, ofOneMaxCount: 2 };
/** Hand-overs of a namespace written at once: a compressor each. Two that are slow keep no other out. */
const TAKING = { maxCount: 12, ofOneMaxCount: 4 };
/** Of one reason. */
const LOGGED_EVERY_MS = 60_000;

const REFRESH_HEADER = 'x-prometheus-refresh-interval-seconds';

/** What a pod may ask: what is done, and what is answered then. */
type Route = readonly [work: (handedOver: HandedOver) => Promise<void>, status: number, done: string];

/** The server for pods, not listening yet. */
export function openHandOverServer({ pages, clock, prove, log }: RoutesParts, limits: Partial<ServerLimits> = {}) {
  const refused: Partial<Record<Refusal, number>> = {};
  const loggedAtMs = new Map<Refusal, number>();
  const proving = openTurns(PROVING);
  const taking = openTurns(TAKING);
  const serving = openServing(clock, take, { ...HAND_OVER_LIMITS, ...limits });
  const routes = new Map<string, Route>([
    ['POST /hand-over', [pages.take, 201, 'kept']],
    ['POST /hand-over/check', [pages.check, 200, 'it would be kept']],
    ['DELETE /hand-over', [pages.withdraw, 200, 'forgotten']],
  ]);

  function take(exchange: Exchange): () => Promise<void> {
    const { method, url = '' } = exchange.request;
    const path = readRequestPath(url);
    const route = routes.get(`${method} ${path}`);
    if (route !== undefined) return () => answerPod(exchange, route);
    exchange.request.resume();
    return () => sendText(exchange, 404, 'not found; here is POST /hand-over, for pods');
  }

  async function answerPod(exchange: Exchange, [work, status, done]: Route): Promise<void> {
    const { request, connection } = exchange;
    const { gone, address } = connection;
    try {
      if (pages.findRefusal() === 'stopping') throw new Refused('stopping');
      const token = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
      const proven = prove && (await proving.run(address, gone, () => prove(token)));
      await taking.run(proven?.namespace ?? address, gone, () => work({ body: request, proven, address, gone }));
      await sendText(exchange, status, done);
    } catch (error) {
      // What is left of the body is read too, or the answer would be lost; not by who began to read it.
      request.removeAllListeners('readable').resume();
      if (gone.aborted) return;
      const { reason, message } = toRefused(error);
      const [refusedStatus, text] = REFUSALS[reason];
      const why = message === '' ? text : `${text}: ${message}`;
      // Neither a check nor who has no token is a pod that holds.
      if (status === 201 && reason !== 'anonymous') note(reason, { why, from: address, status: refusedStatus });
      await sendText(exchange, refusedStatus, why);
    }
  }

  function note(reason: Refusal, fields: LogEntry['fields']): void {
    refused[reason] = (refused[reason] ?? 0) + 1;
    if (clock.nowMs() - (loggedAtMs.get(reason) ?? Number.NEGATIVE_INFINITY) < LOGGED_EVERY_MS) return;
    loggedAtMs.set(reason, clock.nowMs());
    log({ id: 'handOverRefused', fields: { ...fields, times: refused[reason] } });
  }

  return { ...serving, refused };
}

/** What a file system's errors mean; any other is a bug of ours, or the pod's end. */
function toRefused(error: unknown): Refused {
  if (error instanceof Refused) return error;
  const { code = '', message } = error as NodeJS.ErrnoException;
  return new Refused(code === 'ENOSPC' || code === 'EDQUOT' ? 'storageFull' : 'storageFailed', code || message);
}

/** A scrape that its client may not have read: it asks again then, or has not hung up by `untilMs`. */
type Unread = { readonly key: string; readonly scraper: ScraperRequest; readonly untilMs: number };

/** The server for Prometheus, not listening yet. */
export function openServeServer({ pages, clock }: RoutesParts, refused: Readonly<Partial<Record<Refusal, number>>>) {
  const serving = openServing(clock, take, SERVE_LIMITS);
  const unread = new Map<Connection, Unread>();

  function countRead(connection: Connection): void {
    const scrape = unread.get(connection);
    unread.delete(connection);
    if (scrape !== undefined) pages.addTake(scrape.key, scrape.scraper);
  }
  /** Those of clients that would have hung up by now. */
  function countPatient(): void {
    for (const [connection, { untilMs }] of unread) {
      if (connection.gone.aborted) unread.delete(connection);
      else if (clock.nowMs() >= untilMs && readUnacknowledged(connection.socket) === 0) countRead(connection);
    }
  }

  function take(exchange: Exchange): () => Promise<void> {
    const { request, connection } = exchange;
    request.resume();
    countRead(connection);
    const path = readRequestPath(request.url ?? '') ?? '';
    const startedAtMs = clock.nowMs();
    if (request.method !== 'GET' && request.method !== 'HEAD') return () => sendText(exchange, 405, 'only GET');
    if (path.startsWith(PAGE_PATH)) return () => answerPage(exchange, path.slice(PAGE_PATH.length), startedAtMs);
    switch (path) {
      case '/targets':
        return () => answerTargets(exchange, startedAtMs);
      case '/metrics':
        return () => sendText(exchange, 200, formatKeeperMetrics(pages.count(), refused));
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
    countPatient();
    const listed = pages.listTargets(client, refreshSeconds === null ? null : refreshSeconds * 1000);
    const read = () => writeTargets(listed, host);
    await sendBody(exchange, { read, sizeBytes: null, contentType: 'application/json' });
  }

  async function answerPage(exchange: Exchange, key: string, startedAtMs: number): Promise<void> {
    const { request, response, connection } = exchange;
    const scraper = describeScraper(request, connection, serving.connections, startedAtMs);
    try {
      const found = await pages.open(key, readAccept(request.headers.accept));
      if (found === null) return await sendText(exchange, 404, 'not kept, or not any more');
      await using page = found.page;
      const { contentType, sizeBytes } = page.kept.formats[found.index] as PageFormat;
      const read = () => page.read(found.index);
      const gzip = { read, sizeBytes: page.kept.packedBytes[found.index] ?? 0 };
      // Most clients keep the connection: what follows on it is cheaper evidence.
      const mustArrive = !response.shouldKeepAlive;
      const body = { read: () => decompress(read()), sizeBytes, gzip, contentType, mustArrive };
      const isWhole = await sendBody(exchange, body);
      const deadlineMs = readScrapeDeadline(request.headers['x-prometheus-scrape-timeout-seconds']?.toString());
      if (!isWhole || scraper === null || clock.nowMs() - startedAtMs >= deadlineMs) return;
      if (unread.size >= SERVE_LIMITS.connectionsCount) countPatient();
      unread.set(connection, { key, scraper, untilMs: clock.nowMs() + 2 * deadlineMs });
      if (mustArrive || deadlineMs === Number.POSITIVE_INFINITY) countRead(connection);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      await sendText(exchange, 500, `the page cannot be read: ${code ?? message}`);
    }
  }

  return serving;
}

/** How many targets go out at a time: all of them are 10 MB. */
const WRITTEN_AT_ONCE = 256;

async function* writeTargets(listed: ReturnType<Pages['listTargets']>, host: string): AsyncGenerator<Uint8Array> {
  const start = Buffer.from(`{"targets":[${JSON.stringify(host)}],"labels":`);
  const [end, last] = [Buffer.from('},\n'), Buffer.from('}')];
  yield Buffer.from('[');
  for (let from = 0; from < listed.length; from += WRITTEN_AT_ONCE) {
    const some = listed.slice(from, from + WRITTEN_AT_ONCE);
    yield Buffer.concat(some.flatMap(({ labels }) => [start, labels, labels === listed.at(-1)?.labels ? last : end]));
  }
  yield Buffer.from(']\n');
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
