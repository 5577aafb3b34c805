// A program's own /metrics as the source: its body is handed on as it comes, and looked at afterwards.

import type { Dial } from '../../base/net/exchange.ts';
import { splitAccept, TEXT_ACCEPT } from '../../decide/serve/budget.ts';
import { ACCEPTS_MAX_COUNT } from '../../decide/serve/pages.ts';
import { chooseReading, type ExpositionReader, openExposition, type Selector } from '../../exposition/exposition.ts';
import type { PageType } from '../../exposition/format.ts';
import { readNumber } from '../../exposition/protobuf-messages.ts';
import { openReadableCheck } from '../../exposition/readable.ts';
import type { FoundSample } from '../../exposition/sample-filter.ts';
import type { ExporterReading } from '../../observe/condition-kind.ts';
import { makeFailedReading, makeReading, REFUSED } from '../../observe/exporter.ts';
import { type ExpositionGetter, type GetterParts, openExpositionGetter } from '../../observe/get-exposition.ts';
import { type BodyEnd, type OpenBody, openBody, readInTurns } from '../../snapshot/body.ts';
import type { Beginning, Source } from './source.ts';

/** When the program began: the clients for Go, Java, Node and Python all show it, unless told otherwise. */
export const START_METRIC = 'process_start_time_seconds';

/** Loopback answers at once. */
const LOOK_TIMEOUT_MS = 250;

/** A page up to this size is remembered next to others, a larger one alone. */
const KNOWN_MAX_BYTES = 4 * 1024 * 1024;

/**
 * `metricNames`: the conditions' metrics. `selectors`: what is judged. `options`: how it is asked. Connects
 * at the first read.
 */
export function openHttpSource(
  url: URL,
  metricNames: readonly string[],
  selectors: readonly Selector[] = [],
  { connect, ...options }: Partial<Pick<GetterParts, 'open' | 'isForServing' | 'clock'>> & { connect?: Dial } = {},
): Source {
  const parts: GetterParts = { url, isForServing: true, ...options };
  /** At most one: where two reads ran at a time, one connection is enough afterwards. */
  const idle: ExpositionGetter[] = [];
  /** The newest pages by their Accept, and what they show: one with the same bytes is not looked at again. */
  const known = new Map<string, { readonly page: OpenBody; readonly reading: Promise<ExporterReading> }>();

  async function read(
    signal: AbortSignal,
    accept: string,
    begin: (beginning: Beginning) => void,
  ): Promise<ExporterReading> {
    let page = openBody();
    const fail = (why: string, mayCount: boolean) => {
      page.breakOff(why);
      begin({ kind: 'failed', why });
      return makeFailedReading(why, mayCount);
    };
    const onHead = (head: PageType | string) => {
      if (typeof head === 'string') return begin({ kind: 'failed', why: head });
      page = openBody(head);
      begin({ kind: 'answered', body: page.body });
    };
    const sink = { begin: onHead, write: (piece: Uint8Array) => page.push(piece) };
    const getter = idle.pop() ?? openExpositionGetter(parts);
    const result = await getter.get({ signal }, sink, accept);
    if (idle.length === 0) idle.push(getter);
    else await getter.close();
    if (result.kind === 'refused') {
      begin({ kind: 'refused' });
      return REFUSED;
    }
    if (result.kind === 'failed') return fail(result.why, result.mayCount);
    const { format } = page.body.type;
    // A number that may be cut must not be served. Where other formats are cut shows when they are looked at.
    if (format === 'text' && result.isCut) return fail('the connection was closed within a line', true);
    const shown = Promise.withResolvers<ExporterReading>();
    const before = known.get(accept);
    const isKnown = page.endUnchecked(before?.page ?? null, () =>
      inspect(page, openExposition(metricNames, selectors, format), shown.resolve),
    );
    if (!isKnown) remember(accept, page, shown.promise);
    const reading = await (isKnown ? before?.reading : shown.promise);
    // Where both are read, the text says what is judged: labels such as `le` differ.
    const isOther = format !== 'text' && splitAccept(accept).formats !== TEXT_ACCEPT;
    return { ...(reading as ExporterReading), ...(result.mayBeCut && { mayBeCut: true }), ...(isOther && { isOther }) };
  }

  function remember(accept: string, page: OpenBody, reading: Promise<ExporterReading>): void {
    known.delete(accept);
    // A large one alone, else those of the Accepts that may be in use.
    if (page.body.sizeBytes > KNOWN_MAX_BYTES || known.size === ACCEPTS_MAX_COUNT) known.clear();
    known.set(accept, { page, reading });
  }

  const closeIdle = async () => idle.pop()?.close();
  return {
    path: url.pathname === '/metrics' ? null : url.pathname,
    close: closeIdle,
    rest: closeIdle,
    ...(connect && {
      async isGone() {
        const result = await connect(url.hostname, Number(url.port || 80), { timeoutMs: LOOK_TIMEOUT_MS });
        if (result.kind === 'open') result.socket.destroy();
        return result.kind === 'refused';
      },
    }),
    takesAccept: true,
    read(signal, accept = TEXT_ACCEPT) {
      const begun = Promise.withResolvers<Beginning>();
      return { ended: read(signal, accept, begun.resolve), begun: begun.promise };
    },
  };
}

/** Reads all of a page, in turns: its answer is on its way. */
async function inspect(
  { body }: OpenBody,
  exposition: ExpositionReader,
  show: (reading: ExporterReading) => void,
): Promise<BodyEnd> {
  const { format } = body.type;
  const started: (FoundSample | null)[] = [];
  const take = (metric: Buffer) => {
    const value = readNumber(metric);
    started.push(value === null ? null : { labels: [], value });
  };
  const check = openReadableCheck(format, { wanted: { family: START_METRIC, take } });
  for await (const piece of readInTurns(body.read())) {
    check.write(piece);
    if (format !== 'protobuf') exposition.write(piece);
  }
  const shown = exposition.end();
  const own = format === 'protobuf' ? ([[START_METRIC, chooseReading(started)]] as const) : [];
  show(makeReading({ ...shown, metrics: new Map([...shown.metrics, ...own]) }));
  const why = check.end();
  return why === null ? { kind: 'whole' } : { kind: 'unreadable', why };
}
