// The source, read and kept as the law of decide/serve.ts says. Holds no rule.

import { TEXT_ACCEPT } from '../decide/accepts.ts';
import type { MainView } from '../decide/main-view.ts';
import {
  beginSource,
  findVanishedFate,
  type SourceKind,
  type SourceResult,
  type SourceState,
  takeAnswer,
  takeRefusal,
  takeView,
} from '../decide/serve.ts';
import type { ExporterReading } from '../observe/condition-kind.ts';
import { REFUSED } from '../observe/exporter.ts';
import type { Body } from '../snapshot/body.ts';
import { type Moment, readMetrics, type Snapshot } from '../snapshot/snapshot.ts';
import { openPages, type PagesParts } from './pages.ts';
import type { Beginning, BegunAnswer, Source, SourceRead } from './sources/source.ts';

/** What became of an answer. */
export type Kept =
  | { readonly kind: 'kept'; readonly snapshot: Snapshot }
  | { readonly kind: 'notKept'; readonly result: Exclude<SourceResult, 'answered' | 'refused'>; readonly why: string };

/** An answer, when its read began, and what becomes of it. */
export type KeptAnswer = BegunAnswer & { readonly readAt: Moment; readonly kept: Promise<Kept> };

/** A source whose answers are kept: a page for each Accept in use. */
export type KeptSource = Source<KeptAnswer> & {
  readonly state: () => SourceState;
  readonly takeView: (view: MainView) => void;
  /** A scraper asks for these formats. */
  readonly use: (accept: string) => void;
  /** What polls ask for, one after the other. */
  readonly accepts: () => readonly string[];
  /** What to ask the source for, and whose page to serve. */
  readonly choose: (accept: string) => string;
  /** Once every answer so far is in it; null: nothing was kept. Default: what can be read, text first. */
  readonly newest: (accept?: string) => Promise<Snapshot | null>;
};

/** What a kept source needs. */
export type KeepParts = Omit<PagesParts, 'nowMs' | 'hasFormats'> & {
  readonly kind: SourceKind;
  /** The metrics that are 0 once main has ended. */
  readonly metricNames: readonly string[];
  /** Now, by both clocks. */
  readonly findMoment: () => Moment;
};

/** Keeps what is read. */
export function keepSource(source: Source, parts: KeepParts): KeptSource {
  const { metricNames, findMoment } = parts;
  let state = beginSource(parts.kind);
  const pages = openPages({ ...parts, hasFormats: source.takesAccept === true, nowMs: () => findMoment().atMs });

  function read(signal: AbortSignal, accept: string = TEXT_ACCEPT, isSecond = false): SourceRead<KeptAnswer> {
    if (state.isGone) return GONE;
    const readAt = findMoment();
    const { begun, ended } = source.read(signal, accept);
    const kept = begun.then((beginning): Beginning<KeptAnswer> => {
      if (beginning.kind === 'refused') takeRefused();
      if (beginning.kind === 'failed') pages.takeFailure(accept);
      if (beginning.kind !== 'answered') return beginning;
      const once = ended.then((reading) => keep(beginning.body, reading, readAt, accept));
      return { ...beginning, readAt, kept: isSecond ? once : once.then((result) => confirm(result, signal, accept)) };
    });
    return { begun: kept, ended: waitUntilKept(kept, ended) };
  }

  /** What may be cut is asked for again at once: this may be the last read, or main's last word. */
  async function confirm(kept: Kept, signal: AbortSignal, accept: string): Promise<Kept> {
    if (kept !== NOT_KEPT.provisional) return kept;
    const second = await read(signal, accept, true).begun;
    return second.kind === 'answered' ? second.kept : kept;
  }

  /** It may be main, and have ended: what vanished shortly before is served, until it answers again. */
  function takeRefused(): void {
    state = takeRefusal(state);
    pages.takeVanished('restored');
  }

  async function keep(body: Body, reading: ExporterReading, readAt: Moment, accept: string): Promise<Kept> {
    const end = await body.ended;
    if (end.kind === 'unreadable') pages.takeUnreadable(accept, end.why);
    if (end.kind !== 'whole') {
      pages.takeFailure(accept);
      return { kind: 'notKept', result: 'failed', why: end.why };
    }
    const mayBegin = state.view.main === 'living' || (await pages.isComplete(accept, body));
    const page = pages.open(accept, body, mayBegin);
    if (page === null) return NOT_KEPT.notUsed;
    const isOld = () => page.readAtMs !== null && readAt.atMs < page.readAtMs;
    const isShort = reading.mayBeCut === true && !isOld() && (await page.isShort(body));
    // Of two reads at a time the younger one has ended first: what it showed is newer.
    const newer = isOld() ? await page.newest() : null;
    if (newer !== null) return { kind: 'kept', snapshot: newer };
    const metrics = readMetrics(metricNames, reading.metric);
    const taken = takeAnswer(state, { readAtMs: readAt.atMs, exporter: reading.observation, metrics, isShort });
    ({ state } = taken);
    if (taken.becomes === 'ignored' || taken.becomes === 'provisional') return NOT_KEPT[taken.becomes];
    page.readAtMs = readAt.atMs;
    const snapshot = await page.keep(body, readAt, taken.becomes);
    if (snapshot === null) return NOT_KEPT.tooLarge;
    if (state.view.main === 'living') pages.dropUnused();
    return { kind: 'kept', snapshot };
  }

  function choose(accept: string): string {
    if (source.takesAccept !== true) return TEXT_ACCEPT;
    return state.view.main === 'living' ? accept : (pages.find(accept) ?? accept);
  }

  return {
    ...source,
    read: (signal, accept) => read(signal, accept),
    state: () => state,
    takeView(view) {
      const fate = findVanishedFate(state.view, view, state.kind);
      state = takeView(state, view);
      if (fate !== null) pages.takeVanished(fate);
    },
    use(accept) {
      if (source.takesAccept === true && choose(accept) === accept) pages.use(accept);
    },
    accepts: () => pages.listInUse(state.view.main === 'living'),
    choose,
    newest: pages.newest,
  };
}

const NOT_KEPT: Readonly<Record<'ignored' | 'provisional' | 'notUsed' | 'tooLarge', Kept>> = {
  tooLarge: { kind: 'notKept', result: 'failed', why: 'with what has vanished from it, it is too large' },
  notUsed: { kind: 'notKept', result: 'ignored', why: 'no page of its format is kept' },
  ignored: {
    kind: 'notKept',
    result: 'ignored',
    why: 'the source was restarted after main ended, and counts from 0',
  },
  provisional: {
    kind: 'notKept',
    result: 'failed',
    why: 'it has no length and lacks families of the one before, so that it may be cut',
  },
};

const GONE: SourceRead<never> = { begun: Promise.resolve({ kind: 'refused' }), ended: Promise.resolve(REFUSED) };

/** What becomes of an answer that may be cut is known later; the rules must not ask before. */
async function waitUntilKept(
  begun: Promise<Beginning<KeptAnswer>>,
  ended: Promise<ExporterReading>,
): Promise<ExporterReading> {
  const reading = await ended;
  const beginning = await begun;
  if (reading.mayBeCut === true && beginning.kind === 'answered') await beginning.kept;
  return reading;
}
