// What quitting does next for one target: ask, verify that it is gone, ask again. Pure.
// A target is stopped when it refuses connections after our request; no answer of its own proves it.

/** Longest wait for the answer to one request. */
export const ASK_TIMEOUT_MS = 5_000;
/** Pauses between the looks at a target that was asked; the last one repeats. Real targets refuse within 75 ms to 0.9 s (fixtures/recordings/quit-endpoints). */
export const PROBE_PAUSES_MS: readonly number[] = [20, 30, 50, 100, 200, 300, 500];
/** Pauses from the end of one request to the next; the last one repeats. */
export const ASK_PAUSES_MS: readonly number[] = [1_000, 2_000, 4_000, 5_000];
/**
 * How long a target may refuse at its quit port while its service answers; a target that needs longer to go gets that.
 * Real programs open both ports within milliseconds of each other (fixtures/recordings/quit-endpoints), so that one which
 * still starts is the exception; the rest of QUIT_TIMEOUT would only be waited for in vain.
 */
export const DISABLED_MS = 10_000;

/** When a target that neither went nor took the request is forced: shares of its time, and no further one after the last. */
export const FORCE_AT: readonly number[] = [1 / 2, 3 / 4];

/** What came back for one request to quit. */
export type Answer =
  | { readonly kind: 'answered'; readonly status: number; readonly isHtml: boolean }
  /** The connection ended without an answer: what a program does that exits inside its handler. */
  | { readonly kind: 'dropped' }
  /** Nothing listens there, nor at a port of its service. */
  | { readonly kind: 'refused' }
  /** Nothing listens at the quit port, while its service does at `port`: quitting is switched off, or it goes already. */
  | { readonly kind: 'disabled'; readonly port: number }
  /** Signals went to these processes; none where all of that name have theirs already. */
  | { readonly kind: 'signalled'; readonly signal: string; readonly pids: readonly number[] }
  /** No answer in time, or the request could not be made. `wasSent`: the target may have taken it. */
  | { readonly kind: 'failed'; readonly why: string; readonly wasSent: boolean };

/** Whether the target still listens. */
export type Probe = 'open' | 'refused' | 'unknown';

export type QuitEvent =
  | { readonly kind: 'begun' }
  | { readonly kind: 'asked'; readonly answer: Answer }
  | { readonly kind: 'probed'; readonly probe: Probe }
  /** `isPossible`: false where it cannot be forced, now or later. */
  | { readonly kind: 'forced'; readonly isPossible: boolean };

/** `failed`: it still runs, although everything was tried. */
export type QuitResult = 'stopped' | 'alreadyGone' | 'failed';

export type QuitMove =
  /** Send one request, and give it up after `timeoutMs`. */
  | { readonly kind: 'ask'; readonly timeoutMs: number }
  /** Wait, then look whether it still listens. */
  | { readonly kind: 'probe'; readonly afterMs: number }
  /** End it without its consent; `count` is 0 at the first of FORCE_AT. */
  | { readonly kind: 'force'; readonly count: number }
  | { readonly kind: 'ended'; readonly result: QuitResult };

