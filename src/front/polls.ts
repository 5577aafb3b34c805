// The front's own polls, and what an observation sees of all reads.

import { type Clock, callAfter } from '../base/clock.ts';
import { waitFor } from '../base/waits.ts';
import { isPollDue } from '../decide/pace.ts';
import type { ExporterReading } from '../observe/condition.ts';
import { NOT_READ } from '../observe/exporter.ts';
import { openReads, type Reads } from './reads.ts';
import type { BegunAnswer, Source, SourceRead } from './sources/source.ts';

/** How long an own poll, and a call of /-/snapshot, may take. */
export const READ_TIMEOUT_MS = 15_000;

export type PollParts = {
  readonly clock: Clock;
  readonly pollMs: number;
  /** A condition is a metric: an observation waits for the read that is under way. */
  readonly isAwaited: boolean;
  /** Main lives: polls keep to a pace that a slow source can bear. */
  readonly isPaced: () => boolean;
};

export type Polls<SomeAnswer extends BegunAnswer> = Pick<Reads<SomeAnswer>, 'request' | 'close'> & {
  /** Begins a poll if one is due; the newest reading since the last call. */
  readonly observe: (signal: AbortSignal) => Promise<ExporterReading>;
  /** Reads for a scrape that came now: polls are left out for a while. */
  readonly readForScrape: Reads<SomeAnswer>['request'];
};

/** Opens the reads of a source, which is closed with them. */
export function openPolls<SomeAnswer extends BegunAnswer>(
  source: Source<SomeAnswer>,
  { clock, pollMs, isAwaited, isPaced }: PollParts,
): Polls<SomeAnswer> {
  let unseen: ExporterReading | null = null;
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
      if (!signal.aborted) newest = { beganAtMs, endedAtMs: clock.nowMs() };
      if (!signal.aborted || unseen === null) unseen = reading;
    });
    return begun;
  }

  function beginIfDue(): void {
    cancelLatePoll();
    const nowMs = clock.nowMs();
    const lateMs = scrapedAtMs + pollMs - nowMs;
    // The next observation may come up to two POLLs after the scrape: the last numbers must not be that old.
    if (lateMs > 0) cancelLatePoll = callAfter(clock, lateMs, beginIfDue);
    if (poll !== null || reads.isReading || !isPollDue({ nowMs, pollMs, isPaced: isPaced(), newest, scrapedAtMs }))
      return;
    poll = reads.request({ timeoutMs: READ_TIMEOUT_MS, signal: NEVER, isPoll: true });
    poll.ended.then(() => {
      newest = { beganAtMs: nowMs, endedAtMs: clock.nowMs() };
      poll = null;
    });
  }

  /** For a POLL at most. */
  async function waitForPoll(signal: AbortSignal): Promise<void> {
    const { ended } = poll ?? {};
    if (!isAwaited || ended === undefined || unseen !== null) return;
    await waitFor(ended, { timeoutMs: pollMs, signal, clock });
  }

  return {
    request: reads.request,
    readForScrape(request) {
      const cameAtMs = clock.nowMs();
      const scraped = reads.request(request);
      scraped.ended.then(({ observation }) => {
        // A scraper that gives up soon, or a source that fails, must not keep us from polling.
        if (observation.kind !== 'failed') scrapedAtMs = Math.max(scrapedAtMs, cameAtMs);
      });
      return scraped;
    },
    async observe(signal) {
      beginIfDue();
      await waitForPoll(signal);
      const reading = unseen ?? NOT_READ;
      unseen = null;
      return reading;
    },
    async close() {
      cancelLatePoll();
      await reads.close();
    },
  };
}

/** Ends no read: an own poll has its time. */
const NEVER = new AbortController().signal;
