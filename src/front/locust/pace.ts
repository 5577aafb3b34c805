// When to read Locust's page and CSV, and when to answer readers: state and event in, next state out. Pure.
// The page is cheap, and cached by Locust for 2 s; the CSV is current, and costs Locust all percentiles.

import { isRunningState } from './page.ts';

/** What the newest answer of the page showed. */
export type PageView =
  | { readonly kind: 'stats'; readonly state: string | null; readonly mark: string }
  /** A 2xx or a redirect without statistics: a login, another program. */
  | { readonly kind: 'other' }
  /** Locust refused the connection, or answered with an error. */
  | { readonly kind: 'down' }
  /** Late or cut: Locust may still be there. */
  | { readonly kind: 'unknown'; readonly why: string };

/** `hurt`: the CSV came late or cut, or the connection was closed. */
export type CsvEnd = 'whole' | 'other' | 'hurt';

/** `ending`: main is about to end; `due`: at `wakeAtMs`; `mark`: of the body, empty without one. */
export type PaceEvent =
  | { readonly kind: 'asked' | 'ending' | 'due' }
  | { readonly kind: 'page'; readonly view: PageView }
  | { readonly kind: 'csv'; readonly end: CsvEnd; readonly mark: string };

/** All times are monotonic; infinite: never, or not yet. */
export type PaceState = {
  readonly view: PageView;
  /** The page once had statistics. */
  readonly isLocust: boolean;
  /** When the view was learnt. */
  readonly viewAtMs: number;
  /** A page that was asked for; null: none is on its way. */
  readonly page: { readonly askedAtMs: number; readonly isLate: boolean } | null;
  readonly pageDueAtMs: number;
  readonly csvAskedAtMs: number | null;
  /** The earliest time of the next CSV. */
  readonly csvFreeAtMs: number;
  readonly csvDueAtMs: number;
  readonly csvMark: string;
  readonly csvChangedAtMs: number;
  readonly isCsvHurt: boolean;
  /** Until then the CSV is read even while Locust runs. */
  readonly endingUntilMs: number;
  /** What readers wait for; `renewal`: for what was asked for before the end was announced. */
  readonly wait: { readonly kind: 'nothing' | 'page' } | { readonly kind: 'csv' | 'renewal'; readonly untilMs: number };
};

/** A younger answer is used again, so that many scrapers cost Locust no more than one. */
const REUSE_MS = 500;
/** Locust renews its page for the first request 2 s after the last renewal (web.py, DEFAULT_CACHE_TIME). */
const PAGE_CACHED_MS = 2_020;
/** The exporter's own limit (LOCUST_EXPORTER_TIMEOUT): then Locust counts as down. */
const LATE_MS = 5_000;
/** Between two CSVs without users: Locust ends at least 1.5 s after its last number. */
const CSV_PAUSE_MS = 250;
/** Where users may run, the pause is at least this multiple of what the CSV took. */
const CSV_PAUSE_RATIO = 4;
/** A CSV that has not changed for longer is read with the page only. */
const CSV_SAME_MS = 10_000;
/** How long a reader waits for the CSV. */
const CSV_WAIT_MS = 1_000;
/** How long an announced end may take: the kubelet's default grace. */
const ENDING_MS = 30_000;

const NEVER = Number.POSITIVE_INFINITY;
const LONG_AGO = Number.NEGATIVE_INFINITY;

/** Before the first read. */
export const PACE_START: PaceState = {
  view: { kind: 'down' },
  isLocust: false,
  viewAtMs: LONG_AGO,
  page: null,
  pageDueAtMs: NEVER,
  csvAskedAtMs: null,
  csvFreeAtMs: LONG_AGO,
  csvDueAtMs: NEVER,
  csvMark: '',
  csvChangedAtMs: 0,
  isCsvHurt: false,
  endingUntilMs: LONG_AGO,
  wait: { kind: 'nothing' },
};

/**
 * Takes one event; every timer that is due by `atMs` counts with it. `isAnswered`: all readers have their
 * answer; `wakeAtMs`: when to send `due`, unless another event comes first; infinite: never.
 */
export function stepPace(before: PaceState, event: PaceEvent, atMs: number) {
  let state = endRenewal(takeLate(takeEvent(before, event, atMs), atMs), atMs);
  const readsPage = isPageWanted(state, atMs);
  if (readsPage) state = { ...state, page: { askedAtMs: atMs, isLate: false } };
  if (readsPage || atMs >= state.pageDueAtMs) state = { ...state, pageDueAtMs: NEVER };
  state = endPageWait(state, atMs);
  const isCsvDue = atMs >= state.csvDueAtMs;
  const readsCsv = isCsvDue && state.csvAskedAtMs === null && isCsvWanted(state, atMs);
  if (isCsvDue) state = { ...state, csvDueAtMs: NEVER };
  if (readsCsv) state = { ...state, csvAskedAtMs: atMs };
  const { wait } = state;
  if (wait.kind === 'csv' && (state.csvAskedAtMs === null || atMs >= wait.untilMs)) {
    state = { ...state, wait: { kind: 'nothing' } };
  }
  return { state, readsPage, readsCsv, isAnswered: state.wait.kind === 'nothing', wakeAtMs: findWake(state) };
}

function takeEvent(state: PaceState, event: PaceEvent, atMs: number): PaceState {
  switch (event.kind) {
    case 'due':
      return state;
    case 'asked':
      return state.wait.kind === 'renewal' ? state : { ...state, wait: { kind: 'page' } };
    case 'ending':
      return {
        ...state,
        endingUntilMs: atMs + ENDING_MS,
        csvChangedAtMs: atMs,
        wait: { kind: 'renewal', untilMs: atMs + LATE_MS },
      };
    case 'page':
      return takePage(state, event.view, atMs);
    case 'csv':
      return takeCsv(state, event, atMs);
  }
}

