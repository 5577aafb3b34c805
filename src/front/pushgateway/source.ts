// A Pushgateway that ends with its pod, as the source: takes pushes on a loopback address, and answers every
// read at once with what was pushed. `groups.ts` has the rules.

import type { IncomingMessage } from 'node:http';
import { createGunzip } from 'node:zlib';
import { cut } from '../../base/text.ts';
import type { PushCounts } from '../../decide/model.ts';
import { chooseReading, openExposition, type Reading } from '../../exposition/exposition.ts';
import { joinLines } from '../../exposition/exposition-text.ts';
import { readPageType } from '../../exposition/format.ts';
import { readNumber } from '../../exposition/lexer.ts';
import { makeReading } from '../../observe/exporter.ts';
import { openBody } from '../../snapshot/body.ts';
import { countGarbage } from '../../snapshot/chunks.ts';
import { openServing, readRequestPath, SERVER_LIMITS } from '../listen.ts';
import { type Exchange, sendBody, sendText } from '../send-answer.ts';
import { openWarnings, readWhole, type Source, type SourceParts, type WholeAnswer } from '../sources/source.ts';
import { dropTaken, EMPTY_STORE, listFamilies, type PushStore, readGrouping, takePush } from './groups.ts';
import {
  formatSeries,
  type Grouping,
  type PushedBody,
  readPushedText,
  writePushedFamilies,
} from './pushed-families.ts';
import { readPushedMessages } from './pushed-messages.ts';

/** `url`: `pushgateway://HOST:PORT`, a loopback address. */
export type PushSourceParts = SourceParts & {
  /** A monotonic moment as seconds since 1970. */
  readonly toUnixSeconds: (atMs: number) => number;
  /** What pages showed that were read before this, every living scraper has taken. */
  readonly findTakenAtMs: () => number;
};

/** Of a body, unpacked: what may be kept of it is shorter, and twice as much would not fit next to that. */
export const PUSH_MAX_BYTES = 8 * 1024 * 1024;
/** Of all bodies that are being taken in: a large one leaves room for others. */
const PUSHES_MAX_BYTES = PUSH_MAX_BYTES + 4 * 1024 * 1024;
/** No client is a stranger. */
const LIMITS = {
  ...SERVER_LIMITS,
  // As many as the kernel holds back: workers that end together push at once, and what is closed is lost.
  connectionsCount: 512,
  // A JVM with a tenth of a processor took more than 10 s between connecting and its body.
  requestMs: 300_000,
  waitingCount: Number.POSITIVE_INFINITY,
};

/** Of the reason of a refusal, in the log and the report. */
const WHY_MAX_LENGTH = 200;

type Page = WholeAnswer & { readonly store: PushStore };
type Reply = readonly [status: number, text: string];

/** Listens; the code of the error where it cannot. Never rejects. */
export async function openPushSource(parts: PushSourceParts): Promise<Source | string> {
  const { url, clock } = parts;
  const pushes = openPushes(parts);
  // A packed body is read later than the next request.
  const { listen, close } = openServing(clock, (exchange) => () => answer(exchange, pushes), LIMITS);
  const code = await listen(url.hostname.replace(/[[\]]/g, ''), Number(url.port));
  if (code !== null) return code;
  return {
    path: null,
    pushes: pushes.counts,
    read: () => readWhole(Promise.resolve(pushes.findPage())),
    // A push that is cut by this is logged by then: nothing is after the report.
    close,
  };
}

async function answer(exchange: Exchange, { push, findPage }: ReturnType<typeof openPushes>): Promise<void> {
  const { request } = exchange;
  const { method = '', url: target = '' } = request;
  // Node emits it once the body is read.
  request.on('error', () => {});
  if (method !== 'GET' && method !== 'HEAD') return sendText(exchange, ...(await push(request)));
  request.resume();
  const path = readRequestPath(target);
  if (path === '/-/healthy' || path === '/-/ready') return sendText(exchange, 200, 'OK');
  if (path !== '/metrics') return sendText(exchange, readGrouping(target) === null ? 404 : 405, NOT_FOUND);
  await sendBody(exchange, findPage().body);
}

