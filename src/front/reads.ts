// Reads the source as decide/serve/reads.ts says: hands each answer to those who share its read, and keeps no
// rule of its own.

import { type Clock, callAfter, onLimit, waitFor } from '../base/waits.ts';
import { TEXT_ACCEPT } from '../decide/serve/pages.ts';
import {
  beginReads,
  hasOwn,
  READ_TIMEOUT_MS,
  type Read,
  type ReadNeed,
  type ReadsEvent,
  stepReads,
  type Wanted,
} from '../decide/serve/reads.ts';
import type { ExporterReading } from '../observe/condition-kind.ts';
import { makeFailedReading, NOT_READ } from '../observe/exporter.ts';
import type { Beginning, BegunAnswer, Source, SourceRead } from './sources/source.ts';

/** Asks for a read that begins from now on. */
export type ScrapeRead = {
  /** From now to the source's last byte, including the wait for the read before. */
  readonly timeoutMs: number;
  /** Its reason is a string. */
  readonly signal: AbortSignal;
  /** The formats that are asked for: only requests for the same ones share a read. Default: text 0.0.4. */
  readonly accept?: string;
};

/** A read that others may share. `limit`: this request for it was given up; the reason is a string. */
export type SharedRead<SomeAnswer extends BegunAnswer> = SourceRead<SomeAnswer> & { readonly limit: AbortSignal };

/** What reads go by. */
export type ReadsParts = {
  readonly clock: Clock;
  readonly pollMs: number;
  /** How many times as long as a read took main is left alone. */
  readonly restFactor: number;
  /** A condition is a metric: an observation waits for the read that is under way. */
  readonly isAwaited: boolean;
  /** What is known of main, and what own reads are to ask for. */
  readonly tell: () => { readonly isLiving: boolean; readonly wanted: readonly Wanted[] };
};

/**
 * The reads of one source, which is closed with them.
 *
 *     const reads = openReads(source, parts);
 *     const { begun, ended } = reads.read({ timeoutMs: 9_500, signal });   // for a scrape
 *     const reading = await reads.observe(signal);                          // for an observation
 */
export type Reads<SomeAnswer extends BegunAnswer> = {
  /** Waits for a read that begins after this call. Never rejects. */
  readonly read: (request: ScrapeRead) => SharedRead<SomeAnswer>;
  /** The newest reading since the last call; begins a read if one is due. `isLast`: of a new one. */
  readonly observe: (signal: AbortSignal, isLast?: boolean) => Promise<ExporterReading>;
  /** Ends the requests of scrapes; what is being read goes on. */
  readonly giveUpScrapes: (why: string) => void;
  /** Ends all requests and reads, and closes the source. Nothing may be asked for afterwards. */
  readonly close: () => Promise<void>;
};

/** A request that waits for a read, or shares one. */
type Sharer<SomeAnswer extends BegunAnswer> = {
  readonly limit: AbortController;
  readonly begun: PromiseWithResolvers<Beginning<SomeAnswer>>;
  readonly ended: PromiseWithResolvers<ExporterReading>;
};

/** Of the newest read; `reading` null once it was observed. */
type Shown = { readonly beganAtMs: number; readonly reading: ExporterReading | null };

const WHY = { gaveWay: 'it gave way to a scrape', late: 'timed out' } as const;

