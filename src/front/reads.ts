// Reads of the source, each shared by all requests that came before it began, and the front's own polls. Each
// request has its own time-out. Never decides which read is next: decide/run/pace.ts does.

import { type Clock, callAfter, onLimit, waitFor } from '../base/waits.ts';
import { findPollMs, findReadMove, type OngoingRead, type ReadNeed } from '../decide/run/pace.ts';
import { addCost, findRestMs, type ReadCosts } from '../decide/serve/budget.ts';
import { TEXT_ACCEPT } from '../decide/serve/pages.ts';
import type { ExporterReading } from '../observe/condition-kind.ts';
import { makeFailedReading, NOT_READ, READ_TIMEOUT_MS } from '../observe/exporter.ts';
import type { Beginning, BegunAnswer, Source, SourceRead } from './sources/source.ts';

/** Asks for a read. */
export type ReadRequest = {
  /** From now to the source's last byte, including the wait for the read before. */
  readonly timeoutMs: number;
  /** Its reason is a string. */
  readonly signal: AbortSignal;
  /** An own poll, which gives way to a scrape. */
  readonly isPoll: boolean;
  /** A poll for main's last numbers: no read from before keeps it away. Default: false. */
  readonly isLast?: boolean;
  /** The formats that are asked for: only requests for the same ones share a read. Default: text 0.0.4. */
  readonly accept?: string;
};

/** A read that others may share. `limit`: this request for it was given up; the reason is a string. */
type SharedRead<SomeAnswer extends BegunAnswer> = SourceRead<SomeAnswer> & { readonly limit: AbortSignal };

/** A request that waits for a read, or shares one. */
type Sharer<SomeAnswer extends BegunAnswer> = {
  readonly isPoll: boolean;
  readonly need: ReadNeed;
  readonly accept: string;
  readonly limit: AbortController;
  readonly begun: PromiseWithResolvers<Beginning<SomeAnswer>>;
  readonly ended: PromiseWithResolvers<ExporterReading>;
};

type Read<SomeAnswer extends BegunAnswer> = OngoingRead & {
  hasBegun: boolean;
  readonly accept: string;
  readonly sharers: Set<Sharer<SomeAnswer>>;
  readonly limit: AbortController;
};

/** Opens the reads of a source, which is closed with them. */
export function openReads<SomeAnswer extends BegunAnswer>(source: Source<SomeAnswer>, clock: Clock) {
  const waiting = new Set<Sharer<SomeAnswer>>();
  /** Oldest first, each with its end. */
  const reads = new Map<Read<SomeAnswer>, Promise<void>>();
  /** What was asked for by an own read that did, and by none that has shown anything since. */
  const givenWay = new Set<string>();
  /** A scrape's read has begun while a poll waited: of two formats one would never be polled. */
  let isPollsTurn = false;
  let cancelMove = () => {};

  /** Waits for a read that begins after this call. Never rejects. */
  function request({ timeoutMs, signal, ...asked }: ReadRequest): SharedRead<SomeAnswer> {
    const sharer = openSharer<SomeAnswer>(asked);
    waiting.add(sharer);
    sharer.ended.promise.then(onLimit({ timeoutMs, signal, clock }, (why) => giveUp(sharer, why)));
    moveOn();
    return { begun: sharer.begun.promise, ended: sharer.ended.promise, limit: sharer.limit.signal };
  }

  const listSharers = () => [...waiting, ...[...reads.keys()].flatMap(({ sharers }) => [...sharers])];
  const isEnding = () => [...reads.keys()].some(({ limit }) => limit.signal.aborted);
  const findMove = (need: ReadNeed) => (isEnding() ? null : findReadMove([...reads.keys()], need));

  function moveOn(): void {
    cancelMove();
    const needs = new Set([...waiting].map(({ need }) => need));
    const need = (['last', 'scrape', 'poll'] as const).find((each) => needs.has(each));
    const move = need === undefined ? null : findMove(need);
    if (move === null) return;
    const leftMs = move.atMs - clock.nowMs();
    if (leftMs > 0) cancelMove = callAfter(clock, leftMs, moveOn);
    else if (move.kind === 'begin') begin();
    else {
      givenWay.add(move.read.accept);
      giveWay(move.read, waiting);
    }
  }

  function begin(): void {
    const read = takeNext(waiting, isPollsTurn, givenWay, clock.nowMs());
    isPollsTurn = !read.isOwn && [...waiting].some(({ isPoll }) => isPoll);
    reads.set(read, follow(read));
    moveOn();
  }

  async function follow(read: Read<SomeAnswer>): Promise<void> {
    const reading = await handOver(read, source.read(read.limit.signal, read.accept));
    reads.delete(read);
    if (reading.observation.kind !== 'failed') givenWay.delete(read.accept);
    moveOn();
  }

  function giveUp(sharer: Sharer<SomeAnswer>, why: string): void {
    sharer.limit.abort(why);
    sharer.begun.resolve({ kind: 'failed', why });
    sharer.ended.resolve(makeFailedReading(why, !waiting.delete(sharer)));
    for (const [read, ended] of reads) {
      if (!read.sharers.delete(sharer) || read.sharers.size > 0) continue;
      // It goes on as an own read, which many that give up at once share: the program is not asked for each.
      ended.then(callAfter(clock, read.begunAtMs + READ_TIMEOUT_MS - clock.nowMs(), () => read.limit.abort(why)));
    }
    moveOn();
  }

  return {
    request,
    isBusy: (): boolean => (findMove('poll')?.atMs ?? Number.POSITIVE_INFINITY) > clock.nowMs(),
    /** Ends the requests of scrapes; what is being read goes on. */
    giveUpScrapes(why: string): void {
      for (const sharer of listSharers()) if (!sharer.isPoll) giveUp(sharer, why);
    },
    /** Ends all requests and the read, and closes the source. Nothing may be requested afterwards. */
    async close(): Promise<void> {
      for (const sharer of listSharers()) giveUp(sharer, 'closed');
      for (const { limit } of reads.keys()) limit.abort('closed');
      await Promise.all(reads.values());
      await source.close();
    },
  };
}

