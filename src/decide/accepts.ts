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
/** What came for it: nothing yet, another format than text; `useless`: text, none, or too much. */
export type RichPage = 'unknown' | 'kept' | 'useless';
/** An Accept is 8 KB or so at most, each with a page and polls of its own. */
export const ACCEPTS_MAX_COUNT = 4;
/** Of its own longest gaps; as with scrapers. */
const LIVING_GAPS = 2.5;
/** In use for at least this long: above usual intervals. */
const LIVING_MIN_MS = 300_000;

/** An Accept that a scraper sent. */
export type AcceptUse = { readonly accept: string; readonly lastAtMs: number; readonly longestGapMs: number };

/** What a request asks for; one that asks for anything gets what every scraper takes. */
export function readAccept(header: string | undefined): string {
  return header === undefined || /^\s*(?:\*\/\*\s*)?$/.test(header) ? TEXT_ACCEPT : header;
}

/** The uses after a scraper's request at `nowMs`: the newest first, at most four. */
export function useAccept(uses: readonly AcceptUse[], accept: string, nowMs: number): readonly AcceptUse[] {
  const known = uses.find((use) => use.accept === accept);
  const longestGapMs = known === undefined ? 0 : Math.max(known.longestGapMs, nowMs - known.lastAtMs);
  const others = uses.filter((use) => use !== known);
  return [{ accept, lastAtMs: nowMs, longestGapMs }, ...others].slice(0, ACCEPTS_MAX_COUNT);
}

/** Whose pages are kept, in the order of `useAccept`; before anybody scraped the rich one, and text. */
export function listAccepts(
  uses: readonly AcceptUse[],
  nowMs: number,
  isTextWanted: boolean,
  rich: RichPage = 'unknown',
): readonly string[] {
  const living = uses.filter(
    ({ lastAtMs, longestGapMs }) => nowMs - lastAtMs <= Math.max(LIVING_MIN_MS, LIVING_GAPS * longestGapMs),
  );
  const accepts = living.length > 0 ? living.map(({ accept }) => accept) : rich === 'useless' ? [] : [RICH_ACCEPT];
  const isText = living.length > 0 ? isTextWanted : rich !== 'unknown';
  return isText && !accepts.includes(TEXT_ACCEPT) ? [...accepts, TEXT_ACCEPT] : accepts;
}

/** Whether an Accept names a format, and with a weight. */
export function takesFormat(accept: string, format: keyof typeof RICH_TYPES): boolean {
  const entries = accept.toLowerCase().split(',');
  const named = entries.filter((entry) => entry.trimStart().startsWith(RICH_TYPES[format]));
  return named.some((entry) => !/;\s*q=0(?:\.0*)?\s*(?:;|$)/.test(entry));
}
