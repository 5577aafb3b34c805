// The law of reads: when the source is read next, for whom and in which formats, and which read gives way.
// Pure: takes what is known and an event, returns what is known next and what to do. Stories of it are in
// fixtures/transcripts/reads.

import { assertNever, type ExporterObservation } from '../model.ts';
import { addCost, findOwnMs, findUsualMs, NO_COSTS, type OwnReads, type Wanted } from './budget.ts';

/** How long an own read may delay a scrape: with much more, the scrape times out before its own read ends. */
export const OWN_READ_MS = 1_000;
/**
 * A read that has shown no header for this long may hang, so a second one begins: a scrape has 10 s in all.
 */
export const SILENT_READ_MS = 3_000;
/** How long a read without a scrape may take: Locust's exporter answers within three time-outs of 5 s. */
export const READ_TIMEOUT_MS = 15_000;
/** A second read helps behind one that hangs; a third would only load a program that struggles. */
const READS_MAX_COUNT = 2;
/** A second read begins when this many times its usual length are left: two at a time slow each other. */
const LATEST_FACTOR = 2;

/**
 * What a read is for: a scrape (or a call of /-/snapshot) waits, main's last numbers, or to keep what main
 * shows.
 */
export type ReadNeed = 'scrape' | 'last' | 'own';

/** Who waits for a read that begins from now on. */
export type ReadRequest = {
  readonly id: number;
  readonly need: ReadNeed;
  /** The formats; only requests for the same ones share a read. */
  readonly accept: string;
  /** When the request times out. */
  readonly untilMs: number;
};

/** A read that is under way. */
export type Read = {
  readonly id: number;
  readonly accept: string;
  readonly begunAtMs: number;
  /** Its header has come. */
  readonly hasHeader: boolean;
  /** Why it was cut off, and has not ended yet; null: it was not. */
  readonly cut: 'gaveWay' | 'late' | null;
  /** Its answer may have been cut: another one confirms it. */
  readonly again?: 'due' | 'begun';
  /** Empty: all have given up; the read goes on as an own one. */
  readonly sharers: readonly ReadRequest[];
};

/** What is known of the reads of one source. */
export type Reads = OwnReads & {
  readonly wanted: readonly Wanted[];
  /** An observation came before an own read was due: the read begins as soon as it is. */
  readonly isOwnAsked: boolean;
  /** In the order in which they came. */
  readonly waiting: readonly ReadRequest[];
  /** Oldest first; two at most. */
  readonly underWay: readonly Read[];
  /** Formats of which an own read gave way, and no read has ended whole or refused since. */
  readonly givenWay: readonly string[];
  /** A scrape's read began while an own one waited: that comes next, so that scrapes cannot crowd it out. */
  readonly isOwnTurn: boolean;
  /** Our process' CPU time at the end of the last read that was refused, or own and whole; null: none was. */
  readonly cpuMs: number | null;
  readonly lastId: number;
};

/**
 * What an observation needs of the page: `own`: what a read brings when it is due; `end`: the same, and every
 * other condition shows main's end; `last`: what is newest, in every format.
 */
export type ObservationNeed = 'own' | 'end' | 'last';

/** What happens to reads. */
export type ReadsEvent =
  | { readonly kind: 'asked'; readonly request: ReadRequest }
  /** A request's time is up, or its client has gone. */
  | { readonly kind: 'gaveUp'; readonly id: number }
  | { readonly kind: 'headCame'; readonly read: number }
  /** `whole`: answered, readable or not; `short`: may be cut; `refused`: nothing is there; `failed`: else. */
  | {
      readonly kind: 'ended';
      readonly read: number;
      readonly how: 'whole' | 'short' | 'refused' | 'failed';
      readonly cpuMs: number;
    }
  /** What is known of main, and what is kept of its page. */
  | { readonly kind: 'main'; readonly isCharged: boolean; readonly wanted: readonly Wanted[] }
  | { readonly kind: 'observation'; readonly need: ObservationNeed }
  /** `wakeAtMs` of the last step has come. */
  | { readonly kind: 'due' }
  /** What waits is given up. */
  | { readonly kind: 'closed' };

/** The end of a read that showed this. `cpuMs`: what our process has used so far; 0: it is not counted. */
export function endRead(read: number, { kind }: ExporterObservation, cpuMs = 0, isShort = false): ReadsEvent {
  const how = kind === 'refused' || kind === 'failed' ? kind : isShort ? 'short' : 'whole';
  return { kind: 'ended', read, how, cpuMs };
}

