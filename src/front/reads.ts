// Reads of the source, one at a time, each shared by all requests that came before it began, and the front's
// own polls. Each request has its own time-out; a read without requests is ended.

import { type Clock, callAfter } from '../base/clock.ts';
import { onLimit, waitFor } from '../base/waits.ts';
import { isPollDue } from '../decide/pace.ts';
import type { ExporterReading } from '../observe/condition-kind.ts';
import { makeFailedReading, NOT_READ, READ_TIMEOUT_MS } from '../observe/exporter.ts';
import { limitBody } from '../snapshot/body.ts';
import type { Beginning, BegunAnswer, Source, SourceRead } from './sources/source.ts';

/** Asks for a read. */
export type ReadRequest = {
  /** From now to the source's last byte, including the wait for the read before. */
  readonly timeoutMs: number;
  /** Its reason is a string. */
  readonly signal: AbortSignal;
  /** An own poll, which gives way to a scrape. */
  readonly isPoll: boolean;
};

/** The reads of a source. */
export type Reads<SomeAnswer extends BegunAnswer = BegunAnswer> = {
  /** Waits for a read that begins after this call. Never rejects. */
  readonly request: (request: ReadRequest) => SourceRead<SomeAnswer>;
  readonly isReading: boolean;
  /** Ends all requests and the read, and closes the source. Nothing may be requested afterwards. */
  readonly close: () => Promise<void>;
};

/** How long an unshared poll may go on while a scrape waits. */
export const POLL_MAX_MS = 1_000;

type Sharer<SomeAnswer extends BegunAnswer> = {
  readonly isPoll: boolean;
  readonly limit: AbortController;
  readonly begin: (beginning: Beginning<SomeAnswer>) => void;
  readonly end: (reading: ExporterReading) => void;
  hasBegun: boolean;
};

type Current<SomeAnswer extends BegunAnswer> = {
  readonly begunAtMs: number;
  readonly abort: (why: string) => void;
  readonly ended: Promise<void>;
  readonly sharers: Set<Sharer<SomeAnswer>>;
};

/** Opens the reads of a source, which is closed with them. */
export function openReads<SomeAnswer extends BegunAnswer>(source: Source<SomeAnswer>, clock: Clock): Reads<SomeAnswer> {
  const waiting = new Set<Sharer<SomeAnswer>>();
  let current: Current<SomeAnswer> | null = null;
  let cancelGivingWay = () => {};

  function request({ timeoutMs, signal, isPoll }: ReadRequest): SourceRead<SomeAnswer> {
    const { sharer, read } = openSharer<SomeAnswer>(isPoll);
    waiting.add(sharer);
    read.ended.then(onLimit({ timeoutMs, signal, clock }, (why) => giveUp(sharer, why)));
    beginNext();
    return read;
  }

  function beginNext(): void {
    if (current !== null) makeWay(current);
    if (current !== null || waiting.size === 0) return;
    const sharers = new Set(waiting);
    waiting.clear();
    const begunAtMs = clock.nowMs();
    const controller = new AbortController();
    const read = source.read(controller.signal);
    const ended = follow(read, sharers);
    current = { begunAtMs, abort: (why) => controller.abort(why), ended, sharers };
  }

  async function follow(read: SourceRead<SomeAnswer>, sharers: Set<Sharer<SomeAnswer>>): Promise<void> {
    const beginning = await read.begun;
    for (const sharer of sharers) {
      if (beginning.kind !== 'answered') sharer.begin(beginning);
      else sharer.begin({ ...beginning, body: limitBody(beginning.body, sharer.limit.signal) });
    }
    const reading = await read.ended;
    for (const sharer of sharers) sharer.end(reading);
    cancelGivingWay();
    current = null;
    beginNext();
  }

  function giveUp(sharer: Sharer<SomeAnswer>, why: string): void {
    const isAsked = !waiting.delete(sharer);
    sharer.limit.abort(why);
    sharer.begin({ kind: 'failed', why });
    sharer.end(makeFailedReading(why, isAsked));
    if (current?.sharers.delete(sharer) && current.sharers.size === 0) current.abort(why);
    // No scrape may be left for which the poll should give way.
    if (current !== null) makeWay(current);
  }

  /** A poll whose time is over shares the read of a waiting scrape, or ends if its answer has begun. */
  function makeWay(read: Current<SomeAnswer>): void {
    cancelGivingWay();
    if (![...waiting].some(({ isPoll }) => !isPoll) || [...read.sharers].some(({ isPoll }) => !isPoll)) return;
    cancelGivingWay = callAfter(clock, read.begunAtMs + POLL_MAX_MS - clock.nowMs(), () => {
      const why = 'it gave way to a scrape';
      for (const poll of [...read.sharers]) {
        if (poll.hasBegun) giveUp(poll, why);
        else if (read.sharers.delete(poll)) waiting.add(poll);
      }
      if (read.sharers.size === 0) read.abort(why);
    });
  }

  return {
    request,
    get isReading() {
      return current !== null;
    },
    async close() {
      for (const sharer of [...waiting, ...(current?.sharers ?? [])]) giveUp(sharer, 'closed');
      await current?.ended;
      await source.close();
    },
  };
}

