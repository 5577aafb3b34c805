// The source, read and kept as decide/serve/serve.ts and pages.ts say. Holds no rule.

import type { LogEntry } from '../decide/messages.ts';
import type { FrontObservation } from '../decide/model.ts';
import type { Wanted } from '../decide/serve/budget.ts';
import {
  addCall,
  type Call,
  endCalls,
  findCall,
  hasPutAside,
  isOwed,
  keepLiving,
  replacePages,
  takeCall,
  takeNewest,
} from '../decide/serve/calls.ts';
import {
  beginPages,
  chooseAccept,
  findPage,
  isOlder,
  listKept,
  listWanted,
  type Page,
  type Pages,
  type PagesStep,
  pickPage,
  TEXT_ACCEPT,
  takeFailure,
  takeKept,
  takePage,
  takeUse,
} from '../decide/serve/pages.ts';
import {
  beginSource,
  findVanishedFate,
  findVanishedKeptMs,
  isLastReadDue,
  type MainView,
  type SourceKind,
  type SourceResult,
  type SourceState,
  takeAnswer,
  takeLastCall,
  takeOlderAnswer,
  takeRefusal,
  takeView,
  type VanishedFate,
} from '../decide/serve/serve.ts';
import type { ExporterReading } from '../observe/condition-kind.ts';
import { REFUSED } from '../observe/exporter.ts';
import type { Body } from '../snapshot/body.ts';
import {
  hasFamiliesOf,
  type Moment,
  openSnapshotStore,
  readMetrics,
  type Snapshot,
  type SnapshotStore,
} from '../snapshot/snapshot.ts';
import type { Beginning, BegunAnswer, Source, SourceRead } from './sources/source.ts';

/** What became of an answer. */
export type Kept =
  | { readonly kind: 'kept'; readonly snapshot: Snapshot }
  | { readonly kind: 'notKept'; readonly result: Exclude<SourceResult, 'answered' | 'refused'>; readonly why: string };

/** A page that a program asked to keep, and the number of that call. */
export type Called = { readonly number: number; readonly snapshot: Snapshot };

/** An answer, when its read began, and what becomes of it. */
export type KeptAnswer = BegunAnswer & { readonly readAt: Moment; readonly kept: Promise<Kept> };

/** A source whose answers are kept: a page for each Accept in use. */
export type KeptSource = Source<KeptAnswer> & KeptPages;

/**
 * What is kept of a source, and known of it.
 *
 *     const accept = pages.choose(request.accept);
 *     const snapshot = await pages.newest(accept);   // null: nothing was kept in that format
 */
export type KeptPages = {
  /** The formats to read, and to serve, for who accepts these. */
  readonly choose: (accept: string) => string;
  readonly state: () => SourceState;
  /** Why the newest read that failed did; null: none has, or textfiles are not there yet. */
  readonly unreadWhy: () => string | null;
  readonly takeView: (view: MainView) => void;
  /** A scraper asks for these formats. */
  readonly use: (accept: string) => void;
  /** A program has asked for its page to be kept, until these scrapers have had it. */
  readonly addCall: (livingIds: readonly number[], calledAtMs: number) => void;
  /** The page of a call that this scraper has not had; `isReplaced`: only if it is no longer the newest. */
  readonly findCalled: (scraperId: number, accept: string, isReplaced: boolean) => Promise<Called | null>;
  readonly isOwed: (scraperId: number) => boolean;
  readonly owed: () => Pick<FrontObservation, 'hasOwedPage' | 'lostCallsCount'>;
  /** The scraper has had the page of that call; null: the newest page. */
  readonly takeCalled: (number: number | null, scraperId: number) => void;
  readonly keepLiving: (livingIds: readonly number[]) => void;
  /** What polls ask for, one after the other. */
  readonly wanted: () => readonly Wanted[];
  readonly isLastReadDue: (isPushed: boolean) => boolean;
  /** The Accept of each page that is kept. */
  readonly kept: () => readonly string[];
  /** Once every answer so far is in it; null: nothing was kept. Default: what can be read, text first. */
  readonly newest: (accept?: string) => Promise<Snapshot | null>;
};

/** What a kept source needs. */
export type KeepParts = {
  readonly kind: SourceKind;
  /** From one look at main to the next. */
  readonly pollMs: number;
  /** The numbers of the text are needed, whatever scrapers ask for. */
  readonly isTextWanted: boolean;
  readonly log: (entry: LogEntry) => void;
  /** The metrics that are 0 once main has ended. */
  readonly metricNames: readonly string[];
  /** Now, by both clocks. */
  readonly findMoment: () => Moment;
  /**
   * What may be cut is asked for again at once. Without a front the next observation does that: a request
   * that none knows of would count as a scrape. Default: true.
   */
  readonly confirms?: boolean;
};