export type QuitState = {
  readonly beganAtMs: number;
  readonly endsByMs: number;
  /** There may be a way to end it without its consent. */
  readonly canForce: boolean;
  readonly forceCount: number;
  /** How long the target may take to go; once it took a request it is not asked again before. */
  readonly needsMs: number;
  /** Since when only `disabled` was seen; null: another answer came, or none. */
  readonly disabledSinceMs: number | null;
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
 * `needsMs`, default 0: how long this target may take to go. `canForce`, default false: it may be forced (FORCE_AT).
 */
export function beginQuit(
  nowMs: number,
  quitTimeoutMs: number,
  endsByMs: number | null,
  targetsLeftCount: number,
  needsMs = 0,
  canForce = false,
): QuitState {
  const ends = {
    beganAtMs: nowMs,
    canForce,
    forceCount: 0,
    endsByMs: nowMs + quitTimeoutMs,
    needsMs,
    disabledSinceMs: null,
    askCount: 0,
    answeredAtMs: nowMs,
    probeCount: 0,
    answer: null,
  };
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
    if (event.answer.kind === 'refused') return gone(state);
    const answer = newestOf(state.answer, event.answer);
    const disabledSinceMs = answer.kind === 'disabled' ? (state.disabledSinceMs ?? nowMs) : null;
    // A look at the service of a database proxy makes it dial its database: not often where nothing was asked.
    const probeCount = answer.kind === 'disabled' ? PROBE_PAUSES_MS.length : 0;
    return probe({ ...state, answer, disabledSinceMs, answeredAtMs: nowMs, probeCount }, nowMs);
  }
  if (event.kind === 'forced') {
    return probe({ ...state, canForce: event.isPossible, forceCount: state.forceCount + 1, probeCount: 0 }, nowMs);
  }
  // Gone is latched here: whatever listens there later was started anew, and is not ours to stop.
  if (event.probe === 'refused') return gone(state);
  if (nowMs >= state.endsByMs || (!state.canForce && isDisabledForLong(state, nowMs))) {
    return { state, move: { kind: 'ended', result: 'failed' } };
  }
  const forceAtMs = nextForceMs(state);
  const isHopeless = state.forceCount === 0 && isDisabledForLong(state, nowMs);
  if (forceAtMs !== null && (nowMs >= forceAtMs || isHopeless)) {
    return { state, move: { kind: 'force', count: state.forceCount } };
  }
  const pauseMs = Math.max(pauseOf(ASK_PAUSES_MS, state.askCount - 1), isTaken(state.answer) ? state.needsMs : 0);
  if (nowMs - state.answeredAtMs >= pauseMs) return ask(state, nowMs);
  return probe(state, nowMs);
}

/** The answer that says more: none at all, or a quit port that is closed by now, says nothing new after another one. */
function newestOf(old: Answer | null, answer: Answer): Answer {
  return old !== null && (answer.kind === 'failed' || answer.kind === 'disabled') ? old : answer;
}

/** It refuses: because of us, unless no request can have reached it. */
function gone(state: QuitState) {
  const isOurs = state.forceCount > 0 || (state.answer !== null && state.answer.kind !== 'disabled');
  return { state, move: { kind: 'ended', result: isOurs ? 'stopped' : 'alreadyGone' } as const };
}

function isDisabledForLong({ disabledSinceMs, needsMs }: QuitState, nowMs: number): boolean {
  // The time that it needs, too: somebody else may have asked it before us.
  return disabledSinceMs !== null && nowMs - disabledSinceMs >= Math.max(DISABLED_MS, needsMs);
}

/** The target took the request, as far as an answer can tell. */
function isTaken(answer: Answer | null): boolean {
  return answer?.kind === 'dropped' || (answer?.kind === 'answered' && answer.status < 300 && !answer.isHtml);
}

/** When it is forced next; null: never. One that took the request has its whole time to go. */
function nextForceMs({ beganAtMs, endsByMs, canForce, forceCount, answer }: QuitState): number | null {
  const share = FORCE_AT[forceCount];
  return share === undefined || !canForce || isTaken(answer) ? null : beganAtMs + share * (endsByMs - beganAtMs);
}

function ask(state: QuitState, nowMs: number) {
  const byMs = Math.max(nextForceMs(state) ?? state.endsByMs, nowMs);
  const timeoutMs = Math.max(1, Math.min(ASK_TIMEOUT_MS, byMs - nowMs));
  return { state: { ...state, askCount: state.askCount + 1 }, move: { kind: 'ask', timeoutMs } as const };
}

function probe(state: QuitState, nowMs: number) {
  const byMs = nextForceMs(state) ?? state.endsByMs;
  const afterMs = Math.max(0, Math.min(pauseOf(PROBE_PAUSES_MS, state.probeCount), byMs - nowMs));
  return { state: { ...state, probeCount: state.probeCount + 1 }, move: { kind: 'probe', afterMs } as const };
}

function pauseOf(pausesMs: readonly number[], index: number): number {
  return pausesMs[Math.min(index, pausesMs.length - 1)] as number;
}