/** The polls of a read share the next one. */
function giveWay<Some extends BegunAnswer>({ limit, sharers }: Read<Some>, waiting: Set<Sharer<Some>>): void {
  limit.abort('it gave way to a scrape');
  for (const poll of sharers) waiting.add(poll);
  sharers.clear();
}

/** Takes who waits longest, scrapes or polls first, and all who ask for the same formats, into a new read. */
function takeNext<SomeAnswer extends BegunAnswer>(
  waiting: Set<Sharer<SomeAnswer>>,
  isPollsTurn: boolean,
  givenWay: ReadonlySet<string>,
  nowMs: number,
): Read<SomeAnswer> {
  const first = [...waiting].find(({ isPoll }) => isPoll === isPollsTurn) ?? [...waiting][0];
  const { accept } = first as Sharer<SomeAnswer>;
  const sharers = new Set([...waiting].filter((each) => each.accept === accept));
  for (const each of sharers) waiting.delete(each);
  return {
    begunAtMs: nowMs,
    hasBegun: false,
    get isOwn() {
      return [...sharers].every(({ isPoll }) => isPoll);
    },
    get isLast() {
      return [...sharers].some(({ need }) => need === 'last');
    },
    get hasGivenWay() {
      return givenWay.has(accept);
    },
    accept,
    sharers,
    limit: new AbortController(),
  };
}

/** Hands a read to those who share it, as it comes. */
async function handOver<SomeAnswer extends BegunAnswer>(
  read: Read<SomeAnswer>,
  { begun, ended }: SourceRead<SomeAnswer>,
): Promise<ExporterReading> {
  const beginning = await begun;
  read.hasBegun = true;
  for (const sharer of read.sharers) sharer.begun.resolve(beginning);
  const reading = await ended;
  for (const sharer of read.sharers) sharer.ended.resolve(reading);
  return reading;
}

function openSharer<SomeAnswer extends BegunAnswer>({
  isPoll,
  isLast = false,
  accept = TEXT_ACCEPT,
}: Pick<ReadRequest, 'isPoll' | 'isLast' | 'accept'>): Sharer<SomeAnswer> {
  return {
    isPoll,
    need: isLast ? 'last' : isPoll ? 'poll' : 'scrape',
    accept,
    limit: new AbortController(),
    begun: Promise.withResolvers(),
    ended: Promise.withResolvers(),
  };
}

const NEVER_MS = Number.NEGATIVE_INFINITY;

/** What polls go by. */
export type PollParts = {
  readonly clock: Clock;
  readonly pollMs: number;
  /** How many times as long as a read took main is left alone. */
  readonly restFactor: number;
  /** A condition is a metric: an observation waits for the read that is under way. */
  readonly isAwaited: boolean;
  /** Main lives: polls keep to a pace that a slow source can bear. */
  readonly isPaced: () => boolean;
  /** What polls ask for, one after the other. Default: text 0.0.4. */
  readonly listAccepts?: () => readonly string[];
};

/** The reads, and the front's own polls. */
export type Polls<SomeAnswer extends BegunAnswer> = ReturnType<typeof openPolls<SomeAnswer>>;

/** Of the newest read; null once it was observed. */
type Shown = { readonly beganAtMs: number; readonly reading: ExporterReading | null };

