// The rules of `lastscrape keep`: how long a page is listed and answered, which room it may take, and which
// of its formats a scrape gets. Pure.

import { RICH_TYPES, takesFormat } from '../serve/pages.ts';
import { addRequest, type FrontFacts, NO_SCRAPERS, nameScraper, type ScraperRequest } from '../serve/scrapers.ts';

/** A page is listed for at least this long: Prometheus takes up new targets some seconds after it asked. */
const LISTED_MIN_MS = 60_000;
/** Once one Prometheus has scraped it, another that asks for targets may be another shard: wait this long. */
const OTHERS_MAX_MS = 300_000;
/** A page that nothing scrapes is forgotten then. */
const LISTED_MAX_MS = 3_600_000;
/** The default of `refresh_interval` (Prometheus documentation, "http_sd_config"). */
const REFRESH_DEFAULT_MS = 60_000;
const REFRESH_MAX_MS = 3_600_000;
/** Prometheus's discovery passes changes on every 5 s, and its scrape manager takes them every 5 s. */
const REFRESH_DELAY_MS = 10_000;
/** A page is answered for so many refreshes after it left the list: a late scrape would set `up` to 0. */
const ANSWERED_REFRESHES = 2;
/** A Prometheus that has been silent for more of its refreshes is gone, or too busy to scrape. */
const LIVING_REFRESHES = 2.5;

/** Every Prometheus that has asked for targets, and how often each does, by its id. */
export type Discovery = { readonly askers: FrontFacts; readonly refreshesMs: ReadonlyMap<number, number> };

/** Nobody has asked yet. */
export const NO_DISCOVERY: Discovery = { askers: NO_SCRAPERS, refreshesMs: new Map() };

/** After a request for targets. `refreshMs`: from its header; null without one. */
export function addDiscovery(before: Discovery, request: ScraperRequest, refreshMs: number | null): Discovery {
  const { front: askers, scraper } = addRequest(before.askers, request);
  const known = askers.scrapers.map(({ id }) => [id, before.refreshesMs.get(id) ?? REFRESH_DEFAULT_MS] as const);
  const usedMs = Math.min(refreshMs ?? REFRESH_DEFAULT_MS, REFRESH_MAX_MS);
  return { askers, refreshesMs: new Map([...known, [scraper.id, usedMs]]) };
}

export type Living = ReturnType<typeof findLivingAskers>;

/**
 * Who has asked for targets lately, by name, and the longest refresh. `areAll`: the keeper has run for so
 * long that others would have asked too, and none stopped within it. Nor have two one name: which of them
 * scraped is not known.
 */
export function findLivingAskers({ askers, refreshesMs }: Discovery, sinceMs: number, nowMs: number) {
  const known = askers.scrapers.map((each) => ({ ...each, refreshMs: Number(refreshesMs.get(each.id)) }));
  const { living = [], silent = [] } = Object.groupBy(known, ({ lastAtMs, refreshMs }) =>
    nowMs - lastAtMs > LIVING_REFRESHES * refreshMs + REFRESH_DELAY_MS ? 'silent' : 'living',
  );
  const names = new Set(living.map(nameScraper));
  const refreshMs = Math.max(0, ...living.map((each) => each.refreshMs)) || REFRESH_DEFAULT_MS;
  const fromMs = names.size < living.length ? nowMs : Math.max(sinceMs, ...silent.map(({ lastAtMs }) => lastAtMs));
  return { nowMs, names, refreshMs, areAll: nowMs - fromMs >= OTHERS_MAX_MS };
}

/** What the rules know of a page. */
export type PageLife =
  /** `takers`: who has scraped it whole. */
  | { readonly kind: 'listed'; readonly sinceMs: number; readonly takers: ReadonlySet<string> }
  /** No longer listed, since it was scraped, or nothing scraped it for an hour; answered until then. */
  | { readonly kind: 'answered'; readonly end: 'taken' | 'expired'; readonly untilMs: number };

/** A page that has just been handed over, or read back. */
export function beginPage(nowMs: number): PageLife {
  return { kind: 'listed', sinceMs: nowMs, takers: new Set() };
}

/** After a scrape that got it whole; one that is older than the page got another one. */
export function addTake(life: PageLife, { startedAtMs, ...client }: ScraperRequest): PageLife {
  if (life.kind !== 'listed' || startedAtMs < life.sinceMs) return life;
  return { ...life, takers: new Set([...life.takers, nameScraper(client)]) };
}

/** What a page is by now; null: forget it. */
export function advancePage(life: PageLife, living: Living, isStopping: boolean): PageLife | null {
  const { nowMs, names, areAll, refreshMs } = living;
  if (life.kind === 'answered') return nowMs >= life.untilMs ? null : life;
  const end = life.takers.size > 0 ? 'taken' : 'expired';
  const isByAll = areAll && names.size > 0 && names.isSubsetOf(life.takers);
  const takenMs = !isByAll ? OTHERS_MAX_MS : isStopping ? 0 : LISTED_MIN_MS;
  if (nowMs - life.sinceMs < (end === 'taken' ? takenMs : LISTED_MAX_MS)) return life;
  return { kind: 'answered', end, untilMs: nowMs + ANSWERED_REFRESHES * refreshMs + REFRESH_DELAY_MS };
}

