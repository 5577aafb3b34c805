// Reads the source as decide/serve/reads.ts says, with a front or without: hands each answer to those who
// share its read, and keeps no rule of its own.

import { type Clock, callAfter, onLimit, runWithin, waitFor } from '../base/waits.ts';
import { SHORT_READ_MS } from '../decide/run/pace.ts';
import { TEXT_ACCEPT, type Wanted } from '../decide/serve/budget.ts';
import {
  beginReads,
  endRead,
  findWait,
  hasOwn,
  type ObservationNeed,
  type Read,
  type ReadNeed,
  type ReadsEvent,
  type ReadsSettings,
  stepReads,
} from '../decide/serve/reads.ts';
import type { MainView } from '../decide/serve/serve.ts';
import type { ExporterReading } from './condition-kind.ts';
import { type Beginning, type BegunRead, NOT_READ, REFUSED, type SourceRead } from './exporter.ts';

/** Asks for a read that begins from now on. */
export type ScrapeRead = {
  /** From now to the source's last byte, including the wait for the read before. */
  readonly timeoutMs: number;
  /** Its reason is a string. */
  readonly signal: AbortSignal;
  /** The formats that are asked for: only requests for the same ones share a read. Default: text 0.0.4. */
  readonly accept?: string;
};

/**
 * A read that others may share. `ended`: how it began, or began once more. `limit`: this request for it was
 * given up; the reason is a string.
 */
export type SharedRead<SomeAnswer extends BegunRead> = {
  readonly begun: Promise<Beginning<SomeAnswer>>;
  readonly ended: Promise<Beginning<SomeAnswer>>;
  readonly limit: AbortSignal;
};

/** What is read: begins a read, the second at a time at most; never rejects. */
type ReadSource<SomeAnswer extends BegunRead> = {
  readonly read: (signal: AbortSignal, accept?: string) => SourceRead<SomeAnswer>;
  readonly close: () => Promise<void>;
  /** What is kept may lack what main had last. Default: nothing is kept. */
  readonly isLastReadDue?: () => boolean;
};

/** What reads go by. */
export type ReadsParts = ReadsSettings & {
  readonly clock: Clock;
  /** What our process has used so far. Default: it is not counted. */
  readonly readCpuMs?: (() => number) | undefined;
  /** What is known of main, and what own reads are to ask for. */
  readonly tell: () => { readonly isCharged: boolean; readonly wanted: readonly Wanted[] };
};

/**
 * The reads of one source, which is closed with them.
 *
 *     const reads = openReads(source, parts);
 *     const { begun, ended } = reads.read({ timeoutMs: 9_500, signal });   // for a scrape
 *     const reading = await reads.observe(signal);                          // for an observation
 */
export type Reads<SomeAnswer extends BegunRead> = {
  /** Waits for a read that begins after this call. Never rejects. */
  readonly read: (request: ScrapeRead) => SharedRead<SomeAnswer>;
  /** The newest reading since the last call, for an observation with this need. Default: `own`. */
  readonly observe: (signal: AbortSignal, need?: ObservationNeed) => Promise<ExporterReading>;
  /** Reads what main had last if that is due, before it is pushed or the front closes: 1 s at most. */
  readonly readLast: () => Promise<void>;
  /** Ends the requests of scrapes; what is being read goes on. */
  readonly giveUpScrapes: (why: string) => void;
  /** Ends all requests and reads, and closes the source. Nothing may be asked for afterwards. */
  readonly close: () => Promise<void>;
};

/** A request that waits for a read, or shares one. */
type Sharer<SomeAnswer extends BegunRead> = {
  readonly limit: AbortController;
  readonly begun: PromiseWithResolvers<Beginning<SomeAnswer>>;
  readonly ended: PromiseWithResolvers<Beginning<SomeAnswer>>;
};

const WHY = { gaveWay: 'it gave way to a scrape', late: 'timed out' } as const;

