// Which requests are scrapes, who scrapes through the front, how often, which scrapes count, and who has
// scraped since main ended. Pure.
//
// A request and a scrape are two things: every request shows that its scraper lives, also one that got a 503
// or a reset; a scrape is an answer that was taken whole.
//
// A scraper is one remote address and one User-Agent, and one connection where several of them are open at
// once: two replicas behind one address are two scrapers, and one that reconnects stays the same.

import type { FrontObservation, Limits } from '../model.ts';

/** At most this many scrapers; the longest silent one is dropped. */
export const SCRAPERS_MAX_COUNT = 64;
/** At most this many are logged: the log has a bound. */
const SCRAPERS_LOGGED_COUNT = 20;
/** A scraper lives while it has been silent for at most this many of its intervals. */
const LIVING_INTERVALS = 2.5;
/** The interval is the median of at most this many gaps, the newest. */
const GAPS_MAX_COUNT = 9;
/** How many scrapes are remembered, the newest: as many as LASTSCRAPE_SCRAPES may want. */
const TAKEN_MAX_COUNT = 1_000;

/** A request of a scraper, a sign that it lives, whatever it gets. */
export type ScraperRequest = {
  /** When the request came. */
  readonly startedAtMs: number;
  readonly address: string;
  /** The User-Agent, cut. */
  readonly agent: string;
  /** The number of the connection. */
  readonly connection: number;
  /** Other open connections of this address and User-Agent. */
  readonly openConnections: readonly number[];
};

/** An answer that a scraper got whole. */
export type ServedScrape = ScraperRequest & {
  /** When the answer was out. */
  readonly atMs: number;
  /** What it got: the source's answer, also with what has vanished from it since, or the snapshot. */
  readonly served: 'live' | 'joined' | 'snapshot';
  /** It got the snapshot because the source refused. */
  readonly isByRefusal: boolean;
  /** When the source was read for it. */
  readonly readAtMs: number;
  /** When the oldest part of it was read: what has vanished since is older. Default: `readAtMs`. */
  readonly oldestAtMs?: number;
  /** The number of the call whose page it is, which another program has replaced since. */
  readonly called?: number | undefined;
};

/** One scraper. */
export type Scraper = {
  /** Counted from 1, by first request. */
  readonly id: number;
  readonly address: string;
  readonly agent: string;
  readonly connection: number;
  /** When its first and its newest request came. */
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  /** For how much of its silence this process was itself frozen, in milliseconds. */
  readonly deafMs: number;
  /** When the request came for which it got the newest answer; null: it has got none. */
  readonly takenAtMs: number | null;
  /** Between its requests, oldest first. */
  readonly gapsMs: readonly number[];
};

/** A scrape that may count. */
type Taken = Pick<ServedScrape, 'startedAtMs' | 'readAtMs' | 'isByRefusal' | 'oldestAtMs' | 'called'> & {
  readonly scraperId: number;
};

/** What is remembered of the front. */
export type FrontFacts = {
  readonly scrapers: readonly Scraper[];
  /** The newest, oldest first. */
  readonly taken: readonly Taken[];
  readonly scrapesCount: number;
  /** How many scrapers there ever were. */
  readonly knownCount: number;
  /** Ids of scrapers that were given up and have not come since. */
  readonly givenUpIds: readonly number[];
  /** What the newest scrape got; null before the first. */
  readonly last: Pick<ServedScrape, 'startedAtMs' | 'served' | 'readAtMs'> | null;
  /** The newest that was observed, and when that observation ended. */
  readonly seen: FrontObservation;
  readonly observedAtMs: number;
};

/** Before the first request. */
export const NO_SCRAPERS: FrontFacts = {
  scrapers: [],
  taken: [],
  scrapesCount: 0,
  knownCount: 0,
  givenUpIds: [],
  last: null,
  seen: { answeredAtMs: null, inFlightCount: 0 },
  observedAtMs: 0,
};

