// Observe → decide → act: drives the law with real looks, real time and real targets, one look in flight at a time.
// Holds no rule of its own: `step` and `nextQuitMove` decide, this obeys.

import type { ForceResult, Target } from './act/target.ts';
import type { ConditionObservation, Limits, LogEntry, Observation } from './decide/model.ts';
import { type Answer, beginQuit, nextQuitMove, type QuitEvent, type QuitResult, shareQuit } from './decide/quit.ts';
import type { TargetReport } from './decide/report.ts';
import { initialState, quitDeadlineMs, type State, step } from './decide/step.ts';
import type { Condition, ExporterReading } from './observe/condition.ts';

/** Time as the loop sees it. */
export type Clock = {
  /** Monotonic. */
  readonly nowMs: () => number;
  /** Calls back once after `ms`; returns how to cancel that. */
  readonly after: (ms: number, callback: () => void) => () => void;
};

/** The signals that came so far. */
export type Signals = {
  /** When the first one came; null before. */
  readonly terminatedAtMs: number | null;
  /** Aborted by the first one. */
  readonly first: AbortSignal;
  /** Aborted by the second one: give up at once. */
  readonly second: AbortSignal;
};

/** What the loop drives. */
export type LoopParts = {
  readonly limits: Limits;
  readonly clock: Clock;
  readonly signals: Signals;
  readonly conditions: readonly Condition[];
  /** Reads the exporter; null where nothing is to be read. */
  readonly readExporter: ((signal: AbortSignal) => Promise<ExporterReading>) | null;
  /** What a look says that did not read the exporter. */
  readonly notRead: ExporterReading;
  readonly targets: readonly Target[];
  readonly quitTimeoutMs: number;
  readonly isDryRun: boolean;
  readonly note: (note: LogEntry) => void;
  /** Called once, when the hold is over and before anything is asked to quit. */
  readonly beforeQuit: () => void;
  /** Called at each change of state and after each target. */
  readonly progress: (state: State, targets: readonly TargetReport[]) => void;
};

/** How long the look that tells of a signal may read: one that hangs must not keep the signal waiting. */
const READ_AFTER_SIGNAL_MS = 1_000;

/** Longest span that a timer of Node takes (2^31 - 1 ms). */
const TIMER_MAX_MS = 2_147_483_647;

/**
 * Watches, holds and quits; ends when everything is done, or at the second signal with what was reached by then.
 * Rejects on a bug only.
 */
export async function runLoop(parts: LoopParts): Promise<{ state: State; targets: readonly TargetReport[] }> {
  const { limits, clock, signals } = parts;
  let state = initialState(clock.nowMs());
  let deadlineMs: number | null = null;
  parts.progress(state, []);
  while (!signals.second.aborted) {
    const observation = await observe(parts, deadlineMs, state.facts.terminatedAtMs !== null);
    if (signals.second.aborted) break;
    noteLook(parts, observation);
    const decision = step(state, observation, limits);
    const hasChanged = decision.state.phase.kind !== state.phase.kind;
    state = decision.state;
    // What the log says is in the message already, should the process be killed in between.
    if (hasChanged) parts.progress(state, []);
    decision.notes.forEach(parts.note);
    if (decision.next.kind === 'quit') {
      parts.beforeQuit();
      return { state, targets: await quitTargets(parts, state) };
    }
    deadlineMs = decision.next.deadlineMs;
    const untilMs = Math.min(decision.next.atMs, deadlineMs ?? decision.next.atMs);
    await pause(parts, untilMs - clock.nowMs(), [signals.first, signals.second]);
  }
  return { state, targets: [] };
}

