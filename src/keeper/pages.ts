// The pages that are kept: the index of the store, with what decide/keep says of each. Holds no rule.

import type { Clock } from '../base/waits.ts';
import {
  addDiscovery,
  addTake,
  advancePage,
  beginPage,
  type Claim,
  CORRUPT_SHARE,
  changeClaim,
  countHandOver,
  findLivingAskers,
  judgeRoom,
  type KeepLimits,
  NO_CLAIM,
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
type Entry = {
  readonly namespace: string;
  /** As a target: JSON in UTF-8, outside V8's heap, which is small. */
  readonly labels: Buffer;
  readonly takenAtSeconds: number;
  claim: Claim;
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
const READ_BACK_AT_ONCE = 16;

/** A page as it is in memory. */
function describePage(key: string, handOver: HandOver, sizeBytes: number, takenAtSeconds: number) {
  const text = JSON.stringify(listTargetLabels(handOver, PAGE_PATH + key));
  const labels = Buffer.from(new TextEncoder().encode(text).buffer);
  const plainBytes = handOver.formats.reduce((sum, format) => sum + format.sizeBytes, 0);
  const full: Claim = { pagesCount: 1, sizeBytes, plainBytes, labelBytes: labels.length };
  const { namespace } = handOver.pod;
  const entry: Entry = { namespace, labels, takenAtSeconds, claim: NO_CLAIM, life: beginPage(0) };
  return { entry, full };
}

/** What is kept, by key, for how long, and the room that this and hand-overs under way take up. */
function openIndex({ limits, clock, log }: PagesParts, onForgotten: (key: string) => void) {
  const entries = new Map<string, Entry>();
  /** What each namespace claims, '' all of them: thousands of pages are not summed up for each piece. */
  const claims = new Map([['', NO_CLAIM]]);
  const counts = {
    ...{ handed_over_total: 0, withdrawn_total: 0, scraped_total: 0, expired_total: 0, corrupt_total: 0 },
    refused_total: Object.fromEntries(Object.keys(REFUSALS).map((each) => [each, 0])) as Record<Refusal, number>,
  };
  let rates: Rates = new Map();
  const sinceMs = clock.nowMs();
  let discovery = NO_DISCOVERY;
  const stopping = new AbortController();
  const listListed = () => [...entries.values()].filter(({ life }) => life.kind === 'listed');
  const sum = (namespace: string) => claims.get(namespace) ?? NO_CLAIM;

  function claim(entry: Entry, next: Claim): void {
    for (const name of ['', entry.namespace]) claims.set(name, changeClaim(sum(name), entry.claim, next));
    if (sum(entry.namespace).pagesCount === 0) claims.delete(entry.namespace);
    entry.claim = next;
  }
  function forget(key: string): boolean {
    const entry = entries.get(key);
    if (entry !== undefined) claim(entry, NO_CLAIM);
    return entries.delete(key);
  }

  /** What time has changed. */
  function advance(): void {
    const living = findLivingAskers(discovery, sinceMs, clock.nowMs());
    for (const [key, entry] of entries) {
      const life = advancePage(entry.life, living, stopping.signal.aborted);
      const end = life?.kind === 'answered' && life !== entry.life ? life.end : null;
      if (end !== null) counts[end === 'taken' ? 'scraped_total' : 'expired_total']++;
      if (end === 'expired') log({ id: 'keptPageExpired', fields: { target: entry.labels.toString('utf8', 0, 300) } });
      if (life !== null) entry.life = life;
      else if (forget(key)) onForgotten(key);
    }
  }
  return {
    ...{ entries, counts, claim, forget, advance, stopping: stopping.signal },
    keep(key: string, { entry, full }: ReturnType<typeof describePage>): void {
      forget(key);
      claim(entry, full);
      entry.life = beginPage(clock.nowMs());
      entries.set(key, entry);
    },
    /** A hand-over or a check begins. @throws Refused */
    begin(namespace: string): void {
      const counted = countHandOver(rates, namespace, clock.nowMs());
      if (typeof counted === 'string') throw new Refused(counted, namespace);
      rates = counted;
    },
    /** Others that come meanwhile do not get the same room. @throws Refused */
    reserve(entry: Entry, next: Claim): void {
      claim(entry, next);
      const why = judgeRoom(sum(''), sum(entry.namespace), limits);
      if (why !== null) throw new Refused(why, entry.namespace);
    },
    /** Why the next hand-over of a small page would be refused, of whatever namespace; null: it would not. */
    findRefusal(): Refusal | null {
      if (stopping.signal.aborted) return 'stopping';
      const all = sum('');
      return judgeRoom({ ...all, pagesCount: all.pagesCount + 1 }, NO_CLAIM, limits);
    },
    /** From now on nothing more is taken, and a page is unlisted once all have scraped it. */
    stop: () => stopping.abort(new Refused('stopping')),
    /** The targets of now, in JSON each. */
    listTargets(request: ScraperRequest, refreshMs: number | null): readonly Pick<Entry, 'labels'>[] {
      discovery = addDiscovery(discovery, request, refreshMs);
      advance();
      return listListed();
    },
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
        bytes: sum('').sizeBytes,
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
  // Neither this nor giving up touches what the same pod has handed over again meanwhile.
  const remove = (key: string) => inOrder(async () => (index.entries.has(key) ? undefined : store.remove(key)));
  const index = openIndex(parts, remove);
  const { entries, counts, forget } = index;

  async function giveUp(key: string, error: Error, entry?: Entry): Promise<void> {
    if (entries.get(key) !== entry) return;
    forget(key);
    counts.corrupt_total++;
    const isCorrupt = error instanceof CorruptPage;
    const path = isCorrupt ? await store.setAside(key, limits.maxBytes * CORRUPT_SHARE) : `${key}.page`;
    const advice = isCorrupt ? 'its numbers are lost, delete it' : 'mend it and start again, or delete it';
    log({ id: 'keptPageCorrupt', fields: { problem: `${path}: ${error.message}; ${advice}` } });
  }
  async function readBack(key: string): Promise<void> {
    await using page = await store.open(key, false);
    index.keep(key, describePage(key, page.kept, page.sizeBytes, page.takenAtSeconds));
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
    const { entry, full } = describePage(key, handOver, 0, Math.round(wallMs()) / 1000);
    const reserve = (sizeBytes: number) => index.reserve(entry, { ...full, sizeBytes });
    const leave = () => (entries.get(key) === entry ? undefined : index.claim(entry, NO_CLAIM));
    return { handOver, key, pieces, entry, reserve, [Symbol.dispose]: leave };
  }
  // What cannot be read now stays there.
  const keys = await store.listKeys();
  const read = (key: string) => readBack(key).catch((error) => giveUp(key, error));
  while (keys.length > 0) await Promise.all(keys.splice(0, READ_BACK_AT_ONCE).map(read));

  return {
    ...index,
    /** Takes a hand-over in: on the disk once this has returned. @throws Refused, or what its body throws */
    async take(handedOver: HandedOver): Promise<void> {
      using admitted = await admit(handedOver);
      const { handOver, key, pieces, entry } = admitted;
      await using file = store.begin(key);
      await file.write(handOver, pieces.read, admitted.reserve);
      await pieces.end();
      await inOrder(async () => {
        index.stopping.throwIfAborted();
        await file.place();
        await store.sync().catch(async (error) => {
          forget(key);
          await store.remove(key);
          throw error;
        });
        index.keep(key, { entry, full: entry.claim });
        counts.handed_over_total++;
      }, handedOver.gone);
    },
    /** Whether it would be taken. @throws Refused where not */
    async check(handedOver: HandedOver): Promise<void> {
      using admitted = await admit(handedOver);
      admitted.reserve(0);
    },
    /** Forgets what that pod handed over: its main runs again. @throws Refused, or what the store throws */
    async withdraw(handedOver: HandedOver): Promise<void> {
      const { key } = await readHead(handedOver);
      await inOrder(async () => {
        if (!forget(key)) return;
        counts.withdrawn_total++;
        await store.remove(key).then(store.sync);
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