/** What to do with the source. */
export type ReadMove =
  | { readonly kind: 'begin'; readonly read: Read }
  | { readonly kind: 'cut'; readonly read: Read; readonly why: 'gaveWay' | 'late' };

/** `wakeAtMs`: when `due` is to come, unless something happens before; Infinity: never. */
export type ReadsStep = { readonly reads: Reads; readonly moves: readonly ReadMove[]; readonly wakeAtMs: number };

/** What does not change. */
export type ReadsSettings = Pick<Reads, 'pollMs' | 'restFactor' | 'observing'>;

/** Before the first read. */
export function beginReads(settings: ReadsSettings): Reads {
  const none = { waiting: [], underWay: [], givenWay: [], costs: NO_COSTS, wanted: [] };
  const flags = { isCharged: true, isOwnAsked: false, isOwnTurn: false };
  return { ...settings, ...none, ...flags, cpuMs: null, lastOwn: null, failedCount: 0, newest: new Map(), lastId: 0 };
}

/** What follows from an event at `nowMs`. */
export function stepReads(before: Reads, event: ReadsEvent, nowMs: number): ReadsStep {
  let reads = takeEvent(before, event, nowMs);
  const moves: ReadMove[] = [];
  for (;;) {
    reads = askForOwn(reads, nowMs);
    const next = findMove(reads, nowMs);
    if (next === null || next.atMs > nowMs) {
      // What is not due now waits for the next observation, which contains it.
      if (reads.observing === 'contains') reads = { ...reads, waiting: [], isOwnAsked: false };
      return { reads, moves, wakeAtMs: Math.min(next?.atMs ?? NEVER_MS, findDueMs(reads, nowMs)) };
    }
    moves.push(next.move);
    reads = next.move.kind === 'begin' ? takeBegin(reads, next.move.read) : takeCut(reads, next.move);
  }
}

/** Whether an own read is waited for, or under way. `need`: of that kind only. */
export function hasOwn({ waiting, underWay }: Reads, need?: ReadNeed): boolean {
  const all = [...waiting, ...underWay.flatMap(({ sharers }) => sharers)];
  return all.some((each) => each.need !== 'scrape' && (need ?? each.need) === each.need);
}

/** How long an observation waits for own reads, and for which; null: it takes what there is. */
export function findWait(
  { observing, pollMs }: Reads,
  need: ObservationNeed,
  hasReading: boolean,
): { readonly timeoutMs: number; readonly need?: ReadNeed } | null {
  if (observing === 'contains') return { timeoutMs: READ_TIMEOUT_MS };
  if (need === 'last') return { timeoutMs: READ_TIMEOUT_MS, need };
  return observing === 'waits' && need === 'own' && !hasReading ? { timeoutMs: pollMs } : null;
}

function takeEvent(reads: Reads, event: ReadsEvent, nowMs: number): Reads {
  const { waiting, underWay } = reads;
  switch (event.kind) {
    case 'asked':
      return { ...reads, waiting: [...waiting, event.request] };
    case 'gaveUp': {
      const isOther = ({ id }: ReadRequest) => id !== event.id;
      const left = underWay.map((read) => ({ ...read, sharers: read.sharers.filter(isOther) }));
      return { ...reads, waiting: waiting.filter(isOther), underWay: left };
    }
    case 'headCame':
      return { ...reads, underWay: changeRead(underWay, event.read, { hasHeader: true }) };
    case 'ended': {
      const ended = underWay.filter(({ id }) => id === event.read);
      return ended.reduce((all, read) => takeEnd(all, read, event, nowMs), reads);
    }
    case 'main':
      return { ...reads, isCharged: event.isCharged, wanted: event.wanted };
    case 'observation':
      if (event.need === 'last') return askForLast(reads, nowMs);
      // Where reads go on between observations, one comes soon.
      if (event.need === 'end') return reads.observing === 'contains' ? askForLast(reads, nowMs) : reads;
      // While main lives, an own read that hangs is waited for, unless scrapes began it and gave up.
      return { ...reads, isOwnAsked: !hasOwn(reads) || (!reads.isCharged && findFreeMs(reads, nowMs) <= nowMs) };
    case 'due':
      return reads;
    case 'closed':
      return { ...reads, waiting: [], isOwnAsked: false };
    default:
      return assertNever(event);
  }
}

function changeRead(underWay: Reads['underWay'], id: number, to: Partial<Read>): Reads['underWay'] {
  return underWay.map((each) => (each.id === id ? { ...each, ...to } : each));
}