/** Keeps what is read. */
export function keepSource(source: Source, { confirms = true, ...parts }: KeepParts): KeptSource {
  const { keep, takeRefused, takeFailed, ...kept } = openPages(source.takesAccept === true, parts);

  function read(signal: AbortSignal, accept: string = TEXT_ACCEPT, isSecond = false): SourceRead<KeptAnswer> {
    if (kept.state().isGone) return GONE;
    const readAt = parts.findMoment();
    const { begun, ended } = source.read(signal, accept);
    const answer = begun.then((beginning): Beginning<KeptAnswer> => {
      if (beginning.kind === 'refused') takeRefused();
      if (beginning.kind === 'failed') takeFailed(accept, beginning.why);
      if (beginning.kind !== 'answered') return beginning;
      const once = ended.then((reading) => keep(beginning.body, reading, readAt, accept));
      return {
        ...beginning,
        readAt,
        kept: isSecond || !confirms ? once : once.then((result) => confirm(result, signal, accept)),
      };
    });
    const settled = ended.then(async (reading) => {
      const beginning = await answer;
      // What becomes of an answer that may be cut is known later; the rules must not ask before.
      if (reading.mayBeCut === true && beginning.kind === 'answered') await beginning.kept;
      return reading;
    });
    return { begun: answer, ended: settled };
  }

  /** What may be cut is asked for again at once: this may be the last read, or main's last word. */
  async function confirm(result: Kept, signal: AbortSignal, accept: string): Promise<Kept> {
    if (result !== NOT_KEPT.provisional) return result;
    const second = await read(signal, accept, true).begun;
    return second.kind === 'answered' ? second.kept : result;
  }

  return { ...source, ...kept, read: (signal, accept) => read(signal, accept) };
}

/** What reads alone tell it. */
type KeptReads = {
  readonly keep: (body: Body, reading: ExporterReading, readAt: Moment, accept: string) => Promise<Kept>;
  readonly takeFailed: (accept: string, why: string) => void;
  readonly takeRefused: () => void;
};

function openPages(
  hasFormats: boolean,
  { kind, pollMs, isTextWanted, log, metricNames, findMoment }: KeepParts,
): KeptPages & KeptReads {
  let state = beginSource(kind);
  let pages: Pages<SnapshotStore> = beginPages(isTextWanted, hasFormats);
  const newest = async (accept?: string) => (await findPage(pages, accept)?.store.newest()) ?? null;
  const calls = openCalls(newest, log);
  let unreadWhy: string | null = null;
  const nowMs = () => findMoment().atMs;
  const open = (from?: SnapshotStore) => openSnapshotStore(findVanishedKeptMs(pollMs), from);
  const isLiving = () => state.view.main === 'living';

  function take({ pages: next, log: entry }: PagesStep<SnapshotStore>): void {
    pages = next;
    if (entry !== undefined) log(entry);
  }
  function takeVanished(fate: VanishedFate): void {
    for (const { store } of pages.list) store.takeVanished(fate, nowMs());
  }
  async function keep(body: Body, reading: ExporterReading, readAt: Moment, accept: string): Promise<Kept> {
    const end = await body.ended;
    if (end.kind !== 'whole') {
      unreadWhy = end.why;
      take(takeFailure(pages, accept, end.kind === 'unreadable' ? end.why : undefined));
      return notKept('failed', end.why);
    }
    const other = findPage(pages, accept);
    const mayOpenPage =
      isLiving() || (other?.accept !== accept && (await hasFamiliesOf(body, await other?.store.newest())));
    const { page, ...step } = takePage(pages, { accept, body, open, nowMs: nowMs(), mayOpenPage });
    take(step);
    const isShort = page === null || (reading.mayBeCut === true && (await page.store.isShort(body, readAt)));
    if (page !== null && isOlder(pages, page, readAt.atMs)) {
      if (reading.observation.kind === 'answered') state = takeOlderAnswer(state, reading.observation);
      await page.store.takeOlder(body, readAt.atMs, isLiving() ? 'living' : findMoment());
      const newer = await page.store.newest();
      if (newer !== null) return { kind: 'kept', snapshot: newer };
    }
    const [startSeconds = null, ...metrics] = readMetrics([START_METRIC, ...metricNames], reading.metric);
    const answer = { readAtMs: readAt.atMs, exporter: reading.observation, metrics, startSeconds, isShort };
    const taken = takeAnswer(state, answer);
    ({ state } = taken);
    if (taken.isAnother) calls.end();
    if (page === null) return NOT_KEPT.notUsed;
    if (taken.becomes === 'ignored' || taken.becomes === 'provisional') return NOT_KEPT[taken.becomes];
    await calls.replace(listKept(pages));
    take(takeKept(pages, page, readAt.atMs, isLiving() ? nowMs() : null));
    const snapshot = await page.store.keep(body, readAt, taken.becomes);
    return snapshot === null ? NOT_KEPT.tooLarge : { kind: 'kept', snapshot };
  }
  const choose = (accept: string) => (hasFormats ? chooseAccept(pages, accept, isLiving()) : TEXT_ACCEPT);

  return {
    keep,
    choose,
    state: () => state,
    takeFailed(accept: string, why: string): void {
      unreadWhy = why;
      take(takeFailure(pages, accept));
    },
    unreadWhy: () => unreadWhy,
    /** It may be main, and have ended: what vanished shortly before is served, until it answers again. */
    takeRefused(): void {
      if (kind !== 'files') unreadWhy = 'connection refused';
      state = takeRefusal(state);
      calls.end();
      takeVanished('restored');
    },
    takeView(view) {
      const fate = findVanishedFate(state.view, view, state.kind);
      state = takeView(state, view);
      if (fate !== null) takeVanished(fate);
    },
    use(accept) {
      if (hasFormats && choose(accept) === accept) take(takeUse(pages, accept, nowMs()));
    },
    addCall(livingIds, calledAtMs) {
      calls.add(livingIds);
      state = takeLastCall(state, calledAtMs);
    },
    findCalled: calls.find,
    isOwed: calls.isOwed,
    owed: calls.owed,
    takeCalled: calls.take,
    keepLiving: calls.keepLiving,
    wanted: () => listWanted(pages, nowMs(), isLiving()),
    isLastReadDue: (isPushed) => isLastReadDue(state, isPushed, findPage(pages)?.readAtMs ?? null),
    kept: () => listKept(pages).map(({ accept }) => accept),
    newest,
  };
}

