// Who took the page that scrapes get last, and what may be missing from it. Pure.

import { type FrontFacts, listCounted } from './scrapers.ts';
import type { SourceState } from './serve.ts';

/** `main`: it called or pushed, so nothing is missing; `read`: by lastscrape or for a scrape. */
export type LastPage = {
  readonly by: 'main' | 'read';
  /** How long before main's end the page was read: later changes may be missing. At least 0. */
  readonly missesMs: number;
  /** How long before its end main called. Absent: at its end, or never. */
  readonly calledMs?: number;
};

/** A call this long before the end is at the end: the kubelet's signal comes a second or two later. */
const CALL_AT_END_MS = 5_000;

/**
 * The last page of a main that ended at `endedAtMs`, in one format: its oldest part was read at `readAtMs`;
 * null: nothing was kept.
 */
export function findLastPage(
  { kind, calledAtMs = null }: Pick<SourceState, 'kind' | 'calledAtMs'>,
  readAtMs: number | null,
  endedAtMs: number,
): LastPage | null {
  if (readAtMs === null) return null;
  const read = { by: 'read', missesMs: Math.max(0, endedAtMs - readAtMs) } as const;
  const last = { by: 'main', missesMs: 0 } as const;
  if (kind === 'pushes') return last;
  if (calledAtMs === null || readAtMs < calledAtMs) return read;
  const calledMs = endedAtMs - calledAtMs;
  return calledMs <= CALL_AT_END_MS ? last : { ...read, calledMs };
}

/**
 * When the last pages of scrapers were read; of the oldest, and of what has vanished from it. null: nothing
 * was kept.
 */
export function findLastReadMs(front: FrontFacts, endedAtMs: number): number | null {
  if (front.seen.answeredAtMs === null) return null;
  const groups = Map.groupBy(listCounted(front, endedAtMs), ({ scraperId }) => scraperId);
  const newest = [...groups.values()].map((scrapes) =>
    Math.max(...scrapes.map(({ readAtMs, oldestAtMs = readAtMs }) => oldestAtMs)),
  );
  return newest.length === 0 ? front.seen.answeredAtMs : Math.min(...newest);
}

/** In tenths of a second, rounded up: 0 means that nothing is missing. */
export function toMissesSeconds({ missesMs }: LastPage): number {
  return Math.ceil(missesMs / 100) / 10;
}
