// Locust's web page as the source, in the place of its exporter: the page's numbers, and at the end those of its CSV, which it makes
// anew for each request. Like the exporter it answers when Locust is gone: `up` is 0 then, and the rows are as last seen.

import { crc32 } from 'node:zlib';
import { type Clock, callAfter } from '../../base/clock.ts';
import { type Headers, prepareHeadersFile } from '../../base/headers-file.ts';
import { type ExchangeResult, openExchange } from '../../base/net/exchange.ts';
import { USER_AGENT } from '../../base/version.ts';
import { waitFor, waitUnless } from '../../base/waits.ts';
import type { LogEntry } from '../../decide/messages.ts';
import { openExposition } from '../../exposition/exposition.ts';
import { type Family, listLines } from '../../exposition/exposition-text.ts';
import type { Selector } from '../../exposition/selector.ts';
import type { ExporterReading } from '../../observe/condition.ts';
import { makeFailedReading, makeReading } from '../../observe/exporter.ts';
import { type Body, leave } from '../../snapshot/body.ts';
import { makeWrittenBody } from '../../snapshot/written-body.ts';
import type { Beginning, Source } from '../sources/source.ts';
import { readLocustCsv } from './csv.ts';
import { openLocustMemory } from './memory.ts';
import { cutErrors, isRunningState, type LocustStats, readLocustStats } from './page.ts';

export type LocustSourceParts = {
  /** Of Locust's page; a path is that of `--web-base-path`. */
  readonly url: URL;
  /** What the names begin with. */
  readonly namespace: string;
  /** A path of the front's beside /metrics; null: none. */
  readonly path: string | null;
  /** A file of headers for the page, `Name: value` each; null: none. */
  readonly headersFile: string | null;
  readonly metricNames: readonly string[];
  /** What is judged. Default: nothing. */
  readonly selectors?: readonly Selector[];
  readonly clock: Clock;
  readonly log: (entry: LogEntry) => void;
};

/** For the file of headers: a mount may hang, and Locust does not wait. */
const FILE_TIMEOUT_MS = 1_000;
/** An answer that is younger is used again, so that many scrapers cost Locust no more than one. */
const REUSE_MS = 500;
/** Locust makes its page anew for whoever asks 2 s after the last time (web.py, DEFAULT_CACHE_TIME): just after that it shows a stop. */
const PAGE_KEPT_MS = 2_020;
/** As the exporter has it (LOCUST_EXPORTER_TIMEOUT): then Locust counts as down. */
const TIMEOUT_MS = 5_000;
/** So long an answer is waited for all the same: it may have the last numbers, and its connection lives when nobody can connect any more. */
const LATE_MS = 30_000;
/** From the end of one CSV to the next, while nothing runs: Locust ends 1.5 s after its last number at the earliest. */
const CSV_PAUSE_MS = 250;
/**
 * A CSV costs Locust the percentiles of all its rows: where users may run it gets four times as long for itself. Where they do not,
 * its last number may come 1.5 s before its end, and it has nothing else to do.
 */
const CSV_PAUSE_RATIO = 4;
/** After so long without a new number it is read with the page only. */
const CSV_SAME_MS = 10_000;
/** A main that said it ends has so long; the kubelet's grace is as long. */
const ENDING_MS = 30_000;
/** A scrape waits for the CSV no longer. */
const CSV_WAIT_MS = 1_000;
/** 500 rows of the page and as many errors, each with a long text; a CSV of 10,000 rows has 2 MB. */
const BODY_MAX_BYTES = 16 * 1024 * 1024;
const PIECE_LENGTH = 64 * 1024;
/** Of the buffer that bodies are read into: the next one may be a little longer. */
const SPARE_RATIO = 1.5;
/** The header of a family and two samples: no reading looks at more, but at the totals. */
const READ_LINES_COUNT = 3;

/** What the page was when it was last asked for, and the mark of its bytes; its rows and errors are in the memory. */
type Page = {
  readonly isUp: boolean;
  readonly stats: LocustStats | null;
  readonly mark: string;
  /** Why it is not known whether Locust is there; null: it is known. */
  readonly doubt: string | null;
};

const DOWN: Page = { isUp: false, stats: null, mark: '', doubt: null };

type LocustAnswer = { readonly body: Body; readonly reading: ExporterReading };