/** The pages that programs asked to keep. `findNewest`: what is served now. */
function openCalls(findNewest: (accept: string) => Promise<Snapshot | null>, log: KeepParts['log']) {
  let calls: readonly Call<Page<Snapshot>>[] = [];
  let lostCallsCount = 0;
  return {
    /** Another program answers, or none. */
    end(): void {
      calls = endCalls(calls);
    },
    add(livingIds: readonly number[]): void {
      const added = addCall(calls, livingIds);
      ({ calls } = added);
      if (added.isFull) log({ id: 'keptPageLost', fields: { lost: ++lostCallsCount } });
    },
    /** One of these pages is about to be replaced. */
    async replace(kept: readonly Page<SnapshotStore>[]): Promise<void> {
      if (calls.length === 0) return;
      const snapshots = await Promise.all(kept.map(({ store }) => store.newest()));
      const pages = kept.flatMap((page, at) => (snapshots[at] ? [{ ...page, store: snapshots[at] }] : []));
      calls = replacePages(calls, pages);
    },
    isOwed: (scraperId: number) => isOwed(calls, scraperId),
    owed: () => ({ ...(hasPutAside(calls) && { hasOwedPage: true }), ...(lostCallsCount > 0 && { lostCallsCount }) }),
    /** The page of a call that this scraper has not had; `isReplaced`: only if it is no longer the newest. */
    async find(scraperId: number, accept: string, isReplaced: boolean): Promise<Called | null> {
      const call = findCall(calls, scraperId, isReplaced);
      const snapshot = call && (pickPage(call.replaced, accept)?.store ?? (await findNewest(accept)));
      return call && snapshot ? { number: call.number, snapshot } : null;
    },
    /** The scraper has had the page of that call; null: the newest page. */
    take(number: number | null, scraperId: number): void {
      calls = number === null ? takeNewest(calls, scraperId) : takeCall(calls, number, scraperId);
    },
    keepLiving(livingIds: readonly number[]): void {
      if (calls.length > 0) calls = keepLiving(calls, livingIds);
    },
  };
}

/** When the program began: the clients for Go, Java, Node and Python all show it, unless told otherwise. */
export const START_METRIC = 'process_start_time_seconds';

const notKept = (result: 'failed' | 'ignored', why: string): Kept => ({ kind: 'notKept', result, why });

const NOT_KEPT = {
  tooLarge: notKept('failed', 'with what has vanished from it, it is too large'),
  notUsed: notKept('ignored', 'no page of its format is kept'),
  ignored: notKept('ignored', 'the source was restarted after main ended, and counts from 0'),
  provisional: notKept(
    'failed',
    'it has no length and is missing metrics that the previous answer had, so it may be cut',
  ),
};

const GONE: SourceRead<never> = { begun: Promise.resolve({ kind: 'refused' }), ended: Promise.resolve(REFUSED) };
