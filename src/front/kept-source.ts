// The source, read and kept as the law of decide/serve.ts says. Holds no rule.

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
import { type Moment, openSnapshotStore, readMetrics, type Snapshot } from '../snapshot/snapshot.ts';
import type { Beginning, BegunAnswer, Source, SourceRead } from './sources/source.ts';

/** What became of an answer. */
export type Kept =
  | { readonly kind: 'kept'; readonly snapshot: Snapshot }
  | { readonly kind: 'notKept'; readonly result: Exclude<SourceResult, 'answered' | 'refused'>; readonly why: string };

/** An answer, when its read began, and what becomes of it. */
export type KeptAnswer = BegunAnswer & { readonly readAt: Moment; readonly kept: Promise<Kept> };

/** A source whose answers are kept. */
export type KeptSource = Source<KeptAnswer> & {
  readonly state: () => SourceState;
  readonly takeView: (view: MainView) => void;
  /** Once every answer so far is in it; null: nothing was kept. */
  readonly newest: () => Promise<Snapshot | null>;
};

/** `metricNames`: the metrics that are 0 once main has ended. `findMoment`: now, by both clocks. */
export function keepSource(
  source: Source,
  kind: SourceKind,
  metricNames: readonly string[],
  findMoment: () => Moment,
): KeptSource {
  const snapshots = openSnapshotStore();
  let state = beginSource(kind);

  function read(signal: AbortSignal, isSecond = false): SourceRead<KeptAnswer> {
    if (state.isGone) return GONE;
    const readAt = findMoment();
    const { begun, ended } = source.read(signal);
    const kept = begun.then((beginning): Beginning<KeptAnswer> => {
      if (beginning.kind === 'refused') takeRefused();
      if (beginning.kind !== 'answered') return beginning;
      const once = ended.then((reading) => keep(beginning.body, reading, readAt));
      return { ...beginning, readAt, kept: isSecond ? once : once.then((result) => confirm(result, signal)) };
    });
    return { begun: kept, ended: waitUntilKept(kept, ended) };
  }

  /** What may be cut is asked for again at once: this may be the last read, or main's last word. */
  async function confirm(kept: Kept, signal: AbortSignal): Promise<Kept> {
    if (kept !== NOT_KEPT.provisional) return kept;
    const second = await read(signal, true).begun;
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
    snapshots.takeVanished('restored', findMoment().atMs);
  }

  async function keep(body: Body, reading: ExporterReading, readAt: Moment): Promise<Kept> {
    const end = await body.ended;
    if (end.kind !== 'whole') return { kind: 'notKept', result: 'failed', why: end.why };
    // Of two reads at a time the younger one has ended first: what it showed is newer.
    const isOlder = state.answeredAtMs !== null && readAt.atMs < state.answeredAtMs;
    const newer = isOlder ? await snapshots.newest() : null;
    if (newer !== null) return { kind: 'kept', snapshot: newer };
    const isShort = reading.mayBeCut === true && (await snapshots.isShort(body));
    const metrics = readMetrics(metricNames, reading.metric);
    const taken = takeAnswer(state, { readAtMs: readAt.atMs, exporter: reading.observation, metrics, isShort });
    ({ state } = taken);
    if (taken.becomes === 'ignored' || taken.becomes === 'provisional') return NOT_KEPT[taken.becomes];
    const snapshot = await snapshots.keep(body, readAt, taken.becomes);
    if (snapshot !== null) return { kind: 'kept', snapshot };
    return { kind: 'notKept', result: 'failed', why: 'with what has vanished from it, it is too large' };
  }

  return {
    ...source,
    read: (signal) => read(signal),
    state: () => state,
    takeView(view) {
      const fate = findVanishedFate(state.view, view);
      state = takeView(state, view);
      if (fate !== null) snapshots.takeVanished(fate, findMoment().atMs);
    },
    newest: snapshots.newest,
  };
}

const NOT_KEPT: Readonly<Record<'ignored' | 'provisional', Kept>> = {
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
