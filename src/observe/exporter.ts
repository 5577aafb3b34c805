// Reads the exporter, and says what its answer shows the conditions; decides nothing.

import type { ExporterObservation } from '../decide/model.ts';
import { READ_TIMEOUT_MS } from '../decide/serve/reads.ts';
import { type Exposition, openExposition, type Selector } from '../exposition/exposition.ts';
import type { PageType } from '../exposition/format.ts';
import type { ExporterReading } from './condition-kind.ts';
import { type GetterParts, openExpositionGetter } from './get-exposition.ts';

/** An answer that has begun. `isSourceUp`: whether the program itself answered. Default: true. */
export type BegunRead = { readonly kind: 'answered'; readonly isSourceUp?: boolean };

/** How a read began: its answer has begun, nothing is there, or no answer will come. */
export type Beginning<SomeAnswer extends BegunRead> =
  | SomeAnswer
  | { readonly kind: 'refused' }
  | { readonly kind: 'failed'; readonly why: string };

/** A read that goes on. */
export type SourceRead<SomeAnswer extends BegunRead> = {
  /** Never rejects. */
  readonly begun: Promise<Beginning<SomeAnswer>>;
  /** What the answer shows, once it has ended. Never rejects. */
  readonly ended: Promise<ExporterReading>;
};

/**
 * What observations read.
 *
 *     const exporter = openExporter(new URL('http://localhost:9646/metrics'), ['locust_up']);
 *     const reading = await exporter.read(signal).ended;   // reading.metric('locust_up')
 */
export type Exporter = {
  /** Reads the exposition once; never rejects. */
  readonly read: (signal: AbortSignal) => SourceRead<BegunRead>;
  readonly close: () => Promise<void>;
};

/** The reading of a poll that did not ask the exporter. */
export const NOT_READ: ExporterReading = unread({ kind: 'none' }, 'the exporter was not read');
/** The reading of an exporter that refused. */
export const REFUSED: ExporterReading = unread({ kind: 'refused' }, 'the exporter refuses connections');

/** Opens the exporter; connects at the first read. */
export function openExporter(
  url: URL,
  metricNames: readonly string[],
  selectors: readonly Selector[] = [],
  options: Pick<GetterParts, 'clock'> = {},
): Exporter {
  const getter = openExpositionGetter({ url, isForServing: false, ...options });
  async function read(signal: AbortSignal, begin: (beginning: Beginning<BegunRead>) => void): Promise<ExporterReading> {
    let exposition = openExposition(metricNames, selectors);
    const onHead = (head: PageType | string) => {
      begin({ kind: 'answered' });
      if (typeof head === 'string' || head.format === 'text') return;
      exposition = openExposition(metricNames, selectors, head.format);
    };
    const write = (piece: Uint8Array) => exposition.write(piece);
    const result = await getter.get({ timeoutMs: READ_TIMEOUT_MS, signal }, { begin: onHead, write });
    if (result.kind !== 'answered') begin(result);
    if (result.kind === 'refused') return REFUSED;
    if (result.kind === 'failed') return makeFailedReading(result.why, result.mayCount);
    if (!result.isCut) return makeReading(exposition.end(), result.mayBeCut);
    // No number that may be cut is judged.
    return makeReading({ ...exposition.end(), selected: [] });
  }
  return {
    close: getter.close,
    read(signal) {
      const begun = Promise.withResolvers<Beginning<BegunRead>>();
      return { begun: begun.promise, ended: read(signal, begun.resolve) };
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