/** One look: the exporter first, then the conditions in their order until one shows that main is alive. */
async function observe(parts: LoopParts, stateDeadlineMs: number | null, isTold: boolean): Promise<Observation> {
  const { clock, signals, limits } = parts;
  const startedAtMs = clock.nowMs();
  // A signal that came in the pause before this look, which `step` knows nothing of.
  const untoldAtMs = isTold ? null : signals.terminatedAtMs;
  const graceEndMs = untoldAtMs === null ? Number.POSITIVE_INFINITY : untoldAtMs + limits.terminationGraceMs;
  const deadlineMs = Math.min(stateDeadlineMs ?? Number.POSITIVE_INFINITY, graceEndMs);
  const nothing: ConditionObservation[] = parts.conditions.map(() => ({ kind: 'notObserved' }));
  if (startedAtMs >= deadlineMs) {
    const { terminatedAtMs } = signals;
    return { startedAtMs, atMs: startedAtMs, terminatedAtMs, exporter: { kind: 'none' }, conditions: nothing };
  }
  const reading = new AbortController();
  const looking = new AbortController();
  const stopAll = (why: string) => {
    reading.abort(why);
    looking.abort(why);
  };
  const cancels = [
    // A signal ends a read that hangs, not the looks that tell whether main lives.
    onAbort(signals.terminatedAtMs === null ? signals.first : null, () => reading.abort('interrupted')),
    onAbort(signals.second, () => stopAll('interrupted')),
    untoldAtMs === null ? () => {} : after(clock, READ_AFTER_SIGNAL_MS, () => reading.abort('interrupted')),
    deadlineMs === Number.POSITIVE_INFINITY
      ? () => {}
      : after(clock, deadlineMs - startedAtMs, () => stopAll('the time is up')),
  ];
  try {
    const exporter = parts.readExporter === null ? parts.notRead : await parts.readExporter(reading.signal);
    const conditions = nothing;
    for (const [index, condition] of inOrder(parts.conditions)) {
      const seen = await condition.observe({ exporter, signal: looking.signal });
      conditions[index] = seen;
      if (seen.kind === 'alive') break;
    }
    const { terminatedAtMs } = signals;
    return { startedAtMs, atMs: clock.nowMs(), terminatedAtMs, exporter: exporter.observation, conditions };
  } finally {
    for (const cancel of cancels) cancel();
  }
}

/** Metrics first: they are read already. */
function inOrder(conditions: readonly Condition[]): readonly (readonly [number, Condition])[] {
  const entries = [...conditions.entries()];
  return [
    ...entries.filter(([, condition]) => condition.metricName !== null),
    ...entries.filter(([, condition]) => condition.metricName === null),
  ];
}

async function quitTargets(parts: LoopParts, state: State): Promise<readonly TargetReport[]> {
  const { targets, signals, isDryRun } = parts;
  const reports: TargetReport[] = [];
  for (const [index, target] of targets.entries()) {
    if (signals.second.aborted) break;
    if (isDryRun) {
      parts.note({
        level: 'info',
        msg: 'dry run: a target is left alone',
        fields: { target: target.name, request: target.request },
      });
      reports.push({ target: target.name, result: 'skipped', seconds: 0 });
    } else {
      const report = await quitTarget(parts, target, targets.length - index, state);
      if (report === null) break;
      reports.push(report);
    }
    parts.progress(state, reports);
  }
  return reports;
}

/** null: the second signal cut it short. */
async function quitTarget(
  parts: LoopParts,
  target: Target,
  leftCount: number,
  state: State,
): Promise<TargetReport | null> {
  const { clock, signals, limits } = parts;
  const startedAtMs = clock.nowMs();
  let isTerminated = signals.terminatedAtMs !== null;
  const endMs = () =>
    state.phase.kind === 'quitting' ? quitDeadlineMs(state.phase.sinceMs, signals.terminatedAtMs, limits) : null;
  const canForce = target.force !== undefined;
  let quit = beginQuit(startedAtMs, parts.quitTimeoutMs, endMs(), leftCount, target.needsMs, canForce);
  let whyNotForced = '';
  let event: QuitEvent = { kind: 'begun' };
  while (!signals.second.aborted) {
    if (!isTerminated && signals.terminatedAtMs !== null) {
      isTerminated = true;
      quit = shareQuit(quit, clock.nowMs(), endMs(), leftCount);
    }
    const next = nextQuitMove(quit, event, clock.nowMs());
    quit = next.state;
    switch (next.move.kind) {
      case 'ask':
        event = { kind: 'asked', answer: await ask(parts, target, next.move.timeoutMs) };
        noteSignal(parts, target, event.answer);
        parts.note({ level: 'debug', msg: 'target asked', fields: { target: target.name, ...event.answer } });
        break;
      case 'probe':
        await pause(parts, next.move.afterMs, [signals.second]);
        event = { kind: 'probed', probe: await target.probe(1_000, signals.second) };
        break;
      case 'force': {
        const forced = await force(parts, target, next.move.count, quit.answer);
        if (forced.kind === 'impossible') whyNotForced = `; ${forced.why}`;
        event = { kind: 'forced', isPossible: forced.kind === 'signalled' };
        break;
      }
      case 'ended':
        return ended(
          parts,
          target,
          next.move.result,
          (clock.nowMs() - startedAtMs) / 1000,
          `${target.hint(quit.answer)}${whyNotForced}`,
        );
    }
  }
  return null;
}