function takePage(before: PaceState, view: PageView, atMs: number): PaceState {
  const isSame = isSameView(before.view, view);
  const isLocust = before.isLocust || view.kind === 'stats';
  const state = { ...before, view: isSame ? before.view : view, isLocust, viewAtMs: atMs, page: null };
  return {
    ...state,
    csvChangedAtMs: isRunning(state) ? atMs : state.csvChangedAtMs,
    csvDueAtMs: atMs >= state.csvFreeAtMs ? atMs : state.csvDueAtMs,
    pageDueAtMs: findPageDue(state, isSame, atMs),
  };
}

/** A page that Locust has not renewed yet is asked for again soon. */
function findPageDue(state: PaceState, isSame: boolean, atMs: number): number {
  const { view } = state;
  if (isRunning(state)) return atMs + (isSame ? REUSE_MS : PAGE_CACHED_MS);
  // The next poll may come 20 s later, and Locust may have recovered and ended by then.
  const isHurt = view.kind === 'unknown' || (state.isCsvHurt && isUp(view));
  return isHurt ? atMs + PAGE_CACHED_MS : state.pageDueAtMs;
}

function takeCsv(state: PaceState, { end, mark }: { end: CsvEnd; mark: string }, atMs: number): PaceState {
  const isNew = mark !== '' && mark !== state.csvMark;
  const tookMs = atMs - (state.csvAskedAtMs as number);
  const csvFreeAtMs = atMs + Math.max(CSV_PAUSE_MS, isRunning(state) ? CSV_PAUSE_RATIO * tookMs : 0);
  const csvChangedAtMs = isNew ? atMs : state.csvChangedAtMs;
  const isHurt = end === 'hurt';
  const isRepeated = end === 'whole' && atMs - csvChangedAtMs <= CSV_SAME_MS;
  return {
    ...state,
    csvAskedAtMs: null,
    csvMark: isNew ? mark : state.csvMark,
    csvChangedAtMs,
    csvFreeAtMs,
    csvDueAtMs: isRepeated ? csvFreeAtMs : NEVER,
    isCsvHurt: isHurt,
    pageDueAtMs: isHurt ? atMs + PAGE_CACHED_MS : state.pageDueAtMs,
  };
}

/** A late page makes Locust down; its answer still counts when it comes. */
function takeLate(state: PaceState, atMs: number): PaceState {
  const { page } = state;
  if (page === null || atMs < page.askedAtMs + LATE_MS) return state;
  const view: PageView = { kind: 'unknown', why: 'timed out' };
  return { ...state, page: { ...page, isLate: true }, view: isSameView(state.view, view) ? state.view : view };
}

/** Reads everything again once nothing from before the announcement is on its way, but for what is late. */
function endRenewal(state: PaceState, atMs: number): PaceState {
  const { wait, page, csvAskedAtMs } = state;
  if (wait.kind !== 'renewal' || page?.isLate === false) return state;
  if (csvAskedAtMs !== null && atMs < wait.untilMs) return state;
  return { ...state, viewAtMs: LONG_AGO, csvFreeAtMs: LONG_AGO, wait: { kind: 'page' } };
}

function isPageWanted({ page, pageDueAtMs, wait, viewAtMs }: PaceState, atMs: number): boolean {
  return page === null && (atMs >= pageDueAtMs || (wait.kind === 'page' && atMs - viewAtMs >= REUSE_MS));
}

/** Goes on to the CSV once the page is there, or late. */
function endPageWait(state: PaceState, atMs: number): PaceState {
  if (state.wait.kind !== 'page') return state;
  const isFresh = atMs - state.viewAtMs < REUSE_MS;
  if (!isFresh && state.page?.isLate !== true) return state;
  if (!isCsvWanted(state, atMs) || atMs < state.csvFreeAtMs) return { ...state, wait: { kind: 'nothing' } };
  const csvDueAtMs = state.csvAskedAtMs === null ? atMs : state.csvDueAtMs;
  return { ...state, wait: { kind: 'csv', untilMs: atMs + CSV_WAIT_MS }, csvDueAtMs };
}

function findWake({ page, pageDueAtMs, csvDueAtMs, wait }: PaceState): number {
  const lateAtMs = page === null || page.isLate ? NEVER : page.askedAtMs + LATE_MS;
  return Math.min(pageDueAtMs, csvDueAtMs, lateAtMs, 'untilMs' in wait ? wait.untilMs : NEVER);
}

function isRunning({ view }: PaceState): boolean {
  return view.kind === 'stats' && isRunningState(view.state);
}

function isCsvWanted(state: PaceState, atMs: number): boolean {
  const { view, endingUntilMs } = state;
  return view.kind === 'stats' && view.state !== null && (atMs < endingUntilMs || !isRunningState(view.state));
}

/** What the exporter shows as `up`: 1 for any 2xx or redirect, which it follows. */
export function isUp(view: PageView): boolean {
  return view.kind === 'stats' || view.kind === 'other';
}

/** Why `up` proves nothing about main; null: it does. */
export function findDoubt({ view, isLocust }: PaceState): string | null {
  if (view.kind === 'unknown') return view.why;
  return view.kind === 'other' && !isLocust ? "the page has never shown Locust's statistics" : null;
}

function isSameView(one: PageView, other: PageView): boolean {
  if (one.kind === 'stats') return other.kind === 'stats' && one.mark === other.mark;
  if (one.kind === 'unknown') return other.kind === 'unknown' && one.why === other.why;
  return one.kind === other.kind;
}
