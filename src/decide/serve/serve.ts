// The law of a kept source: what it must know of main, what a scrape gets, what an answer becomes, when the
// source is not read again. Pure: from a state and an event to the next state.

import { assertNever, type ExporterObservation, type SourceKind, type ThresholdReading } from '../model.ts';
import { advanceContinuity, type Continuity, mergeReading, UNSEEN } from '../verdict.ts';

/** Main, as far as it is known. */
export type MainView = {
  /** `ending`: its end is being proven. */
  readonly main: 'living' | 'ending' | 'ended';
  /** It was seen alive, or is known to have been: then a metric of 0 shows its end. */
  readonly wasAlive: boolean;
  /** When it was first seen to have ended; null while that is not known. */
  readonly endedAtMs: number | null;
  /** Since when the hold (the wait for scrapes after main's end) waits for answers in flight only. */
  readonly holdOverAtMs?: number;
};

/** What is remembered of a source, and of what is kept of it. */
export type SourceState = {
  readonly kind: SourceKind;
  readonly view: MainView;
  readonly continuity: Continuity;
  /** A program that refused after main's end; it is read again for a condition alone. */
  readonly isGone: boolean;
  /** When the read of the newest answer began that was kept; null: there is no snapshot. */
  readonly answeredAtMs: number | null;
  /** When the page that main asked to keep was read; absent: it never asked, or another program answers. */
  readonly calledAtMs?: number | null;
  /** When the program began, by the newest page that says so; null: none did. */
  readonly startSeconds: number | null;
  /** What is judged: of all answers kept since main was first alive; before that, of the newest. */
  readonly thresholds: readonly (ThresholdReading & { readonly readAtMs: number })[];
};

/** A whole, readable answer. */
export type SourceAnswer = {
  /** When its read began. */
  readonly readAtMs: number;
  readonly exporter: ExporterObservation;
  /** The conditions' metrics; null where one cannot be read. */
  readonly metrics: readonly (number | null)[];
  /** When the program began, in seconds since 1970 and by our clock. Default: the page does not say. */
  readonly startSeconds?: number | null;
  readonly startedAtMs?: number;
  /** No page is kept of it, or it may be cut, and lacks what the answer before it had. Default: false. */
  readonly isShort?: boolean;
};

/**
 * What an answer becomes: the snapshot itself; from main's end on, the snapshot with the families that have
 * vanished from it, so that no number goes back; or nothing, where the numbers of this run are lost
 * (`ignored`), or until a second short answer confirms it (`provisional`).
 */
export type Becomes = 'renewed' | 'joined' | 'ignored' | 'provisional';

/** How a read went: `refused` also where a file is missing, `ignored` where its answer is not of this run. */
export type SourceResult = 'answered' | 'refused' | 'failed' | 'ignored';

/** What a scrape gets: the answer as it comes, the answer with vanished families, the snapshot, or a 503. */
export type AnswerKind = 'live' | 'joined' | 'snapshot' | 'unavailable';

/** Before the first read. */
export function beginSource(kind: SourceKind): SourceState {
  const view = { main: 'living', wasAlive: false, endedAtMs: null } as const;
  return { kind, view, continuity: UNSEEN, isGone: false, answeredAtMs: null, startSeconds: null, thresholds: [] };
}

/** The state once main is seen like this. */
export function takeView(state: SourceState, view: MainView): SourceState {
  const continuity = advanceContinuity(state.continuity, { kind: 'none' }, view.main === 'living');
  return { ...state, view, continuity, isGone: state.isGone && view.main === 'ended' };
}

/** Families that vanished this long before the end was known belong to it: SIGTERM comes a second later. */
const VANISHED_KEPT_MS = 5_000;

/** How long vanished families are kept: with a longer POLL the end is known only at the next observation. */
export function findVanishedKeptMs(pollMs: number): number {
  return Math.max(VANISHED_KEPT_MS, pollMs + 1_000);
}

/** What becomes of vanished families: main's end restores them, a restart of main forgets them. */
export type VanishedFate = 'restored' | 'forgotten';

/** The same for a change of view; null: nothing changes. Pushes have a rule of their own: once scraped. */
export function findVanishedFate(
  { main: before }: MainView,
  { main: now }: MainView,
  kind?: SourceKind,
): VanishedFate | null {
  if (kind === 'pushes') return null;
  if (before === 'living' && now !== 'living') return 'restored';
  return before === 'ended' && now === 'living' ? 'forgotten' : null;
}

/** The state after a read that was refused. A missing file and an exporter may come back at any time. */
export function takeRefusal(state: SourceState): SourceState {
  if (state.kind === 'files') return state;
  const { main } = state.view;
  const continuity = advanceContinuity(state.continuity, { kind: 'refused' }, main === 'living');
  return { ...state, continuity, isGone: state.isGone || (main === 'ended' && state.kind !== 'exporter') };
}

/** A program's start is rounded to a second, and follows the corrections of the node's clock. */
const START_JITTER_MS = 1_500;

/** The state after a whole, readable answer, what that becomes, and whether another program gave it. */
export function takeAnswer(
  before: SourceState,
  { startSeconds = null, startedAtMs = 0, ...answer }: SourceAnswer,
): { readonly state: SourceState; readonly becomes: Becomes; readonly isAnother: boolean } {
  const began = startSeconds ?? before.startSeconds;
  const isAnother = before.startSeconds !== null && began !== before.startSeconds;
  const sinceEndMs = startedAtMs - (before.view.endedAtMs ?? startedAtMs);
  // What starts after main's end is not main.
  if (isAnother && before.kind === 'program' && sinceEndMs > START_JITTER_MS)
    return { state: before, becomes: 'ignored', isAnother: false };
  // Another program has not called.
  const state = { ...before, startSeconds: began, ...(isAnother && { calledAtMs: null }) };
  return { ...judgeAnswer(state, answer), isAnother };
}