type EndEvent = Extract<ReadsEvent, { readonly kind: 'ended' }>;

function takeEnd(reads: Reads, read: Read, { how, cpuMs }: EndEvent, nowMs: number): Reads {
  const underWay = reads.underWay.filter((each) => each !== read);
  // Cut by us, it shows neither what main has nor what its page costs.
  if (read.cut === 'gaveWay') return { ...reads, underWay };
  // Once, at once: this may be main's last word. Without a front the next observation asks: a request that
  // none knows of would count as a scrape.
  if (how === 'short' && read.again === undefined && reads.observing !== 'contains')
    return { ...reads, underWay: changeRead(reads.underWay, read.id, { again: 'due' }) };
  const { accept } = read;
  const past = { beganAtMs: read.begunAtMs, endedAtMs: nowMs, isOwn: isOwnRead(read) };
  const lastOwn = past.isOwn ? past : reads.lastOwn;
  // A client can ask for any number of formats. Also a failed own one: the others must get their turn.
  const known = [...reads.newest].filter(([each]) => reads.wanted.some((wanted) => wanted.accept === each));
  const newest = new Map([...known, [accept, past] as const]);
  if (how === 'failed')
    return { ...reads, underWay, lastOwn, failedCount: reads.failedCount + 1, ...(past.isOwn && { newest }) };
  const givenWay = reads.givenWay.filter((each) => each !== accept);
  // It costs main nothing: the next look asks again.
  if (how === 'refused') return { ...reads, underWay, givenWay, cpuMs, failedCount: 0 };
  const ownCpuMs = past.isOwn && reads.cpuMs !== null ? cpuMs - reads.cpuMs : null;
  return {
    ...reads,
    underWay,
    lastOwn,
    givenWay,
    costs: addCost(reads.costs, nowMs - read.begunAtMs, ownCpuMs),
    cpuMs: past.isOwn ? cpuMs : reads.cpuMs,
    failedCount: 0,
    newest,
  };
}

/** Asks for every format at once, even if an older read of it is still under way: that may hang. */
function askForLast(reads: Reads, nowMs: number): Reads {
  return reads.wanted.reduce((all, { accept }) => ask(all, 'last', accept, nowMs), reads);
}

function ask(reads: Reads, need: ReadNeed, accept: string, nowMs: number): Reads {
  const id = reads.lastId + 1;
  const request = { id, need, accept, untilMs: nowMs + READ_TIMEOUT_MS };
  return { ...reads, lastId: id, waiting: [...reads.waiting, request] };
}

/** The own read that is due, if an observation awaits one: while main lives the one whose page is oldest. */
function askForOwn(reads: Reads, nowMs: number): Reads {
  if (!reads.isOwnAsked || findFreeMs(reads, nowMs) > nowMs) return reads;
  const due = reads.wanted.filter((each) => findOwnMs(reads, each) <= nowMs);
  if (due.length === 0) return reads;
  const beganAtMs = ({ accept }: Wanted) => reads.newest.get(accept)?.beganAtMs ?? -NEVER_MS;
  const oldestFirst = due.toSorted((a, b) => beganAtMs(a) - beganAtMs(b));
  const asked = reads.isCharged ? oldestFirst.slice(0, 1) : due;
  const asking: Reads = { ...reads, isOwnAsked: false };
  return asked.reduce((all, { accept }) => ask(all, 'own', accept, nowMs), asking);
}

/**
 * When the own read may begin that an observation awaits; Infinity: nothing awaits one, or it must wait for
 * an end.
 */
function findDueMs(reads: Reads, nowMs: number): number {
  if (!reads.isOwnAsked) return NEVER_MS;
  return Math.max(findFreeMs(reads, nowMs), Math.min(...reads.wanted.map((each) => findOwnMs(reads, each))));
}

type TimedMove = { readonly atMs: number; readonly move: ReadMove };

/** The next move, and when it is due; null: none until something happens. */
function findMove(reads: Reads, nowMs: number): TimedMove | null {
  const { waiting, underWay } = reads;
  const short = underWay.find(({ again }) => again === 'due');
  if (short !== undefined) return { atMs: -NEVER_MS, move: { kind: 'begin', read: { ...short, again: 'begun' } } };
  if (underWay.some(({ cut }) => cut !== null)) return null;
  const own = underWay.find(isOwnRead);
  const end: TimedMove | null = own === undefined ? null : cutAt(own, own.begunAtMs + READ_TIMEOUT_MS, 'late');
  // Whose need it is decides when; whose turn it is (begin), for whom.
  const need = (['last', 'scrape', 'own'] as const).find((each) => waiting.some((request) => request.need === each));
  const move = need === undefined ? null : findMoveFor(reads, need, nowMs);
  return move !== null && (end === null || move.atMs <= end.atMs) ? move : end;
}

