// Reads the exporter: one GET at a time over one connection, the body streamed through the filter of wire/.
// Says what the answer was; decides nothing.

import { openExchange } from '../base/net/exchange.ts';
import { USER_AGENT } from '../base/version.ts';
import type { ExporterObservation } from '../decide/model.ts';
import { BODY_MAX_BYTES, type Exposition, openExposition } from '../exposition/exposition.ts';
import type { Selector } from '../exposition/selector.ts';
import type { ExporterReading } from './condition.ts';

/** The exporter's own scrapes queue behind its 5 s time-out towards Locust: three of them. */
export const READ_TIMEOUT_MS = 15_000;

const LINE_FEED = 0x0a;

export type Exporter = {
  /** Reads the exposition once; never rejects. */
  readonly read: (signal: AbortSignal) => Promise<ExporterReading>;
  readonly close: () => Promise<void>;
};

/** What takes an answer beside the filter, as it comes. */
export type Tap = {
  readonly write: (piece: Uint8Array) => void;
  /** It has come whole. */
  readonly end: (reading: ExporterReading) => void;
  /** It stays a part, or is none; `isRefused`: nothing listens there. */
  readonly breakOff: (isRefused: boolean) => void;
};

/** The reading of a poll that did not ask the exporter. */
export const NOT_READ: ExporterReading = unread({ kind: 'none' }, 'the exporter was not read');

/** The reading of an exporter that refused. */
export const REFUSED: ExporterReading = unread({ kind: 'refused' }, 'the exporter refuses connections');

/**
 * Opens the exporter at `url`; `metricNames` are the conditions' metrics, `selectors` what is judged. Connects at the first poll.
 * `openTap`: for each read; default: nobody wants the answer itself.
 */
export function openExporter(
  url: URL,
  metricNames: readonly string[],
  selectors: readonly Selector[] = [],
  openTap?: () => Tap,
): Exporter {
  const exchange = openExchange(url);
  return {
    close: exchange.close,
    async read(signal) {
      const exposition = openExposition(metricNames, selectors);
      const tap = openTap?.();
      let encoding = '';
      let hasEnd = true;
      let lastByte: number | undefined;
      const result = await exchange.send({
        method: 'GET',
        path: url.pathname + url.search,
        headers: READ_HEADERS,
        timeoutMs: READ_TIMEOUT_MS,
        signal,
        onAnswer(_, answered) {
          encoding = String(answered['content-encoding'] ?? '').trim();
          hasEnd = 'content-length' in answered || 'transfer-encoding' in answered;
        },
        onBody(piece) {
          exposition.write(piece);
          tap?.write(piece);
          lastByte = piece.at(-1) ?? lastByte;
          return exposition.sizeBytes <= BODY_MAX_BYTES;
        },
      });
      if (result.kind === 'answered' && result.status === 200 && isPlain(encoding)) {
        // Only the end of the connection ends it, which is also that of a program that was killed: no number that is cut is judged.
        const isCut = !hasEnd && lastByte !== LINE_FEED;
        const reading = makeReading(exposition.end(), !isCut);
        if (isCut) tap?.breakOff(false);
        else tap?.end(reading);
        return reading;
      }
      tap?.breakOff(result.kind === 'refused');
      switch (result.kind) {
        case 'refused':
          return REFUSED;
        case 'dropped':
          return makeFailedReading('the connection was closed', true);
        case 'failed':
          return makeFailedReading(result.why, result.wasSent && (result.status ?? 200) === 200);
        case 'answered':
          if (result.status !== 200) return makeFailedReading(`HTTP ${result.status}`, false);
          return makeFailedReading(`Content-Encoding ${encoding.slice(0, 40)}`, true);
      }
    },
  };
}

/** The headers of every read: always the text format, and no Accept-Encoding. */
export const READ_HEADERS: Readonly<Record<string, string>> = {
  accept: 'text/plain;version=0.0.4',
  'user-agent': USER_AGENT,
};

/** What an exposition shows that came whole; `canJudge`: its last line is whole as well, for all that is known. */
export function makeReading(
  { metrics, selected, hasRequests, scrapes, requests, failures, users, isFront }: Exposition,
  canJudge = true,
): ExporterReading {
  const totals = { requests, failures, users };
  const judged = canJudge && selected.length > 0 ? { thresholds: selected } : {};
  return {
    observation: { kind: 'answered', scrapes, totals, ...(isFront ? { isFront } : {}), ...judged },
    metric: (name) => metrics.get(name) ?? { kind: 'unknown', why: 'not asked for' },
    hasRequests,
  };
}

/** The reading of an answer that says nothing; `mayCount`: the exporter may have counted it as a scrape. */
export function makeFailedReading(why: string, mayCount: boolean): ExporterReading {
  return unread({ kind: 'failed', why, mayCount }, why);
}

/** Whether a body is as it was sent, by its Content-Encoding. Nobody asks for one: it is a proxy's mistake, or another program's. */
export function isPlain(encoding: string): boolean {
  return ['', 'identity'].includes(encoding.toLowerCase());
}

function unread(observation: ExporterObservation, why: string): ExporterReading {
  return { observation, metric: () => ({ kind: 'unknown', why }), hasRequests: false };
}
