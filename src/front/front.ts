// The front: stands before the exporter, passes on what it shows, and keeps the last of it. Joins the server, the reads of the
// source and the snapshot; what a scrape gets is decided in decide/answer.ts.

import { callAfter } from '../base/clock.ts';
import { waitFor } from '../base/waits.ts';
import { chooseAnswer, chooseSnapshot, type MainView } from '../decide/answer.ts';
import type { FrontObservation, ThresholdReading } from '../decide/model.ts';
import { isPollDue } from '../decide/pace.ts';
import type { ServedKind, ServedScrape } from '../decide/scrapers.ts';
import { mergeReadings } from '../decide/verdict.ts';
import type { OwnValues } from '../exposition/own-families.ts';
import type { ExporterReading } from '../observe/condition.ts';
import { NOT_READ, REFUSED as REFUSED_READING } from '../observe/exporter.ts';
import type { Body } from '../snapshot/body.ts';
import { type Moment, openSnapshotStore, type Snapshot } from '../snapshot/snapshot.ts';
import { watchForLostNumbers } from './lost-numbers.ts';
import { findUpName, isLocustPage, openSource, type SourceParts } from './open-source.ts';
import { openReads } from './reads.ts';
import { serveGrowing, serveWhole } from './served-body.ts';
import { openServer, type ScrapeAnswer, type ScrapeRequest } from './server.ts';
import type { Answer, Beginning, SourceRead } from './sources/source.ts';

/** How long an own poll, and a call of /-/snapshot, may take. */
const READ_TIMEOUT_MS = 15_000;

export type FrontParts = SourceParts & {
  /** null: all addresses. */
  readonly at: { readonly host: string | null; readonly port: number };
  readonly pollMs: number;
  /** A monotonic moment as seconds since 1970. */
  readonly toUnixSeconds: (atMs: number) => number;
};

export type Front = {
  /** What an observation sees of the source: the newest answer since the last observation; begins a poll where one is due. */
  readonly readExporter: (signal: AbortSignal) => Promise<ExporterReading>;
  readonly observe: () => FrontObservation;
  /** Takes the oldest scrape that was handed over and is not told yet; null: there is none. */
  readonly takeScrape: () => { readonly scrape: ServedScrape; readonly front: FrontObservation } | null;
  /** Calls back once there is one, at once where there is; returns how to cancel that. */
  readonly onScrape: (callback: () => void) => () => void;
  /** What scrapes are answered by from now on. */
  readonly tell: (view: MainView) => void;
  /** The last that was shown as a whole, also once it is closed; null: nothing was. */
  readonly newest: () => Promise<Snapshot | null>;
  /** Main is about to end: what is read next is the newest there is. */
  readonly expectEnd: () => void;
  /** Ends every connection. */
  readonly close: () => Promise<void>;
  readonly port: number;
};

export type OpenedFront =
  | { readonly kind: 'open'; readonly front: Front }
  /** `what is; what to do`. */
  | { readonly kind: 'failed'; readonly problem: string };

type FrontAnswer = ScrapeAnswer & {
  readonly kind: 'body';
  readonly served: ServedKind;
  readonly isByRefusal: boolean;
  /** When what is served was read. */
  readonly readAtMs: number;
};
/** An answer of the source, and what becomes of it. */
type KeptAnswer = Answer & {
  /** When its read began. */
  readonly readAt: Moment;
  /** null: it did not come whole, or cannot be read. */
  readonly kept: Promise<Snapshot | null>;
};
type Unavailable = ScrapeAnswer & { readonly kind: 'unavailable' };

