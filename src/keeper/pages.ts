// The pages that are kept: the index of the store, with what decide/keep says of each. Holds no rule.

import type { Clock } from '../base/waits.ts';
import {
  addDiscovery,
  addTake,
  advancePage,
  beginPage,
  type Claim,
  CORRUPT_SHARE,
  countHandOver,
  findLivingAskers,
  judgeRoom,
  type KeepLimits,
  NO_DISCOVERY,
  type PageLife,
  type Rates,
  REFUSALS,
  type Refusal,
} from '../decide/keep/keep.ts';
import { type HandOver, listTargetLabels } from '../decide/keep/targets.ts';
import type { LogEntry } from '../decide/messages.ts';
import type { ScraperRequest } from '../decide/serve/scrapers.ts';
import type { Connection } from '../front/connections.ts';
import type { Host } from '../run/host.ts';
import { openBody, type ProvenPod, Refused, readHandOver } from './request.ts';
import { CorruptPage, nameKey, type OpenPage, type Store } from './store.ts';
import { openTurns } from './turns.ts';

/** What is in memory of a page: as little as can be, since there may be 10,000. */
type Entry = Claim & {
  sizeBytes: number;
  /** As a target: JSON in UTF-8, outside V8's heap, which is small. */
  readonly labels: Buffer;
  readonly takenAtSeconds: number;
  life: PageLife;
};

export type Pages = Awaited<ReturnType<typeof openPages>>;

/** A hand-over as it comes. `proven`: who the pod is; null: as it says. */
export type HandedOver = Pick<Connection, 'address' | 'gone'> & {
  readonly body: AsyncIterable<Uint8Array>;
  readonly proven: ProvenPod | null;
};

export type PagesParts = Pick<Host, 'wallMs'> & {
  readonly store: Store;
  readonly limits: KeepLimits;
  readonly clock: Clock;
  readonly log: (entry: LogEntry) => void;
};

export const PAGE_PATH = '/pages/';
/** How many files are read at once at the start. */
const READ_AT_ONCE = 16;
/** Room is taken in such steps: to judge it all claims are added up, which takes 0.2 ms with 10,000 pages. */
const RESERVED_BYTES = 64 * 1024;

/** A page as it is in memory. */
function describePage(key: string, handOver: HandOver, takenAtSeconds: number): Entry {
  const text = JSON.stringify(listTargetLabels(handOver, PAGE_PATH + key));
  const labels = Buffer.from(new TextEncoder().encode(text).buffer);
  const plainBytes = handOver.formats.reduce((sum, format) => sum + format.sizeBytes, 0);
  const claim = { namespace: handOver.pod.namespace, sizeBytes: 0, plainBytes, labelsBytes: labels.length };
  return { ...claim, labels, takenAtSeconds, life: beginPage(0) };
}

/** What is kept, by key, for how long, and the room that this and hand-overs under way take up. */
function openIndex({ limits, clock, log }: PagesParts, onForgotten: (key: string) => void) {
  const entries = new Map<string, Entry>();
  const coming = new Set<Entry>();
  const counts = {
    ...{ handed_over_total: 0, withdrawn_total: 0, scraped_total: 0, expired_total: 0, corrupt_total: 0 },
    refused_total: Object.fromEntries(Object.keys(REFUSALS).map((each) => [each, 0])) as Record<Refusal, number>,
  };
  let rates: Rates = new Map();
  const sinceMs = clock.nowMs();
  let discovery = NO_DISCOVERY;
  const stopping = new AbortController();
  const listClaims = (): readonly Claim[] => [...entries.values(), ...coming];
  const listListed = () => [...entries.values()].filter(({ life }) => life.kind === 'listed');
  const judge = (namespace: string, ...more: Claim[]) => judgeRoom([...listClaims(), ...more], namespace, limits);

  /** What time has changed. */
  function advance(): void {
    const living = findLivingAskers(discovery, sinceMs, clock.nowMs());
    for (const [key, entry] of entries) {
      const life = advancePage(entry.life, living, stopping.signal.aborted);
      const end = life?.kind === 'answered' && life !== entry.life ? life.end : null;
      if (end !== null) counts[end === 'taken' ? 'scraped_total' : 'expired_total']++;
      if (end === 'expired') log({ id: 'keptPageExpired', fields: { target: entry.labels.toString('utf8', 0, 300) } });
      if (life !== null) entry.life = life;
      else if (entries.delete(key)) onForgotten(key);
    }
  }
  return {
    ...{ entries, coming, counts, advance, stopping: stopping.signal },
    keep(key: string, entry: Entry, sizeBytes: number): void {
      entry.sizeBytes = sizeBytes;
      entry.life = beginPage(clock.nowMs());
      coming.delete(entry);
      entries.set(key, entry);
    },
    /** A hand-over or a check begins. @throws Refused */
    begin(namespace: string): void {
      const counted = countHandOver(rates, namespace, clock.nowMs());
      if (typeof counted === 'string') throw new Refused(counted, namespace);
      rates = counted;
    },
    /** Others that come meanwhile do not get the same room. @throws Refused */
    reserve(entry: Entry, sizeBytes: number): void {
      if (coming.has(entry) && sizeBytes <= entry.sizeBytes) return;
      entry.sizeBytes = sizeBytes + RESERVED_BYTES;
      coming.add(entry);
      const why = judge(entry.namespace);
      if (why === null) return;
      coming.delete(entry);
      throw new Refused(why, entry.namespace);
    },
    /** Why the next hand-over of a small page would be refused, of whatever namespace; null: it would not. */
    findRefusal(): Refusal | null {
      if (stopping.signal.aborted) return 'stopping';
      return judge('', { namespace: '', sizeBytes: 0, plainBytes: 0, labelsBytes: 0 });
    },
    /** From now on nothing more is taken, and a page is unlisted once all have scraped it. */
    stop: () => stopping.abort(new Refused('stopping')),
    /** The targets of now, in JSON each. */
    listTargets(request: ScraperRequest, refreshMs: number | null): readonly Pick<Entry, 'labels'>[] {
      discovery = addDiscovery(discovery, request, refreshMs);
      advance();
      return listListed();
    },
    /** A scraper got that page whole. */
    addTake(key: string, request: ScraperRequest): void {
      const entry = entries.get(key);
      if (entry !== undefined) entry.life = addTake(entry.life, request);
    },
    count() {
      const times = listListed().map(({ takenAtSeconds }) => takenAtSeconds);
      return {
        ...counts,
        pages: entries.size,
        pages_listed: times.length,
        bytes: listClaims().reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
        oldest_page_timestamp_seconds: times.reduce((least, each) => Math.min(least, each), Number.POSITIVE_INFINITY),
      };
    },
  };
}

