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
  /** Its labels as a target, as JSON. */
  readonly labels: string;
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

type PagesParts = {
  readonly store: Store;
  readonly limits: KeepLimits;
  readonly clock: Clock;
  readonly log: (entry: LogEntry) => void;
};

/** Where a page is served. */
export const PAGE_PATH = '/pages/';

/** Opens the pages with all that the store has. @throws where that cannot be read */
export async function openPages({ store, limits, clock, log }: PagesParts) {
  const pages = new Map<string, Kept>();
  let room = EMPTY_ROOM;
  let discovery = NO_DISCOVERY;
  let isStopping = false;
  let handedOverCount = 0;
  let corruptCount = 0;
  let placing: Promise<unknown> = Promise.resolve();
  const ends: Record<PageEnd, number> = { taken: 0, expired: 0 };

  function size({ sizeBytes, labels }: Pick<Kept, 'sizeBytes' | 'labels'>, count = 1) {
    return { pagesCount: count, sizeBytes: count * sizeBytes, headBytes: count * labels.length };
  }
  function forget(key: string, kept: Kept): void {
    pages.delete(key);
    room = addToRoom(room, kept.namespace, size(kept, -1), clock.nowMs());
  }
  function keep(key: string, handOver: HandOver, sizeBytes: number): void {
    const before = pages.get(key);
    if (before !== undefined) forget(key, before);
    const { endedAtSeconds, pod } = handOver;
    const labels = JSON.stringify(listTargetLabels(handOver, PAGE_PATH + key));
    const life = beginPage(clock.nowMs());
    const kept: Kept = { namespace: pod.namespace, labels, sizeBytes, endedAtSeconds, life };
    pages.set(key, kept);
    room = addToRoom(room, pod.namespace, size(kept), clock.nowMs());
  }
  /** Room for a hand-over while it comes: others that come meanwhile must not get it too. */
  function reserve(key: string, namespace: string, headBytes: number) {
    let reserved: Taken = NOTHING_TAKEN;
    const grow = (sizeBytes: number): void => {
      const taken = { pagesCount: 1, sizeBytes, headBytes };
      const more = subtract(taken, reserved);
      const before = pages.get(key);
      const replaced = before === undefined ? NOTHING_TAKEN : size(before);
      const why = isStopping ? 'stopping' : judgeRoom(room, { namespace, more, replaced }, limits);
      if (why !== null) throw new Refused(why, namespace);
      room = addToRoom(room, namespace, more, clock.nowMs());
      reserved = taken;
    };
    const end = (): void => {
      room = addToRoom(room, namespace, subtract(NOTHING_TAKEN, reserved), clock.nowMs());
    };
    return { grow, end };
  }
  function reportCorrupt(file: string, why: string): void {
    corruptCount++;
    log({ id: 'keptPageCorrupt', fields: { problem: `${file}: ${why}; its numbers are lost, delete it` } });
  }
  /** What time has changed. */
  function advance(): void {
    const nowMs = clock.nowMs();
    const living = findLivingAskers(discovery, nowMs);
    for (const [key, kept] of pages) {
      const { life, end } = advancePage(kept.life, { living, nowMs, isStopping });
      if (end !== null) ends[end]++;
      if (end === 'expired') log({ id: 'keptPageExpired', fields: { target: kept.labels.slice(0, 300) } });
      if (life !== null) kept.life = life;
      else {
        forget(key, kept);
        void store.remove(key);
      }
    }
  }

  for await (const found of store.readBack()) {
    if (found.kind === 'corrupt') reportCorrupt(found.file, found.why);
    else keep(found.key, JSON.parse(found.head), found.sizeBytes);
  }

  return {
    advance,
    /**
     * Takes a hand-over in; it is on the disk once this has returned. `proven`: who the pod is, null: as it says;
     * `isWanted`: the pod still waits.
     * @throws Refused, or what `body` throws
     */
    async take(
      body: AsyncIterable<Uint8Array>,
      { proven, address, isWanted }: { proven: ProvenPod | null; address: string; isWanted: () => boolean },
    ): Promise<void> {
      const { line, rest } = await readHead(body[Symbol.asyncIterator]());
      const handOver = readHandOver(line, proven, address);
      const { namespace, name, uid } = handOver.pod;
      const counted = countHandOver(room, namespace, clock.nowMs());
      if (typeof counted === 'string') throw new Refused(counted, namespace);
      room = counted;
      const key = createHash('sha256').update(`${namespace}/${name}/${uid}`).digest('hex').slice(0, 32);
      const head = JSON.stringify(handOver);
      const reservation = reserve(key, namespace, head.length);
      try {
        const plainBytes = handOver.formats.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
        const written = await store.write(key, head, readExactly(rest, plainBytes), reservation.grow);
        // In turn: what is in memory is of the file that is in place.
        const placed = placing.then(async () => {
          if (!isWanted()) throw new Refused('unreadable', 'the pod hung up');
          await written.commit();
          keep(key, handOver, written.sizeBytes);
        });
        placing = placed.catch(written.discard);
        await placed;
      } finally {
        reservation.end();
      }
      handedOverCount++;
    },
    /** The targets, as http_sd_configs wants them. `host`: by which the keeper was asked. */
    listTargets(request: ScraperRequest, refreshMs: number | null, host: string): Buffer {
      discovery = addDiscovery(discovery, request, refreshMs);
      advance();
      const start = `{"targets":[${JSON.stringify(host)}],"labels":`;
      const groups = [...pages.values()].filter(({ life }) => life.kind === 'listed');
      return Buffer.from(`[${groups.map(({ labels }) => `${start}${labels}}`).join(',\n')}]\n`);
    },
    /** Opens the page of a scrape; null: it is not kept. @throws Error where it cannot be read */
    async open(key: string, accept: string): Promise<ScrapedPage | null> {
      const kept = pages.get(key);
      if (kept === undefined) return null;
      const page = await store.open(key);
      if ('read' in page) {
        const { formats }: HandOver = JSON.parse(page.head);
        return { page, ...chooseFormat(formats, accept) };
      }
      // It may have been replaced or forgotten meanwhile.
      if (pages.get(key) === kept) {
        forget(key, kept);
        reportCorrupt(key, page.why);
      }
      throw new Error(`the page cannot be read back: ${page.why}`);
    },
    /** A scraper got that page whole, which it asked for at `startedAtMs`. */
    addTake(key: string, { startedAtMs, ...client }: ScraperRequest): void {
      const kept = pages.get(key);
      const isOlder = kept?.life.kind === 'listed' && startedAtMs < kept.life.sinceMs;
      if (kept !== undefined && !isOlder) kept.life = addTake(kept.life, nameClient(client));
    },
    /** From now on nothing more is taken, and a page is unlisted once all have scraped it. */
    stop(): void {
      isStopping = true;
    },
    /** Why the next hand-over of a small page would be refused, of whatever namespace; null: it would not. */
    findRefusal() {
      const more = { pagesCount: 1, sizeBytes: 0, headBytes: 0 };
      return isStopping ? 'stopping' : judgeRoom(room, { namespace: '', more, replaced: NOTHING_TAKEN }, limits);
    },
    count(): KeptCounts {
      const listed = [...pages.values()].filter(({ life }) => life.kind === 'listed');
      return {
        pagesCount: pages.size,
        listedCount: listed.length,
        sizeBytes: room.sizeBytes,
        handedOverCount,
        corruptCount,
        ends,
        oldestSeconds: listed.reduce<number | null>(
          (least, { endedAtSeconds }) => Math.min(least ?? endedAtSeconds, endedAtSeconds),
          null,
        ),
      };
    },
  };
}