/** Opens the reads; nothing is read before the first call. */
export function openReads<SomeAnswer extends BegunRead>(
  source: ReadSource<SomeAnswer>,
  { clock, readCpuMs = () => 0, tell, ...settings }: ReadsParts,
): Reads<SomeAnswer> {
  let reads = beginReads(settings);
  let cancelWake = () => {};
  const shown = openShown();
  const sharers = openSharers<SomeAnswer>(clock, (id) => take({ kind: 'gaveUp', id }));
  const underWay = new Map<number, { readonly limit: AbortController; readonly end: Promise<void> }>();
  const watchers = new Set<() => void>();

  function take(event: ReadsEvent): void {
    cancelWake();
    const nowMs = clock.nowMs();
    const known = stepReads(reads, { kind: 'main', ...tell() }, nowMs);
    const { moves, wakeAtMs, ...next } = stepReads(known.reads, event, nowMs);
    ({ reads } = next);
    for (const move of [...known.moves, ...moves]) {
      if (move.kind === 'cut') underWay.get(move.read.id)?.limit.abort(WHY[move.why]);
      else {
        const limit = new AbortController();
        underWay.set(move.read.id, { limit, end: follow(move.read, limit.signal) });
      }
    }
    if (Number.isFinite(wakeAtMs)) cancelWake = callAfter(clock, wakeAtMs - nowMs, () => take({ kind: 'due' }));
    for (const watch of watchers) watch();
  }

  async function follow(read: Read, signal: AbortSignal): Promise<void> {
    const listSharers = () => sharers.list(reads.underWay.find(({ id }) => id === read.id)?.sharers ?? []);
    const { begun, ended } = source.read(signal, read.accept);
    const beginning = await begun;
    for (const sharer of listSharers()) sharer.begun.resolve(beginning);
    take({ kind: 'headCame', read: read.id });
    const reading = await ended;
    const sharing = listSharers();
    underWay.delete(read.id);
    // Of a program that is not there an answer cost main nothing.
    const isThere = beginning.kind !== 'answered' || beginning.isSourceUp !== false;
    const { observation } = isThere ? reading : REFUSED;
    take(endRead(read.id, observation, readCpuMs(), reading.mayBeCut && !signal.aborted));
    if (underWay.has(read.id)) return;
    for (const sharer of sharing) sharer.ended.resolve(beginning);
    const isTextRead = tell().wanted.some(({ accept, isSpare }) => accept.startsWith(TEXT_ACCEPT) && isSpare !== true);
    shown.add(read.begunAtMs, reading, { isGivenUp: signal.aborted, isTextRead });
  }

  /** Resolves once no own read, or none of that kind, is waited for or under way. */
  function whenOwnEnd(need?: ReadNeed): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const watch = () => {
      if (!hasOwn(reads, need) && watchers.delete(watch)) resolve();
    };
    watchers.add(watch);
    watch();
    return promise;
  }

  async function observe(signal: AbortSignal, need: ObservationNeed = 'own'): Promise<ExporterReading> {
    take({ kind: 'observation', need });
    const wait = findWait(reads, need, shown.has());
    const result = wait && (await waitFor(whenOwnEnd(wait.need), { ...wait, signal, clock }));
    if (result?.kind === 'pending' && settings.observing === 'contains') await cutAll(result.why);
    return shown.take();
  }

  async function cutAll(why: string): Promise<void> {
    const ends = [...underWay.values()];
    for (const { limit } of ends) limit.abort(why);
    await Promise.all(ends.map(({ end }) => end));
  }

  return {
    read({ accept = TEXT_ACCEPT, ...limits }) {
      const [id, { begun, ended, limit }] = sharers.add(limits);
      const request = { id, need: 'scrape', accept, untilMs: clock.nowMs() + limits.timeoutMs } as const;
      if (!limit.signal.aborted) take({ kind: 'asked', request });
      return { begun: begun.promise, ended: ended.promise, limit: limit.signal };
    },
    observe,
    async readLast() {
      if (source.isLastReadDue?.())
        await runWithin({ timeoutMs: SHORT_READ_MS, clock }, (limit) => observe(limit, 'last'));
    },
    giveUpScrapes: sharers.giveUpAll,
    async close() {
      sharers.giveUpAll('closed');
      take({ kind: 'closed' });
      await cutAll('closed');
      await source.close();
    },
  };
}

/** The reads of an exporter where no front serves it. */
export type ExporterReads = Pick<Reads<BegunRead>, 'observe' | 'readLast' | 'close'> & {
  /** What is known of main from now on. */
  readonly takeView: (view: MainView) => void;
};

/** Opens them; each begins and ends within one observation. */
export function openExporterReads(
  exporter: ReadSource<BegunRead> & { readonly takeView?: (view: MainView) => void },
  settings: Omit<ReadsParts, 'observing' | 'tell'>,
): ExporterReads {
  let isCharged = true;
  const tell = () => ({ isCharged, wanted: [{ accept: TEXT_ACCEPT }] });
  return {
    ...openReads(exporter, { ...settings, observing: 'contains', tell }),
    takeView(view) {
      isCharged = view.main === 'living';
      exporter.takeView?.(view);
    },
  };
}

/** Who waits for a read or shares one, each until its own limits. */
function openSharers<SomeAnswer extends BegunRead>(clock: Clock, onGivenUp: (id: number) => void) {
  const sharers = new Map<number, Sharer<SomeAnswer>>();
  let lastId = 0;
  function giveUp(id: number, { limit, begun, ended }: Sharer<SomeAnswer>, why: string): void {
    limit.abort(why);
    begun.resolve({ kind: 'failed', why });
    ended.resolve({ kind: 'failed', why });
    onGivenUp(id);
  }
  return {
    list: (requests: readonly { readonly id: number }[]) => requests.flatMap(({ id }) => sharers.get(id) ?? []),
    add({ timeoutMs, signal }: Pick<ScrapeRead, 'timeoutMs' | 'signal'>): readonly [number, Sharer<SomeAnswer>] {
      // The law numbers its own reads from 1 on.
      const id = --lastId;
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
      return [id, sharer];
    },
    giveUpAll(why: string): void {
      for (const [id, sharer] of sharers) giveUp(id, sharer, why);
    },
  };
}

/** What observations are shown: each reading once. A read that was given up hides none. */
function openShown() {
  let beganAtMs = Number.NEGATIVE_INFINITY;
  let reading: ExporterReading | null = null;
  return {
    has: () => reading !== null,
    take(): ExporterReading {
      const taken = reading ?? NOT_READ;
      reading = null;
      return taken;
    },
    add(atMs: number, newer: ExporterReading, { isGivenUp, isTextRead }: Record<'isGivenUp' | 'isTextRead', boolean>) {
      if (isGivenUp) reading ??= newer;
      // Where text is read as well, that says what is judged: labels such as `le` differ.
      const isHidden = newer.isOther === true && isTextRead;
      if (isGivenUp || atMs < beganAtMs || isHidden) return;
      beganAtMs = atMs;
      reading = newer;
    },
  };
}
