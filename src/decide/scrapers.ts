// Who scrapes through the front, how often, and who has taken a number since main ended. Pure.
//
// A scraper is one remote address, one User-Agent, and one connection where several of theirs are open at the same time: two
// replicas behind one address are two, and one that connects anew is the same.

import type { FrontObservation, Limits } from './model.ts';

/** So many are remembered; beyond it the one that was silent for longest is forgotten. */
export const SCRAPERS_MAX_COUNT = 64;
/** So many are told of in the log, which has a bound. */
export const SCRAPERS_LOGGED_COUNT = 20;
/** A scraper lives while its last scrape is no older than so many of its own intervals. */
const LIVING_INTERVALS = 2.5;
/** The interval is the median of so many gaps, the newest. */
const GAPS_MAX_COUNT = 9;
/** The newest scrapes that are remembered: as many as LASTSCRAPE_SCRAPES may want. */
const TAKEN_MAX_COUNT = 1_000;

/** An answer that was handed over whole, to somebody who counts. */
export type ServedScrape = {
  /** When its request came. */
  readonly startedAtMs: number;
  /** When it had been handed over. */
  readonly atMs: number;
  readonly address: string;
  /** The User-Agent, cut. */
  readonly agent: string;
  /** The number of its connection. */
  readonly connection: number;
  /** The other connections of that address and User-Agent that are open. */
  readonly openConnections: readonly number[];
  readonly served: ServedKind;
  /** It got the snapshot since the source refused. */
  readonly isByRefusal: boolean;
  /** When what it got was read from the source. */
  readonly readAtMs: number;
};

export type ServedKind = 'live' | 'joined' | 'snapshot';

export type Scraper = {
  /** Counted from 1, in the order in which they first came. */
  readonly id: number;
  readonly address: string;
  readonly agent: string;
  readonly connection: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  /** Between its scrapes, the newest last. */
  readonly gapsMs: readonly number[];
};

/** One scrape that may count: by whom, when its request came, and when what it got was read. */
type Taken = Pick<ServedScrape, 'startedAtMs' | 'readAtMs' | 'isByRefusal'> & { readonly scraperId: number };

/** What is remembered of the front. */
export type FrontFacts = {
  readonly scrapers: readonly Scraper[];
  /** The newest, in their order. */
  readonly taken: readonly Taken[];
  readonly scrapesCount: number;
  /** Scrapers that were ever told apart. */
  readonly knownCount: number;
  /** Scrapers that were given up and have not come since, by id. */
  readonly givenUpIds: readonly number[];
  /** What the newest scrape got, by when its request came; null before the first. */
  readonly last: Pick<ServedScrape, 'startedAtMs' | 'served' | 'readAtMs'> | null;
  /** As it was seen last. */
  readonly seen: FrontObservation;
};

export const NO_SCRAPERS: FrontFacts = {
  scrapers: [],
  taken: [],
  scrapesCount: 0,
  knownCount: 0,
  givenUpIds: [],
  last: null,
  seen: { hasSnapshot: false, answeredAtMs: null, inFlightCount: 0 },
};

/** The facts after one more scrape, and the scraper where it is a new one. */
export function addScrape(
  front: FrontFacts,
  scrape: ServedScrape,
): { readonly front: FrontFacts; readonly newcomer: Scraper | null } {
  const known = findScraper(front.scrapers, scrape);
  const { startedAtMs, address, agent, connection, isByRefusal, served, readAtMs } = scrape;
  const scraper: Scraper =
    known === null
      ? {
          id: front.knownCount + 1,
          address,
          agent,
          connection,
          firstAtMs: startedAtMs,
          lastAtMs: startedAtMs,
          gapsMs: [],
        }
      : {
          ...known,
          connection,
          lastAtMs: Math.max(known.lastAtMs, startedAtMs),
          gapsMs: addGap(known.gapsMs, startedAtMs - known.lastAtMs),
        };
  const others = front.scrapers.filter(({ id }) => id !== scraper.id);
  const bySilence = others.toSorted((a, b) => a.lastAtMs - b.lastAtMs);
  const forgotten = others.length < SCRAPERS_MAX_COUNT ? undefined : bySilence[0];
  return {
    newcomer: known === null ? scraper : null,
    front: {
      scrapers: [...others.filter((each) => each !== forgotten), scraper].toSorted((a, b) => a.id - b.id),
      taken: [...front.taken, { scraperId: scraper.id, startedAtMs, readAtMs, isByRefusal }].slice(-TAKEN_MAX_COUNT),
      scrapesCount: front.scrapesCount + 1,
      knownCount: front.knownCount + (known === null ? 1 : 0),
      // Whoever comes back lives.
      givenUpIds: front.givenUpIds.filter((id) => id !== scraper.id),
      // A slow client's answer may be handed over after a newer one.
      last:
        front.last !== null && front.last.startedAtMs > startedAtMs ? front.last : { startedAtMs, served, readAtMs },
      seen: front.seen,
    },
  };
}

