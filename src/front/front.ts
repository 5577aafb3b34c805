// The front: stands before the exporter, passes on what it shows, and keeps the last of it. Never decides
// what a scrape gets: decide/serve/serve.ts does.

import { callAfter } from '../base/waits.ts';
import { type FrontObservation, findSourceKind } from '../decide/model.ts';
import { LAST_WAIT_MS } from '../decide/run/pace.ts';
import { findRestFactor } from '../decide/serve/budget.ts';
import { findLastPage, toMissesSeconds } from '../decide/serve/last-page.ts';
import {
  addRequest,
  type FrontFacts,
  findLiving,
  findTakenAtMs,
  NO_SCRAPERS,
  type ScraperRequest,
} from '../decide/serve/scrapers.ts';
import type { MainView, SourceState } from '../decide/serve/serve.ts';
import type { FrontEvent } from '../decide/state.ts';
import { openReads, type Reads } from '../observe/reads.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { type FrontAnswer, type LastPage, openAnswers } from './answers.ts';
import { type KeptAnswer, type KeptSource, keepSource } from './kept-source.ts';
import { type FrontSourceParts, findEndMetrics, openFrontSource } from './open-source.ts';
import { openServer, type Served } from './server.ts';

/** What a front needs. */
export type FrontParts = FrontSourceParts & {
  /** `host` null: all addresses. */
  readonly at: { readonly host: string | null; readonly port: number };
  readonly pollMs: number;
  /** How long a scraper may still come whose interval is not known. Default: for ever. */
  readonly ttlMs?: number;
  /** Conditions are metrics, and nothing but metrics. Default: false. */
  readonly isOnlyEvidence?: boolean;
  /** The last numbers may be pushed. Default: false. */
  readonly isPushed?: boolean;
  /** A hook of the program is to call for a snapshot. Default: false. */
  readonly isHooked?: boolean;
  /** CPU time of this process so far. Default: our own work is not counted. */
  readonly readCpuMs?: () => number;
  /** A monotonic moment as seconds since 1970. */
  readonly toUnixSeconds: (atMs: number) => number;
};

/** A front that listens. */
export type Front = {
  /** The newest reading of the source since the last call; begins a poll if one is due, or waits for one. */
  readonly readExporter: Reads<KeptAnswer>['observe'];
  readonly observe: () => FrontObservation;
  /** Takes the scrapes that wait in the kernel. */
  readonly settle: () => Promise<void>;
  /** The oldest event that was not taken yet; null: none. */
  readonly takeEvent: () => FrontEvent | null;
  /** Calls back once there is one. @returns how to cancel */
  readonly onEvent: (callback: () => void) => () => void;
  /** What is known of main and of scrapers from now on. */
  readonly tell: (view: MainView, scrapers?: FrontFacts) => void;
  /** The snapshot, also once the front is closed; null: nothing was kept. */
  readonly newest: () => Promise<Snapshot | null>;
  /** The last page in every format that is kept, as it would be served from now on. */
  readonly lastPages: () => Promise<readonly LastPage[]>;
  /** Main is about to end: the next read shows what is newest. */
  readonly expectEnd: () => void;
  /** Ends every connection, and serves nothing but /-/healthy from now on. */
  readonly retire: () => Promise<void>;
  readonly close: () => Promise<void>;
  readonly port: number;
};

/** `problem`: `what is; what to do`, and the variable that it is of. */
export type OpenedFront =
  | { readonly kind: 'open'; readonly front: Front }
  | {
      readonly kind: 'failed';
      readonly variable: 'LASTSCRAPE_FRONT' | 'LASTSCRAPE_METRICS_URL';
      readonly problem: string;
    };

/** Listens by `open`; nothing is read before the first scrape or observation. */
export async function openFront(
  parts: FrontParts,
  open: typeof openServer<FrontAnswer> = openServer,
): Promise<OpenedFront> {
  const { clock } = parts;
  const scrapers = openScrapers(parts);
  const opening = await openKeptSource(parts, scrapers.findTakenAtMs);
  if (opening.kind === 'failed') return { ...opening, variable: 'LASTSCRAPE_METRICS_URL' };
  const { source } = opening;
  const { kind } = source.state();
  const reads = openSourceReads(source, parts);
  const events = openEvents();
  const values = openValues(source, parts);
  let cancelLastWait = () => {};
  const readCalls = () => values.readCalls(answers.keptCount());
  const readValues = (oldestAtMs: number) => ({
    ...values.read(oldestAtMs),
    scrapesCount: events.servedCount(),
    ...readCalls(),
  });
  const answers = openAnswers(source, reads, readValues, scrapers);
  const opened = await open(parts.at, {
    paths: source.path === null ? ['/metrics'] : ['/metrics', source.path],
    ...(kind === 'locust' ? { quitPath: '/quitquitquit' } : {}),
    clock,
    ...answers,
    onRequest: (request, accept) => source.mayShow(accept) && events.addRequest(request),
    onServed(served) {
      const { called, served: kind } = served.answer;
      if (called !== undefined || kind === 'snapshot') source.takeCalled(called ?? null, scrapers.find(served));
      // After the end it is not the last page: that comes with the next scrape.
      if (called === undefined || source.state().view.main !== 'ended') events.addServed(served);
    },
  });
  if (opened.kind === 'failed') {
    await source.close();
    return { ...opened, variable: 'LASTSCRAPE_FRONT' };
  }
  const { server } = opened;
  const observe = () => ({ ...source.observe(server.inFlightCount()), ...readCalls() });
  return {
    kind: 'open',
    front: {
      port: server.port,
      observe,
      settle: server.settle,
      async readExporter(signal, need) {
        await source.look();
        return reads.observe(signal, need);
      },
      takeEvent() {
        const event = events.take();
        return event?.kind === 'scraped' ? { ...event, front: observe() } : event;
      },
      onEvent: events.onEvent,
      tell(view, known = NO_SCRAPERS) {
        scrapers.take(known);
        values.takeView(view);
        source.takeView(view);
        source.keepLiving(scrapers.listLiving());
        cancelLastWait();
        if (view.holdOverAtMs === undefined) return;
        const leftMs = view.holdOverAtMs + LAST_WAIT_MS - clock.nowMs();
        cancelLastWait = callAfter(clock, leftMs, () => reads.giveUpScrapes('the hold is over'));
      },
      newest: () => source.newest(),
      lastPages: answers.lastPages,
      expectEnd: () => source.expectEnd?.(),
      async retire() {
        cancelLastWait();
        server.retire();
        // What was pushed since the last poll is in the snapshot too, and nothing comes after it.
        if (kind === 'pushes') await source.close();
        await reads.readLast();
        await reads.close();
      },
      async close() {
        cancelLastWait();
        await Promise.all([server.close(), reads.close()]);
      },
    },
  };
}

