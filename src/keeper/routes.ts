// What the keeper answers at its two ports: hand-overs of pods at one, what Prometheus asks for at the other.
// On the front's server, and by its rule of who a scraper is. Never trusts a client.

import { readUnacknowledged } from '../base/procfs.ts';
import { waitUnless } from '../base/waits.ts';
import { chooseFormat, type PageFormat, REFUSALS, type Refusal } from '../decide/keep/keep.ts';
import type { LogEntry } from '../decide/messages.ts';
import { readAccept } from '../decide/serve/pages.ts';
import { joinLines } from '../exposition/exposition-text.ts';
import type { Connection } from '../front/connections.ts';
import { openServing, readRequestPath, SERVER_LIMITS, type ServerLimits } from '../front/listen.ts';
import { type Exchange, sendBody, sendText } from '../front/send-answer.ts';
import { describeClient, describeScraper, readScrapeDeadline, settleConnections } from '../front/server.ts';
import { decompress } from '../snapshot/packing.ts';
import { formatKeeperMetrics } from './metrics.ts';
import { type HandedOver, PAGE_PATH, type Pages, type PagesParts } from './pages.ts';
import { type ProvenPod, Refused } from './request.ts';
import { openTurns } from './turns.ts';

/** What the routes need. `prove`: who the pod with that token is; null: nobody is asked. */
export type RoutesParts = Pick<PagesParts, 'clock' | 'log'> & {
  readonly pages: Pages;
  readonly prove: ((token: string) => Promise<ProvenPod>) | null;
};

/** One Prometheus scrapes every page, many at once. */
const SERVE_LIMITS = { ...SERVER_LIMITS, connectionsCount: 512 };
/** A pod gives up after 2 s; hundreds may end at once, by one connection each. */
const POD_LIMITS = { ...SERVE_LIMITS, waitingCount: 1, requestMs: 2_500, idleMs: 10_000 };
const REASON_LOGGED_EVERY_MS = 60_000;

/** What a pod may ask: what is done, and what is answered then. */
type Route = readonly [work: (handedOver: HandedOver) => Promise<void>, status: number, done: string];

