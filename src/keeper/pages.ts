// The pages that are kept: the index of the store, with what decide/keep says of each. Holds no rule.

import { createHash } from 'node:crypto';
import type { Clock } from '../base/waits.ts';
import {
  addDiscovery,
  addTake,
  addToRoom,
  advancePage,
  beginPage,
  chooseFormat,
  countHandOver,
  EMPTY_ROOM,
  findLivingAskers,
  judgeRoom,
  type KeepLimits,
  NO_DISCOVERY,
  NOTHING_TAKEN,
  nameClient,
  type PageEnd,
  type PageFormat,
  type PageLife,
  type Refusal,
  subtract,
  type Taken,
} from '../decide/keep/keep.ts';
import { type HandOver, listTargetLabels } from '../decide/keep/targets.ts';
import type { LogEntry } from '../decide/messages.ts';
import type { ScraperRequest } from '../decide/serve/scrapers.ts';
import { type ProvenPod, Refused, readExactly, readHandOver, readHead } from './request.ts';
import type { OpenPage, Store } from './store.ts';

/** What is in memory of a page: as little as can be, since there may be 10,000. */
type Kept = {
  readonly namespace: string;
  /** Its labels as a target: JSON in UTF-8, outside V8's heap, which is small. */
  readonly labels: Buffer;
  readonly sizeBytes: number;
  readonly endedAtSeconds: number;
  life: PageLife;
};

/** What happened since the start, and what is there. */
export type KeptCounts = {
  readonly pagesCount: number;
  readonly listedCount: number;
  readonly sizeBytes: number;
  readonly handedOverCount: number;
  readonly corruptCount: number;
  readonly ends: Readonly<Record<PageEnd, number>>;
  /** When main ended whose page is listed for longest, in seconds since 1970; null: none is listed. */
  readonly oldestSeconds: number | null;
};

/** A page that is being scraped. */
export type ScrapedPage = { readonly page: OpenPage; readonly format: PageFormat; readonly fromBytes: number };

export type Pages = Awaited<ReturnType<typeof openPages>>;

/** A hand-over as it comes. */
export type HandedOver = {
  readonly body: AsyncIterable<Uint8Array>;
  /** Who the pod is; null: as it says. */
  readonly proven: ProvenPod | null;
  /** The peer's. */
  readonly address: string;
  /** The pod still waits. */
  readonly isWanted: () => boolean;
};

type PagesParts = {
  readonly store: Store;
  readonly limits: KeepLimits;
  readonly clock: Clock;
  readonly log: (entry: LogEntry) => void;
};

/** Where a page is served. */
export const PAGE_PATH = '/pages/';

/** What is kept by key, and the room that it takes up. */
function openIndex({ limits, clock }: Pick<PagesParts, 'limits' | 'clock'>) {
  const pages = new Map<string, Kept>();
  let room = EMPTY_ROOM;
  const add = (namespace: string, more: Taken): void => {
    room = addToRoom(room, namespace, more, clock.nowMs());
  };
  function forget(key: string): void {
    const kept = pages.get(key);
    if (kept === undefined) return;
    pages.delete(key);
    add(kept.namespace, subtract(NOTHING_TAKEN, measure(kept)));
  }

  return {
    pages,
    room: () => room,
    forget,
    /** In place of what that pod handed over before. */
    keep(key: string, handOver: HandOver, sizeBytes: number): void {
      forget(key);
      const { endedAtSeconds, pod } = handOver;
      const text = JSON.stringify(listTargetLabels(handOver, PAGE_PATH + key));
      const labels = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
      labels.write(text);
      const life = beginPage(clock.nowMs());
      const kept: Kept = { namespace: pod.namespace, labels, sizeBytes, endedAtSeconds, life };
      pages.set(key, kept);
      add(pod.namespace, measure(kept));
    },
    /** Why there is no room for that; null: there is. */
    judge(namespace: string, more: Taken, key = ''): Refusal | null {
      const before = pages.get(key);
      const replaced = before === undefined ? NOTHING_TAKEN : measure(before);
      return judgeRoom(room, { namespace, more, replaced }, limits);
    },
    /** One more hand-over of a namespace begins. @throws Refused */
    count(namespace: string): void {
      const counted = countHandOver(room, namespace, clock.nowMs());
      if (typeof counted === 'string') throw new Refused(counted, namespace);
      room = counted;
    },
    /** Takes up room for a hand-over while it comes, which others that come meanwhile must not get too. */
    add,
  };
}

