// What comes next for one target: ask it to end, verify that it is gone, ask again. Pure.
// A target is stopped when it refuses connections after our request; its answer proves nothing.

/** Longest wait for the answer to one request. */
export const ASK_TIMEOUT_MS = 5_000;
/** Pauses between probes; the last repeats. Targets took up to 0.9 s (fixtures/recordings/quit-endpoints). */
const PROBE_PAUSES_MS: readonly number[] = [20, 30, 50, 100, 200, 300, 500];
/** Pauses from the end of one request to the next; the last one repeats. */
const ASK_PAUSES_MS: readonly number[] = [1_000, 2_000, 4_000, 5_000];
/**
 * How long a target may refuse at its quit port while its service answers; a target that needs longer to go
 * gets that. Real programs open both ports within milliseconds (fixtures/recordings/quit-endpoints).
 */
export const DISABLED_MS = 10_000;

/** When to force a target that neither exited nor took the request, as shares of its time. */
const FORCE_AT: readonly number[] = [1 / 2, 3 / 4];

/** The least time a target gets after a signal, whatever earlier targets used up. */
export const SHARE_MIN_MS = 500;
/** Longest time that a probe takes: loopback accepts or refuses at once. */
export const PROBE_TIMEOUT_MS = 1_000;
/** Shortest one, where the time is used up: the last probe is worth its while. */
const PROBE_TIMEOUT_MIN_MS = 100;

/** The answer to one request to quit. */
export type Answer =
  | { readonly kind: 'answered'; readonly status: number; readonly isHtml: boolean }
  /** The connection ended without an answer: what a program does that exits inside its handler. */
  | { readonly kind: 'dropped' }
  /** Nothing listens there, nor at a port of its service. */
  | { readonly kind: 'refused' }
  /** Nothing listens at the quit port, but the service does at `port`: quit is disabled, or it is exiting. */
  | { readonly kind: 'disabled'; readonly port: number }
  /** Signals went to these processes; none where all of that name have theirs already. */
  | { readonly kind: 'signalled'; readonly signal: string; readonly pids: readonly number[] }
  /** No answer in time, or the request could not be made. `wasSent`: the target may have taken it. */
  | { readonly kind: 'failed'; readonly why: string; readonly wasSent: boolean };

/** Whether the target still listens. */
export type Probe = 'open' | 'refused' | 'unknown';

export type ForceResult =
  | { readonly kind: 'signalled'; readonly signal: string; readonly pids: readonly number[] }
  /** It cannot be forced, now or later; `why` goes with the hint. */
  | { readonly kind: 'impossible'; readonly why: string };

/** `hint`: what this answer usually means where the target still runs. */
export type TargetEvent =
  | { readonly kind: 'begun' }
  | { readonly kind: 'asked'; readonly answer: Answer; readonly hint: string }
  | { readonly kind: 'probed'; readonly probe: Probe }
  | { readonly kind: 'forced'; readonly result: ForceResult };

/** `failed`: it still runs, although everything was tried. */
export type QuitResult = 'stopped' | 'alreadyGone' | 'failed';

export type TargetMove =
  /** Send one request, and give it up after `timeoutMs`. */
  | { readonly kind: 'ask'; readonly timeoutMs: number }
  /** Probe at `atMs` whether it still listens, for `timeoutMs` at most. */
  | { readonly kind: 'probe'; readonly atMs: number; readonly timeoutMs: number }
  /** End it without its consent; `count` is 0 at the first of FORCE_AT. */
  | { readonly kind: 'force'; readonly count: number; readonly answer: Answer | null }
  | { readonly kind: 'ended'; readonly result: QuitResult; readonly hint: string };

export type TargetState = {
  readonly beganAtMs: number;
  readonly endsByMs: number;
  readonly canForce: boolean;
  readonly forceCount: number;
  /** How long the target may take to go; once it took a request it is not asked again before. */
  readonly needsMs: number;
  /** Since when only `disabled` was seen; null: another answer came, or none. */
  readonly disabledSinceMs: number | null;
  readonly askCount: number;
  readonly answeredAtMs: number;
  /** Probes since then. */
  readonly probeCount: number;
  /** Some request may have reached it. */
  readonly wasReached: boolean;
  /** The newest answer that says something: a later `failed` does not replace it. */
  readonly answer: Answer | null;
  /** What that answer usually means where the target still runs. */
  readonly hint: string;
  /** Why it could not be forced; blank if it could, or was not tried. */
  readonly whyNotForced: string;
};

export type TargetTime = {
  readonly nowMs: number;
  readonly quitTimeoutMs: number;
  /** When all quitting must end; null: no limit. */
  readonly quitByMs: number | null;
  /** Targets that share the time until then, this one included. */
  readonly leftCount: number;
};

/** The state of a target that is asked from now on. */
export function beginTarget({ needsMs, canForce }: Pick<TargetState, 'needsMs' | 'canForce'>, time: TargetTime) {
  const { nowMs, quitTimeoutMs } = time;
  const state: TargetState = {
    beganAtMs: nowMs,
    endsByMs: nowMs + quitTimeoutMs,
    canForce,
    forceCount: 0,
    needsMs,
    disabledSinceMs: null,
    askCount: 0,
    answeredAtMs: nowMs,
    probeCount: 0,
    wasReached: false,
    answer: null,
    hint: '',
    whyNotForced: '',
  };
  return shortenTarget(state, time);
}

