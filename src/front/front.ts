// The front: stands before the exporter, passes on what it shows, and keeps the last of it. Never decides
// what a scrape gets: decide/serve.ts does.

import type { FrontObservation } from '../decide/model.ts';
import type { ServedScrape } from '../decide/scrapers.ts';
import { type MainView, observeSource } from '../decide/serve.ts';
import type { ExporterReading } from '../observe/condition-kind.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { type FrontAnswer, openAnswers } from './answers.ts';
import { keepSource } from './kept-source.ts';
import { findEndMetrics, findSourceKind, openSource, type SourceParts } from './open-source.ts';
import { openPolls } from './reads.ts';
import { openServer, type Served } from './server.ts';

/** What a front needs. */
export type FrontParts = SourceParts & {
  /** `host` null: all addresses. */
  readonly at: { readonly host: string | null; readonly port: number };
  readonly pollMs: number;
  /** A monotonic moment as seconds since 1970. */
  readonly toUnixSeconds: (atMs: number) => number;
};

/** A front that listens. */
export type Front = {
  /** The newest reading of the source since the last call; begins a poll where one is due. */
  readonly readExporter: (signal: AbortSignal) => Promise<ExporterReading>;
  readonly observe: () => FrontObservation;
  /** The oldest scrape that was handed over and not taken yet; null: none. */
  readonly takeScrape: () => { readonly scrape: ServedScrape; readonly front: FrontObservation } | null;
  /** Calls back once there is one. @returns how to cancel */
  readonly onScrape: (callback: () => void) => () => void;
  /** What is known of main from now on. */
  readonly tell: (view: MainView) => void;
  /** The snapshot, also once the front is closed; null: nothing was kept. */
  readonly newest: () => Promise<Snapshot | null>;
  /** Main is about to end: the next read shows what is newest. */
  readonly expectEnd: () => void;
  /** Ends every connection. */
  readonly close: () => Promise<void>;
  readonly port: number;
};

/** `problem`: `what is; what to do`. */
export type OpenedFront =
  | { readonly kind: 'open'; readonly front: Front }
  | { readonly kind: 'failed'; readonly problem: string };

/** Listens by `open`; nothing is read before the first scrape or observation. */
export async function openFront(
  parts: FrontParts,
  open: typeof openServer<FrontAnswer> = openServer,
): Promise<OpenedFront> {
  const { clock, pollMs, metricNames, toUnixSeconds } = parts;
  const kind = findSourceKind(parts.url);
  const source = keepSource(openSource(parts), kind, findEndMetrics(parts), () => {
    const atMs = clock.nowMs();
    return { atMs, seconds: toUnixSeconds(atMs) };
  });
  const polls = openPolls(source, {
    clock,
    pollMs,
    isAwaited: metricNames.length > 0,
    isPaced: () => source.state().view.main === 'living',
  });
  const scrapes = openScrapes();
  // Found once: the wall clock may be set later, and what was shown must not move.
  let mainEndSeconds: number | null = null;
  const answers = openAnswers(source, polls, () => ({
    isMainEnded: source.state().view.main === 'ended',
    mainEndSeconds,
    scrapesCount: scrapes.count(),
  }));
  const opened = await open(parts.at, {
    paths: source.path === null ? ['/metrics'] : ['/metrics', source.path],
    ...(kind === 'locust' ? { quitPath: '/quitquitquit' } : {}),
    clock,
    ...answers,
    onServed: scrapes.add,
  });
  if (opened.kind === 'failed') return opened;
  const { server } = opened;
  const observe = () => observeSource(source.state(), server.inFlightCount);
  return {
    kind: 'open',
    front: {
      port: server.port,
      observe,
      readExporter: polls.observe,
      takeScrape() {
        const scrape = scrapes.take();
        return scrape === null ? null : { scrape, front: observe() };
      },
      onScrape: scrapes.onScrape,
      tell(view) {
        const { endedAtMs } = view;
        if (endedAtMs !== source.state().view.endedAtMs) {
          mainEndSeconds = endedAtMs === null ? null : toUnixSeconds(endedAtMs);
        }
        source.takeView(view);
      },
      newest: source.newest,
      expectEnd: () => source.expectEnd?.(),
      async close() {
        await Promise.all([server.close(), polls.close()]);
      },
    },
  };
}

/** The scrapes that were handed over, until the rules take them. */
function openScrapes() {
  const waiting: ServedScrape[] = [];
  let count = 0;
  let wake: (() => void) | null = null;
  return {
    count: () => count,
    add({ answer: { served, isByRefusal, readAtMs }, ...scrape }: Served<FrontAnswer>): void {
      count++;
      waiting.push({ ...scrape, served, isByRefusal, readAtMs });
      wake?.();
    },
    take: (): ServedScrape | null => waiting.shift() ?? null,
    onScrape(callback: () => void): () => void {
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
