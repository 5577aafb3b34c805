// The rules of `lastscrape keep`: how long a page is listed and answered, which room it may take, and which
// of its formats a scrape gets. Pure.

import { RICH_TYPES, takesFormat } from '../serve/pages.ts';
import { addRequest, type FrontFacts, NO_SCRAPERS, type ScraperRequest } from '../serve/scrapers.ts';

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

/** Every Prometheus that has asked for targets since the keeper began, and how often each does, by its id. */
export type Discovery = {
  readonly sinceMs: number;
  readonly askers: FrontFacts;
  readonly refreshesMs: ReadonlyMap<number, number>;
};

/** Nobody has asked yet. */
export function beginDiscovery(nowMs: number): Discovery {
  return { sinceMs: nowMs, askers: NO_SCRAPERS, refreshesMs: new Map() };
}

/** After a request for targets. `refreshMs`: from its header; null without one. */
export function addDiscovery(before: Discovery, request: ScraperRequest, refreshMs: number | null): Discovery {
  const { front: askers, scraper } = addRequest(before.askers, request);
  const known = askers.scrapers.map(({ id }) => [id, before.refreshesMs.get(id) ?? REFRESH_DEFAULT_MS] as const);
  const usedMs = Math.min(refreshMs ?? REFRESH_DEFAULT_MS, REFRESH_MAX_MS);
  return { ...before, askers, refreshesMs: new Map([...known, [scraper.id, usedMs]]) };
}

/** Who still asks for targets, by name, and the longest refresh. */
export type Living = {
  readonly names: ReadonlySet<string>;
  readonly refreshMs: number;
  /**
   * The keeper has run for so long that others would have asked too, and none stopped within it. Nor have two
   * one name: which of them scraped is not known.
   */
  readonly areAll: boolean;
};

/** Those that have asked lately. */
export function findLivingAskers({ sinceMs, askers, refreshesMs }: Discovery, nowMs: number): Living {
  const names = new Set<string>();
  let refreshMs = 0;
  let fromMs = sinceMs;
  for (const { id, lastAtMs, ...client } of askers.scrapers) {
    const ownMs = Number(refreshesMs.get(id));
    const isSilent = nowMs - lastAtMs > LIVING_REFRESHES * ownMs + REFRESH_DELAY_MS;
    if (isSilent) fromMs = Math.max(fromMs, lastAtMs);
    if (isSilent) continue;
    if (names.has(nameClient(client))) fromMs = nowMs;
    names.add(nameClient(client));
    refreshMs = Math.max(refreshMs, ownMs);
  }
  return { names, refreshMs: refreshMs || REFRESH_DEFAULT_MS, areAll: nowMs - fromMs >= OTHERS_MAX_MS };
}

/** By what a request for targets and a scrape are of the same Prometheus. */
export function nameClient({ address, agent }: Pick<ScraperRequest, 'address' | 'agent'>): string {
  return `${address} ${agent}`;
}

/** What the rules know of a page. `takers`: who has scraped it whole. */
export type PageLife =
  | { readonly kind: 'listed'; readonly sinceMs: number; readonly takers: ReadonlySet<string> }
  /** No longer listed, and answered until then. */
  | { readonly kind: 'answered'; readonly untilMs: number };

/** Why a page left the list: it was scraped, or nothing scraped it for an hour. */
export type PageEnd = 'taken' | 'expired';

/** A page that has just been handed over, or read back. */
export function beginPage(nowMs: number): PageLife {
  return { kind: 'listed', sinceMs: nowMs, takers: new Set() };
}

/** After a scrape that got it whole. */
export function addTake(life: PageLife, client: string): PageLife {
  return life.kind === 'listed' ? { ...life, takers: new Set([...life.takers, client]) } : life;
}

/** What a page is at `nowMs`; `life` null: forget it. `end`: it left the list just now, and why. */
export function advancePage(
  life: PageLife,
  { living, nowMs, isStopping }: { readonly living: Living; readonly nowMs: number; readonly isStopping: boolean },
): { readonly life: PageLife | null; readonly end: PageEnd | null } {
  if (life.kind === 'answered') return { life: nowMs >= life.untilMs ? null : life, end: null };
  const end = findEnd(life, living, nowMs, isStopping ? 0 : LISTED_MIN_MS);
  if (end === null) return { life, end };
  const untilMs = nowMs + ANSWERED_REFRESHES * living.refreshMs + REFRESH_DELAY_MS;
  return { life: { kind: 'answered', untilMs }, end };
}

function findEnd(
  { sinceMs, takers }: Extract<PageLife, { readonly kind: 'listed' }>,
  { names, areAll }: Living,
  nowMs: number,
  minMs: number,
): PageEnd | null {
  const listedMs = nowMs - sinceMs;
  if (takers.size === 0) return listedMs >= LISTED_MAX_MS ? 'expired' : null;
  const isByAll = areAll && names.size > 0 && names.isSubsetOf(takers);
  return listedMs >= (isByAll ? minMs : OTHERS_MAX_MS) ? 'taken' : null;
}

/** What may be kept at most. */
export type KeepLimits = { readonly maxBytes: number; readonly maxPages: number };

