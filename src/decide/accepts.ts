// Which formats scrapers ask for, by the Accept of their requests, byte for byte. Pure.

/** Asks for what every scraper takes. */
export const TEXT_ACCEPT = 'text/plain;version=0.0.4';
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

/** Whose pages are kept, in the order of `useAccept`; also text if there is no other, or it is wanted. */
export function listAccepts(uses: readonly AcceptUse[], nowMs: number, isTextWanted: boolean): readonly string[] {
  const living = uses.filter(
    ({ lastAtMs, longestGapMs }) => nowMs - lastAtMs <= Math.max(LIVING_MIN_MS, LIVING_GAPS * longestGapMs),
  );
  const accepts = living.map(({ accept }) => accept);
  const isText = accepts.length === 0 || (isTextWanted && !accepts.includes(TEXT_ACCEPT));
  return isText ? [...accepts, TEXT_ACCEPT] : accepts;
}
