// Who took the page that scrapes get last, and what may be missing from it. Pure.

import type { SourceState } from './serve.ts';

/** `main`: it called or pushed, so nothing is missing; `read`: by lastscrape or for a scrape. */
export type LastPage = {
  readonly by: 'main' | 'read';
  /** How long before main's end the page was read: later changes may be missing. At least 0. */
  readonly missesMs: number;
};

/** A call this long before the end was main's last act: the kubelet's signal comes a second or two later. */
const CALL_BEFORE_END_MS = 5_000;

/** The last page of a main that ended at `endedAtMs`; null: nothing was kept. */
export function findLastPage(
  { kind, answeredAtMs, calledAtMs = null }: Pick<SourceState, 'kind' | 'answeredAtMs' | 'calledAtMs'>,
  endedAtMs: number,
): LastPage | null {
  if (answeredAtMs === null) return null;
  const isCalled = calledAtMs !== null && endedAtMs - calledAtMs <= CALL_BEFORE_END_MS;
  if (kind === 'pushes' || isCalled) return { by: 'main', missesMs: 0 };
  return { by: 'read', missesMs: Math.max(0, endedAtMs - answeredAtMs) };
}

/** In tenths of a second, rounded up: 0 means that nothing is missing. */
export function toMissesSeconds({ missesMs }: LastPage): number {
  return Math.ceil(missesMs / 100) / 10;
}