/** The largest page of a hand-over, unpacked, and how many formats it may have. */
export const PLAIN_MAX_BYTES = 64_000_000;
export const FORMATS_MAX_COUNT = 8;
/** Names, labels and annotations of a pod; all of those that are kept are in memory. */
export const HEAD_MAX_BYTES = 16_384;
const HEADS_MAX_BYTES = 16 * 1024 * 1024;
/** Pages of a metric each line pack to a tenth or less; what would unpack to much more is a trap. */
const UNPACKED_FACTOR = 16;
/** No namespace may take more than this part of the room from the others. */
const NAMESPACE_SHARE = 0.5;
/** Files that cannot be read back are kept for a person, within this part of the room. */
export const CORRUPT_SHARE = 1 / 16;
/** Hand-overs of a namespace: so many at once, and so many a second after that. */
const BURST_COUNT = 1_200;
const PER_SECOND = 20;

/** Pages, bytes of their files, of these unpacked, and of what is in memory of them. */
export type Taken = Readonly<Record<'pagesCount' | 'sizeBytes' | 'plainBytes' | 'headBytes', number>>;

export const NOTHING_TAKEN: Taken = { pagesCount: 0, sizeBytes: 0, plainBytes: 0, headBytes: 0 };

/** What a namespace takes up, and how many hand-overs it may still begin at `atMs`. */
type Share = { readonly taken: Taken; readonly burstCount: number; readonly atMs: number };

/** What is taken up, by pages and by hand-overs under way: in all, and by each namespace. */
export type Room = { readonly taken: Taken; readonly shares: ReadonlyMap<string, Share> };

export const EMPTY_ROOM: Room = { taken: NOTHING_TAKEN, shares: new Map() };

/** What a namespace takes up from now on, in place of something; NOTHING_TAKEN where left out. */
export type RoomChange = { readonly namespace: string; readonly from?: Taken; readonly to?: Taken };

/** The room after that. */
export function changeRoom(room: Room, { namespace, from, to }: RoomChange): Room {
  const own = room.shares.get(namespace) ?? { taken: NOTHING_TAKEN, burstCount: BURST_COUNT, atMs: 0 };
  const shares = new Map([...room.shares, [namespace, { ...own, taken: replace(own.taken, from, to) }]]);
  return { taken: replace(room.taken, from, to), shares };
}

/** Why that must not be; null: it may. What it replaces counts too: both are on the disk for a while. */
export function judgeRoom(
  { taken, shares }: Room,
  { namespace, from, to }: RoomChange,
  { maxPages, maxBytes }: KeepLimits,
): Refusal | null {
  const most: Taken = {
    pagesCount: maxPages,
    sizeBytes: maxBytes * (1 - CORRUPT_SHARE),
    plainBytes: maxBytes * UNPACKED_FACTOR,
    headBytes: HEADS_MAX_BYTES,
  };
  const isWithin = (now: Taken, share: number) => {
    const next = replace(now, from, to);
    return KEYS.every((key) => next[key] <= most[key] * share);
  };
  if (!isWithin(taken, 1)) return 'full';
  return isWithin(shares.get(namespace)?.taken ?? NOTHING_TAKEN, NAMESPACE_SHARE) ? null : 'namespaceFull';
}

/** The room after a namespace has begun one more hand-over, or why it must not. */
export function countHandOver(room: Room, namespace: string, nowMs: number): Room | Refusal {
  const own = room.shares.get(namespace);
  const burstCount = findBurst(own, nowMs);
  if (burstCount < 1) return 'tooOften';
  const share: Share = { taken: own?.taken ?? NOTHING_TAKEN, burstCount: burstCount - 1, atMs: nowMs };
  return { ...room, shares: new Map([...room.shares, [namespace, share]]) };
}

/** Forgets namespaces that have no page, and could begin all hand-overs at once: there may be any number. */
export function sweepRoom(room: Room, nowMs: number): Room {
  const isIdle = (share: Share) => share.taken.pagesCount === 0 && findBurst(share, nowMs) === BURST_COUNT;
  return { ...room, shares: new Map([...room.shares].filter(([, share]) => !isIdle(share))) };
}

function findBurst(share: Share | undefined, nowMs: number): number {
  if (share === undefined) return BURST_COUNT;
  return Math.min(BURST_COUNT, share.burstCount + (PER_SECOND * Math.max(0, nowMs - share.atMs)) / 1000);
}

const KEYS = ['pagesCount', 'sizeBytes', 'plainBytes', 'headBytes'] as const;

function replace(now: Taken, from: Taken = NOTHING_TAKEN, to: Taken = NOTHING_TAKEN): Taken {
  return Object.fromEntries(KEYS.map((key) => [key, now[key] - from[key] + to[key]])) as Taken;
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

/**
 * The index of the format that a scrape gets: the one that this scraper got from the pod, else the richest it
 * takes. `formats`: at least one.
 */
export function chooseFormat(formats: readonly PageFormat[], accept: string): number {
  const find = (type: string) => formats.findIndex(({ contentType }) => contentType.toLowerCase().startsWith(type));
  const rich = (['protobuf', 'openMetrics'] as const).filter((format) => takesFormat(accept, format));
  const own = formats.findIndex((each) => each.accept === accept);
  const wanted = [own, ...rich.map((format) => find(RICH_TYPES[format])), find('text/plain')];
  return wanted.find((index) => index >= 0) ?? 0;
}
