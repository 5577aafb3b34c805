// The source, read and kept as the law of decide/serve.ts says. Holds no rule.

import { type AcceptUse, listAccepts, TEXT_ACCEPT, useAccept } from '../decide/accepts.ts';
import type { MainView } from '../decide/main-view.ts';
import type { LogEntry } from '../decide/messages.ts';
import {
  beginSource,
  findVanishedFate,
  type SourceKind,
  type SourceResult,
  type SourceState,
  takeAnswer,
  takeRefusal,
  takeView,
  type VanishedFate,
} from '../decide/serve.ts';
import type { Format } from '../exposition/format.ts';
import type { ExporterReading } from '../observe/condition-kind.ts';
import { REFUSED } from '../observe/exporter.ts';
import type { Body } from '../snapshot/body.ts';
import {
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
export type KeepParts = {
  readonly kind: SourceKind;
  /** The metrics that are 0 once main has ended. */
  readonly metricNames: readonly string[];
  /** Now, by both clocks. */
  readonly findMoment: () => Moment;
  /** The numbers of the text are needed, whatever scrapers ask for. */
  readonly isTextWanted: boolean;
  readonly log: (entry: LogEntry) => void;
};

/** Of all pages together, but for the first: one of 30 MB, read and kept, fits into 64 MiB. */
const PAGES_MAX_BYTES = 32_000_000;

/** The snapshots of one Accept. */
type Page = SnapshotStore & { sizeBytes: number; format: Format; readAtMs: number };

/** Keeps what is read. */
export function keepSource(source: Source, parts: KeepParts): KeptSource {
  const { metricNames, findMoment, isTextWanted, log } = parts;
  let state = beginSource(parts.kind);
  let uses: readonly AcceptUse[] = [];
  /** By their Accept, the oldest first. */
  const pages = new Map<string, Page>();
  /** Whose pages are too large beside the others. */
  const leftOut = new Set<string>();

  function listInUse(): readonly string[] {
    // Many programs answer in text whatever they are asked for.
    const hasText = uses.some(({ accept }) => pages.get(accept)?.format === 'text');
    const accepts = listAccepts(uses, findMoment().atMs, isTextWanted && !hasText);
    return accepts.filter((accept) => !leftOut.has(accept));
  }
  /** Its own page, else the one that every scraper takes, else the newest; null: nothing was kept. */
  function findPage(accept: string): string | null {
    return [accept, TEXT_ACCEPT].find((each) => pages.has(each)) ?? [...pages.keys()].at(-1) ?? null;
  }
  function choose(accept: string): string {
    if (source.takesAccept !== true) return TEXT_ACCEPT;
    return state.view.main === 'living' ? accept : (findPage(accept) ?? accept);
  }
  /** Null: nobody needs it, or it is too large beside the others. */
  function openPage(accept: string, { sizeBytes, type: { format } }: Body): Page | null {
    const isLiving = state.view.main === 'living';
    const inUse = listInUse();
    if (!inUse.includes(accept) && (isLiving || pages.size > 0) && !pages.has(accept)) return null;
    if (isLiving) for (const each of [...pages.keys()]) if (!inUse.includes(each)) pages.delete(each);
    const others = [...pages].filter(([each]) => each !== accept);
    const othersBytes = others.reduce((sum, [, page]) => sum + page.sizeBytes, 0);
    const isFirst = others.length === 0 || [...pages.keys()][0] === accept;
    if (!isFirst && othersBytes + sizeBytes > PAGES_MAX_BYTES) {
      if (leftOut.size === 0) log({ id: 'formatLeftOut', fields: { accept: accept.slice(0, ACCEPT_SHOWN_LENGTH) } });
      leftOut.add(accept);
      pages.delete(accept);
      return null;
    }
    const page = pages.get(accept) ?? { ...openSnapshotStore(), sizeBytes, format, readAtMs: 0 };
    page.sizeBytes = sizeBytes;
    page.format = format;
    pages.set(accept, page);
    return page;
  }

  function read(signal: AbortSignal, accept: string = TEXT_ACCEPT, isSecond = false): SourceRead<KeptAnswer> {
    if (state.isGone) return GONE;
    const readAt = findMoment();
    const { begun, ended } = source.read(signal, accept);
    const kept = begun.then((beginning): Beginning<KeptAnswer> => {
      if (beginning.kind === 'refused') takeRefused();
      if (beginning.kind !== 'answered') return beginning;
      const once = ended.then((reading) => keep(beginning.body, reading, readAt, accept));
      const confirmed = () => once.then((result) => confirm(result, signal, accept));
      return { ...beginning, readAt, kept: isSecond ? once : confirmed() };
    });
    return { begun: kept, ended: waitUntilKept(kept, ended) };
  }

  /** What may be cut is asked for again at once: this may be the last read, or main's last word. */
  async function confirm(kept: Kept, signal: AbortSignal, accept: string): Promise<Kept> {
    if (kept !== NOT_KEPT.provisional) return kept;
    const second = await read(signal, accept, true).begun;
    return second.kind === 'answered' ? second.kept : kept;
  }

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

  /** It may be main, and have ended: what vanished shortly before is served, until it answers again. */
  function takeRefused(): void {
    state = takeRefusal(state);
    takeVanished('restored');
  }
  function takeVanished(fate: VanishedFate): void {
    for (const page of pages.values()) page.takeVanished(fate, findMoment().atMs);
  }

  async function keep(body: Body, reading: ExporterReading, readAt: Moment, accept: string): Promise<Kept> {
    const end = await body.ended;
    if (end.kind !== 'whole') return { kind: 'notKept', result: 'failed', why: end.why };
    const page = openPage(accept, body);
    if (page === null) return NOT_KEPT.notUsed;
    const isShort = reading.mayBeCut === true && readAt.atMs >= page.readAtMs && (await page.isShort(body));
    // Of two reads at a time the younger one has ended first: what it showed is newer.
    const newer = readAt.atMs < page.readAtMs ? await page.newest() : null;
    if (newer !== null) return { kind: 'kept', snapshot: newer };
    const metrics = readMetrics(metricNames, reading.metric);
    const taken = takeAnswer(state, { readAtMs: readAt.atMs, exporter: reading.observation, metrics, isShort });
    ({ state } = taken);
    if (taken.becomes === 'ignored' || taken.becomes === 'provisional') return NOT_KEPT[taken.becomes];
    page.readAtMs = readAt.atMs;
    const snapshot = await page.keep(body, readAt, taken.becomes);
    if (snapshot !== null) return { kind: 'kept', snapshot };
    return { kind: 'notKept', result: 'failed', why: 'with what has vanished from it, it is too large' };
  }

  /** The newest that a push can read: text, else OpenMetrics. */
  async function findReadable(): Promise<Snapshot | null> {
    const all = await Promise.all([...pages.values()].map((page) => page.newest()));
    const of = (format: Format) => all.find((each) => each?.body.type.format === format);
    return of('text') ?? of('openMetrics') ?? null;
  }

  return {
    ...source,
    read: (signal, accept) => read(signal, accept),
    state: () => state,
    takeView(view) {
      const fate = findVanishedFate(state.view, view);
      state = takeView(state, view);
      if (fate !== null) takeVanished(fate);
    },
    use(accept) {
      if (source.takesAccept === true) uses = useAccept(uses, accept, findMoment().atMs);
    },
    accepts: listInUse,
    choose,
    async newest(accept) {
      if (accept === undefined) return findReadable();
      return (await pages.get(findPage(accept) ?? accept)?.newest()) ?? null;
    },
  };
}

/** Of an Accept, in a warning. */
const ACCEPT_SHOWN_LENGTH = 200;

const NOT_KEPT: Readonly<Record<'ignored' | 'provisional' | 'notUsed', Kept>> = {
  notUsed: { kind: 'notKept', result: 'failed', why: 'no page of its format is kept' },
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
