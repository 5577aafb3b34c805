// Locust's web page as the source, in the place of its exporter; `pace.ts` decides what is read and when.
// Like the exporter it answers when Locust is gone: `up` is 0 then, and the rows are as last seen.

import { crc32 } from 'node:zlib';
import type { ExchangeResult } from '../../base/net/exchange.ts';
import { callAfter, waitFor } from '../../base/waits.ts';
import { openExposition } from '../../exposition/exposition.ts';
import { joinLines, listLines } from '../../exposition/exposition-text.ts';
import type { ExporterReading } from '../../observe/condition-kind.ts';
import { makeReading } from '../../observe/exporter.ts';
import { makeWrittenBody } from '../../snapshot/body.ts';
import {
  type Beginning,
  openWarnings,
  readWhole,
  type Source,
  type SourceParts,
  type WholeAnswer,
} from '../sources/source.ts';
import { openLocustClient } from './client.ts';
import { readLocustCsv } from './csv.ts';
import { type LocustMemory, openLocustMemory } from './memory.ts';
import {
  type CsvEnd,
  findDoubt,
  isUp,
  PACE_START,
  type PaceEvent,
  type PaceState,
  type PageView,
  stepPace,
} from './pace.ts';
import { readLocustStats } from './page.ts';

/** `url`: of Locust's page; a path is the one of `--web-base-path`. */
export type LocustSourceParts = SourceParts & {
  /** What the names of the metrics begin with. */
  readonly namespace: string;
  /** Where the front serves them besides /metrics; null: nowhere. */
  readonly path: string | null;
  /** Headers for the page, `Name: value` each; null: none. */
  readonly headersFile: string | null;
};

const PAGE_PATH = '/stats/requests';

/** Opens the source; connects at the first read. It never refuses. */
export function openLocustSource(parts: LocustSourceParts): Source {
  const { clock, headersFile: file } = parts;
  const warnOnce = openWarnings(parts.log);
  const onHeadersUnreadable = (why: string) => warnOnce({ id: 'headersUnreadable', fields: { file, why } });
  const client = openLocustClient({ ...parts, onHeadersUnreadable });
  const memory = openLocustMemory(parts.namespace);
  const waiting: (() => void)[] = [];
  let pace = PACE_START;
  /** One body while nothing is new: a poll of a Locust that is gone need not write, pack and join 20 MB. */
  let answered: WholeAnswer | null = null;
  let isClosed = false;
  let cancelWake = () => {};

  function take(event: PaceEvent): void {
    if (isClosed) return;
    const atMs = clock.nowMs();
    const { state, readsPage, readsCsv, isAnswered, wakeAtMs } = stepPace(pace, event, atMs);
    if (state.view !== pace.view || state.csvMark !== pace.csvMark) answered = null;
    pace = state;
    cancelWake();
    if (Number.isFinite(wakeAtMs)) cancelWake = callAfter(clock, wakeAtMs - atMs, () => take({ kind: 'due' }));
    // The CSV first: it has the last numbers, and Locust may end before it has answered both.
    if (readsCsv) client.get(`${PAGE_PATH}/csv`, takeCsv);
    if (readsPage) client.get(PAGE_PATH, takePage);
    if (isAnswered) for (const answer of waiting.splice(0)) answer();
  }

  function takePage(result: ExchangeResult, body: Buffer): void {
    const view = readView(pace.view, memory, result, body);
    if (result.kind === 'answered' && view.kind !== 'stats') {
      const { origin, pathname } = parts.url;
      const fields = { url: origin + pathname.replace(/\/+$/, '') + PAGE_PATH, status: result.status };
      warnOnce({ id: view.kind === 'other' ? 'locustUnreadable' : 'locustError', fields });
    }
    take({ kind: 'page', view });
  }

  function takeCsv(result: ExchangeResult, body: Buffer): void {
    const mark = body.length === 0 ? '' : makeMark(body);
    const rows = mark === '' || mark === pace.csvMark ? null : readLocustCsv(body, memory.isShown);
    if (rows !== null) memory.takeCsv(rows);
    take({ kind: 'csv', end: findCsvEnd(result), mark });
  }

  async function read(signal: AbortSignal): Promise<Beginning<WholeAnswer>> {
    const fresh = new Promise<void>((resolve) => waiting.push(resolve));
    take({ kind: 'asked' });
    // What was asked of Locust goes on without its reader: the connection must live.
    const waited = await waitFor(fresh, { signal });
    if (waited.kind === 'pending') return { kind: 'failed', why: waited.why };
    answered ??= makeAnswer(pace, memory, parts);
    return { ...answered, isSourceUp: isUp(pace.view) };
  }

  return {
    path: parts.path,
    read: (signal) => readWhole(read(signal)),
    // Reads at once: Locust may be gone before the next reader.
    expectEnd: () => take({ kind: 'ending' }),
    async close() {
      isClosed = true;
      cancelWake();
      await client.close();
    },
  };
}