function openPushes(parts: PushSourceParts) {
  const { clock, toUnixSeconds, findTakenAtMs } = parts;
  const warnOnce = openWarnings(parts.log);
  let store = EMPTY_STORE;
  let counts: PushCounts = { changedAtMs: null, takenCount: 0, refusedCount: 0, droppedCount: 0, why: '' };
  let page: Page | null = null;
  const receive = openReceiver();

  return {
    counts: () => counts,
    findPage(): Page {
      store = dropTaken(store, findTakenAtMs());
      page = page?.store === store ? page : makePage(store, parts);
      return page;
    },
    async push(request: IncomingMessage): Promise<Reply> {
      const [status, text] = await take(request);
      if (status < 400) return [status, text];
      const why = `${status}: ${cut(text, WHY_MAX_LENGTH)}`;
      parts.log({ id: 'pushRefused', fields: { path: request.url, why } });
      counts = { ...counts, refusedCount: counts.refusedCount + 1, why };
      return [status, text];
    },
  };

  async function take(request: IncomingMessage): Promise<Reply> {
    const { method = '', url = '' } = request;
    const received = await receive(request);
    const grouping = readGrouping(url);
    if (typeof grouping === 'string') return [400, grouping];
    if (grouping === null) return [readRequestPath(url) === '/metrics' ? 405 : 404, NOT_FOUND];
    if (!('bytes' in received)) return received;
    if (!['PUT', 'POST', 'DELETE'].includes(method)) return [405, `${method} is not allowed here`];
    const body = method === 'DELETE' ? null : readBody(received.bytes, request, grouping);
    if (body?.kind === 'unreadable') return [400, body.why];
    const atMs = clock.nowMs();
    const now = { atMs, seconds: toUnixSeconds(atMs), takenAtMs: findTakenAtMs() };
    const result = takePush(store, { grouping, body, isReplaced: method === 'PUT', ...now });
    store = result.store;
    if (result.status === 200) counts = { ...counts, changedAtMs: atMs, takenCount: counts.takenCount + 1 };
    if (body?.hasNative === true) {
      warnOnce({ id: 'nativeHistogramPushed', fields: { group: formatSeries([], grouping) } });
    }
    const { droppedCount } = result;
    if (droppedCount === 0) return [result.status, result.why ?? ''];
    counts = { ...counts, droppedCount: counts.droppedCount + droppedCount };
    warnOnce({ id: 'pushedDropped', fields: { path: url } });
    return [result.status, `${DROPPED}: ${droppedCount}`];
  }
}

const DROPPED = 'there was no room for families that were deleted or replaced before a scrape had them';

const NOT_FOUND =
  'not found; here are PUT, POST, DELETE /metrics/job/JOB{/LABEL/VALUE}, GET /metrics, GET /-/healthy, GET /-/ready';

function openReceiver() {
  let heldBytes = 0;
  return async (request: IncomingMessage): Promise<{ readonly bytes: Buffer } | Reply> => {
    const encoding = request.headers['content-encoding'] ?? '';
    const pieces: Buffer[] = [];
    let sizeBytes = 0;
    try {
      if (/^snappy$/i.test(encoding)) return [400, 'snappy is not supported, gzip is'];
      const body = /^gzip$/i.test(encoding) ? unpack(request) : request.iterator({ destroyOnReturn: false });
      for await (const piece of body) {
        pieces.push(piece);
        sizeBytes += piece.length;
        heldBytes += piece.length;
        countGarbage(piece.length);
        if (sizeBytes > PUSH_MAX_BYTES) return [413, `the body has more than ${PUSH_MAX_BYTES} bytes`];
        if (heldBytes > PUSHES_MAX_BYTES) return [503, 'too many large pushes at a time'];
      }
      return { bytes: Buffer.concat(pieces) };
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException;
      return [400, code.startsWith('Z_') ? `the body is not gzip: ${message}` : 'the body did not come whole'];
    } finally {
      heldBytes -= sizeBytes;
      // The rest is read as well, so that the client reads the answer.
      request.unpipe().resume();
    }
  };
}

/** A body as it comes: what is unpacked counts towards the limits. */
function unpack(request: IncomingMessage): AsyncIterable<Buffer> {
  const unpacked = createGunzip();
  request.on('error', (error) => unpacked.destroy(error));
  return request.pipe(unpacked);
}

/** Any other type is read as text, as Pushgateway does. */
function readBody(bytes: Buffer, { headers }: IncomingMessage, grouping: Grouping): PushedBody {
  const { format } = readPageType(headers['content-type'] ?? '');
  return format === 'protobuf' ? readPushedMessages(bytes, grouping) : readPushedText(bytes, format, grouping);
}

function makePage(store: PushStore, { selectors = [] }: PushSourceParts): Page {
  const { body, push, end } = openBody();
  const page = readPage(store, selectors, push);
  end();
  // What was deleted or replaced is judged only where nothing else is there to be judged.
  const own = store.leftovers.length === 0 ? page.selected : readPage({ ...store, leftovers: [] }, selectors).selected;
  const selected = own.map((each, at) => (/none|unmatched/.test(each.kind) ? (page.selected[at] ?? each) : each));
  const metric = (name: string) => readCondition(store, name);
  return { kind: 'answered', store, body, reading: { ...makeReading({ ...page, selected }), metric } };
}

function readPage(store: PushStore, selectors: PushSourceParts['selectors'], push = (_: Uint8Array) => {}) {
  const exposition = openExposition([], selectors);
  for (const text of joinLines([writePushedFamilies(listFamilies(store))])) {
    const piece = Buffer.from(text);
    exposition.write(piece);
    push(piece);
  }
  return exposition.end();
}

/** What a condition reads: a metric without labels but those of its group. */
function readCondition({ groups }: PushStore, name: string): Reading {
  const found = [...groups].flatMap(([key, { families }]) => families.get(name)?.series.get(key) ?? []);
  return chooseReading(found.map((text) => ({ labels: [], value: readNumber(text) })));
}
