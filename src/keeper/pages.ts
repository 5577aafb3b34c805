// The pages that are kept: the index of the store, with what decide/keep says of each. Holds no rule.

import type { Clock } from '../base/waits.ts';
import {
  addDiscovery,
  addTake,
  advancePage,
  beginDiscovery,
  beginPage,
  CORRUPT_SHARE,
  changeRoom,
  chooseFormat,
  countHandOver,
  EMPTY_ROOM,
  findLivingAskers,
  judgeRoom,
  type KeepLimits,
  NOTHING_TAKEN,
  nameClient,
  type PageEnd,
  type PageLife,
  type Refusal,
  type RoomChange,
  sweepRoom,
  type Taken,
} from '../decide/keep/keep.ts';
import { listTargetLabels } from '../decide/keep/targets.ts';
import type { LogEntry } from '../decide/messages.ts';
import type { ScraperRequest } from '../decide/serve/scrapers.ts';
import type { KeptCounts } from './metrics.ts';
import { openBody, type ProvenPod, Refused, readHandOver } from './request.ts';
import { type Found, type Kept, nameKey, type OpenPage, type Store } from './store.ts';

/** What is in memory of a page: as little as can be, since there may be 10,000. */
type Entry = {
  readonly namespace: string;
  /** Its labels as a target: JSON in UTF-8, outside V8's heap, which is small. */
  readonly labels: Buffer;
  readonly taken: Taken;
  readonly takenAtSeconds: number;
  life: PageLife;
};

export type Pages = Awaited<ReturnType<typeof openPages>>;

/** A hand-over as it comes. */
export type HandedOver = {
  readonly body: AsyncIterable<Uint8Array>;
  /** Who the pod is; null: as it says. */
  readonly proven: ProvenPod | null;
  /** The peer's. */
  readonly address: string;
  /** Aborted where the pod waits no more. */
  readonly gone: AbortSignal;
};

type PagesParts = {
  readonly store: Store;
  readonly limits: KeepLimits;
  readonly clock: Clock;
  /** Since 1970. */
  readonly wallMs: () => number;
  readonly log: (entry: LogEntry) => void;
};

export const PAGE_PATH = '/pages/';
/** How many files are read at once at the start. */
const READ_AT_ONCE = 16;

type Index = ReturnType<typeof openIndex>;

/** What is kept by key, and the room that this takes up. */
function openIndex({ limits, clock }: Pick<PagesParts, 'limits' | 'clock'>) {
  const entries = new Map<string, Entry>();
  let room = EMPTY_ROOM;
  const change = (by: RoomChange): void => {
    room = changeRoom(room, by);
  };
  function forget(key: string): void {
    const entry = entries.get(key);
    entries.delete(key);
    if (entry !== undefined) change({ namespace: entry.namespace, from: entry.taken });
  }
  return {
    entries,
    change,
    forget,
    sizeBytes: () => room.taken.sizeBytes,
    sweep: (): void => {
      room = sweepRoom(room, clock.nowMs());
    },
    /** In place of what that pod handed over before; its room was taken by `change`. */
    keep(key: string, entry: Omit<Entry, 'life'>): void {
      forget(key);
      entries.set(key, { ...entry, life: beginPage(clock.nowMs()) });
    },
    /** Why there is no room for that; null: there is. */
    judge: (by: RoomChange): Refusal | null => judgeRoom(room, by, limits),
    /** One more hand-over or check of a namespace begins: thousands of labels take 10 ms. @throws Refused */
    begin(namespace: string): void {
      const counted = countHandOver(room, namespace, clock.nowMs());
      if (typeof counted === 'string') throw new Refused(counted, namespace);
      room = counted;
    },
  };
}

/** A page as it is in memory. `change`: the room that it takes up. */
function describePage(key: string, kept: Kept, sizeBytes: number) {
  const { pod, takenAtSeconds, formats } = kept;
  const text = JSON.stringify(listTargetLabels(kept, PAGE_PATH + key));
  const labels = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  labels.write(text);
  const plainBytes = formats.reduce((sum, format) => sum + format.sizeBytes, 0);
  const taken: Taken = { pagesCount: 1, sizeBytes, plainBytes, headBytes: labels.length };
  return { namespace: pod.namespace, labels, taken, takenAtSeconds };
}