/** A request that waits for a read, and what it gets. */
function openSharer<SomeAnswer extends BegunAnswer>(isPoll: boolean) {
  const begun = Promise.withResolvers<Beginning<SomeAnswer>>();
  const ended = Promise.withResolvers<ExporterReading>();
  const sharer: Sharer<SomeAnswer> = {
    isPoll,
    limit: new AbortController(),
    hasBegun: false,
    begin(beginning) {
      sharer.hasBegun = true;
      begun.resolve(beginning);
    },
    end: ended.resolve,
  };
  return { sharer, read: { begun: begun.promise, ended: ended.promise } };
}

/** What polls go by. */
export type PollParts = {
  readonly clock: Clock;
  readonly pollMs: number;
  /** A condition is a metric: an observation waits for the read that is under way. */
  readonly isAwaited: boolean;
  /** Main lives: polls keep to a pace that a slow source can bear. */
  readonly isPaced: () => boolean;
};

/** The reads, and the front's own polls. */
export type Polls<SomeAnswer extends BegunAnswer> = Pick<Reads<SomeAnswer>, 'request' | 'close'> & {
  /** Begins a poll if one is due; the newest reading since the last call. */
  readonly observe: (signal: AbortSignal) => Promise<ExporterReading>;
  /** Reads for a scrape that came now: polls are left out for a while. */
  readonly readForScrape: Reads<SomeAnswer>['request'];
};

/** Opens the reads of a source, which is closed with them. */
export function openPolls<SomeAnswer extends BegunAnswer>(
  source: Source<SomeAnswer>,
  { clock, pollMs, isAwaited, isPaced }: PollParts,
): Polls<SomeAnswer> {
  let unseen: ExporterReading | null = null;
  let newest: { readonly beganAtMs: number; readonly endedAtMs: number } | null = null;
  let scrapedAtMs = Number.NEGATIVE_INFINITY;
  let poll: SourceRead | null = null;
  let cancelLatePoll = () => {};
  const reads = openReads<SomeAnswer>({ ...source, read }, clock);

  function read(signal: AbortSignal): SourceRead<SomeAnswer> {
    const beganAtMs = clock.nowMs();
    const begun = source.read(signal);
    begun.ended.then((reading) => {
      // A read that was given up shows nothing: it hides no reading, and polls are not paced by it.
      if (!signal.aborted) newest = { beganAtMs, endedAtMs: clock.nowMs() };
      if (!signal.aborted || unseen === null) unseen = reading;
    });
    return begun;
  }

  function beginIfDue(): void {
    cancelLatePoll();
    const nowMs = clock.nowMs();
    const lateMs = scrapedAtMs + pollMs - nowMs;
    // The next observation may come up to two POLLs after the scrape: the last numbers must not be that old.
    if (lateMs > 0) cancelLatePoll = callAfter(clock, lateMs, beginIfDue);
    if (poll !== null || reads.isReading) return;
    if (!isPollDue({ nowMs, pollMs, isPaced: isPaced(), newest, scrapedAtMs })) return;
    // No signal ends it: an own poll has its time.
    poll = reads.request({ timeoutMs: READ_TIMEOUT_MS, signal: new AbortController().signal, isPoll: true });
    poll.ended.then(() => {
      newest = { beganAtMs: nowMs, endedAtMs: clock.nowMs() };
      poll = null;
    });
  }

  return {
    request: reads.request,
    readForScrape(request) {
      const cameAtMs = clock.nowMs();
      const scraped = reads.request(request);
      scraped.ended.then(({ observation }) => {
        // A scraper that gives up soon, or a source that fails, must not keep us from polling.
        if (observation.kind !== 'failed') scrapedAtMs = Math.max(scrapedAtMs, cameAtMs);
      });
      return scraped;
    },
    async observe(signal) {
      beginIfDue();
      if (isAwaited && poll !== null && unseen === null) {
        await waitFor(poll.ended, { timeoutMs: pollMs, signal, clock });
      }
      const reading = unseen ?? NOT_READ;
      unseen = null;
      return reading;
    },
    async close() {
      cancelLatePoll();
      await reads.close();
    },
  };
}