/** Opens the source; connects at the first read. It never refuses. */
export function openLocustSource(parts: LocustSourceParts): Source {
  const { url, clock, metricNames } = parts;
  const exchange = openExchange(url);
  const base = url.pathname.replace(/\/+$/, '');
  const ownHeaders = { accept: '*/*', 'user-agent': USER_AGENT };
  const headersFile = parts.headersFile === null ? null : prepareHeadersFile(parts.headersFile);
  const memory = openLocustMemory(parts.namespace);
  const upName = `${parts.namespace}_up`;
  const closing = new AbortController();
  let page: Page = DOWN;
  // What is answered while nothing is new: one body, so that nobody writes, packs and joins 20 MB for each poll of a Locust that is gone.
  let answered: { readonly page: Page; readonly answer: LocustAnswer } | null = null;
  let pageAtMs = Number.NEGATIVE_INFINITY;
  // One that was asked for: until its answer, or until that is late.
  let comingPage: Promise<void> | null = null;
  let cancelPage = () => {};
  let comingCsv: Promise<void> | null = null;
  let csvMark = '';
  const scratch = openScratch();
  let csvChangedAtMs = 0;
  let csvDueAtMs = Number.NEGATIVE_INFINITY;
  let isCsvHurt = false;
  let cancelCsv = () => {};
  // Somebody said that main ends now, and the page may still show that it runs: the CSV is read until then.
  let endingUntilMs = Number.NEGATIVE_INFINITY;
  let renewing: Promise<void> | null = null;
  const warned = new Set<string>();
  let last: Promise<unknown> = Promise.resolve();

  /**
   * One request after the other over one connection: a new one could not be made any more when Locust ends. The body is in the
   * scratch then, until the next one is asked for.
   */
  function get(path: string): Promise<ExchangeResult> {
    const got = last.then(async () => {
      const headers = { ...ownHeaders, ...(await readHeaders()) };
      const request = { method: 'GET', path: base + path, headers, timeoutMs: LATE_MS, signal: closing.signal };
      const read = async () => {
        scratch.clear();
        const result = await exchange.send({ ...request, onBody: scratch.write });
        if (result.kind !== 'answered' || result.status !== 200) scratch.clear();
        return result;
      };
      const first = await read();
      // A kept connection may end in the instant in which it is used (RFC 9112, 9.3.1).
      return first.kind === 'dropped' ? read() : first;
    });
    last = got;
    return got;
  }

  /** Anew for each request, since a Secret may change. Without them Locust is asked all the same: it says that it wants a login. */
  async function readHeaders(): Promise<Headers> {
    if (headersFile === null) return {};
    const read = await headersFile({ timeoutMs: FILE_TIMEOUT_MS, signal: closing.signal });
    if ('headers' in read) return read.headers;
    warnOnce({ id: 'headersUnreadable', fields: { file: parts.headersFile, why: read.why } });
    return {};
  }

  /** Until it is there, or late: then Locust is down for whoever reads, and the answer is taken when it comes. */
  function readPage(): Promise<void> {
    cancelPage();
    comingPage ??= askForPage();
    return comingPage;
  }

  function askForPage(): Promise<void> {
    let isAnswered = false;
    let isLate = false;
    const answered = get('/stats/requests').then((result) => {
      isAnswered = true;
      comingPage = null;
      takeAnswer(result);
      // It may have ended its run meanwhile.
      if (isLate && isCsvWanted()) readCsv();
    });
    return waitUnless(answered, { timeoutMs: TIMEOUT_MS, clock }).then(() => {
      if (isAnswered) return;
      isLate = true;
      pageAtMs = clock.nowMs();
      takeDown('timed out');
    });
  }

  function takeAnswer(result: ExchangeResult): void {
    pageAtMs = clock.nowMs();
    const isUp = isLocust(result);
    const mark = makeMark(scratch.bytes());
    // The same text is the one that Locust has kept: an older answer than the CSV, which may have seen a reset.
    const isNew = mark !== page.mark;
    if (!isUp) takeDown(findDoubt(result));
    else if (isNew) page = takePage(cutErrors(scratch.bytes()).toString(), mark);
    if (isRunning()) csvChangedAtMs = pageAtMs;
    readPageAgain(isNew);
    if (page.stats !== null || result.kind !== 'answered') return;
    const fields = { url: `${url.origin}${base}/stats/requests`, status: result.status };
    warnOnce({ id: isUp ? 'locustUnreadable' : 'locustError', fields });
  }

  function readPageAgain(isNew: boolean): void {
    if (isRunning()) {
      readPageIn(isNew ? PAGE_KEPT_MS : REUSE_MS);
    } else if (page.doubt !== null || (page.isUp && isCsvHurt)) {
      // A poll would come 20 s after one that took 5 s, and Locust may have recovered and ended by then.
      readPageIn(PAGE_KEPT_MS);
    }
  }

  function takeDown(doubt: string | null): void {
    if (page.isUp || page.doubt !== doubt) page = { ...DOWN, doubt };
  }

  /** Users may run, by the newest page. */
  function isRunning(): boolean {
    return isRunningState(page.stats?.state ?? null);
  }

  function warnOnce(entry: LogEntry): void {
    if (warned.has(entry.id)) return;
    warned.add(entry.id);
    parts.log(entry);
  }

  function takePage(text: string, mark: string): Page {
    const stats = readLocustStats(text);
    if (stats === null) return { ...DOWN, isUp: true, mark };
    memory.takeStats(stats);
    return { isUp: true, stats: { ...stats, rows: [], errors: [] }, mark, doubt: null };
  }

  /** With `--autoquit 0` Locust ends 2.5 s after its stop: nobody's poll can be waited for. */
  function readPageIn(ms: number): void {
    if (closing.signal.aborted) return;
    cancelPage();
    cancelPage = callAfter(clock, ms, async () => {
      await readPage();
      if (isCsvWanted() && clock.nowMs() >= csvDueAtMs) readCsv();
    });
  }

  function isCsvWanted(): boolean {
    if (!page.isUp || page.stats === null || page.stats.state === null) return false;
    return clock.nowMs() < endingUntilMs || !isRunningState(page.stats.state);
  }

  function readCsv(): Promise<void> {
    cancelCsv();
    const beganAtMs = clock.nowMs();
    comingCsv ??= get('/stats/requests/csv').then((result) => {
      comingCsv = null;
      const bytes = scratch.bytes();
      const mark = makeMark(bytes);
      const isNew = bytes.length > 0 && mark !== csvMark;
      if (isNew) {
        csvMark = mark;
        const rows = readLocustCsv(bytes, memory.isShown);
        if (rows !== null) memory.takeCsv(rows);
        answered = null;
      }
      // What it takes to read it counts as well: 10,000 rows are 0.2 s, in which nothing else is done.
      const nowMs = clock.nowMs();
      const ratio = isRunning() ? CSV_PAUSE_RATIO : 0;
      csvDueAtMs = nowMs + Math.max(CSV_PAUSE_MS, ratio * (nowMs - beganAtMs));
      if (isNew) csvChangedAtMs = nowMs;
      isCsvHurt = findDoubt(result) !== null;
      if (isCsvHurt) readPageIn(PAGE_KEPT_MS);
      const isThere = result.kind === 'answered' && result.status === 200;
      if (!isThere || closing.signal.aborted || nowMs - csvChangedAtMs > CSV_SAME_MS) return;
      cancelCsv = callAfter(clock, csvDueAtMs - nowMs, () => {
        if (isCsvWanted()) readCsv();
      });
    });
    return comingCsv;
  }

  /** Until all is as new as it has to be. */
  async function refresh(): Promise<void> {
    if (renewing !== null) return renewing;
    if (clock.nowMs() - pageAtMs >= REUSE_MS) await readPage();
    if (!isCsvWanted() || (comingCsv === null && clock.nowMs() < csvDueAtMs)) return;
    await waitUnless(readCsv(), { timeoutMs: CSV_WAIT_MS, clock });
  }

  /** Everything once more: what is on its way was asked for before, but what is late is not waited for. */
  function renew(): void {
    const csv = comingCsv === null ? null : waitUnless(comingCsv, { timeoutMs: TIMEOUT_MS, clock });
    const renewal = Promise.all([comingPage, csv]).then(() => {
      pageAtMs = Number.NEGATIVE_INFINITY;
      csvDueAtMs = Number.NEGATIVE_INFINITY;
      if (renewing === renewal) renewing = null;
      return refresh();
    });
    renewing = renewal;
  }

  /** Its samples are judged: every row counts. */
  function isSelected({ name }: Family): boolean {
    return parts.selectors?.some((selector) => selector.name === name) ?? false;
  }

  /** What is known now; the same again while nothing else is. */
  function answer(): LocustAnswer {
    if (answered?.page !== page) answered = { page, answer: makeAnswer(page) };
    return answered.answer;
  }

  /** The rows are what they are when somebody reads them. */
  function makeAnswer({ isUp, stats, doubt }: Page): LocustAnswer {
    const exposition = openExposition([upName, ...metricNames], parts.selectors);
    const families = new Set<string>();
    for (const family of memory.listFamilies(isUp, stats)) {
      const text = takeLines(family, isSelected(family) ? Number.POSITIVE_INFINITY : READ_LINES_COUNT);
      if (text !== '') families.add(family.name);
      exposition.write(Buffer.from(text));
    }
    // A total that was read above must not be a second sample to who judges it.
    for (const family of memory.listTotals()) {
      if (!isSelected(family)) exposition.write(Buffer.from(takeLines(family, READ_LINES_COUNT)));
    }
    const write = (push: (piece: Uint8Array) => void) => {
      let text = '';
      const flush = () => {
        push(encode(text));
        text = '';
      };
      for (const family of memory.listFamilies(isUp, stats)) {
        for (const line of listLines(family)) {
          text += line;
          if (text.length > PIECE_LENGTH) flush();
        }
      }
      flush();
    };
    const reading = makeReading(exposition.end());
    const metric = (name: string) =>
      doubt !== null && name === upName ? ({ kind: 'unknown', why: doubt } as const) : reading.metric(name);
    // The exporter shows 0 where Locust answers late, and so does this; but only a Locust that refuses has ended.
    return { body: makeWrittenBody({ families, write }), reading: { ...reading, metric } };
  }

  async function read(signal: AbortSignal, begin: (beginning: Beginning) => void): Promise<ExporterReading> {
    // Given up by whoever asked; what was asked of Locust goes on for the next one, for its connection must live.
    const refreshed = await waitFor(refresh(), { signal });
    if (refreshed.kind === 'pending') {
      const { why } = refreshed;
      begin({ kind: 'failed', why });
      return makeFailedReading(why, false);
    }
    const { body, reading } = answer();
    begin({ kind: 'answered', body });
    return reading;
  }

  return {
    isProcess: true,
    path: parts.path,
    read(signal) {
      const begun = Promise.withResolvers<Beginning>();
      return { ended: read(signal, begun.resolve), begun: begun.promise };
    },
    expectEnd() {
      endingUntilMs = clock.nowMs() + ENDING_MS;
      csvChangedAtMs = clock.nowMs();
      // At once: Locust may be gone before somebody reads.
      renew();
    },
    async close() {
      closing.abort('closed');
      cancelPage();
      cancelCsv();
      await exchange.close();
    },
  };
}