/** Limits the target to its share of the time until `quitByMs`, after a signal. */
export function shortenTarget(state: TargetState, { nowMs, quitByMs, leftCount }: TargetTime): TargetState {
  if (quitByMs === null) return state;
  const shareMs = Math.max(SHARE_MIN_MS, (quitByMs - nowMs) / leftCount);
  return { ...state, endsByMs: Math.min(state.endsByMs, nowMs + shareMs) };
}

/** Decides what an event means for the target; `nowMs` is when it had happened. */
export function nextTargetMove(state: TargetState, event: TargetEvent, nowMs: number): Next {
  switch (event.kind) {
    case 'begun':
      return ask(state, nowMs);
    case 'asked':
      return afterAnswer(state, event.answer, event.hint, nowMs);
    case 'forced': {
      const { result } = event;
      const isPossible = result.kind === 'signalled';
      const counted = isPossible ? { forceCount: state.forceCount + 1 } : { canForce: false, whyNotForced: result.why };
      return probe({ ...state, ...counted, probeCount: 0 }, nowMs);
    }
    case 'probed':
      return afterProbe(state, event.probe, nowMs);
  }
}

type Next = { readonly state: TargetState; readonly move: TargetMove };

function afterAnswer(state: TargetState, newest: Answer, hint: string, nowMs: number): Next {
  if (newest.kind === 'refused') return endGone(state);
  const wasReached = state.wasReached || (newest.kind === 'failed' ? newest.wasSent : newest.kind !== 'disabled');
  // No answer, or a quit port that is closed by now, says nothing new after another answer.
  const isNews = state.answer === null || (newest.kind !== 'failed' && newest.kind !== 'disabled');
  const answer = isNews ? newest : state.answer;
  const isDisabled = answer?.kind === 'disabled';
  const answered: TargetState = {
    ...state,
    wasReached,
    answer,
    hint: isNews ? hint : state.hint,
    disabledSinceMs: isDisabled ? (state.disabledSinceMs ?? nowMs) : null,
    answeredAtMs: nowMs,
    // Probing a database proxy makes it dial its database: rarely, if nothing was asked.
    probeCount: isDisabled ? PROBE_PAUSES_MS.length : 0,
  };
  return probe(answered, nowMs);
}

function afterProbe(state: TargetState, result: Probe, nowMs: number): Next {
  // Gone is final: what listens there later was restarted, and is not ours to stop.
  if (result === 'refused') return endGone(state);
  const isHopeless = isDisabledForLong(state, nowMs);
  if (nowMs >= state.endsByMs || (!state.canForce && isHopeless)) {
    const { hint, whyNotForced } = state;
    const fullHint = whyNotForced === '' ? hint : `${hint}; ${whyNotForced}`;
    return { state, move: { kind: 'ended', result: 'failed', hint: fullHint } };
  }
  const forceAtMs = findNextForceMs(state);
  if (forceAtMs !== null && (nowMs >= forceAtMs || (state.forceCount === 0 && isHopeless))) {
    return { state, move: { kind: 'force', count: state.forceCount, answer: state.answer } };
  }
  const pauseMs = Math.max(pickPause(ASK_PAUSES_MS, state.askCount - 1), isTaken(state.answer) ? state.needsMs : 0);
  if (nowMs - state.answeredAtMs >= pauseMs) return ask(state, nowMs);
  return probe(state, nowMs);
}

/** It refuses: because of us, unless no request can have reached it. */
function endGone(state: TargetState): Next {
  const isOurs = state.forceCount > 0 || state.wasReached;
  return { state, move: { kind: 'ended', result: isOurs ? 'stopped' : 'alreadyGone', hint: state.hint } };
}

function isDisabledForLong({ disabledSinceMs, needsMs }: TargetState, nowMs: number): boolean {
  // The time that it needs counts, too: another may have asked it before us.
  return disabledSinceMs !== null && nowMs - disabledSinceMs >= Math.max(DISABLED_MS, needsMs);
}

/** The target took the request, as far as an answer can tell. */
function isTaken(answer: Answer | null): boolean {
  return answer?.kind === 'dropped' || (answer?.kind === 'answered' && answer.status < 300 && !answer.isHtml);
}

/** When it is forced next; null: never. One that took the request has its whole time to go. */
function findNextForceMs({ beganAtMs, endsByMs, canForce, forceCount, answer }: TargetState): number | null {
  const share = FORCE_AT[forceCount];
  return share === undefined || !canForce || isTaken(answer) ? null : beganAtMs + share * (endsByMs - beganAtMs);
}

function ask(state: TargetState, nowMs: number): Next {
  const byMs = Math.max(findNextForceMs(state) ?? state.endsByMs, nowMs);
  const timeoutMs = Math.max(1, Math.min(ASK_TIMEOUT_MS, byMs - nowMs));
  return { state: { ...state, askCount: state.askCount + 1 }, move: { kind: 'ask', timeoutMs } };
}

function probe(state: TargetState, nowMs: number): Next {
  const byMs = findNextForceMs(state) ?? state.endsByMs;
  const atMs = nowMs + Math.max(0, Math.min(pickPause(PROBE_PAUSES_MS, state.probeCount), byMs - nowMs));
  const timeoutMs = Math.max(PROBE_TIMEOUT_MIN_MS, Math.min(PROBE_TIMEOUT_MS, state.endsByMs - atMs));
  return { state: { ...state, probeCount: state.probeCount + 1 }, move: { kind: 'probe', atMs, timeoutMs } };
}

function pickPause(pausesMs: readonly number[], index: number): number {
  return pausesMs[Math.min(index, pausesMs.length - 1)] as number;
}