/** Listens; nothing is read before the first scrape or observation. */
export async function openFront(parts: FrontParts): Promise<OpenedFront> {
  const { clock, metricNames } = parts;
  const source = openSource(parts);
  const isLocust = isLocustPage(parts.url);
  const snapshots = openSnapshotStore();
  let view: MainView = { main: 'living', wasAlive: false, endedAtMs: null };
  let mainEndSeconds: number | null = null;
  // The source refused after main's end: a program does not come back.
  let isGone = false;
  let answeredAtMs: number | null = null;
  // What is judged, by every answer that was kept since main is known to have been alive; before that by the newest one.
  let thresholds: readonly ThresholdReading[] = [];
  const numbers = watchForLostNumbers();
  // The newest reading that no observation has seen yet.
  let unseen: ExporterReading | null = null;
  let newest: { readonly beganAtMs: number; readonly endedAtMs: number } | null = null;
  // When the newest scrape came by which the source was read.
  let scrapedAtMs = Number.NEGATIVE_INFINITY;
  let cancelLatePoll = () => {};
  let poll: SourceRead | null = null;
  let scrapesCount = 0;
  const untold: ServedScrape[] = [];
  let onScrape: (() => void) | null = null;

  const reads = openReads<KeptAnswer>({ ...source, read: readSource }, clock);
  const opened = await openServer<FrontAnswer>(parts.at, {
    paths: source.path === null ? ['/metrics'] : ['/metrics', source.path],
    ...(isLocust ? { quitPath: '/quitquitquit' } : {}),
    clock,
    answer: answerScrape,
    snapshot: takeSnapshot,
    onServed({ answer: { served, isByRefusal, readAtMs }, ...scrape }) {
      scrapesCount++;
      untold.push({ ...scrape, served, isByRefusal, readAtMs });
      onScrape?.();
    },
  });
  if (opened.kind === 'failed') return opened;
  const { server } = opened;

  /** One read of the source, whoever it is for: everything that is learnt by it. */
  function readSource(signal: AbortSignal): SourceRead<KeptAnswer> {
    const readAt = findMoment();
    if (isGone) {
      unseen = REFUSED_READING;
      return REFUSED;
    }
    const read = source.read(signal);
    const ended = read.ended.then((reading) => {
      // One that was given up shows nothing of the source: it hides nothing that was seen, and is not what a poll is paced by.
      if (!signal.aborted) newest = { beganAtMs: readAt.atMs, endedAtMs: clock.nowMs() };
      if (!signal.aborted || unseen === null) unseen = reading;
      return reading;
    });
    const begun = read.begun.then((beginning): Beginning<KeptAnswer> => {
      if (beginning.kind === 'refused' && source.isProcess) {
        numbers.onRefusal();
        if (view.main === 'ended') isGone = true;
      }
      if (beginning.kind !== 'answered') return beginning;
      const { body } = beginning;
      return { ...beginning, readAt, kept: ended.then((reading) => keep(body, reading, readAt)) };
    });
    return { begun, ended };
  }

  function findMoment(): Moment {
    const atMs = clock.nowMs();
    return { atMs, seconds: parts.toUnixSeconds(atMs) };
  }

  /** Keeps an answer that has come whole; null where it cannot be kept. */
  async function keep(body: Body, reading: ExporterReading, readAt: Moment): Promise<Snapshot | null> {
    const end = await body.ended;
    if (end.kind === 'broken' || !end.isReadable) return null;
    answeredAtMs = readAt.atMs;
    numbers.onAnswer(reading);
    takeThresholds(reading);
    return snapshots.keep(body, readAt, chooseSnapshot(view, showsEnd(reading)));
  }

  function takeThresholds({ observation }: ExporterReading): void {
    if (observation.kind !== 'answered' || observation.thresholds === undefined || numbers.areLost) return;
    thresholds = mergeReadings(view.wasAlive ? thresholds : [], observation.thresholds);
  }

  function showsEnd(reading: ExporterReading): boolean {
    const isZero = (name: string) => {
      const metric = reading.metric(name);
      // A Locust that answers late or half may have ended: what it shows no more is kept.
      return metric.kind === 'value' ? metric.value === 0 : isLocust;
    };
    const names = isLocust ? [findUpName(parts.locust)] : metricNames;
    return names.length > 0 && names.every(isZero);
  }

  async function answerScrape({ timeoutMs, signal }: ScrapeRequest): Promise<FrontAnswer | Unavailable> {
    const cameAtMs = clock.nowMs();
    const read = reads.request({ timeoutMs, signal, isPoll: false });
    read.ended.then(({ observation }) => {
      // A scraper that gives up soon, or a source that fails, must not keep us from polling.
      if (observation.kind !== 'failed') scrapedAtMs = Math.max(scrapedAtMs, cameAtMs);
    });
    const beginning = await read.begun;
    if (beginning.kind !== 'answered') return serveLast(beginning.kind, describeBeginning(beginning));
    const { body, readAt, kept: keeping } = beginning;
    if (chooseAnswer(view, 'answered', snapshots.current() !== null) === 'live') {
      return {
        kind: 'body',
        body: serveGrowing(body, readValues(readAt, true)),
        served: 'live',
        isByRefusal: false,
        readAtMs: readAt.atMs,
      };
    }
    const end = await body.ended;
    // Where this scraper's time is up, others may still wait for the read.
    const kept = end.kind === 'broken' ? null : await keeping;
    return kept === null
      ? serveLast('failed', `the answer of the source cannot be kept: ${end.why || TOO_LARGE}`)
      : serveSnapshot(kept, true);
  }

  /** What is left where the source did not answer. */
  async function serveLast(source: 'refused' | 'failed', why: string): Promise<FrontAnswer | Unavailable> {
    const last = await snapshots.newest();
    if (last === null || chooseAnswer(view, source, true) === 'unavailable') return { kind: 'unavailable', why };
    return { ...(await serveSnapshot(last, false)), served: 'snapshot', isByRefusal: source === 'refused' };
  }

  async function serveSnapshot({ body, readAt, hasVanished }: Snapshot, isSourceUp: boolean): Promise<FrontAnswer> {
    const served = hasVanished ? 'joined' : 'live';
    return {
      kind: 'body',
      body: await serveWhole(body, readValues(readAt, isSourceUp)),
      served,
      isByRefusal: false,
      readAtMs: readAt.atMs,
    };
  }

  function readValues(readAt: Moment, isSourceUp: boolean): OwnValues {
    return {
      isSourceUp,
      isMainEnded: view.main === 'ended',
      mainEndSeconds,
      snapshotSeconds: readAt.seconds,
      scrapesCount,
    };
  }

  /** `POST /-/snapshot`: main's last word. */
  async function takeSnapshot(signal: AbortSignal): Promise<{ kind: 'kept' } | { kind: 'failed'; why: string }> {
    source.expectEnd?.();
    const beginning = await reads.request({ timeoutMs: READ_TIMEOUT_MS, signal, isPoll: false }).begun;
    if (beginning.kind !== 'answered') return { kind: 'failed', why: describeBeginning(beginning) };
    const end = await beginning.body.ended;
    const kept = end.kind === 'broken' ? null : await beginning.kept;
    return kept === null ? { kind: 'failed', why: end.why || TOO_LARGE } : { kind: 'kept' };
  }

  function beginPollIfDue(): void {
    cancelLatePoll();
    const lateMs = scrapedAtMs + parts.pollMs - clock.nowMs();
    // A whole POLL later, and not up to two at the next observation: so old the last numbers may be.
    if (lateMs > 0) cancelLatePoll = callAfter(clock, lateMs, beginPollIfDue);
    const isDue = isPollDue({
      nowMs: clock.nowMs(),
      pollMs: parts.pollMs,
      isPaced: view.main === 'living',
      newest,
      scrapedAtMs,
    });
    if (!isDue || poll !== null || reads.isReading) return;
    const begun = reads.request({ timeoutMs: READ_TIMEOUT_MS, signal: NEVER, isPoll: true });
    poll = begun;
    const beganAtMs = clock.nowMs();
    begun.ended.then(() => {
      newest = { beganAtMs, endedAtMs: clock.nowMs() };
      poll = null;
    });
  }

  /** A condition that is a metric waits for the read on its way, for a POLL at most; the others are not kept waiting. */
  async function waitForReading(signal: AbortSignal): Promise<void> {
    const current = poll;
    if (metricNames.length === 0 || current === null || unseen !== null) return;
    await waitFor(current.ended, { timeoutMs: parts.pollMs, signal, clock });
  }

  function observe(): FrontObservation {
    const judged = thresholds.length === 0 ? {} : { thresholds };
    return { hasSnapshot: snapshots.current() !== null, answeredAtMs, inFlightCount: server.inFlightCount, ...judged };
  }

  return {
    kind: 'open',
    front: {
      port: server.port,
      observe,
      async readExporter(signal) {
        beginPollIfDue();
        await waitForReading(signal);
        const reading = unseen ?? NOT_READ;
        unseen = null;
        return reading;
      },
      takeScrape() {
        const scrape = untold.shift();
        return scrape === undefined ? null : { scrape, front: observe() };
      },
      onScrape(callback) {
        if (untold.length > 0) {
          callback();
          return () => {};
        }
        onScrape = callback;
        return () => {
          if (onScrape === callback) onScrape = null;
        };
      },
      tell(now) {
        if (now.endedAtMs !== view.endedAtMs) {
          mainEndSeconds = now.endedAtMs === null ? null : parts.toUnixSeconds(now.endedAtMs);
        }
        view = now;
        numbers.tell(now);
        if (now.main !== 'ended') isGone = false;
      },
      newest: () => snapshots.newest(),
      expectEnd: () => source.expectEnd?.(),
      async close() {
        cancelLatePoll();
        await Promise.all([server.close(), reads.close()]);
      },
    },
  };
}

const TOO_LARGE = 'with what has vanished from it, it is too large';

/** Ends no read: an own poll has its time. */
const NEVER = new AbortController().signal;

const REFUSED: SourceRead<never> = {
  begun: Promise.resolve({ kind: 'refused' }),
  ended: Promise.resolve(REFUSED_READING),
};

function describeBeginning(beginning: Exclude<Beginning, { readonly kind: 'answered' }>): string {
  return beginning.kind === 'refused' ? 'the source is not there' : `the source cannot be read: ${beginning.why}`;
}