/** The facts after a request, which may be known already, and its scraper; `isNew`: this is its first. */
export function addRequest(front: FrontFacts, request: ScraperRequest) {
  const known = findScraper(front.scrapers, request);
  const { startedAtMs, address, agent, connection } = request;
  const id = known?.id ?? front.knownCount + 1;
  const scraper: Scraper =
    known === null
      ? { id, address, agent, connection, ...NEW_SCRAPER, firstAtMs: startedAtMs, lastAtMs: startedAtMs }
      : {
          ...known,
          connection,
          ...(startedAtMs > known.lastAtMs && { lastAtMs: startedAtMs, deafMs: 0, gapsMs: addGap(known, startedAtMs) }),
        };
  const others = front.scrapers.filter((each) => each.id !== id);
  const bySilence = others.toSorted((a, b) => a.lastAtMs - b.lastAtMs);
  const forgotten = others.length < SCRAPERS_MAX_COUNT ? undefined : bySilence[0];
  return {
    scraper,
    isNew: known === null,
    front: {
      ...front,
      scrapers: [...others.filter((each) => each !== forgotten), scraper].toSorted((a, b) => a.id - b.id),
      knownCount: Math.max(front.knownCount, id),
      // One that comes back lives.
      givenUpIds: front.givenUpIds.filter((each) => each !== id),
    },
  };
}

/** The facts after an answer that was taken whole. */
export function addScrape(before: FrontFacts, scrape: ServedScrape): FrontFacts {
  const { front, scraper } = addRequest(before, scrape);
  const { startedAtMs, isByRefusal, served, readAtMs, oldestAtMs, called } = scrape;
  const older = oldestAtMs !== undefined && oldestAtMs < readAtMs && { oldestAtMs };
  const taken = { scraperId: scraper.id, startedAtMs, readAtMs, isByRefusal, called, ...older };
  return {
    ...front,
    scrapers: front.scrapers.map((each) => (each === scraper ? { ...each, takenAtMs: startedAtMs } : each)),
    taken: [...front.taken, taken].slice(-TAKEN_MAX_COUNT),
    scrapesCount: front.scrapesCount + 1,
    // A slow client may have its answer after a newer one.
    last: front.last !== null && front.last.startedAtMs > startedAtMs ? front.last : { startedAtMs, served, readAtMs },
  };
}

const NEW_SCRAPER = { deafMs: 0, takenAtMs: null, gapsMs: [] };

/** The facts after this process stood still, from `knownFromMs` on at least: that is no scraper's silence. */
export function addStandstill(front: FrontFacts, { knownFromMs, toMs }: Record<'knownFromMs' | 'toMs', number>) {
  // It may have begun in the pause before, once nothing was heard any more.
  const heard = front.scrapers.map(({ lastAtMs }) => lastAtMs).filter((atMs) => atMs <= knownFromMs);
  const fromMs = Math.min(knownFromMs, Math.max(front.observedAtMs, ...heard));
  const scrapers = front.scrapers.map((each) => ({
    ...each,
    deafMs: each.deafMs + Math.max(0, toMs - Math.max(fromMs, each.lastAtMs)),
  }));
  return { ...front, scrapers };
}

/** How long a scraper has been silent, in milliseconds, without what this process stood still meanwhile. */
export function findSilence({ lastAtMs, deafMs }: Scraper, nowMs: number): number {
  return nowMs - lastAtMs - deafMs;
}

/** A gap in which this process stood still shows no interval: too short a one would give up who lives. */
function addGap({ gapsMs, lastAtMs, deafMs }: Scraper, startedAtMs: number): readonly number[] {
  return deafMs > 0 ? gapsMs : [...gapsMs, startedAtMs - lastAtMs].slice(-GAPS_MAX_COUNT);
}