async function readHead({ body, proven, address }: HandedOver) {
  const pieces = openBody(body[Symbol.asyncIterator]());
  const handOver = readHandOver(await pieces.readLine(), proven, address);
  return { handOver, key: nameKey(handOver.pod), pieces };
}

/** Takes a hand-over into the store. `inOrder`: what is in memory is of the file that is in place. */
async function takeIn(
  { store, wallMs }: Pick<PagesParts, 'store' | 'wallMs'>,
  index: Index,
  handedOver: HandedOver,
  inOrder: (work: () => Promise<void>) => Promise<void>,
  isStopping: () => boolean,
): Promise<void> {
  const { handOver, key, pieces } = await readHead(handedOver);
  index.begin(handOver.pod.namespace);
  const kept: Kept = { ...handOver, takenAtSeconds: Math.round(wallMs()) / 1000 };
  const { namespace, ...page } = describePage(key, kept, 0);
  let reserved = NOTHING_TAKEN;
  // Others that come meanwhile must not get the same room.
  function reserve(sizeBytes: number): void {
    const change = { namespace, from: reserved, to: { ...page.taken, sizeBytes } };
    const why = index.judge(change);
    if (why !== null) throw new Refused(why, namespace);
    index.change(change);
    reserved = change.to;
  }
  try {
    await using written = await store.write(kept, pieces.read, reserve);
    await pieces.end();
    await inOrder(async () => {
      handedOver.gone.throwIfAborted();
      if (isStopping()) throw new Refused('stopping');
      await written.place();
      await store.sync().catch(async (error) => {
        index.forget(key);
        await store.remove(key);
        throw error;
      });
      index.keep(key, { ...page, namespace, taken: reserved });
      reserved = NOTHING_TAKEN;
    });
  } finally {
    index.change({ namespace, from: reserved });
  }
}

/** Keeps the index and the store in step: one change of a file after the other. */
function openFiles({ store, limits, log }: PagesParts, index: Index) {
  const { entries } = index;
  const counts = { corrupt_total: 0, withdrawn_total: 0 };
  let placing: Promise<unknown> = Promise.resolve();
  function inOrder(work: () => Promise<void>): Promise<void> {
    const placed = placing.then(work);
    placing = placed.catch(() => {});
    return placed;
  }
  function warn(problem: string): void {
    counts.corrupt_total++;
    log({ id: 'keptPageCorrupt', fields: { problem } });
  }
  async function setAside(key: string, why: string): Promise<void> {
    const path = await store.setAside(key, limits.maxBytes * CORRUPT_SHARE);
    warn(`${path}: ${why}; its numbers are lost, delete it`);
  }
  function takeBack(key: string, { kept, sizeBytes }: Found): void {
    const page = describePage(key, kept, sizeBytes);
    index.change({ namespace: page.namespace, to: page.taken });
    index.keep(key, page);
  }
  /** Its page is not what was written: it is kept no more. */
  async function giveUp(key: string, entry: Entry, why: string): Promise<void> {
    if (entries.get(key) !== entry) return;
    index.forget(key);
    await setAside(key, why);
  }
  async function open(
    key: string,
    accept: string,
  ): Promise<{ readonly page: OpenPage; readonly index: number } | null> {
    const entry = entries.get(key);
    if (entry === undefined) return null;
    try {
      const page = await store.open(key);
      if (page.kind === 'page') return { page, index: chooseFormat(page.kept.formats, accept) };
      await inOrder(() => giveUp(key, entry, page.why));
      throw new Error(page.why);
    } catch (error) {
      // It was replaced or forgotten meanwhile.
      if (entries.has(key) && entries.get(key) !== entry) return open(key, accept);
      throw error;
    }
  }
  return {
    inOrder,
    count: () => counts,
    /** All that the store has; what cannot be read stays. @throws what the file system throws */
    async readAll(): Promise<void> {
      const inspect = (key: string) =>
        store.inspect(key).catch(({ message }: Error) => {
          warn(`${key}.page: ${message}; mend it and start again, or delete it`);
          return null;
        });
      const keys = await store.listKeys();
      for (let from = 0; from < keys.length; from += READ_AT_ONCE) {
        const some = keys.slice(from, from + READ_AT_ONCE);
        for (const [index, found] of (await Promise.all(some.map(inspect))).entries()) {
          const key = some[index] ?? '';
          if (found?.kind === 'corrupt') await setAside(key, found.why);
          else if (found !== null) takeBack(key, found);
        }
      }
    },
    /** Forgets a page, also one that is just put in place. @throws what the file system throws */
    withdraw: (key: string): Promise<void> =>
      inOrder(async () => {
        if (!entries.has(key)) return;
        counts.withdrawn_total++;
        index.forget(key);
        await store.remove(key);
        await store.sync();
      }),
    /** Unless the same pod hands over again meanwhile. Never rejects. */
    remove: (key: string): Promise<void> =>
      inOrder(async () => (entries.has(key) ? undefined : store.remove(key))).catch(() => {}),
    /** Opens the page of a scrape; null: it is not kept. @throws Error where it cannot be read */
    open,
  };
}

