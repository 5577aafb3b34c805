// The keeper's own page, for Prometheus. Pure.

import { VERSION } from '../base/version.ts';
import { type KeepLimits, REFUSALS, type Refusal } from '../decide/keep/keep.ts';
import type { KeptCounts } from './pages.ts';

/** How often each reason refused a hand-over. */
export type RefusedCounts = Readonly<Partial<Record<Refusal, number>>>;

/** The page as text 0.0.4. */
export function formatKeeperMetrics(kept: KeptCounts, refused: RefusedCounts, limits: KeepLimits): string {
  const reasons = Object.keys(REFUSALS) as Refusal[];
  return [
    family('info', 'gauge', 'The version of this keeper.', [[`{version="${VERSION}"}`, 1]]),
    family('pages', 'gauge', 'Pages that are kept, those included that are no longer listed as targets.', [
      ['', kept.pagesCount],
    ]),
    family('pages_listed', 'gauge', 'Pages that are listed as targets.', [['', kept.listedCount]]),
    family('pages_limit', 'gauge', 'How many pages are kept at most.', [['', limits.maxPages]]),
    family('bytes', 'gauge', 'Bytes of all pages in the folder.', [['', kept.sizeBytes]]),
    family('bytes_limit', 'gauge', 'How many bytes are kept at most.', [['', limits.maxBytes]]),
    family('handed_over_total', 'counter', 'Hand-overs taken since the start.', [['', kept.handedOverCount]]),
    family('scraped_total', 'counter', 'Pages that every Prometheus has scraped, as far as it was to.', [
      ['', kept.ends.taken],
    ]),
    family('expired_total', 'counter', 'Pages that nothing scraped for an hour.', [['', kept.ends.expired]]),
    family('corrupt_total', 'counter', 'Pages that could not be read back.', [['', kept.corruptCount]]),
    family(
      'refused_total',
      'counter',
      'Hand-overs refused: their pods hold.',
      reasons.map((reason) => [`{reason="${reason}"}`, refused[reason] ?? 0]),
    ),
    family(
      'oldest_page_timestamp_seconds',
      'gauge',
      'When main ended whose page is listed for longest; absent where none is listed.',
      kept.oldestSeconds === null ? [] : [['', kept.oldestSeconds]],
    ),
  ].join('');
}

function family(
  name: string,
  type: 'counter' | 'gauge',
  help: string,
  samples: readonly (readonly [labels: string, value: number])[],
): string {
  const full = `lastscrape_keeper_${name}`;
  const lines = samples.map(([labels, value]) => `${full}${labels} ${value}\n`);
  return lines.length === 0 ? '' : `# HELP ${full} ${help}\n# TYPE ${full} ${type}\n${lines.join('')}`;
}