/** Matches a request by connection, else to the one whose turn it is of those whose connection has ended. */
function findScraper(scrapers: readonly Scraper[], request: ScraperRequest): Scraper | null {
  const { address, agent, connection, openConnections, startedAtMs } = request;
  const alike = scrapers.filter((each) => each.address === address && each.agent === agent);
  const same = alike.find((each) => each.connection === connection);
  if (same !== undefined) return same;
  // Replicas share an interval; while none is known, the longest silent one is due.
  const likelyMs = alike.map(findInterval).find((intervalMs) => intervalMs !== null) ?? Number.MAX_SAFE_INTEGER;
  const findLateness = (each: Scraper): number => {
    const turnsCount = (startedAtMs - each.lastAtMs) / (findInterval(each) ?? likelyMs);
    // Scrapes that failed leave out turns, and shift none.
    return Math.abs(turnsCount - Math.max(1, Math.round(turnsCount)));
  };
  const ended = alike.filter((each) => !openConnections.includes(each.connection));
  return ended.toSorted((a, b) => findLateness(a) - findLateness(b))[0] ?? null;
}

/** A scraper's interval in milliseconds, the median of its gaps; null before its second request. */
export function findInterval({ gapsMs }: Scraper): number | null {
  return findMedian(gapsMs);
}

/** The longer one of two in the middle; null: there are no numbers. */
function findMedian(numbers: readonly number[]): number | null {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? null;
}

/** Those that may still come: by their intervals, else by the median of the others', else within the TTL. */
export function findLiving(scrapers: readonly Scraper[], nowMs: number, { ttlMs }: Pick<Limits, 'ttlMs'>) {
  const usualMs = findMedian(scrapers.map(findInterval).filter((intervalMs) => intervalMs !== null));
  return scrapers.filter((scraper) => {
    const intervalMs = findInterval(scraper) ?? usualMs;
    return findSilence(scraper, nowMs) <= (intervalMs === null ? ttlMs : LIVING_INTERVALS * intervalMs);
  });
}

/** Every living scraper has taken a page that was read at this time or later; -Infinity: none lives. */
export function findTakenAtMs({ scrapers, taken }: FrontFacts, nowMs: number, limits: Pick<Limits, 'ttlMs'>): number {
  const newest = findLiving(scrapers, nowMs, limits).map(({ id }) =>
    Math.max(...taken.map(({ scraperId, readAtMs }) => (scraperId === id ? readAtMs : Number.NEGATIVE_INFINITY))),
  );
  return newest.length === 0 ? Number.NEGATIVE_INFINITY : Math.min(...newest);
}

/** Scrapes since main ended. */
export type Turnout = {
  /** Scrapes that count. */
  readonly seenCount: number;
  /** How many are waited for, at least 1; without those that were given up. */
  readonly wantedCount: number;
  /** How many of these came: scrapes, or with `auto` scrapers. */
  readonly cameCount: number;
  readonly isReached: boolean;
  /** Scrapers from before the end that have not come, and no longer live. */
  readonly givenUp: readonly Scraper[];
};

/**
 * The scrapes since `endedAtMs`. One counts if its request came after that, or if the source refused it,
 * since main was gone then. One that got a snapshot from before the end counts only if no later read
 * succeeded: there may be newer numbers. So may there be after a push. A call's page is not the last one.
 */
export function listCounted({ taken, seen }: FrontFacts, endedAtMs: number): readonly Taken[] {
  const lastAnsweredAtMs = seen.answeredAtMs ?? Number.NEGATIVE_INFINITY;
  return taken.filter(
    ({ startedAtMs, readAtMs, isByRefusal, called }) =>
      called === undefined &&
      (startedAtMs > endedAtMs || isByRefusal) &&
      (readAtMs > endedAtMs || startedAtMs > lastAnsweredAtMs) &&
      readAtMs > (seen.pushes?.changedAtMs ?? Number.NEGATIVE_INFINITY),
  );
}

