// The source, read and kept as decide/serve/kept.ts says. Holds no rule.

import type { LogEntry } from '../decide/messages.ts';
import type { ExporterObservation, FrontObservation, SourceKind } from '../decide/model.ts';
import { TEXT_ACCEPT, type Wanted } from '../decide/serve/budget.ts';
import { addCall, findCall, hasPutAside, isOwed, keepLiving, replacePages, takeCalled } from '../decide/serve/calls.ts';
import {
  type Dropped,
  isLookDue,
  type Known,
  type Step,
  takeFailed,
  takeMain,
  takeRefused,
  takeWhole,
  type WholeAnswer,
} from '../decide/serve/kept.ts';
import { beginPages, chooseAccept, findPage, listShown, listWanted, pickPage, takeUse } from '../decide/serve/pages.ts';
import {
  beginSource,
  findVanishedKeptMs,
  isLastReadDue,
  type MainView,
  observeSource,
  type SourceState,
  type VanishedFate,
} from '../decide/serve/serve.ts';
import type { ExporterReading } from '../observe/condition-kind.ts';
import { REFUSED } from '../observe/exporter.ts';
import type { Body } from '../snapshot/body.ts';
import {
  hasFamiliesOf,
  type Moment,
  openSnapshotStore,
  type Snapshot,
  type SnapshotStore,
} from '../snapshot/snapshot.ts';
import { openHttpSource, START_METRIC } from './sources/http.ts';
import type { Beginning, BegunAnswer, Source, SourceParts, SourceRead } from './sources/source.ts';

/** What became of an answer. */
export type Kept = { readonly kind: 'kept'; readonly snapshot: Snapshot } | Dropped;

/** A page that a program asked to keep, and the number of that call. */
type Called = { readonly number: number; readonly snapshot: Snapshot };

/** An answer, when its read began, and what becomes of it. */
export type KeptAnswer = BegunAnswer & { readonly readAt: Moment; readonly kept: Promise<Kept> };

/** A source whose answers are kept: a page for each Accept in use. */
export type KeptSource = Source<KeptAnswer> & KeptPages & { readonly look: () => Promise<void> };

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
  readonly observe: (inFlightCount: number) => FrontObservation;
  /** Whether a page is kept that who asks like this may see, or none yet. */
  readonly mayShow: (accept: string) => boolean;
  readonly takeView: (view: MainView) => void;
  /** A scraper asks for these formats. */
  readonly use: (accept: string) => void;
  /** A program has asked for its page to be kept, until these scrapers have had it. */
  readonly addCall: (livingIds: readonly number[], calledAtMs: number) => void;
  /** The page of a call that this scraper has not had; `isReplaced`: only if it is no longer the newest. */
  readonly findCalled: (scraperId: number, accept: string, isReplaced: boolean) => Promise<Called | null>;
  readonly isOwed: (scraperId: number) => boolean;
  readonly isLookDue: () => boolean;
  /** The scraper has had the page of that call; null: the newest page. */
  readonly takeCalled: (number: number | null, scraperId: number) => void;
  readonly keepLiving: (livingIds: readonly number[]) => void;
  /** What polls ask for, one after the other. */
  readonly wanted: () => readonly Wanted[];
  readonly isLastReadDue: () => boolean;
  /** The Accept of each page that all may see. */
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
  readonly isPushed: boolean;
  readonly log: (entry: LogEntry) => void;
  /** The metrics that are 0 once main has ended. */
  readonly metricNames: readonly string[];
  /** Now, by both clocks. */
  readonly findMoment: () => Moment;
};