function findMissesSeconds(state: SourceState, oldestAtMs: number): number | null {
  const { endedAtMs } = state.view;
  const last = endedAtMs === null || state.answeredAtMs === null ? null : findLastPage(state, oldestAtMs, endedAtMs);
  return last && toMissesSeconds(last);
}

function openScrapers({ clock, ttlMs = Number.POSITIVE_INFINITY }: FrontParts) {
  let known = NO_SCRAPERS;
  return {
    take(facts: FrontFacts): void {
      known = facts;
    },
    find: (request: ScraperRequest) => addRequest(known, request).scraper.id,
    listLiving: () => findLiving(known.scrapers, clock.nowMs(), { ttlMs }).map(({ id }) => id),
    findTakenAtMs: () => findTakenAtMs(known, clock.nowMs(), { ttlMs }),
  };
}

function openValues(source: KeptSource, { toUnixSeconds, isHooked = false }: FrontParts) {
  // Found once: the wall clock may be set later, and what was shown must not move.
  let mainEndSeconds: number | null = null;
  return {
    /** Before the source takes it. */
    takeView({ endedAtMs }: MainView): void {
      if (endedAtMs === source.state().view.endedAtMs) return;
      mainEndSeconds = endedAtMs === null ? null : toUnixSeconds(endedAtMs);
    },
    read: (oldestAtMs: number) => ({
      isMainEnded: source.state().view.main === 'ended',
      missesSeconds: findMissesSeconds(source.state(), oldestAtMs),
      mainEndSeconds,
    }),
    readCalls: (keptCount: number): Pick<FrontObservation, 'pushes' | 'hookCallsCount'> => ({
      ...(source.pushes && { pushes: source.pushes() }),
      ...(isHooked && source.state().kind === 'program' && { hookCallsCount: keptCount }),
    }),
  };
}

function openSourceReads(
  source: KeptSource,
  { clock, readCpuMs, pollMs, metricNames, isOnlyEvidence = false, isHooked = false }: FrontParts,
) {
  return openReads(source, {
    clock,
    readCpuMs,
    pollMs,
    restFactor: findRestFactor({ isOnlyEvidence, isHooked, kind: source.state().kind }),
    observing: metricNames.length > 0 ? 'waits' : 'takes',
    tell: () => ({ isCharged: source.state().view.main === 'living', wanted: source.wanted() }),
  });
}

async function openKeptSource(parts: FrontParts, takenAtMs: () => number) {
  const { clock, metricNames, toUnixSeconds, selectors = [], isPushed = false, log } = parts;
  const opening = await openFrontSource({ ...parts, findTakenAtMs: takenAtMs });
  if (opening.kind === 'failed') return opening;
  const source = keepSource(opening.source, {
    kind: findSourceKind(parts.url),
    pollMs: parts.pollMs,
    metricNames: findEndMetrics(parts),
    isTextWanted: metricNames.length > 0 || selectors.length > 0 || isPushed,
    isPushed,
    log,
    findMoment() {
      const atMs = clock.nowMs();
      return { atMs, seconds: toUnixSeconds(atMs) };
    },
  });
  return { kind: 'open', source } as const;
}

/** What scrapers do, until the rules take it. */
function openEvents() {
  type Event = Exclude<FrontEvent, { readonly kind: 'scraped' }> | Omit<Scraped, 'front'>;
  const waiting: Event[] = [];
  let servedCount = 0;
  let wake: (() => void) | null = null;
  function add(event: Event): void {
    waiting.push(event);
    wake?.();
  }
  return {
    servedCount: () => servedCount,
    addRequest: (request: ScraperRequest) => add({ kind: 'requested', request }),
    addServed({
      answer: { served, isByRefusal, readAtMs, oldestAtMs = readAtMs, called },
      ...request
    }: Served<FrontAnswer>): void {
      servedCount++;
      // Its request was not told of where no page could be shown to it before.
      add({ kind: 'requested', request });
      add({ kind: 'scraped', scrape: { ...request, served, isByRefusal, readAtMs, oldestAtMs, called } });
    },
    take: (): Event | null => waiting.shift() ?? null,
    onEvent(callback: () => void): () => void {
      if (waiting.length > 0) {
        callback();
        return () => {};
      }
      wake = callback;
      return () => {
        if (wake === callback) wake = null;
      };
    },
  };
}

type Scraped = Extract<FrontEvent, { readonly kind: 'scraped' }>;
