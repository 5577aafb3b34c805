// lastscrape's own families in the text format, which the front appends to those of the source. Pure.

import { VERSION } from '../base/version.ts';

/** The values of the families; times are seconds since 1970. */
export type OwnValues = {
  /** The source answered the read for this scrape. */
  readonly isSourceUp: boolean;
  readonly isMainEnded: boolean;
  /** null while unknown. */
  readonly mainEndSeconds: number | null;
  /** When the served page was read from the source; null if none was. */
  readonly snapshotSeconds: number | null;
  /** Scrapes handed over whole, to scrapers that count. */
  readonly scrapesCount: number;
};

type Family = {
  readonly name: string;
  readonly type: 'gauge' | 'counter';
  readonly help: string;
  /** The value, after its labels if any; null leaves the family out. */
  readonly read: (values: OwnValues) => string | null;
};

/** Every family; a new one is a row here, and one in docs/front.md. */
const FAMILIES: readonly Family[] = [
  {
    name: 'lastscrape_source_up',
    type: 'gauge',
    help: 'Whether the source answered the read for this scrape.',
    read: ({ isSourceUp }) => ` ${Number(isSourceUp)}`,
  },
  {
    name: 'lastscrape_main_ended',
    type: 'gauge',
    help: 'Whether main has ended.',
    read: ({ isMainEnded }) => ` ${Number(isMainEnded)}`,
  },
  {
    name: 'lastscrape_main_end_timestamp_seconds',
    type: 'gauge',
    help: 'When main was first seen to have ended, in seconds since 1970.',
    read: ({ mainEndSeconds }) => (mainEndSeconds === null ? null : ` ${mainEndSeconds}`),
  },
  {
    name: 'lastscrape_snapshot_timestamp_seconds',
    type: 'gauge',
    help: 'When what is served here was read from the source, in seconds since 1970.',
    read: ({ snapshotSeconds }) => (snapshotSeconds === null ? null : ` ${snapshotSeconds}`),
  },
  {
    name: 'lastscrape_scrapes_total',
    type: 'counter',
    help: 'Scrapes through the front that were handed over whole.',
    read: ({ scrapesCount }) => ` ${scrapesCount}`,
  },
  {
    name: 'lastscrape_build_info',
    type: 'gauge',
    help: 'The version of lastscrape; always 1.',
    read: () => `{version="${VERSION}"} 1`,
  },
];

/** How all the names begin: a body without this text has none of them. */
export const OWN_PREFIX = 'lastscrape_';

/** The families as text, without those that the source has itself. */
export function formatOwnFamilies(values: OwnValues, sourceFamilies: ReadonlySet<string>): string {
  return FAMILIES.map(({ name, type, help, read }) => {
    const value = sourceFamilies.has(name) ? null : read(values);
    return value === null ? '' : `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name}${value}\n`;
  }).join('');
}