function judgeAnswer(state: SourceState, answer: SourceAnswer): { state: SourceState; becomes: Becomes } {
  const { readAtMs, exporter: shown, metrics, isShort = false } = answer;
  const answeredAtMs = Math.max(readAtMs, state.answeredAtMs ?? readAtMs);
  // Of two reads at a time, each of another format, the younger one may end first: its numbers are newer.
  const exporter = readAtMs < answeredAtMs ? ({ kind: 'none' } as const) : shown;
  const isEnd = isEndSeen(state, metrics);
  const continuity = advanceContinuity(state.continuity, exporter, !isEnd);
  if (continuity.isLost) return { state: { ...state, continuity }, becomes: 'ignored' };
  // Of two reads at a time the older one may end last: its counter is lower, and has not fallen.
  const { finishedCount } = state.continuity.isRefused ? continuity : state.continuity;
  if (isShort) return { state: { ...state, continuity: { ...continuity, finishedCount } }, becomes: 'provisional' };
  // After a refusal another program answers, which has not called.
  const calledAtMs = state.continuity.isRefused ? null : state.calledAtMs;
  const thresholds = takeThresholds(state, answer);
  const next = { ...state, continuity, answeredAtMs, calledAtMs: calledAtMs ?? null, thresholds };
  if (isEnd) return { state: next, becomes: 'joined' };
  // Once the numbers of a restarted exporter are kept, the next ones are no restart.
  return { state: { ...next, continuity: { ...continuity, isInterrupted: false } }, becomes: 'renewed' };
}

/** The state after an answer that a younger read has overtaken: what is judged may be in it alone. */
export function takeOlderAnswer(state: SourceState, answer: SourceAnswer): SourceState {
  return state.continuity.isLost ? state : { ...state, thresholds: takeThresholds(state, answer) };
}

/** Of two reads at a time the older one may end last: of each entry the newest page that has it is judged. */
function takeThresholds(
  { view: { wasAlive }, answeredAtMs, thresholds }: SourceState,
  { readAtMs, exporter }: Pick<SourceAnswer, 'readAtMs' | 'exporter'>,
): SourceState['thresholds'] {
  const readings = exporter.kind === 'answered' ? (exporter.thresholds ?? []) : [];
  if (readings.length === 0 || (!wasAlive && readAtMs < (answeredAtMs ?? readAtMs))) return thresholds;
  return readings.map((reading, index) => {
    const now = { ...reading, readAtMs };
    const known = (wasAlive && thresholds[index]) || now;
    return known.readAtMs > readAtMs ? mergeReading(now, known) : mergeReading(known, now);
  });
}

function isEndSeen({ kind, view }: SourceState, metrics: SourceAnswer['metrics']): boolean {
  // Pushes are in our memory: nothing of them vanishes with main.
  if (kind === 'pushes') return false;
  return view.main !== 'living' || (view.wasAlive && showsEnd(kind, metrics));
}

/** For Locust an unreadable metric counts as the end too: it may be gone, and what it showed must be kept. */
function showsEnd(kind: SourceKind, metrics: readonly (number | null)[]): boolean {
  return metrics.length > 0 && metrics.every((value) => value === 0 || (value === null && kind === 'locust'));
}

/** What a scrape gets. Never an old number for a living program, unless it refuses: it may have ended. */
export function chooseAnswer(
  { kind, view: { main }, answeredAtMs }: Pick<SourceState, 'view' | 'answeredAtMs'> & { readonly kind?: SourceKind },
  result: SourceResult,
): AnswerKind {
  const hasSnapshot = answeredAtMs !== null;
  switch (result) {
    case 'answered':
      return main === 'living' || !hasSnapshot || kind === 'pushes' ? 'live' : 'joined';
    case 'refused':
    case 'ignored':
      return hasSnapshot ? 'snapshot' : 'unavailable';
    case 'failed':
      return main === 'ended' && hasSnapshot ? 'snapshot' : 'unavailable';
    default:
      return assertNever(result);
  }
}

/**
 * Whether to read once more when the front closes: of pushes, since nothing comes after it; and where what
 * would be pushed was read before main's end, and another format, which was served last, after it. Without a
 * front, whenever it was read before: what came since may have been cut, and a second answer confirms it.
 */
export function isLastReadDue(
  { kind, view: { endedAtMs }, answeredAtMs }: SourceState,
  isPushed: boolean,
  pageReadAtMs: number | null,
): boolean {
  if (kind === 'pushes') return true;
  if (!isPushed || endedAtMs === null || pageReadAtMs === null || answeredAtMs === null) return false;
  return pageReadAtMs < endedAtMs && (kind === 'exporter' || endedAtMs <= answeredAtMs);
}

/** What the rules of watching see of a source that is kept. */
export function observeSource({ answeredAtMs, calledAtMs = null, thresholds }: SourceState, inFlightCount: number) {
  const called = calledAtMs !== null && { calledAtMs };
  const readings = thresholds.map(({ readAtMs, ...reading }) => reading);
  return { answeredAtMs, inFlightCount, ...called, ...(readings.length > 0 && { thresholds: readings }) };
}
