// What quitting does next for one target: ask, verify that it is gone, ask again. Pure.
// A target is stopped when it refuses connections after our request; no answer of its own proves it.

/** Longest wait for the answer to one request. */
export const ASK_TIMEOUT_MS = 5_000;
/** Pauses between the looks at a target that was asked; the last one repeats. Real targets refuse within 75 ms to 0.9 s (fixtures/recordings/quit-endpoints). */
export const PROBE_PAUSES_MS: readonly number[] = [20, 30, 50, 100, 200, 300, 500];
/** Pauses from the end of one request to the next; the last one repeats. */
export const ASK_PAUSES_MS: readonly number[] = [1_000, 2_000, 4_000, 5_000];

/** What came back for one request to quit. */
export type Answer =
  | { readonly kind: 'answered'; readonly status: number; readonly isHtml: boolean }
  /** The connection ended without an answer: what a program does that exits inside its handler. */
  | { readonly kind: 'dropped' }
  /** Nothing listens there. */
  | { readonly kind: 'refused' }
  /** No answer in time, or the request could not be made. */
  | { readonly kind: 'failed'; readonly why: string };

/** Whether the target still listens. */
export type Probe = 'open' | 'refused' | 'unknown';

export type QuitEvent =
  | { readonly kind: 'begun' }
  | { readonly kind: 'asked'; readonly answer: Answer }
  | { readonly kind: 'probed'; readonly probe: Probe };

/** `failed`: it still runs, although everything was tried. */
export type QuitResult = 'stopped' | 'alreadyGone' | 'failed';

export type QuitMove =
  /** Send one request, and give it up after `timeoutMs`. */
  | { readonly kind: 'ask'; readonly timeoutMs: number }
  /** Wait, then look whether it still listens. */
  | { readonly kind: 'probe'; readonly afterMs: number }
  | { readonly kind: 'ended'; readonly result: QuitResult };

export type QuitState = {
  readonly endsByMs: number;
  readonly askCount: number;
  /** When the newest answer came. */
  readonly answeredAtMs: number;
  /** Looks since then. */
  readonly probeCount: number;
  /** The newest answer that says something: a later `failed` does not replace it. */
  readonly answer: Answer | null;
};

/**
 * The state for a target that is asked from `nowMs` on.
 *
 * `endsByMs` is the end of all quitting (null: none): the targets that are left share the time until then.
 */
export function beginQuit(
  nowMs: number,
  quitTimeoutMs: number,
  endsByMs: number | null,
  targetsLeftCount: number,
): QuitState {
  const ends = { endsByMs: nowMs + quitTimeoutMs, askCount: 0, answeredAtMs: nowMs, probeCount: 0, answer: null };
  return shareQuit(ends, nowMs, endsByMs, targetsLeftCount);
}

/** The state with no more than this target's share of the time until `endsByMs`; for a signal that comes while it is asked. */
export function shareQuit(
  state: QuitState,
  nowMs: number,
  endsByMs: number | null,
  targetsLeftCount: number,
): QuitState {
  if (endsByMs === null) return state;
  return { ...state, endsByMs: Math.min(state.endsByMs, nowMs + Math.max(0, endsByMs - nowMs) / targetsLeftCount) };
}

/** Decides what an event means for the target; `nowMs` is when the event ended. */
export function nextQuitMove(
  state: QuitState,
  event: QuitEvent,
  nowMs: number,
): { readonly state: QuitState; readonly move: QuitMove } {
  if (event.kind === 'begun') return ask(state, nowMs);
  if (event.kind === 'asked') {
    if (event.answer.kind === 'refused') {
      return { state, move: { kind: 'ended', result: state.askCount === 1 ? 'alreadyGone' : 'stopped' } };
    }
    const answer = event.answer.kind === 'failed' && state.answer !== null ? state.answer : event.answer;
    return probe({ ...state, answer, answeredAtMs: nowMs, probeCount: 0 }, nowMs);
  }
  // Gone is latched here: whatever listens there later was started anew, and is not ours to stop.
  if (event.probe === 'refused') return { state, move: { kind: 'ended', result: 'stopped' } };
  if (nowMs >= state.endsByMs) return { state, move: { kind: 'ended', result: 'failed' } };
  if (nowMs - state.answeredAtMs >= pauseOf(ASK_PAUSES_MS, state.askCount - 1)) return ask(state, nowMs);
  return probe(state, nowMs);
}

function ask(state: QuitState, nowMs: number) {
  const timeoutMs = Math.max(1, Math.min(ASK_TIMEOUT_MS, state.endsByMs - nowMs));
  return { state: { ...state, askCount: state.askCount + 1 }, move: { kind: 'ask', timeoutMs } as const };
}

function probe(state: QuitState, nowMs: number) {
  const afterMs = Math.max(0, Math.min(pauseOf(PROBE_PAUSES_MS, state.probeCount), state.endsByMs - nowMs));
  return { state: { ...state, probeCount: state.probeCount + 1 }, move: { kind: 'probe', afterMs } as const };
}

function pauseOf(pausesMs: readonly number[], index: number): number {
  return pausesMs[Math.min(index, pausesMs.length - 1)] as number;
}