/** As the exporter sees it: any 2xx. It follows a redirect, which Locust answers where its page has a login. */
function isLocust(result: ExchangeResult): boolean {
  return result.kind === 'answered' && result.status >= 200 && result.status < 400;
}

/** Why nothing is known by it: it came late or not whole, and Locust may be there all the same. */
function findDoubt(result: ExchangeResult): string | null {
  if (result.kind === 'dropped') return 'the connection was closed';
  return result.kind === 'failed' ? result.why : null;
}

/** The first ones. */
function takeLines(family: Family, count: number): string {
  let text = '';
  let taken = 0;
  for (const line of listLines(family)) {
    text += line;
    taken++;
    if (taken === count) break;
  }
  return text;
}

const encoded = Buffer.allocUnsafeSlow(2 * PIECE_LENGTH);

/** Overwritten by the next. */
function encode(text: string): Uint8Array {
  return Buffer.byteLength(text) > encoded.length ? Buffer.from(text) : encoded.subarray(0, encoded.write(text));
}

/** That of other bytes is another one, but once in four billion times; never empty. */
function makeMark(bytes: Uint8Array): string {
  return `${bytes.length} ${crc32(bytes)}`;
}

type Scratch = {
  /** False: it is too long. */
  readonly write: (piece: Uint8Array) => boolean;
  readonly clear: () => void;
  /** What was written since; overwritten by the next. */
  readonly bytes: () => Buffer;
};

/** One buffer for many bodies, one after the other: V8 frees old buffers late. */
function openScratch(): Scratch {
  let buffer = Buffer.alloc(0);
  let sizeBytes = 0;
  return {
    write(piece) {
      const neededBytes = sizeBytes + piece.length;
      if (neededBytes > BODY_MAX_BYTES) return false;
      if (neededBytes > buffer.length) {
        const larger = Buffer.allocUnsafeSlow(Math.ceil(neededBytes * SPARE_RATIO));
        leave(buffer.length);
        larger.set(buffer.subarray(0, sizeBytes));
        buffer = larger;
      }
      buffer.set(piece, sizeBytes);
      leave(piece.length);
      sizeBytes = neededBytes;
      return true;
    },
    clear() {
      sizeBytes = 0;
    },
    bytes: () => buffer.subarray(0, sizeBytes),
  };
}
