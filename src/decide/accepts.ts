// Which formats scrapers ask for, by the Accept of their requests, byte for byte. Pure.

/** Asks for what every scraper takes. */
export const TEXT_ACCEPT = 'text/plain;version=0.0.4';
/** What the media types begin with that a newcomer may take instead of text. */
const RICH_TYPES = {
  protobuf: 'application/vnd.google.protobuf',
  openMetrics: 'application/openmetrics-text',
} as const;
/** For who comes only after the end: start times, native histograms, and names that all can read. */
export const RICH_ACCEPT = `${RICH_TYPES.protobuf};proto=io.prometheus.client.MetricFamily;encoding=delimited,${RICH_TYPES.openMetrics};version=1.0.0;q=0.8,${TEXT_ACCEPT};q=0.5`;
/** An Accept is 8 KB or so at most, each with a page and polls of its own. */
export const ACCEPTS_MAX_COUNT = 4;
/** Of its own longest gaps; as with scrapers. */
const LIVING_GAPS = 2.5;
/** In use for at least this long: above usual intervals. */
const LIVING_MIN_MS = 300_000;

/** An Accept that a scraper sent. `unreadableCount`: how often in a row the answer could not be read. */
export type AcceptUse = {
  readonly accept: string;
  readonly lastAtMs: number;
  readonly longestGapMs: number;
  readonly unreadableCount: number;
};

/** What a request asks for; one that asks for anything gets what every scraper takes. */
export function readAccept(header: string | undefined): string {
  return header === undefined || /^\s*(?:\*\/\*\s*)?$/.test(header) ? TEXT_ACCEPT : header;
}

/** The uses after a scraper's request at `nowMs`: the newest first, at most four. */
export function useAccept(uses: readonly AcceptUse[], accept: string, nowMs: number): readonly AcceptUse[] {
  const known = uses.find((use) => use.accept === accept);
  const longestGapMs = known === undefined ? 0 : Math.max(known.longestGapMs, nowMs - known.lastAtMs);
  const unreadableCount = known?.unreadableCount ?? 0;
  const others = uses.filter((use) => use !== known);
  return [{ accept, lastAtMs: nowMs, longestGapMs, unreadableCount }, ...others].slice(0, ACCEPTS_MAX_COUNT);
}

/** What is still asked for, in the order of `useAccept`. */
export function listLiving(uses: readonly AcceptUse[], nowMs: number): readonly string[] {
  const livingMs = ({ longestGapMs }: AcceptUse) => Math.max(LIVING_MIN_MS, LIVING_GAPS * longestGapMs);
  return uses.filter((use) => nowMs - use.lastAtMs <= livingMs(use)).map(({ accept }) => accept);
}

/** Whether an Accept names a format, and with a weight. */
export function takesFormat(accept: string, format: keyof typeof RICH_TYPES): boolean {
  const entries = accept.toLowerCase().split(',');
  const named = entries.filter((entry) => entry.trimStart().startsWith(RICH_TYPES[format]));
  return named.some((entry) => !/;\s*q=0(?:\.0*)?\s*(?:;|$)/.test(entry));
}