/** The server for pods, not listening yet. */
export function openPodServer({ pages, clock, prove, log }: RoutesParts, limits: Partial<ServerLimits> = {}) {
  const loggedAtMs = new Map<Refusal, number>();
  // Tokens of an address checked at once: a connection to the API server each.
  const proving = openTurns({ maxCount: 8, ofOneMaxCount: 2 });
  // Hand-overs of a namespace written at once: a compressor each. Two that are slow keep no other out.
  const taking = openTurns({ maxCount: 12, ofOneMaxCount: 4 });
  const serving = openServing(clock, take, { ...POD_LIMITS, ...limits });
  const routes = new Map<string, Route>([
    ['POST /hand-over', [pages.take, 201, 'kept']],
    ['POST /hand-over/check', [pages.check, 200, 'it would be kept']],
    ['DELETE /hand-over', [pages.withdraw, 200, 'forgotten']],
  ]);

  function take(exchange: Exchange): () => Promise<void> {
    const { method, url = '' } = exchange.request;
    const route = routes.get(`${method} ${readRequestPath(url)}`);
    if (route !== undefined) return () => answerPod(exchange, route);
    exchange.request.resume();
    return () => sendText(exchange, 404, 'not found; here is POST /hand-over, for pods');
  }

  async function answerPod(exchange: Exchange, [work, status, done]: Route): Promise<void> {
    const { request, connection } = exchange;
    const { gone, address } = connection;
    try {
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
    const times = ++pages.counts.refused_total[reason];
    if (clock.nowMs() - (loggedAtMs.get(reason) ?? Number.NEGATIVE_INFINITY) < REASON_LOGGED_EVERY_MS) return;
    loggedAtMs.set(reason, clock.nowMs());
    log({ id: 'handOverRefused', fields: { ...fields, times } });
  }

  return serving;
}

/** What a file system's errors mean; any other is a bug of ours, or the pod's end. */
function toRefused(error: unknown): Refused {
  if (error instanceof Refused) return error;
  const { code = '', message } = error as NodeJS.ErrnoException;
  return new Refused(code === 'ENOSPC' || code === 'EDQUOT' ? 'storageFull' : 'storageFailed', code || message);
}

/** The server for Prometheus, not listening yet. */
export function openServeServer({ pages, clock }: RoutesParts) {
  const serving = openServing(clock, take, SERVE_LIMITS);
  /** Scrapes that their clients may not have read: they ask again then, or have not hung up by `untilMs`. */
  const unread = new Map<Connection, { readonly untilMs: number; readonly count: () => void }>();

  function countRead(connection: Connection): void {
    unread.get(connection)?.count();
    unread.delete(connection);
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
    if (path === '/targets') return () => answerTargets(exchange, startedAtMs);
    if (path === '/metrics') return () => sendText(exchange, 200, formatKeeperMetrics(pages.count()));
    const why = path === '/-/ready' ? pages.findRefusal() : null;
    if (why !== null) return () => sendText(exchange, 503, REFUSALS[why][1]);
    if (path === '/-/ready' || path === '/-/healthy') return () => sendText(exchange, 200, 'ok');
    return () => sendText(exchange, 404, 'not found; here are GET /targets, /metrics, /-/healthy and /-/ready');
  }

  async function answerTargets(exchange: Exchange, startedAtMs: number): Promise<void> {
    const { request, connection } = exchange;
    const { host = '' } = request.headers;
    if (!/^[\w.[\]:-]{1,300}$/.test(host)) return sendText(exchange, 400, 'the header Host must be a host and a port');
    const refreshMs = 1000 * Number(request.headers['x-prometheus-refresh-interval-seconds']) || null;
    const client = describeClient(request, connection, serving.connections, startedAtMs);
    countPatient();
    const all = pages.listTargets(client, refreshMs);
    await sendBody(exchange, { read: () => writeTargets(all, host), sizeBytes: null, contentType: 'application/json' });
  }

  async function answerPage(exchange: Exchange, key: string, startedAtMs: number): Promise<void> {
    const { request, response, connection } = exchange;
    const scraper = describeScraper(request, connection, serving.connections, startedAtMs);
    try {
      await using page = await pages.open(key);
      if (page === null) return await sendText(exchange, 404, 'not kept, or not any more');
      const { formats, packedBytes } = page.kept;
      const index = chooseFormat(formats, readAccept(request.headers.accept));
      const { contentType, sizeBytes } = formats[index] as PageFormat;
      const read = () => page.read(index);
      const gzip = { read, sizeBytes: packedBytes[index] ?? 0 };
      // Most clients keep the connection: what follows on it is cheaper evidence.
      const mustArrive = !response.shouldKeepAlive;
      const plain = () => decompress(read());
      const isWhole = await sendBody(exchange, { read: plain, sizeBytes, gzip, contentType, mustArrive });
      const deadlineMs = readScrapeDeadline(request.headers['x-prometheus-scrape-timeout-seconds']?.toString());
      if (!isWhole || scraper === null || clock.nowMs() - startedAtMs >= deadlineMs) return;
      if (unread.size >= SERVE_LIMITS.connectionsCount) countPatient();
      unread.set(connection, { untilMs: clock.nowMs() + 2 * deadlineMs, count: () => pages.addTake(key, scraper) });
      if (mustArrive || deadlineMs === Number.POSITIVE_INFINITY) countRead(connection);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      await sendText(exchange, 500, `the page cannot be read: ${code ?? message}`);
    }
  }

  return serving;
}

/** In pieces: all of them are 10 MB. */
async function* writeTargets(listed: ReturnType<Pages['listTargets']>, host: string): AsyncGenerator<Uint8Array> {
  const start = `{"targets":[${JSON.stringify(host)}],"labels":`;
  const lines = listed.values().map(({ labels }, index) => `${index === 0 ? '[' : ',\n'}${start}${labels}}`);
  for (const text of joinLines([lines, [listed.length === 0 ? '[]\n' : ']\n']])) yield Buffer.from(text);
}

/** Stops both: what waits in the kernel is answered first. Never rejects. */
export async function closeServers(servers: readonly ReturnType<typeof openServing>[]): Promise<void> {
  for (const { connections, close } of servers) {
    await settleConnections(connections);
    await waitUnless(close(), { timeoutMs: 1_000 });
  }
}
