// Reads of the source, each shared by all requests that came before it began, and the front's own polls. Each
// request has its own time-out. Never decides which read is next: decide/reads.ts does.

import { type Clock, callAfter } from '../base/clock.ts';
import { onLimit, waitFor } from '../base/waits.ts';
import { isPollDue } from '../decide/pace.ts';
import { findReadMove, type OngoingRead } from '../decide/reads.ts';
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
  /** A poll would have to wait. */
  readonly isBusy: boolean;
  /** Ends the requests of scrapes; what is being read goes on. */
  readonly giveUpScrapes: (why: string) => void;
  /** Ends all requests and the read, and closes the source. Nothing may be requested afterwards. */
  readonly close: () => Promise<void>;
};

type Sharer<SomeAnswer extends BegunAnswer> = {
  readonly isPoll: boolean;
  readonly limit: AbortController;
  readonly begin: (beginning: Beginning<SomeAnswer>) => void;
  readonly end: (reading: ExporterReading) => void;
};

type Read<SomeAnswer extends BegunAnswer> = OngoingRead & {
  hasBegun: boolean;
  readonly sharers: Set<Sharer<SomeAnswer>>;
  readonly limit: AbortController;
};

/** Opens the reads of a source, which is closed with them. */
export function openReads<SomeAnswer extends BegunAnswer>(source: Source<SomeAnswer>, clock: Clock): Reads<SomeAnswer> {
  const waiting = new Set<Sharer<SomeAnswer>>();
  /** Oldest first, each with its end. */
  const reads = new Map<Read<SomeAnswer>, Promise<void>>();
  /** An own read did, and none has shown anything since. */
  let hasGivenWay = false;
  let cancelMove = () => {};

  function request({ timeoutMs, signal, isPoll }: ReadRequest): SourceRead<SomeAnswer> {
    const { sharer, read } = openSharer<SomeAnswer>(isPoll);
    waiting.add(sharer);
    read.ended.then(onLimit({ timeoutMs, signal, clock }, (why) => giveUp(sharer, why)));
    moveOn();
    return read;
  }

  function findMove(isForScrape: boolean) {
    const isEnding = [...reads.keys()].some(({ limit }) => limit.signal.aborted);
    return isEnding ? null : findReadMove([...reads.keys()], { isForScrape, hasGivenWay });
  }

  function moveOn(): void {
    cancelMove();
    const move = waiting.size === 0 ? null : findMove(![...waiting].every(({ isPoll }) => isPoll));
    if (move === null) return;
    const leftMs = move.atMs - clock.nowMs();
    if (leftMs > 0) cancelMove = callAfter(clock, leftMs, moveOn);
    else if (move.kind === 'begin') begin();
    else giveWay(move.read);
  }

  function begin(): void {
    const sharers = new Set(waiting);
    waiting.clear();
    const read: Read<SomeAnswer> = {
      begunAtMs: clock.nowMs(),
      hasBegun: false,
      get isOwn() {
        return [...sharers].every(({ isPoll }) => isPoll);
      },
      sharers,
      limit: new AbortController(),
    };
    reads.set(read, follow(read, source.read(read.limit.signal)));
  }

  async function follow(read: Read<SomeAnswer>, { begun, ended }: SourceRead<SomeAnswer>): Promise<void> {
    const beginning = await begun;
    read.hasBegun = true;
    for (const sharer of read.sharers) {
      if (beginning.kind !== 'answered') sharer.begin(beginning);
      else sharer.begin({ ...beginning, body: limitBody(beginning.body, sharer.limit.signal) });
    }
    const reading = await ended;
    for (const sharer of read.sharers) sharer.end(reading);
    reads.delete(read);
    if (reading.observation.kind !== 'failed') hasGivenWay = false;
    moveOn();
  }

  function giveUp(sharer: Sharer<SomeAnswer>, why: string): void {
    const isAsked = !waiting.delete(sharer);
    sharer.limit.abort(why);
    sharer.begin({ kind: 'failed', why });
    sharer.end(makeFailedReading(why, isAsked));
    for (const [read, ended] of reads) {
      if (!read.sharers.delete(sharer) || read.sharers.size > 0) continue;
      // It goes on as an own read, which many that give up at once share: the program is not asked for each.
      const leftMs = read.begunAtMs + READ_TIMEOUT_MS - clock.nowMs();
      ended.then(callAfter(clock, leftMs, () => read.limit.abort(why)));
    }
    moveOn();
  }

  function listSharers(): readonly Sharer<SomeAnswer>[] {
    return [...waiting, ...[...reads.keys()].flatMap(({ sharers }) => [...sharers])];
  }

  /** Its polls share the next read, or end if its answer has begun. */
  function giveWay(read: Read<SomeAnswer>): void {
    const why = 'it gave way to a scrape';
    hasGivenWay = true;
    read.limit.abort(why);
    for (const poll of read.sharers) {
      if (read.hasBegun) giveUp(poll, why);
      else waiting.add(poll);
    }
    read.sharers.clear();
  }

  return {
    request,
    get isBusy() {
      const move = findMove(false);
      return move === null || move.atMs > clock.nowMs();
    },
    giveUpScrapes(why) {
      for (const sharer of listSharers()) if (!sharer.isPoll) giveUp(sharer, why);
    },
    async close() {
      for (const sharer of listSharers()) giveUp(sharer, 'closed');
      for (const { limit } of reads.keys()) limit.abort('closed');
      await Promise.all(reads.values());
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
    begin: begun.resolve,
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
export type Polls<SomeAnswer extends BegunAnswer> = Pick<Reads<SomeAnswer>, 'request' | 'giveUpScrapes' | 'close'> & {
  /** Begins a poll if one is due; the newest reading since the last call. `isFresh`: of a new poll. */
  readonly observe: (signal: AbortSignal, isFresh?: boolean) => Promise<ExporterReading>;
  /** Reads for a scrape that came now: polls are left out for a while. */
  readonly readForScrape: Reads<SomeAnswer>['request'];
};

/** Opens the reads of a source, which is closed with them. */
export function openPolls<SomeAnswer extends BegunAnswer>(
  source: Source<SomeAnswer>,
  { clock, pollMs, isAwaited, isPaced }: PollParts,
): Polls<SomeAnswer> {
  /** Of the newest read; null once it was observed. */
  let shown: { readonly beganAtMs: number; readonly reading: ExporterReading | null } = {
    beganAtMs: Number.NEGATIVE_INFINITY,
    reading: null,
  };
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
      if (signal.aborted) shown = { ...shown, reading: shown.reading ?? reading };
      if (signal.aborted || beganAtMs < shown.beganAtMs) return;
      newest = { beganAtMs, endedAtMs: clock.nowMs() };
      shown = { beganAtMs, reading };
    });
    return begun;
  }

  function beginIfDue(): void {
    cancelLatePoll();
    const nowMs = clock.nowMs();
    const lateMs = scrapedAtMs + pollMs - nowMs;
    // The next observation may come up to two POLLs after the scrape: the last numbers must not be that old.
    if (lateMs > 0) cancelLatePoll = callAfter(clock, lateMs, beginIfDue);
    if (poll !== null || reads.isBusy) return;
    if (isPollDue({ nowMs, pollMs, isPaced: isPaced(), newest, scrapedAtMs })) beginPoll();
  }

  function beginPoll(): SourceRead {
    const beganAtMs = clock.nowMs();
    // No signal ends it: an own poll has its time.
    const begun = reads.request({ timeoutMs: READ_TIMEOUT_MS, signal: new AbortController().signal, isPoll: true });
    begun.ended.then(() => {
      newest = { beganAtMs, endedAtMs: clock.nowMs() };
      if (poll === begun) poll = null;
    });
    poll = begun;
    return begun;
  }

  return {
    request: reads.request,
    giveUpScrapes: reads.giveUpScrapes,
    readForScrape(request) {
      const cameAtMs = clock.nowMs();
      const scraped = reads.request(request);
      scraped.ended.then(({ observation }) => {
        // A scraper that gives up soon, or a source that fails, must not keep us from polling.
        if (observation.kind !== 'failed') scrapedAtMs = Math.max(scrapedAtMs, cameAtMs);
      });
      return scraped;
    },
    async observe(signal, isFresh = false) {
      if (isFresh) await waitFor(beginPoll().ended, { timeoutMs: READ_TIMEOUT_MS, signal, clock });
      else beginIfDue();
      if (isAwaited && poll !== null && shown.reading === null) {
        await waitFor(poll.ended, { timeoutMs: pollMs, signal, clock });
      }
      const reading = shown.reading ?? NOT_READ;
      shown = { ...shown, reading: null };
      return reading;
    },
    async close() {
      cancelLatePoll();
      await reads.close();
    },
  };
}