/** What may be kept at most. */
export type KeepLimits = { readonly maxBytes: number; readonly maxPages: number };

/** The largest page of a hand-over, unpacked, and how many formats it may have. */
export const PLAIN_MAX_BYTES = 64_000_000;
export const FORMATS_MAX_COUNT = 8;
/** Labels of all pages, which are in memory. */
const LABELS_MAX_BYTES = 16 * 1024 * 1024;
/** Pages of a metric each line pack to a tenth or less; what would unpack to much more is a trap. */
const UNPACKED_FACTOR = 16;
/** No namespace may take more than this part of the room from the others. */
const NAMESPACE_SHARE = 0.5;
/** Files that cannot be read back are kept for a person, within this part of the room. */
export const CORRUPT_SHARE = 1 / 16;
/** Hand-overs of a namespace: so many at once, and 20 a second after that. */
const BURST_COUNT = 1_200;
const HAND_OVER_MS = 50;

/** What pages take up, those under way included: files, these unpacked, and labels in memory. */
export type Claim = Readonly<Record<'pagesCount' | 'sizeBytes' | 'plainBytes' | 'labelBytes', number>>;

export const NO_CLAIM: Claim = { pagesCount: 0, sizeBytes: 0, plainBytes: 0, labelBytes: 0 };
const CLAIM_KEYS = Object.keys(NO_CLAIM) as (keyof Claim)[];

/** What is claimed once one of these claims is replaced. */
export function changeClaim(sum: Claim, from: Claim, to: Claim): Claim {
  return Object.fromEntries(CLAIM_KEYS.map((key) => [key, sum[key] - from[key] + to[key]])) as Claim;
}

/** Why that much must not be claimed in all, and by a namespace; null: it may. */
export function judgeRoom(all: Claim, own: Claim, { maxPages, maxBytes }: KeepLimits): Refusal | null {
  const [sizeBytes, plainBytes] = [maxBytes * (1 - CORRUPT_SHARE), maxBytes * UNPACKED_FACTOR];
  const most: Claim = { pagesCount: maxPages, sizeBytes, plainBytes, labelBytes: LABELS_MAX_BYTES };
  if (CLAIM_KEYS.some((key) => all[key] > most[key])) return 'full';
  return CLAIM_KEYS.some((key) => own[key] > most[key] * NAMESPACE_SHARE) ? 'namespaceFull' : null;
}

/** When each namespace may hand over BURST_COUNT times at once again; those that may now are left out. */
export type Rates = ReadonlyMap<string, number>;

/** After a namespace has begun one more hand-over, or why it must not. */
export function countHandOver(rates: Rates, namespace: string, nowMs: number): Rates | Refusal {
  const idleAtMs = Math.max(rates.get(namespace) ?? 0, nowMs) + HAND_OVER_MS;
  if (idleAtMs > nowMs + BURST_COUNT * HAND_OVER_MS) return 'tooOften';
  // There may be any number of namespaces.
  return new Map([...rates].filter(([, atMs]) => atMs > nowMs)).set(namespace, idleAtMs);
}

/** Every reason not to take a hand-over: its status, and what the pod's log shows. The pod then holds. */
export const REFUSALS = {
  full: [507, 'the keeper is full'],
  namespaceFull: [507, "this namespace takes up half of the keeper's room"],
  storageFull: [507, "the keeper's disk is full"],
  storageFailed: [500, "the keeper's disk cannot be written"],
  tooOften: [429, 'this namespace hands over too often'],
  tooLarge: [413, 'the page is too large'],
  unreadable: [400, 'the hand-over cannot be read'],
  anonymous: [401, 'there is no token for a keeper'],
  unproven: [401, 'the token does not prove which pod this is'],
  otherAddress: [403, "the connection does not come from the pod's own address"],
  unchecked: [503, 'the token cannot be checked now'],
  stopping: [503, 'the keeper is stopping'],
} as const satisfies Readonly<Record<string, readonly [status: number, text: string]>>;
export type Refusal = keyof typeof REFUSALS;

/** One format of a page. `accept`: what the scrapers sent that got it. */
export type PageFormat = { readonly accept: string; readonly contentType: string; readonly sizeBytes: number };

/** The index of a scrape's format: that which the pod gave this scraper, else the richest that it takes. */
export function chooseFormat(formats: readonly PageFormat[], accept: string): number {
  const find = (type: string) => formats.findIndex(({ contentType }) => contentType.toLowerCase().startsWith(type));
  const rich = (['protobuf', 'openMetrics'] as const).filter((format) => takesFormat(accept, format));
  const own = formats.findIndex((each) => each.accept === accept);
  const wanted = [own, ...rich.map((format) => find(RICH_TYPES[format])), find('text/plain')];
  return wanted.find((index) => index >= 0) ?? 0;
}