/** Two at the same moment show no interval. */
function addGap(gapsMs: readonly number[], gapMs: number): readonly number[] {
  return gapMs <= 0 ? gapsMs : [...gapsMs, gapMs].slice(-GAPS_MAX_COUNT);
}

/** The scraper that this is: the same connection, or one whose connection has ended, the one that is due before others. */
function findScraper(scrapers: readonly Scraper[], scrape: ServedScrape): Scraper | null {
  const { address, agent, connection, openConnections, startedAtMs } = scrape;
  const alike = scrapers.filter((each) => each.address === address && each.agent === agent);
  const same = alike.find((each) => each.connection === connection);
  if (same !== undefined) return same;
  // Replicas have one interval; where none is known yet, it is the one that was silent for longest.
  const likelyMs = alike.map(findInterval).find((intervalMs) => intervalMs !== null) ?? Number.MAX_SAFE_INTEGER;
  const lateMs = (each: Scraper) => Math.abs(startedAtMs - each.lastAtMs - (findInterval(each) ?? likelyMs));
  const ended = alike.filter((each) => !openConnections.includes(each.connection));
  return ended.toSorted((a, b) => lateMs(a) - lateMs(b))[0] ?? null;
}

/** A scraper's interval in milliseconds, the median of its gaps; null before its second scrape. */
export function findInterval({ gapsMs }: Scraper): number | null {
  return gapsMs.toSorted((a, b) => a - b)[Math.floor(gapsMs.length / 2)] ?? null;
}

/** Whether a scraper may still come; before its second scrape nothing is known of its interval, and it may within the TTL. */
export function isLiving(scraper: Scraper, nowMs: number, { ttlMs }: Limits): boolean {
  const intervalMs = findInterval(scraper);
  return nowMs - scraper.lastAtMs <= (intervalMs === null ? ttlMs : LIVING_INTERVALS * intervalMs);
}

/** What has been taken since main's end. */
export type Turnout = {
  /** Scrapes that count. */
  readonly seenCount: number;
  /** How many are waited for, at least 1; those that were given up are not. */
  readonly wantedCount: number;
  /** How many of these have come: scrapes, or with `auto` scrapers. */
  readonly cameCount: number;
  readonly isReached: boolean;
  /** Scrapers from before the end that will not come any more, and have not come. */
  readonly givenUp: readonly Scraper[];
};

/**
 * Judges what was taken since `endedAtMs`. A scrape counts when its request came after that, or when the source refused it: main
 * was gone. Where it got a snapshot from before the end, it counts only while no read has succeeded since: there may be newer numbers.
 */
export function judgeTurnout(
  { scrapers, taken, seen }: FrontFacts,
  { endedAtMs, nowMs, limits }: { readonly endedAtMs: number; readonly nowMs: number; readonly limits: Limits },
): Turnout {
  const lastAnsweredAtMs = seen.answeredAtMs ?? Number.NEGATIVE_INFINITY;
  const counted = taken.filter(
    ({ startedAtMs, readAtMs, isByRefusal }) =>
      (startedAtMs > endedAtMs || isByRefusal) && (readAtMs > endedAtMs || startedAtMs > lastAnsweredAtMs),
  );
  const seenCount = counted.length;
  const { scrapesWantedCount } = limits;
  if (scrapesWantedCount !== 'auto') {
    const isReached = seenCount >= scrapesWantedCount;
    return { seenCount, wantedCount: scrapesWantedCount, cameCount: seenCount, isReached, givenUp: [] };
  }
  const takers = new Set(counted.map(({ scraperId }) => scraperId));
  const before = scrapers.filter(({ firstAtMs }) => firstAtMs <= endedAtMs);
  const pending = before.filter(({ id }) => !takers.has(id));
  const living = pending.filter((scraper) => isLiving(scraper, nowMs, limits));
  const takersBeforeCount = before.length - pending.length;
  const awaitedCount = living.length + takersBeforeCount;
  return {
    seenCount,
    wantedCount: Math.max(1, awaitedCount),
    // Where nobody from before the end lives, the first that comes is enough.
    cameCount: awaitedCount === 0 ? Math.min(1, takers.size) : takersBeforeCount,
    isReached: living.length === 0 && takers.size > 0,
    givenUp: pending.filter((scraper) => !living.includes(scraper)),
  };
}

/** How a scraper is named in the log and the report. */
export function nameScraper({ address, agent }: Scraper): string {
  return agent === '' ? address : `${address} ${agent}`;
}