/** Counts the scrapes since `endedAtMs`. */
export function judgeTurnout(
  front: FrontFacts,
  { endedAtMs, nowMs, limits }: { readonly endedAtMs: number; readonly nowMs: number; readonly limits: Limits },
): Turnout {
  const { scrapers } = front;
  const counted = listCounted(front, endedAtMs);
  const seenCount = counted.length;
  const { scrapesWantedCount } = limits;
  if (scrapesWantedCount !== 'auto') {
    const isReached = seenCount >= scrapesWantedCount;
    return { seenCount, wantedCount: scrapesWantedCount, cameCount: seenCount, isReached, givenUp: [] };
  }
  const takers = new Set(counted.map(({ scraperId }) => scraperId));
  const before = scrapers.filter(({ firstAtMs }) => firstAtMs <= endedAtMs);
  const pending = before.filter(({ id }) => !takers.has(id));
  const all = findLiving(scrapers, nowMs, limits);
  const living = pending.filter((scraper) => all.includes(scraper));
  const takersBeforeCount = before.length - pending.length;
  const awaitedCount = living.length + takersBeforeCount;
  return {
    seenCount,
    wantedCount: Math.max(1, awaitedCount),
    // If none from before the end lives, the first that comes is enough.
    cameCount: awaitedCount === 0 ? Math.min(1, takers.size) : takersBeforeCount,
    isReached: living.length === 0 && takers.size > 0,
    givenUp: pending.filter((scraper) => !living.includes(scraper)),
  };
}

/** The name of a scraper in the log and the report; a keeper knows it by that. */
export function nameScraper({ address, agent }: Pick<Scraper, 'address' | 'agent'>): string {
  return agent === '' ? address : `${address} ${agent}`;
}

/** Whether it is one of the first, which are logged. */
export function isLogged({ id }: Scraper): boolean {
  return id <= SCRAPERS_LOGGED_COUNT;
}

/**
 * The header with a scrape's timeout, in lower case, as Node names headers. Sent by Prometheus and its agent
 * mode (prometheus/prometheus scrape/scrape.go, which Grafana Alloy and the Collector's Prometheus receiver
 * run) and by vmagent (VictoriaMetrics/VictoriaMetrics lib/promscrape/client.go).
 */
export const SCRAPE_TIMEOUT_HEADER = 'x-prometheus-scrape-timeout-seconds';

/** Scrapers that do not send that header, by User-Agent prefix, each from its source. */
export const SCRAPER_AGENTS: readonly { readonly name: string; readonly prefix: string }[] = [
  // DataDog/integrations-core datadog_checks_base/datadog_checks/base/utils/headers.py,
  // get_default_headers(): "Datadog Agent/VERSION"; used by RequestsWrapper in http.py of that folder,
  // through which the openmetrics check asks.
  { name: 'the Datadog Agent', prefix: 'Datadog Agent/' },
  // influxdata/telegraf plugins/inputs/prometheus/prometheus.go, internal.ProductToken(), which is
  // "Telegraf/VERSION Go/VERSION" (internal/internal.go).
  { name: 'Telegraf', prefix: 'Telegraf/' },
  // netdata/netdata src/go/plugin/go.d/pkg/web/request.go, "Netdata NAME.plugin/VERSION", which
  // pkg/prometheus/client.go uses.
  { name: 'Netdata', prefix: 'Netdata ' },
  // vectordotdev/vector src/http.rs, "NAME/VERSION", with get_app_name() of src/lib.rs;
  // src/sources/prometheus/scrape.rs asks through it (src/sources/util/http_client.rs).
  { name: 'Vector', prefix: 'Vector/' },
  // elastic/beats metricbeat/helper/http.go, useragent.UserAgent("Metricbeat"), "Elastic-Metricbeat/VERSION
  // (…)" (libbeat/common/useragent/useragent.go); metricbeat/helper/prometheus/prometheus.go uses it.
  { name: 'Metricbeat', prefix: 'Elastic-Metricbeat/' },
];

/** Whether a request is a scrape, not a person's, a probe's or the kubelet's. `agent`: User-Agent or ''. */
export function isScraper(request: { readonly hasTimeoutHeader: boolean; readonly agent: string }): boolean {
  return request.hasTimeoutHeader || SCRAPER_AGENTS.some(({ prefix }) => request.agent.startsWith(prefix));
}