/** Opens the pages with all that the store has. @throws what the file system throws */
export async function openPages(parts: PagesParts) {
  const { store, limits, wallMs, log } = parts;
  const files = openTurns({ maxCount: 1, ofOneMaxCount: 1 });
  const inOrder = (work: () => Promise<void>, gone?: AbortSignal) => files.run('', gone, work);
  // Unless the same pod hands over again meanwhile.
  const remove = (key: string) => inOrder(async () => (index.entries.has(key) ? undefined : store.remove(key)));
  const index = openIndex(parts, remove);
  const { entries, coming, counts } = index;

  /** Unless the same pod hands over again meanwhile. */
  async function giveUp(key: string, error: Error, entry?: Entry): Promise<void> {
    if (entries.get(key) !== entry) return;
    entries.delete(key);
    counts.corrupt_total++;
    const isCorrupt = error instanceof CorruptPage;
    const path = isCorrupt ? await store.setAside(key, limits.maxBytes * CORRUPT_SHARE) : `${key}.page`;
    const advice = isCorrupt ? 'its numbers are lost, delete it' : 'mend it and start again, or delete it';
    log({ id: 'keptPageCorrupt', fields: { problem: `${path}: ${error.message}; ${advice}` } });
  }
  async function readBack(key: string): Promise<void> {
    await using page = await store.open(key, false);
    index.keep(key, describePage(key, page.kept, page.takenAtSeconds), page.sizeBytes);
  }
  async function readHead({ body, proven, address }: HandedOver) {
    index.stopping.throwIfAborted();
    const pieces = openBody(body[Symbol.asyncIterator]());
    const handOver = readHandOver(await pieces.readLine(), proven, address);
    return { handOver, key: nameKey(handOver), pieces };
  }
  /** Has a hand-over or a check begin. @throws Refused, or what its body throws */
  async function admit(handedOver: HandedOver) {
    const { handOver, key, pieces } = await readHead(handedOver);
    index.begin(handOver.pod.namespace);
    const entry = describePage(key, handOver, Math.round(wallMs()) / 1000);
    index.reserve(entry, 0);
    return { handOver, key, pieces, entry, [Symbol.dispose]: () => void coming.delete(entry) };
  }
  // What cannot be read now stays there.
  const keys = await store.listKeys();
  const read = (key: string) => readBack(key).catch((error) => giveUp(key, error));
  while (keys.length > 0) await Promise.all(keys.splice(0, READ_AT_ONCE).map(read));

  return {
    ...index,
    /** Takes a hand-over in: on the disk once this has returned. @throws Refused, or what its body throws */
    async take(handedOver: HandedOver): Promise<void> {
      using admitted = await admit(handedOver);
      const { handOver, key, pieces, entry } = admitted;
      await using file = store.begin(key);
      const sizeBytes = await file.write(handOver, pieces.read, (now) => index.reserve(entry, now));
      await pieces.end();
      await inOrder(async () => {
        index.stopping.throwIfAborted();
        await file.place();
        await store.sync().catch(async (error) => {
          entries.delete(key);
          await store.remove(key);
          throw error;
        });
        index.keep(key, entry, sizeBytes);
        counts.handed_over_total++;
      }, handedOver.gone);
    },
    /** Whether it would be taken. @throws Refused where not */
    check: async (handedOver: HandedOver): Promise<void> => (await admit(handedOver))[Symbol.dispose](),
    /** Forgets what that pod handed over: its main runs again. @throws Refused, or what the store throws */
    async withdraw(handedOver: HandedOver): Promise<void> {
      const { key } = await readHead(handedOver);
      await inOrder(async () => {
        if (!entries.delete(key)) return;
        counts.withdrawn_total++;
        await store.remove(key);
        await store.sync();
      });
    },
    /** Opens the page of a scrape; null: it is not kept. @throws Error where it cannot be read */
    async open(key: string): Promise<OpenPage | null> {
      const entry = entries.get(key);
      if (entry === undefined) return null;
      return store.open(key, true).catch(async (error) => {
        if (error instanceof CorruptPage) await inOrder(() => giveUp(key, error, entry));
        throw error;
      });
    },
    /** Once nothing is removed any more that was to be. */
    settle: () => inOrder(async () => {}),
  };
}