/** Keeps what is read. */
export function keepSource(source: Source, parts: KeepParts): KeptSource {
  const { keep, refuse, fail, pages } = openPages(source.takesAccept === true, parts);

  function read(signal: AbortSignal, accept: string = TEXT_ACCEPT): SourceRead<KeptAnswer> {
    // A condition that is a metric would never see that main was started again.
    if (pages.state().isGone && parts.metricNames.length === 0) return GONE;
    const readAt = parts.findMoment();
    const { begun, ended } = source.read(signal, accept);
    const answer = begun.then((beginning): Beginning<KeptAnswer> => {
      if (beginning.kind === 'refused') refuse();
      if (beginning.kind === 'failed') fail(accept, beginning.why);
      if (beginning.kind !== 'answered') return beginning;
      return { ...beginning, readAt, kept: ended.then((reading) => keep(beginning.body, reading, readAt, accept)) };
    });
    const settled = ended.then(async (reading) => {
      const beginning = await answer;
      if (reading.mayBeCut !== true || beginning.kind !== 'answered') return reading;
      // What becomes of an answer that may be cut is known later; the rules must not ask before.
      const became = await beginning.kept;
      const isShort = became.kind === 'dropped' && became.isShort === true;
      return { ...reading, mayBeCut: isShort, ...(isShort && { observation: withoutJudged(reading.observation) }) };
    });
    return { begun: answer, ended: settled };
  }

  async function look(): Promise<void> {
    if (pages.isLookDue() && (await source.isGone?.()) === true) refuse();
  }

  return { ...source, ...pages, read, look };
}

/** What is not kept is not judged either: both are of one page. */
function withoutJudged(observation: ExporterObservation): ExporterObservation {
  if (observation.kind !== 'answered') return observation;
  const { thresholds, ...shown } = observation;
  return shown;
}

/** An exporter whose newest page is kept for a push, where no front serves it; connects at the first read. */
export function openKeptExporter(
  { url, metricNames, selectors = [] }: Pick<SourceParts, 'url' | 'metricNames' | 'selectors'>,
  parts: Pick<KeepParts, 'findMoment' | 'log' | 'pollMs'>,
  options: Parameters<typeof openHttpSource>[3] = {},
): KeptSource {
  const source = openHttpSource(url, metricNames, selectors, { isForServing: false, ...options });
  // A push is made of text.
  const text = { ...source, takesAccept: false };
  return keepSource(text, { kind: 'exporter', isTextWanted: true, isPushed: true, metricNames, ...parts });
}