/** What the page shows; its rows go to the memory unless it is the page of `before`. */
function readView(before: PageView, memory: LocustMemory, result: ExchangeResult, body: Buffer): PageView {
  const why = findCut(result);
  if (why !== null) return { kind: 'unknown', why };
  if (result.kind !== 'answered' || result.status >= 400) return { kind: 'down' };
  const mark = makeMark(body);
  // Locust's cached page once more: the CSV is newer, and may have seen a reset.
  if (before.kind === 'stats' && before.mark === mark) return before;
  const read = readLocustStats(body.toString());
  if (read === null) return { kind: 'other' };
  memory.takeStats(read);
  return { kind: 'stats', state: read.state, mark };
}

/** The answer of what is known now: the exposition, written when read, and what the conditions see in it. */
function makeAnswer(pace: PaceState, memory: LocustMemory, parts: LocustSourceParts): WholeAnswer {
  const { namespace, metricNames, selectors = [] } = parts;
  const upName = `${namespace}_up`;
  const exposition = openExposition([upName, ...metricNames], selectors);
  const judged = new Set(selectors.map(({ name }) => name));
  const families = new Set<string>();
  for (const family of memory.listFamilies(pace.view.kind)) {
    const lines = listLines(family).take(judged.has(family.name) ? Number.POSITIVE_INFINITY : READ_LINES_COUNT);
    const text = [...lines].join('');
    if (text !== '') families.add(family.name);
    exposition.write(Buffer.from(text));
  }
  const body = makeWrittenBody(families, (push) => {
    for (const text of joinLines(memory.listFamilies(pace.view.kind).map(listLines))) push(encode(text));
  });
  const reading = makeReading({ ...exposition.end(), ...memory.readTotals() });
  const why = findDoubt(pace);
  if (why === null) return { kind: 'answered', body, reading };
  // Served as the exporter does; but a late Locust has not ended, and another program is not Locust.
  const metric: ExporterReading['metric'] = (name) =>
    name === upName ? { kind: 'unknown', why } : reading.metric(name);
  return { kind: 'answered', body, reading: { ...reading, metric } };
}

/** Why an answer is not there or not whole, though Locust may be; null where that is not so. */
function findCut(result: ExchangeResult): string | null {
  if (result.kind === 'dropped') return 'the connection was closed';
  return result.kind === 'failed' ? result.why : null;
}

function findCsvEnd(result: ExchangeResult): CsvEnd {
  if (findCut(result) !== null) return 'hurt';
  return result.kind === 'answered' && result.status === 200 ? 'whole' : 'other';
}

/** A checksum; two bodies collide once in 4 billion. Never empty. */
function makeMark(bytes: Uint8Array): string {
  return `${bytes.length} ${crc32(bytes)}`;
}

/** The header of a family and two samples: a condition needs no more. */
const READ_LINES_COUNT = 3;

const encoded = Buffer.allocUnsafeSlow(128 * 1024);

/** Overwritten by the next. */
function encode(text: string): Uint8Array {
  return Buffer.byteLength(text) > encoded.length ? Buffer.from(text) : encoded.subarray(0, encoded.write(text));
}
