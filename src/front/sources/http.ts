// A program's own /metrics as the source: its body is handed on as it comes, and looked at afterwards.

import { openExposition, type Selector } from '../../exposition/exposition.ts';
import { openReadableCheck } from '../../exposition/readable.ts';
import type { ExporterReading } from '../../observe/condition-kind.ts';
import { makeFailedReading, makeReading, REFUSED } from '../../observe/exporter.ts';
import { type ExpositionGetter, type GetterParts, openExpositionGetter } from '../../observe/get-exposition.ts';
import { type BodyEnd, type OpenBody, openBody, readInTurns } from '../../snapshot/body.ts';
import type { Beginning, Source } from './source.ts';

/** `metricNames`: the conditions' metrics. `selectors`: what is judged. Connects at the first read. */
export function openHttpSource(
  url: URL,
  metricNames: readonly string[],
  selectors: readonly Selector[] = [],
  open?: GetterParts['open'],
): Source {
  const parts: GetterParts = { url, isForServing: true, ...(open && { open }) };
  /** At most one: where two reads ran at a time, one connection is enough afterwards. */
  const idle: ExpositionGetter[] = [];
  /** The newest page and what it shows: one with the same bytes is not looked at again. */
  let known: { readonly page: OpenBody; readonly reading: Promise<ExporterReading> } | null = null;

  async function readWith(signal: AbortSignal, begin: (beginning: Beginning) => void): Promise<ExporterReading> {
    const getter = idle.pop() ?? openExpositionGetter(parts);
    const reading = await read(getter, signal, begin);
    if (idle.length === 0) idle.push(getter);
    else await getter.close();
    return reading;
  }

  async function read(
    getter: ExpositionGetter,
    signal: AbortSignal,
    begin: (beginning: Beginning) => void,
  ): Promise<ExporterReading> {
    const page = openBody({ isChecked: false });
    const fail = (why: string, mayCount: boolean) => {
      page.breakOff(why);
      begin({ kind: 'failed', why });
      return makeFailedReading(why, mayCount);
    };
    const onHead = (why: string | null) =>
      begin(why === null ? { kind: 'answered', body: page.body } : { kind: 'failed', why });
    const result = await getter.get({ signal }, { begin: onHead, write: page.pass });
    if (result.kind === 'refused') {
      begin({ kind: 'refused' });
      return REFUSED;
    }
    if (result.kind === 'failed') return fail(result.why, result.mayCount);
    // A number that may be cut must not be served.
    if (result.isCut) return fail('the connection was closed within a line', true);
    const shown = Promise.withResolvers<ExporterReading>();
    const isKnown = page.endUnchecked(known?.page ?? null, () => inspect(page, shown.resolve));
    if (!isKnown || known === null) known = { page, reading: shown.promise };
    const { mayBeCut } = result;
    return { ...(await known.reading), ...(mayBeCut && { mayBeCut }) };
  }

  /** Reads all of a page, in turns: its answer is on its way. */
  async function inspect({ body }: OpenBody, show: (reading: ExporterReading) => void): Promise<BodyEnd> {
    const check = openReadableCheck();
    const exposition = openExposition(metricNames, selectors);
    for await (const piece of readInTurns(body.read())) {
      check.write(piece);
      exposition.write(piece);
    }
    show(makeReading(exposition.end()));
    const found = check.end();
    return found.isReadable ? { kind: 'whole' } : { kind: 'unreadable', why: found.why };
  }

  return {
    path: url.pathname === '/metrics' ? null : url.pathname,
    close: async () => idle.pop()?.close(),
    read(signal) {
      const begun = Promise.withResolvers<Beginning>();
      return { ended: readWith(signal, begun.resolve), begun: begun.promise };
    },
  };
}
