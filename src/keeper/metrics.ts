// The keeper's own page, for Prometheus. Pure.

import { VERSION } from '../base/version.ts';
import { REFUSALS, type Refusal } from '../decide/keep/keep.ts';
import { listLines, type Sample } from '../exposition/exposition-text.ts';

/** How often each reason refused a hand-over. */
export type RefusedCounts = Readonly<Partial<Record<Refusal, number>>>;

/** What is counted: counters since the start. */
const FAMILIES = {
  info: 'The version of this keeper.',
  pages: 'Pages that are kept, those included that are no longer listed as targets.',
  pages_limit: 'How many pages are kept at most.',
  pages_listed: 'Pages that are listed as targets.',
  bytes: 'Bytes of all pages in the folder.',
  bytes_limit: 'How many bytes are kept at most.',
  handed_over_total: 'Hand-overs taken.',
  withdrawn_total: 'Pages taken back by their pods, since main ran again.',
  scraped_total: 'Pages that every Prometheus has scraped, as far as it was to.',
  expired_total: 'Pages that nothing scraped for an hour.',
  corrupt_total: 'Pages that could not be read back.',
  refused_total: 'Hand-overs refused: their pods hold.',
  oldest_page_timestamp_seconds: 'When the page was taken that is listed for longest; absent where none is listed.',
} as const;

/** The number of each family; null: it has none now. */
export type KeptCounts = Readonly<Record<Exclude<keyof typeof FAMILIES, 'refused_total' | 'info'>, number | null>>;

/** The page as text 0.0.4, without its last line's end. */
export function formatKeeperMetrics(kept: KeptCounts, refused: RefusedCounts): string {
  const counts: Readonly<Record<string, number | null>> = { ...kept };
  const labelled: Readonly<Record<string, readonly Sample[]>> = {
    info: [{ labels: `{version="${VERSION}"}`, value: 1 }],
    refused_total: (Object.keys(REFUSALS) as Refusal[]).map((reason) => {
      return { labels: `{reason="${reason}"}`, value: refused[reason] ?? 0 };
    }),
  };
  const families = Object.entries(FAMILIES).map(([name, help]) => {
    const value = counts[name] ?? null;
    const samples = labelled[name] ?? (value === null ? [] : [{ labels: '', value }]);
    const type = name.endsWith('_total') ? 'counter' : 'gauge';
    return [...listLines({ name: `lastscrape_keeper_${name}`, help, type, samples })].join('');
  });
  return families.join('').trimEnd();
}
