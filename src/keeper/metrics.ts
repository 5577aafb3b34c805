// The keeper's own page, for Prometheus. Pure.

import { listLines } from '../exposition/exposition-text.ts';

/** What is counted: counters since the start. */
const FAMILIES = {
  pages: 'Pages that are kept, those included that are no longer listed as targets.',
  pages_listed: 'Pages that are listed as targets.',
  bytes: 'Bytes of all pages in the folder.',
  handed_over_total: 'Hand-overs taken.',
  withdrawn_total: 'Pages taken back by their pods, since main ran again.',
  scraped_total: 'Pages that every Prometheus has scraped, as far as it was to.',
  expired_total: 'Pages that nothing scraped for an hour.',
  corrupt_total: 'Pages that could not be read back.',
  refused_total: 'Hand-overs refused: their pods hold.',
  oldest_page_timestamp_seconds: 'When the page was taken that is listed for longest; absent where none is listed.',
} as const;

/** The page as text 0.0.4, without its last line's end; a family whose number is Infinity has none now. */
export function formatKeeperMetrics(kept: Record<keyof typeof FAMILIES, number | Record<string, number>>): string {
  const families = Object.entries(FAMILIES).flatMap(([key, help]) => {
    const value = kept[key as keyof typeof FAMILIES];
    const reasons = Object.entries(value).map(([name, count]) => ({ labels: `{reason="${name}"}`, value: count }));
    const samples = typeof value !== 'number' ? reasons : Number.isFinite(value) ? [{ labels: '', value }] : [];
    const type = key.endsWith('_total') ? 'counter' : 'gauge';
    return [...listLines({ name: `lastscrape_keeper_${key}`, help, type, samples })];
  });
  return families.join('').trimEnd();
}
