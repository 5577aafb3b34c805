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
  type PageLife,
  type Refusal,
  sweepRoom,
  type Taken,
} from '../decide/keep/keep.ts';
import { listTargetLabels } from '../decide/keep/targets.ts';
import type { LogEntry } from '../decide/messages.ts';
import type { ScraperRequest } from '../decide/serve/scrapers.ts';
import type { KeptCounts } from './metrics.ts';
import { openBody, type ProvenPod, Refused, readHandOver } from './request.ts';
import { CorruptPage, type Kept, nameKey, type Store, type Written } from './store.ts';

/** What is in memory of a page: as little as can be, since there may be 10,000. */
type Entry = {
  readonly namespace: string;
  /** Its labels as a target: JSON in UTF-8, outside V8's heap, which is small. */
  readonly labels: Buffer;
  readonly taken: Taken;
  readonly takenAtSeconds: number;
  life: PageLife;
};

type Index = ReturnType<typeof openIndex>;
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

/** What is kept by key, and the room that this and hand-overs under way take up. */
function openIndex({ limits, clock }: Pick<PagesParts, 'limits' | 'clock'>) {
  const entries = new Map<string, Entry>();
  const counts = { handed_over_total: 0, withdrawn_total: 0, scraped_total: 0, expired_total: 0, corrupt_total: 0 };
  let room = EMPTY_ROOM;
  function forget(key: string): void {
    const entry = entries.get(key);
    entries.delete(key);
    if (entry !== undefined) room = changeRoom(room, { namespace: entry.namespace, from: entry.taken });
  }
  return {
    entries,
    counts,
    forget,
    sizeBytes: () => room.taken.sizeBytes,
    sweep(): void {
      room = sweepRoom(room, clock.nowMs());
    },
    /** In place of what that pod handed over before. */
    keep(key: string, entry: Omit<Entry, 'life'>): void {
      forget(key);
      room = changeRoom(room, { namespace: entry.namespace, to: entry.taken });
      entries.set(key, { ...entry, life: beginPage(clock.nowMs()) });
    },
    /** Why there is no room for that; null: there is. */
    judge: (namespace: string, to: Taken): Refusal | null => judgeRoom(room, { namespace, to }, limits),
    /** A hand-over or a check begins. @throws Refused */
    begin(namespace: string) {
      const counted = countHandOver(room, namespace, clock.nowMs());
      if (typeof counted === 'string') throw new Refused(counted, namespace);
      room = counted;
      let from = NOTHING_TAKEN;
      function change(to: Taken): void {
        room = changeRoom(room, { namespace, from, to });
        from = to;
      }
      return {
        /** Others that come meanwhile do not get the same room. @throws Refused */
        reserve(to: Taken): void {
          const why = judgeRoom(room, { namespace, from, to }, limits);
          if (why !== null) throw new Refused(why, namespace);
          change(to);
        },
        [Symbol.dispose]: () => change(NOTHING_TAKEN),
      };
    },
  };
}

/** A page as it is in memory. */
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
  return { handOver, key: nameKey(handOver), pieces };
}

