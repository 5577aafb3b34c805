// The keeper's own page, for Prometheus. Pure.

import { VERSION } from '../base/version.ts';
import { type KeepLimits, REFUSALS, type Refusal } from '../decide/keep/keep.ts';

/** How often each reason refused a hand-over. */
export type RefusedCounts = Readonly<Partial<Record<Refusal, number>>>;

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
  oldest_page_timestamp_seconds: 'When the page was taken that is listed for longest; absent where none is listed.',
} as const;

/** The number of each family; null: it has none now. */
export type KeptCounts = Readonly<Record<keyof typeof FAMILIES, number | null>>;

/** The page as text 0.0.4, without its last line's end. */
export function formatKeeperMetrics(kept: KeptCounts, refused: RefusedCounts, limits: KeepLimits): string {
  const reasons = Object.keys(REFUSALS) as Refusal[];
  const counted = Object.entries(FAMILIES).map(([name, help]) => {
    const value = kept[name as keyof KeptCounts];
    return [name, help, value === null ? [] : [['', value]]] as const;
  });
  const refusals = reasons.map((reason) => [`{reason="${reason}"}`, refused[reason] ?? 0] as const);
  return [
    ['info', 'The version of this keeper.', [[`{version="${VERSION}"}`, 1]]] as const,
    ['pages_limit', 'How many pages are kept at most.', [['', limits.maxPages]]] as const,
    ['bytes_limit', 'How many bytes are kept at most.', [['', limits.maxBytes]]] as const,
    ...counted,
    ['refused_total', 'Hand-overs refused: their pods hold.', refusals] as const,
  ]
    .filter(([, , samples]) => samples.length > 0)
    .map(([name, help, samples]) => {
      const full = `lastscrape_keeper_${name}`;
      const type = name.endsWith('_total') ? 'counter' : 'gauge';
      const lines = samples.map(([labels, value]) => `${full}${labels} ${value}\n`);
      return `# HELP ${full} ${help}\n# TYPE ${full} ${type}\n${lines.join('')}`;
    })
    .join('')
    .trimEnd();
}