/** Opens the reads; nothing is read before the first call. */
export function openReads<SomeAnswer extends BegunAnswer>(
  source: Pick<Source<SomeAnswer>, 'read' | 'close'>,
  { clock, isAwaited, tell, ...settings }: ReadsParts,
): Reads<SomeAnswer> {
  let reads = beginReads(settings);
  let shown: Shown = { beganAtMs: Number.NEGATIVE_INFINITY, reading: null };
  let lastScrapeId = 0;
  let cancelWake = () => {};
  const sharers = new Map<number, Sharer<SomeAnswer>>();
  const limits = new Map<number, AbortController>();
  const ends = new Set<Promise<void>>();
  const watchers = new Set<() => void>();

  function take(event: ReadsEvent): void {
    cancelWake();
    const told = stepReads(reads, { kind: 'told', ...tell() }, clock.nowMs());
    const next = stepReads(told.reads, event, clock.nowMs());
    ({ reads } = next);
    for (const move of [...told.moves, ...next.moves]) {
      if (move.kind === 'cut') limits.get(move.read)?.abort(WHY[move.why]);
      else begin(move.read);
    }
    if (Number.isFinite(next.wakeAtMs))
      cancelWake = callAfter(clock, next.wakeAtMs - clock.nowMs(), () => take({ kind: 'due' }));
    for (const watch of watchers) watch();
  }

  function begin(read: Read): void {
    const limit = new AbortController();
    limits.set(read.id, limit);
    const end = follow(read, limit.signal).finally(() => ends.delete(end));
    ends.add(end);
  }

  /** Who shares the read by now. */
  const listSharers = ({ id }: Read) =>
    (reads.underWay.find((each) => each.id === id)?.sharers ?? []).flatMap((each) => sharers.get(each.id) ?? []);

  async function follow(read: Read, signal: AbortSignal): Promise<void> {
    const { begun, ended } = source.read(signal, read.accept);
    const beginning = await begun;
    for (const sharer of listSharers(read)) sharer.begun.resolve(beginning);
    take({ kind: 'headCame', read: read.id });
    const reading = await ended;
    for (const sharer of listSharers(read)) sharer.ended.resolve(reading);
    show(read, reading, signal.aborted);
    limits.delete(read.id);
    const { kind } = reading.observation;
    take({ kind: 'ended', read: read.id, how: kind === 'refused' || kind === 'failed' ? kind : 'whole' });
  }

  /** A read that was given up hides no reading; where text is read too, that says what is judged. */
  function show({ begunAtMs }: Read, reading: ExporterReading, isGivenUp: boolean): void {
    if (isGivenUp) shown = { ...shown, reading: shown.reading ?? reading };
    if (isGivenUp || begunAtMs < shown.beganAtMs) return;
    const isTextRead = tell().wanted.some(({ accept, isSpare }) => accept === TEXT_ACCEPT && isSpare !== true);
    if (reading.isOther !== true || !isTextRead) shown = { beganAtMs: begunAtMs, reading };
  }

  function giveUp(id: number, sharer: Sharer<SomeAnswer>, why: string): void {
    const isWaiting = reads.waiting.some((each) => each.id === id);
    sharer.limit.abort(why);
    sharer.begun.resolve({ kind: 'failed', why });
    sharer.ended.resolve(makeFailedReading(why, !isWaiting));
    take({ kind: 'gaveUp', id });
  }

  function giveUpScrapes(why: string): void {
    for (const [id, sharer] of sharers) giveUp(id, sharer, why);
  }

  /** Resolves once no own read, or none of that kind, is waited for or under way. */
  function whenOwnEnd(need?: ReadNeed): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const watch = () => {
      if (hasOwn(reads, need)) return;
      watchers.delete(watch);
      resolve();
    };
    watchers.add(watch);
    watch();
    return promise;
  }

  return {
    read({ timeoutMs, signal, accept = TEXT_ACCEPT }) {
      // Those of the law are above 0.
      const id = --lastScrapeId;
      const sharer: Sharer<SomeAnswer> = {
        limit: new AbortController(),
        begun: Promise.withResolvers(),
        ended: Promise.withResolvers(),
      };
      sharers.set(id, sharer);
      const cancel = onLimit({ timeoutMs, signal, clock }, (why) => giveUp(id, sharer, why));
      sharer.ended.promise.then(() => {
        cancel();
        sharers.delete(id);
      });
      const request = { id, need: 'scrape', accept, untilMs: clock.nowMs() + timeoutMs } as const;
      if (!sharer.limit.signal.aborted) take({ kind: 'asked', request });
      return { begun: sharer.begun.promise, ended: sharer.ended.promise, limit: sharer.limit.signal };
    },
    async observe(signal, isLast = false) {
      take({ kind: 'look', isLast });
      if (isLast) await waitFor(whenOwnEnd('last'), { timeoutMs: READ_TIMEOUT_MS, signal, clock });
      else if (isAwaited && shown.reading === null && hasOwn(reads))
        await waitFor(whenOwnEnd(), { timeoutMs: settings.pollMs, signal, clock });
      const reading = shown.reading ?? NOT_READ;
      shown = { ...shown, reading: null };
      return reading;
    },
    giveUpScrapes,
    async close() {
      giveUpScrapes('closed');
      take({ kind: 'closed' });
      for (const limit of limits.values()) limit.abort('closed');
      await Promise.all(ends);
      await source.close();
    },
  };
}