/** Keeps the index and the store in step: one change of a file after the other. */
function openFiles({ store, limits, log }: PagesParts, { entries, counts, ...index }: Index) {
  let placing: Promise<unknown> = Promise.resolve();
  function inOrder(work: () => Promise<void>): Promise<void> {
    const placed = placing.then(work);
    placing = placed.catch(() => {});
    return placed;
  }
  /** Unless the same pod hands over again meanwhile. Never rejects. */
  const remove = (key: string) => inOrder(async () => (entries.has(key) ? undefined : store.remove(key)));
  async function giveUp(key: string, error: Error): Promise<void> {
    counts.corrupt_total++;
    const isCorrupt = error instanceof CorruptPage;
    const path = isCorrupt ? await store.setAside(key, limits.maxBytes * CORRUPT_SHARE) : `${key}.page`;
    const advice = isCorrupt ? 'its numbers are lost, delete it' : 'mend it and start again, or delete it';
    log({ id: 'keptPageCorrupt', fields: { problem: `${path}: ${error.message}; ${advice}` } });
  }
  async function readBack(key: string): Promise<void> {
    try {
      const { kept, sizeBytes } = await store.inspect(key);
      index.keep(key, describePage(key, kept, sizeBytes));
    } catch (error) {
      await giveUp(key, error as Error);
    }
  }
  /** Opens the page of a scrape; null: it is not kept. @throws Error where it cannot be read */
  async function open(key: string, accept: string) {
    const entry = entries.get(key);
    if (entry === undefined) return null;
    try {
      const page = await store.open(key, entry.taken.sizeBytes);
      return { page, index: chooseFormat(page.kept.formats, accept) };
    } catch (error) {
      await inOrder(async () => {
        if (entries.get(key) !== entry || !(error instanceof CorruptPage)) return;
        index.forget(key);
        await giveUp(key, error);
      });
      // It was replaced meanwhile, or was being replaced.
      if (entries.has(key) && entries.get(key) !== entry) return open(key, accept);
      throw error;
    }
  }
  return {
    inOrder,
    remove,
    open,
    /** The file survives a crash then. @throws what the file system throws; then none is there */
    async place(key: string, written: Written): Promise<void> {
      await written.place();
      await store.sync().catch(async (error) => {
        index.forget(key);
        await store.remove(key);
        throw error;
      });
    },
    withdraw: (key: string): Promise<void> =>
      inOrder(async () => {
        if (!entries.has(key)) return;
        counts.withdrawn_total++;
        index.forget(key);
        await store.remove(key);
        await store.sync();
      }),
    /** All that the store has; what cannot be read now stays there. @throws what the file system throws */
    async readAll(): Promise<void> {
      const keys = await store.listKeys();
      while (keys.length > 0) await Promise.all(keys.splice(0, READ_AT_ONCE).map(readBack));
    },
  };
}

/** Opens the pages with all that the store has. @throws what the file system throws */
export async function openPages(parts: PagesParts) {
  const { store, limits, clock, wallMs, log } = parts;
  const index = openIndex(parts);
  const { entries, counts } = index;
  const files = openFiles(parts, index);
  let discovery = beginDiscovery(clock.nowMs());
  let isStopping = false;
  await files.readAll();

  /** What time has changed. */
  function advance(): void {
    const nowMs = clock.nowMs();
    const living = findLivingAskers(discovery, nowMs);
    for (const [key, entry] of entries) {
      const { life, end } = advancePage(entry.life, { living, nowMs, isStopping });
      if (end !== null) counts[end === 'taken' ? 'scraped_total' : 'expired_total']++;
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
      const { handOver, key, pieces } = await readHead(handedOver);
      using room = index.begin(handOver.pod.namespace);
      const kept: Kept = { ...handOver, takenAtSeconds: Math.round(wallMs()) / 1000 };
      let page = describePage(key, kept, 0);
      await using written = await store.write(kept, pieces.read, (sizeBytes) => {
        page = { ...page, taken: { ...page.taken, sizeBytes } };
        room.reserve(page.taken);
      });
      await pieces.end();
      await files.inOrder(async () => {
        handedOver.gone.throwIfAborted();
        if (isStopping) throw new Refused('stopping');
        await files.place(key, written);
        room[Symbol.dispose]();
        index.keep(key, page);
        counts.handed_over_total++;
      });
    },
    /** Whether it would be taken. @throws Refused where not */
    async check(handedOver: HandedOver): Promise<void> {
      const { handOver, key } = await readHead(handedOver);
      using room = index.begin(handOver.pod.namespace);
      room.reserve(describePage(key, { ...handOver, takenAtSeconds: 0 }, 0).taken);
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
    findRefusal: (): Refusal | null => (isStopping ? 'stopping' : index.judge('', { ...NOTHING_TAKEN, pagesCount: 1 })),
    count(): KeptCounts {
      const seconds = listListed().map(({ takenAtSeconds }) => takenAtSeconds);
      return {
        ...counts,
        pages: entries.size,
        pages_limit: limits.maxPages,
        pages_listed: seconds.length,
        bytes: index.sizeBytes(),
        bytes_limit: limits.maxBytes,
        oldest_page_timestamp_seconds: seconds.length === 0 ? null : seconds.reduce((a, b) => Math.min(a, b)),
      };
    },
  };
}