/** Opens the pages with all that the store has. @throws what the file system throws */
export async function openPages(parts: PagesParts) {
  const { clock, log } = parts;
  const index = openIndex(parts);
  const { entries } = index;
  const files = openFiles(parts, index);
  const ends: Record<PageEnd, number> = { taken: 0, expired: 0 };
  let handedOverCount = 0;
  let discovery = beginDiscovery(clock.nowMs());
  let isStopping = false;
  await files.readAll();

  /** What time has changed. */
  function advance(): void {
    const nowMs = clock.nowMs();
    const living = findLivingAskers(discovery, nowMs);
    for (const [key, entry] of entries) {
      const { life, end } = advancePage(entry.life, { living, nowMs, isStopping });
      if (end !== null) ends[end]++;
      if (end === 'expired') log({ id: 'keptPageExpired', fields: { target: entry.labels.toString('utf8', 0, 300) } });
      if (life !== null) entry.life = life;
      else {
        index.forget(key);
        void files.remove(key);
      }
    }
    index.sweep();
  }
  const listListed = () => [...entries.values()].filter(({ life }) => life.kind === 'listed');
  return {
    advance,
    /** Takes a hand-over in: on the disk once this has returned. @throws Refused, or what its body throws */
    async take(handedOver: HandedOver): Promise<void> {
      await takeIn(parts, index, handedOver, files.inOrder, () => isStopping);
      handedOverCount++;
    },
    /** Whether it would be taken. @throws Refused where not */
    async check(handedOver: HandedOver): Promise<void> {
      const { handOver, key } = await readHead(handedOver);
      index.begin(handOver.pod.namespace);
      const { namespace, taken } = describePage(key, { ...handOver, takenAtSeconds: 0 }, 0);
      const why = index.judge({ namespace, to: taken });
      if (why !== null) throw new Refused(why, namespace);
    },
    /** Forgets what that pod handed over: its main runs again. @throws Refused, or what the store throws */
    withdraw: async (handedOver: HandedOver): Promise<void> => files.withdraw((await readHead(handedOver)).key),
    /** The targets of now, in JSON each. */
    listTargets(request: ScraperRequest, refreshMs: number | null): readonly Pick<Entry, 'labels'>[] {
      discovery = addDiscovery(discovery, request, refreshMs);
      advance();
      return listListed();
    },
    open: files.open,
    /** A scraper got that page whole, which it asked for at `startedAtMs`. */
    addTake(key: string, { startedAtMs, ...client }: ScraperRequest): void {
      const entry = entries.get(key);
      const isOlder = entry?.life.kind === 'listed' && startedAtMs < entry.life.sinceMs;
      if (entry !== undefined && !isOlder) entry.life = addTake(entry.life, nameClient(client));
    },
    /** From now on nothing more is taken, and a page is unlisted once all have scraped it. */
    stop(): void {
      isStopping = true;
    },
    /** Once nothing is removed any more that was to be. */
    settle: () => files.inOrder(async () => {}),
    /** Why the next hand-over of a small page would be refused, of whatever namespace; null: it would not. */
    findRefusal: (): Refusal | null =>
      isStopping ? 'stopping' : index.judge({ namespace: '', to: { ...NOTHING_TAKEN, pagesCount: 1 } }),
    count(): KeptCounts {
      const seconds = listListed().map(({ takenAtSeconds }) => takenAtSeconds);
      return {
        pages: entries.size,
        pages_listed: seconds.length,
        bytes: index.sizeBytes(),
        handed_over_total: handedOverCount,
        scraped_total: ends.taken,
        expired_total: ends.expired,
        ...files.count(),
        oldest_page_timestamp_seconds:
          seconds.length === 0 ? null : seconds.reduce((one, other) => Math.min(one, other)),
      };
    },
  };
}