/** One request; the first signal ends one that hangs, since less time is left from then on. */
async function ask({ signals }: LoopParts, target: Target, timeoutMs: number) {
  const asking = new AbortController();
  const abort = () => asking.abort('interrupted');
  const cancels = [
    onAbort(signals.terminatedAtMs === null ? signals.first : null, abort),
    onAbort(signals.second, abort),
  ];
  const answer = await target.ask(timeoutMs, asking.signal);
  for (const cancel of cancels) cancel();
  return answer;
}

/** What a signal leaves behind is seen outside of this run: an exit code. */
function noteSignal({ note }: LoopParts, target: Target, answer: Answer): void {
  if (answer.kind !== 'signalled' || answer.pids.length === 0) return;
  note({ level: 'info', msg: 'target signalled', fields: signalFields(target, answer) });
}

function signalFields(
  target: Target,
  { signal, pids }: Extract<ForceResult, { kind: 'signalled' }>,
): LogEntry['fields'] {
  return { target: target.name, signal, pids, ...target.signalLeaves?.(signal) };
}

async function force({ note }: LoopParts, target: Target, count: number, answer: Answer | null): Promise<ForceResult> {
  const forced = (await target.force?.(count, answer)) ?? { kind: 'impossible', why: 'there is no way to force it' };
  if (forced.kind === 'impossible') {
    note({ level: 'debug', msg: 'target not forced', fields: { target: target.name, why: forced.why } });
  } else if (forced.pids.length > 0) {
    note({ level: 'warn', msg: 'target did not go: its process is signalled', fields: signalFields(target, forced) });
  }
  return forced;
}

const RESULT_NOTES = {
  stopped: { level: 'info', msg: 'target stopped' },
  alreadyGone: { level: 'info', msg: 'target was already gone' },
  failed: { level: 'error', msg: 'target still runs' },
} as const;

function ended(parts: LoopParts, target: Target, result: QuitResult, tookSeconds: number, hint: string): TargetReport {
  const seconds = Math.round(tookSeconds * 100) / 100;
  const hinted = result === 'failed' ? { hint } : {};
  parts.note({ ...RESULT_NOTES[result], fields: { target: target.name, seconds, ...hinted } });
  return { target: target.name, result, seconds, ...hinted };
}

function noteLook({ note }: LoopParts, { startedAtMs, atMs, exporter, conditions }: Observation): void {
  const seen = conditions.map(
    (look) => `${look.kind}${'seen' in look ? `: ${look.seen}` : 'why' in look ? `: ${look.why}` : ''}`,
  );
  const tookSeconds = Math.round(atMs - startedAtMs) / 1000;
  note({ level: 'debug', msg: 'look', fields: { tookSeconds, exporter, conditions: seen } });
}

/** Waits; a signal that comes, or came before with none to follow, ends it. */
function pause({ clock }: LoopParts, ms: number, signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      for (const cancel of cancels) cancel();
      resolve();
    };
    // A signal that came before this pause is no reason to shorten it: it was told to the last step.
    const cancels = signals.filter((signal) => !signal.aborted).map((signal) => onAbort(signal, end));
    cancels.push(after(clock, ms, end));
  });
}

/** Like `clock.after`, for any span. */
function after(clock: Clock, ms: number, callback: () => void): () => void {
  let cancel = clock.after(Math.min(Math.max(0, ms), TIMER_MAX_MS), () => {
    if (ms <= TIMER_MAX_MS) callback();
    else cancel = after(clock, ms - TIMER_MAX_MS, callback);
  });
  return () => cancel();
}

function onAbort(signal: AbortSignal | null, callback: () => void): () => void {
  if (signal === null) return () => {};
  if (signal.aborted) callback();
  else signal.addEventListener('abort', callback);
  return () => signal.removeEventListener('abort', callback);
}
