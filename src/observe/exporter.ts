// Reads the exporter, and says what its answer shows the conditions; decides nothing.

import type { ExporterObservation } from '../decide/model.ts';
import { READ_TIMEOUT_MS } from '../decide/serve/reads.ts';
import { type Exposition, openExposition, type Selector } from '../exposition/exposition.ts';
import type { PageType } from '../exposition/format.ts';
import type { ExporterReading } from './condition-kind.ts';
import { openExpositionGetter } from './get-exposition.ts';

export type Exporter = ReturnType<typeof openExporter>;

/** Takes a copy of an answer, as it comes. */
type Tap = {
  readonly begin: (type: PageType) => void;
  readonly write: (piece: Uint8Array) => void;
  /** The answer is whole. */
  readonly end: (reading: ExporterReading) => void;
  /** The answer is cut or missing; `isRefused`: nothing listens there. */
  readonly breakOff: (isRefused: boolean) => void;
};

/** The reading of a poll that did not ask the exporter. */
export const NOT_READ: ExporterReading = unread({ kind: 'none' }, 'the exporter was not read');
/** The reading of an exporter that refused. */
export const REFUSED: ExporterReading = unread({ kind: 'refused' }, 'the exporter refuses connections');

/** Opens the exporter; connects at the first poll. `openTap`: for each read. */
export function openExporter(
  url: URL,
  metricNames: readonly string[],
  selectors: readonly Selector[] = [],
  openTap?: () => Tap,
) {
  const getter = openExpositionGetter({ url, isForServing: false });
  return {
    close: getter.close,
    /** Reads the exposition once; never rejects. */
    async read(signal: AbortSignal): Promise<ExporterReading> {
      const tap = openTap?.();
      let exposition = openExposition(metricNames, selectors);
      const begin = (head: PageType | string) => {
        if (typeof head === 'string') return;
        if (head.format !== 'text') exposition = openExposition(metricNames, selectors, head.format);
        tap?.begin(head);
      };
      const write = (piece: Uint8Array) => {
        exposition.write(piece);
        tap?.write(piece);
      };
      const result = await getter.get({ timeoutMs: READ_TIMEOUT_MS, signal }, { begin, write });
      if (result.kind === 'answered' && !result.isCut) {
        const reading = makeReading(exposition.end(), result.mayBeCut);
        tap?.end(reading);
        return reading;
      }
      tap?.breakOff(result.kind === 'refused');
      if (result.kind === 'refused') return REFUSED;
      if (result.kind === 'failed') return makeFailedReading(result.why, result.mayCount);
      // No number that may be cut is judged.
      return makeReading({ ...exposition.end(), selected: [] });
    },
  };
}

/** What a whole exposition shows. */
export function makeReading(exposition: Exposition, mayBeCut = false): ExporterReading {
  const { metrics, selected, hasRequests, scrapes, requests, failures, users, isFront } = exposition;
  const totals = { requests, failures, users };
  const judged = selected.length > 0 ? { thresholds: selected } : {};
  return {
    observation: { kind: 'answered', scrapes, totals, ...(isFront ? { isFront } : {}), ...judged },
    metric: (name) => metrics.get(name) ?? { kind: 'unknown', why: 'not asked for' },
    hasRequests,
    ...(mayBeCut ? { mayBeCut } : {}),
  };
}

/** The reading of an answer that shows nothing; `mayCount`: the exporter may have counted it as a scrape. */
export function makeFailedReading(why: string, mayCount: boolean): ExporterReading {
  return unread({ kind: 'failed', why, mayCount }, why);
}

function unread(observation: ExporterObservation, why: string): ExporterReading {
  return { observation, metric: () => ({ kind: 'unknown', why }), hasRequests: false };
}
