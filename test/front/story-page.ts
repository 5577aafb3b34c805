// What a scraper of a story got, in one line.

import type { ServedScrape } from '../../src/decide/serve/scrapers.ts';
import { readPageType } from '../../src/exposition/format.ts';
import { openReadableCheck } from '../../src/exposition/readable.ts';
import type { Snapshot } from '../../src/snapshot/snapshot.ts';
import { readPieces } from '../support/pieces.ts';
import { readPageBytes, TYPES, writeFamily } from './simulation/page.ts';

/**
 * `countedCounts`: answers that counted when it was asked for, and before it counted itself. `scrape`: as it was
 * reported; absent: it was not.
 */
type Served = {
  readonly atMs: number;
  readonly countedCounts: readonly [number, number];
  readonly scrape: ServedScrape | undefined;
};

/** What was served, those of our own families that do not say the usual, and the page without them. */
export function describePage(contentType: string, bytes: Buffer, { atMs, countedCounts, scrape }: Served): string {
  const format = readPageType(contentType)?.format ?? 'text';
  const check = openReadableCheck(format);
  check.write(bytes);
  const why = check.end();
  const page = readPageBytes(format, bytes) ?? new Map<string, number>();
  const own = new Map([...page].filter(([name]) => name.startsWith('lastscrape_')));
  const [least, most] = countedCounts;
  const isUsual: Readonly<Record<string, (value: number) => boolean>> = {
    source_up: (value) => value === 1,
    main_ended: (value) => value === 0,
    snapshot_timestamp_seconds: (value) => value === atMs / 1_000,
    scrapes_total: (value) => least <= value && value <= most,
  };
  const names = [...own.keys()].map((name) => name.slice('lastscrape_'.length)).filter((name) => !name.includes('{'));
  const values = [...new Set([...Object.keys(isUsual), ...names])].flatMap((name) => {
    const value = own.get(`lastscrape_${name}`);
    if (value !== undefined && isUsual[name]?.(value)) return [];
    return `${name} ${value ?? 'missing'}`;
  });
  const unusual = [...(contentType === TYPES[format] ? [] : [`type ${contentType}`]), ...values];
  const kind = `${describeServed(scrape, own)}${why === null ? '' : ' unreadable'}${format === 'text' ? '' : ` ${format}`}`;
  return `200 ${kind}${unusual.length === 0 ? '' : ` (${unusual.join(', ')})`}: ${showPage()}`;

  function showPage(): string {
    if (format !== 'protobuf')
      return joinLines(bytes.toString().replace(/# HELP lastscrape_[\s\S]*?(?=# EOF\n$|$)/, ''));
    const others = [...page].filter(([name]) => !own.has(name));
    const written = others.map(([name, value]) => writeFamily(format, name, value)).join('');
    if (!bytes.toString('latin1').startsWith(written)) throw new Error('Bug: not the bytes of the source');
    return others.map(([name, value]) => `${name} ${value}`).join('; ');
  }
}

function describeServed(scrape: ServedScrape | undefined, own: ReadonlyMap<string, number>): string {
  if (scrape === undefined) return 'not counted';
  const { served, isByRefusal, readAtMs, called } = scrape;
  if (own.get('lastscrape_snapshot_timestamp_seconds') !== readAtMs / 1_000)
    throw new Error('Bug: not the moment shown');
  return `${served}${isByRefusal ? ' by refusal' : ''}${called === undefined ? '' : ` of call ${called}`}`;
}

/** What a push would send. */
export async function describePush(snapshot: Snapshot | null): Promise<string> {
  if (snapshot === null) return 'nothing';
  return joinLines(String(await readPieces(snapshot.body.read())));
}

function joinLines(text: string): string {
  return text.replace(/\n$/, '').replaceAll('\n', '; ');
}