function openPages(hasFormats: boolean, { kind, isTextWanted, isPushed, log, metricNames, ...parts }: KeepParts) {
  const { pollMs, findMoment } = parts;
  const begun = beginPages<SnapshotStore>(isTextWanted, hasFormats);
  let known: Known<SnapshotStore, Snapshot | null> = {
    source: beginSource(kind),
    pages: begun,
    calls: [],
    unreadWhy: null,
  };
  let lostCallsCount = 0;
  const nowMs = () => findMoment().atMs;
  const open = (from?: SnapshotStore) => openSnapshotStore(findVanishedKeptMs(pollMs), from);
  const isLiving = () => known.source.view.main === 'living';
  const newest = async (accept?: string) => (await findPage(known.pages, accept)?.store.newest()) ?? null;
  const choose = (accept: string) => (hasFormats ? chooseAccept(known.pages, accept, isLiving()) : TEXT_ACCEPT);
  const change = (part: Partial<typeof known>) => {
    known = { ...known, ...part };
  };
  function take<What>({ fate, log: entry, ...next }: Step<SnapshotStore, Snapshot | null, What>): What {
    ({ known } = next);
    if (entry !== undefined) log(entry);
    return fate;
  }
  function takeVanished(fate: VanishedFate | null): void {
    if (fate !== null) for (const { store } of known.pages.list) store.takeVanished(fate, nowMs());
  }
  const fail = (accept: string, why: string, isUnreadable = false) =>
    take(takeFailed(known, { accept, why, isUnreadable }));
  async function keep(body: Body, reading: ExporterReading, readAt: Moment, accept: string): Promise<Kept> {
    const end = await body.ended;
    if (end.kind !== 'whole') return fail(accept, end.why, end.kind === 'unreadable');
    const shown = [START_METRIC, ...metricNames].map(reading.metric);
    const [startSeconds = null, ...metrics] = shown.map((each) => (each.kind === 'value' ? each.value : null));
    const startedAtMs = readAt.atMs + (Number(startSeconds) - readAt.seconds) * 1_000;
    const { observation: exporter, mayBeCut } = reading;
    let answer: WholeAnswer = { accept, body, readAtMs: readAt.atMs, exporter, metrics, startSeconds, startedAtMs };
    if (mayBeCut !== true) answer = { ...answer, isShort: false };
    for (;;) {
      const fate = take(takeWhole(known, answer, { nowMs: nowMs(), open }));
      if (fate.kind === 'dropped') return fate;
      const { store } = fate.page;
      if (fate.kind === 'findAll') answer = { ...answer, hasAll: await hasFamiliesOf(body, await store.newest()) };
      else if (fate.kind === 'findShort') answer = { ...answer, isShort: await store.isShort(body, readAt) };
      else {
        const aside = fate.aside.map(async (page) => ({ ...page, store: await page.store.newest() }));
        if (aside.length > 0) change({ calls: replacePages(known.calls, await Promise.all(aside)) });
        if (fate.kind === 'older') await store.takeOlder(body, readAt, fate.isLiving ? 'living' : findMoment());
        const snapshot = await (fate.kind === 'older' ? store.newest() : store.keep(body, readAt, fate.kind));
        return snapshot === null ? TOO_LARGE : { kind: 'kept', snapshot };
      }
    }
  }

  const pages: KeptPages = {
    choose,
    state: () => known.source,
    observe: (inFlightCount) => ({
      ...observeSource(known.source, inFlightCount),
      ...(known.unreadWhy !== null && { unreadWhy: known.unreadWhy }),
      ...(hasPutAside(known.calls) && { hasOwedPage: true }),
      ...(lostCallsCount > 0 && { lostCallsCount }),
    }),
    mayShow: (accept) => known.source.answeredAtMs === null || findPage(known.pages, accept) !== null,
    takeView: (view) => takeVanished(take(takeMain(known, view))),
    use(accept) {
      if (hasFormats) change({ pages: takeUse(known.pages, choose(accept), nowMs()) });
    },
    addCall(livingIds, calledAtMs) {
      const { calls, isFull } = addCall(known.calls, livingIds);
      change({ calls, source: { ...known.source, calledAtMs } });
      if (isFull) log({ id: 'keptPageLost', fields: { lost: ++lostCallsCount } });
    },
    async findCalled(scraperId, accept, isReplaced) {
      const call = findCall(known.calls, scraperId, isReplaced);
      const snapshot = call && (pickPage(call.replaced, accept)?.store ?? (await newest(accept)));
      return call && snapshot ? { number: call.number, snapshot } : null;
    },
    isOwed: (scraperId) => isOwed(known.calls, scraperId),
    isLookDue: () => isLookDue(known, nowMs()),
    takeCalled: (number, id) => change({ calls: takeCalled(known.calls, number, id) }),
    keepLiving: (livingIds) => change({ calls: keepLiving(known.calls, livingIds) }),
    wanted: () => listWanted(known.pages, nowMs(), isLiving()),
    isLastReadDue: () => isLastReadDue(known.source, isPushed, findPage(known.pages)?.readAtMs ?? null),
    kept: () => listShown(known.pages).map(({ accept }) => accept),
    newest,
  };
  return { keep, fail, refuse: () => takeVanished(take(takeRefused(known))), pages };
}

const TOO_LARGE = { kind: 'dropped', result: 'failed', why: 'with what has vanished, it is too large' } as const;

const GONE: SourceRead<never> = { begun: Promise.resolve({ kind: 'refused' }), ended: Promise.resolve(REFUSED) };