function measure({ sizeBytes, labels }: Pick<Kept, 'sizeBytes' | 'labels'>): Taken {
  return { pagesCount: 1, sizeBytes, headBytes: labels.length };
}

type Index = ReturnType<typeof openIndex>;

/** Room that grows with the bytes that have come; `end` gives it back. */
function openReservation(
  index: Index,
  { key, namespace, headBytes }: Record<'key' | 'namespace', string> & { headBytes: number },
) {
  let reserved: Taken = NOTHING_TAKEN;
  return {
    /** @throws Refused where there is none */
    grow(sizeBytes: number): void {
      const taken = { pagesCount: 1, sizeBytes, headBytes };
      const more = subtract(taken, reserved);
      const why = index.judge(namespace, more, key);
      if (why !== null) throw new Refused(why, namespace);
      index.add(namespace, more);
      reserved = taken;
    },
    end: (): void => index.add(namespace, subtract(NOTHING_TAKEN, reserved)),
  };
}

/** Takes a hand-over into the store. `inTurn`: what is in memory is of the file that is in place. */
async function takeIn(
  { store }: Pick<PagesParts, 'store'>,
  index: Index,
  { body, proven, address, isWanted }: HandedOver,
  inTurn: (work: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const { line, rest } = await readHead(body[Symbol.asyncIterator]());
  const handOver = readHandOver(line, proven, address);
  const { namespace, name, uid } = handOver.pod;
  index.count(namespace);
  const key = createHash('sha256').update(`${namespace}/${name}/${uid}`).digest('hex').slice(0, 32);
  const head = JSON.stringify(handOver);
  const reservation = openReservation(index, { key, namespace, headBytes: head.length });
  try {
    const plainBytes = handOver.formats.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const written = await store.write(key, head, readExactly(rest, plainBytes), reservation.grow);
    await inTurn(async () => {
      if (!isWanted()) throw new Refused('unreadable', 'the pod hung up');
      await written.commit();
      index.keep(key, handOver, written.sizeBytes);
    }).catch(async (error) => {
      await written.discard();
      throw error;
    });
  } finally {
    reservation.end();
  }
}

/** How many targets go out at a time: all of them are 10 MB. */
const WRITTEN_AT_ONCE = 256;

async function* writeTargets(listed: readonly Pick<Kept, 'labels'>[], host: string): AsyncGenerator<Uint8Array> {
  const start = Buffer.from(`{"targets":[${JSON.stringify(host)}],"labels":`);
  const [end, last] = [Buffer.from('},\n'), Buffer.from('}')];
  yield Buffer.from('[');
  for (let from = 0; from < listed.length; from += WRITTEN_AT_ONCE) {
    const some = listed.slice(from, from + WRITTEN_AT_ONCE);
    yield Buffer.concat(some.flatMap(({ labels }) => [start, labels, labels === listed.at(-1)?.labels ? last : end]));
  }
  yield Buffer.from(']\n');
}

/** Opens the pages with all that the store has. @throws where that cannot be read */
export async function openPages(parts: PagesParts) {
  const { store, clock, log } = parts;
  const index = openIndex(parts);
  const ends: Record<PageEnd, number> = { taken: 0, expired: 0 };
  const counts = { handedOver: 0, corrupt: 0 };
  let discovery = NO_DISCOVERY;
  let isStopping = false;
  let placing: Promise<unknown> = Promise.resolve();

  function reportCorrupt(file: string, why: string): void {
    counts.corrupt++;
    log({ id: 'keptPageCorrupt', fields: { problem: `${file}: ${why}; its numbers are lost, delete it` } });
  }
  /** What time has changed. */
  function advance(): void {
    const nowMs = clock.nowMs();
    const living = findLivingAskers(discovery, nowMs);
    for (const [key, kept] of index.pages) {
      const { life, end } = advancePage(kept.life, { living, nowMs, isStopping });
      if (end !== null) ends[end]++;
      if (end === 'expired') log({ id: 'keptPageExpired', fields: { target: kept.labels.toString('utf8', 0, 300) } });
      if (life !== null) kept.life = life;
      else {
        index.forget(key);
        void store.remove(key);
      }
    }
  }
  const listListed = () => [...index.pages.values()].filter(({ life }) => life.kind === 'listed');

  for await (const found of store.readBack()) {
    if (found.kind === 'corrupt') reportCorrupt(found.file, found.why);
    else index.keep(found.key, JSON.parse(found.head), found.sizeBytes);
  }

  return {
    advance,
    /**
     * Takes a hand-over in; it is on the disk once this has returned. @throws Refused, or what its body
     * throws
     */
    async take(handedOver: HandedOver): Promise<void> {
      const isWanted = () => !isStopping && handedOver.isWanted();
      await takeIn(parts, index, { ...handedOver, isWanted }, (work) => {
        const placed = placing.then(work);
        placing = placed.catch(() => {});
        return placed;
      });
      counts.handedOver++;
    },
    /** The targets of now, as http_sd_configs wants them. `host`: by which the keeper was asked. */
    listTargets(request: ScraperRequest, refreshMs: number | null, host: string): () => AsyncGenerator<Uint8Array> {
      discovery = addDiscovery(discovery, request, refreshMs);
      advance();
      const listed = listListed();
      return () => writeTargets(listed, host);
    },
    /** Opens the page of a scrape; null: it is not kept. @throws Error where it cannot be read */
    async open(key: string, accept: string): Promise<ScrapedPage | null> {
      const kept = index.pages.get(key);
      if (kept === undefined) return null;
      const page = await store.open(key);
      if ('read' in page) {
        const { formats }: HandOver = JSON.parse(page.head);
        return { page, ...chooseFormat(formats, accept) };
      }
      // It may have been replaced or forgotten meanwhile.
      if (index.pages.get(key) === kept) {
        index.forget(key);
        reportCorrupt(key, page.why);
      }
      throw new Error(`the page cannot be read back: ${page.why}`);
    },
    /** A scraper got that page whole, which it asked for at `startedAtMs`. */
    addTake(key: string, { startedAtMs, ...client }: ScraperRequest): void {
      const kept = index.pages.get(key);
      const isOlder = kept?.life.kind === 'listed' && startedAtMs < kept.life.sinceMs;
      if (kept !== undefined && !isOlder) kept.life = addTake(kept.life, nameClient(client));
    },
    /** From now on nothing more is taken, and a page is unlisted once all have scraped it. */
    stop(): void {
      isStopping = true;
    },
    /** Why the next hand-over of a small page would be refused, of whatever namespace; null: it would not. */
    findRefusal: () => (isStopping ? 'stopping' : index.judge('', { pagesCount: 1, sizeBytes: 0, headBytes: 0 })),
    count(): KeptCounts {
      const seconds = listListed().map(({ endedAtSeconds }) => endedAtSeconds);
      const { pages, room } = index;
      return {
        pagesCount: pages.size,
        listedCount: seconds.length,
        sizeBytes: room().sizeBytes,
        handedOverCount: counts.handedOver,
        corruptCount: counts.corrupt,
        ends,
        oldestSeconds: seconds.length === 0 ? null : seconds.reduce((one, other) => Math.min(one, other)),
      };
    },
  };
}
