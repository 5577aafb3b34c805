// A program's own /metrics as the source: its body is handed on as it comes.

import type { Selector } from '../../exposition/exposition.ts';
import type { ExporterReading } from '../../observe/condition-kind.ts';
import { makeFailedReading, makeReading, REFUSED } from '../../observe/exporter.ts';
import { type ExpositionGetter, type GetterParts, openExpositionGetter } from '../../observe/get-exposition.ts';
import { openBody } from '../../snapshot/body.ts';
import type { Beginning, Source } from './source.ts';

/** `metricNames`: the conditions' metrics. `selectors`: what is judged. Connects at the first read. */
export function openHttpSource(
  url: URL,
  metricNames: readonly string[],
  selectors: readonly Selector[] = [],
  open?: GetterParts['open'],
): Source {
  const parts: GetterParts = { url, metricNames, selectors, isForServing: true, ...(open && { open }) };
  /** At most one: where two reads ran at a time, one connection is enough afterwards. */
  const idle: ExpositionGetter[] = [];

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
    const { body, push, end, breakOff } = openBody();
    const fail = (why: string, mayCount: boolean) => {
      breakOff(why);
      begin({ kind: 'failed', why });
      return makeFailedReading(why, mayCount);
    };
    const onHead = (why: string | null) => begin(why === null ? { kind: 'answered', body } : { kind: 'failed', why });
    const result = await getter.get({ signal }, { begin: onHead, write: push });
    if (result.kind === 'refused') {
      begin({ kind: 'refused' });
      return REFUSED;
    }
    if (result.kind === 'failed') return fail(result.why, result.mayCount);
    // A number that may be cut must not be served.
    if (result.isCut) return fail('the connection was closed within a line', true);
    end();
    return makeReading(result.exposition, result.mayBeCut);
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