/** Opens the reads of a source, which is closed with them. */
export function openPolls<SomeAnswer extends BegunAnswer>(
  source: Source<SomeAnswer>,
  { clock, pollMs, restFactor, isAwaited, isPaced, listAccepts = () => [TEXT_ACCEPT] }: PollParts,
) {
  let shown: Shown = { beganAtMs: NEVER_MS, reading: null };
  let lastPoll: Parameters<typeof findPollMs>[0]['lastPoll'] = null;
  let costs: ReadCosts = [];
  /** By the formats that were asked for. */
  const readAtMs = new Map<string, number>();
  let lastRead = { beganAtMs: NEVER_MS, endedAtMs: NEVER_MS };
  const scrapedAtMs = new Map<string, number>();
  let poll: Promise<unknown> | null = null;
  let cancelLatePoll = () => {};
  const reads = openReads<SomeAnswer>({ ...source, read }, clock);

  function read(signal: AbortSignal, accept: string = TEXT_ACCEPT): SourceRead<SomeAnswer> {
    const beganAtMs = clock.nowMs();
    const begun = source.read(signal, accept);
    begun.ended.then((reading) => {
      // A read that was given up shows nothing: it hides no reading, and polls are not paced by it.
      if (signal.aborted) shown = { ...shown, reading: shown.reading ?? reading };
      if (signal.aborted || beganAtMs < shown.beganAtMs) return;
      lastRead = { beganAtMs, endedAtMs: clock.nowMs() };
      readAtMs.set(accept, beganAtMs);
      if (reading.observation.kind === 'answered') costs = addCost(costs, lastRead.endedAtMs - beganAtMs);
      if (reading.isOther !== true || !listAccepts().includes(TEXT_ACCEPT)) shown = { beganAtMs, reading };
    });
    return begun;
  }

  function beginIfDue(): void {
    cancelLatePoll();
    const nowMs = clock.nowMs();
    const accepts = listAccepts();
    for (const accept of [...scrapedAtMs.keys()]) if (!accepts.includes(accept)) scrapedAtMs.delete(accept);
    const isLiving = isPaced();
    const restMs = findRestMs(costs, restFactor);
    const findDueMs = (accept: string) =>
      findPollMs({
        pollMs,
        isPaced: isLiving,
        restMs,
        restFactor,
        lastPoll,
        scrapedAtMs: scrapedAtMs.get(accept) ?? NEVER_MS,
      });
    const lateMs = Math.min(...accepts.map(findDueMs).filter((ms) => ms > nowMs));
    // The next observation may come up to two POLLs after the scrape: the last numbers must not be that old.
    if (Number.isFinite(lateMs)) cancelLatePoll = callAfter(clock, lateMs - nowMs, beginIfDue);
    // While main lives one that hangs is waited for: a program that struggles is not asked twice.
    if ((poll !== null && isLiving) || reads.isBusy()) return;
    const due = accepts.filter((accept) => findDueMs(accept) <= nowMs);
    const oldest = due.toSorted((a, b) => (readAtMs.get(a) ?? NEVER_MS) - (readAtMs.get(b) ?? NEVER_MS));
    // Each format is a read that main pays for.
    if (due.length > 0) beginPolls(isLiving ? oldest.slice(0, 1) : due);
  }

  function beginPolls(accepts: readonly string[], isLast = false): Promise<unknown> {
    const beganAtMs = clock.nowMs();
    // No signal ends it: an own poll has its time.
    const common = { timeoutMs: READ_TIMEOUT_MS, signal: new AbortController().signal, isPoll: true, isLast };
    const ended = Promise.all(accepts.map((accept) => reads.request({ ...common, accept }).ended));
    ended.then(() => {
      // Its own read, not what it waited for that of a scrape, which keeps no poll of another format away.
      lastPoll = lastRead.beganAtMs >= beganAtMs ? lastRead : { beganAtMs, endedAtMs: clock.nowMs() };
      if (poll === ended) poll = null;
    });
    poll = ended;
    return ended;
  }

  return {
    ...reads,
    /** Reads for a scrape that came now: polls are left out for a while. */
    readForScrape({ accept = TEXT_ACCEPT, ...request }: ReadRequest): SharedRead<SomeAnswer> {
      const cameAtMs = clock.nowMs();
      const scraped = reads.request({ ...request, accept });
      scraped.ended.then(({ observation }) => {
        // A scraper that gives up soon, or a source that fails, must not keep us from polling.
        if (observation.kind !== 'failed') scrapedAtMs.set(accept, Math.max(cameAtMs, scrapedAtMs.get(accept) ?? 0));
      });
      return scraped;
    },
    /** Begins a poll if one is due; the newest reading since the last call. `isFresh`: of a new poll. */
    async observe(signal: AbortSignal, isFresh = false): Promise<ExporterReading> {
      if (isFresh) await waitFor(beginPolls(listAccepts(), true), { timeoutMs: READ_TIMEOUT_MS, signal, clock });
      else beginIfDue();
      if (isAwaited && poll !== null && shown.reading === null)
        await waitFor(poll, { timeoutMs: pollMs, signal, clock });
      const reading = shown.reading ?? NOT_READ;
      shown = { ...shown, reading: null };
      return reading;
    },
    async close(): Promise<void> {
      cancelLatePoll();
      await reads.close();
    },
  };
}