/**
 * An own read gives way to a scrape once, then it runs on, or impatient scrapers would never let it end. One
 * that was under way before the last numbers were wanted may hang in main's end: it gives way to a read of
 * those.
 */
function findMoveFor(reads: Reads, need: ReadNeed, nowMs: number): TimedMove | null {
  const { underWay, givenWay } = reads;
  const [first] = underWay;
  if (first === undefined) return { atMs: -NEVER_MS, move: begin(reads, nowMs) };
  const own = underWay.filter(isOwnRead);
  const isLast = ({ sharers }: Read) => sharers.some((each) => each.need === 'last');
  const runsOn = own.find((each) => (need === 'last' ? isLast(each) : givenWay.includes(each.accept)));
  const givesWay = need === 'own' ? undefined : own.findLast((each) => each !== runsOn);
  if (givesWay !== undefined) return cutAt(givesWay, givesWay.begunAtMs + OWN_READ_MS, 'gaveWay');
  if (underWay.length === READS_MAX_COUNT) return null;
  if (!first.hasHeader || need === 'last') {
    return { atMs: first.begunAtMs + SILENT_READ_MS, move: begin(reads, nowMs) };
  }
  if (need === 'own') return null;
  // Its body takes long: who waits for its end times out, but a second read that begins now would be in time.
  const usualMs = findUsualMs(reads.costs);
  const untilMs = Math.min(...reads.waiting.filter((each) => each.need === need).map((each) => each.untilMs));
  if (usualMs === null || nowMs + usualMs >= untilMs) return null;
  return { atMs: untilMs - LATEST_FACTOR * usualMs, move: begin(reads, nowMs) };
}

/** When `findMoveFor` lets an own read begin beside those under way; Infinity: not before one has ended. */
function findFreeMs(reads: Reads, nowMs: number): number {
  if (reads.underWay.some(({ cut }) => cut !== null)) return NEVER_MS;
  return findMoveFor({ ...reads, waiting: [OWN_REQUEST] }, 'own', nowMs)?.atMs ?? NEVER_MS;
}

function isOwnRead({ sharers }: Read): boolean {
  return sharers.every(({ need }) => need !== 'scrape');
}

function cutAt(read: Read, atMs: number, why: 'gaveWay' | 'late'): TimedMove {
  return { atMs, move: { kind: 'cut', read, why } };
}

/** The read for who waits longest, of scrapes or of our own, and all who ask for the same formats. */
function begin({ waiting, isOwnTurn, lastId }: Reads, nowMs: number): ReadMove {
  const ofTurn = waiting.filter(({ need }) => (need !== 'scrape') === isOwnTurn);
  const [{ accept } = OWN_REQUEST] = [...ofTurn, ...waiting];
  const sharers = waiting.filter((each) => each.accept === accept);
  const read = { id: lastId + 1, accept, begunAtMs: nowMs, hasHeader: false, cut: null, sharers };
  return { kind: 'begin', read };
}

function takeBegin(reads: Reads, read: Read): Reads {
  if (read.again === 'begun') return { ...reads, underWay: changeRead(reads.underWay, read.id, read) };
  const waiting = reads.waiting.filter((each) => !read.sharers.includes(each));
  const isOwnTurn = !isOwnRead(read) && waiting.some(({ need }) => need !== 'scrape');
  return { ...reads, waiting, isOwnTurn, lastId: read.id, underWay: [...reads.underWay, read] };
}

/** Own requests of a read that gave way wait for the next one; those of a read that timed out are over. */
function takeCut(reads: Reads, { read, why }: Extract<ReadMove, { readonly kind: 'cut' }>): Reads {
  const underWay = changeRead(reads.underWay, read.id, { cut: why, sharers: [] });
  if (why === 'late') return { ...reads, underWay };
  const waiting = [...reads.waiting, ...read.sharers];
  return { ...reads, underWay, waiting, givenWay: [...reads.givenWay, read.accept] };
}

const NEVER_MS = Number.POSITIVE_INFINITY;
const OWN_REQUEST: ReadRequest = { id: 0, need: 'own', accept: '', untilMs: NEVER_MS };
