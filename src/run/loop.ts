// Observe → decide → act: performs the one effect `step` names, and returns how it ended. Holds no rule.

import { type Clock, callAfter, onAbort, pause } from '../base/waits.ts';
import type { LogEntry } from '../decide/messages.ts';
import type { Policy } from '../decide/model.ts';
import type { Answer, ForceResult } from '../decide/quit/quit-target.ts';
import { LAST_TRY_MS } from '../decide/quit/quitting.ts';
import { STALL_MS } from '../decide/run/evidence.ts';
import { LATE_MS, viewMain } from '../decide/run/facts.ts';
import { begin, step } from '../decide/run/step.ts';
import type { MainView } from '../decide/serve/serve.ts';
import type {
  Decision,
  EndDecision,
  HandOverDecision,
  HandOverResult,
  Holding,
  ObserveEffect,
  PushResult,
  QuitDecision,
  QuitEffect,
  QuitEnd,
  SendLimits,
  State,
  StepInput,
  WatchDecision,
  WatchEvent,
  WebhookResult,
} from '../decide/state.ts';
import type { Front } from '../front/front.ts';
import type { OngoingObservation } from '../observe/observation.ts';
import type { Target } from '../quit/target-kind.ts';
import type { Signals } from './host.ts';

export type LoopParts = {
  readonly policy: Policy;
  readonly clock: Clock;
  readonly signals: Signals;
  readonly observe: (effect: ObserveEffect) => OngoingObservation;
  readonly front: Pick<Front, 'takeEvent' | 'onEvent' | 'tell'> | null;
  /** Called with what is known of main, for what needs it beyond the front. */
  readonly onView?: (view: MainView) => void;
  /** In the order of the policy's. */
  readonly targets: readonly Target[];
  readonly log: (entry: LogEntry) => void;
  readonly closeFront: () => Promise<unknown>;
  // What the policy does not name may be absent.
  /** Hands the last numbers over until the signal. */
  readonly handOver?: (phase: Holding, signal: AbortSignal) => Promise<HandOverResult>;
  /** Has a keeper forget them. */
  readonly withdraw?: (signal: AbortSignal) => Promise<HandOverResult>;
  /** Pushes the last exposition until the signal. */
  readonly push?: (signal: AbortSignal) => Promise<PushResult>;
  /** Writes the tombstone. */
  readonly declareDead?: () => Promise<unknown>;
  /** Sends the report of this state; limits as for `push`. */
  readonly callWebhook?: (state: State, signal: AbortSignal) => Promise<WebhookResult>;
  /** Called at each change of phase, and after the push and each target. */
  readonly progress: (state: State) => void;
};

/** Where the policy names no receiver, so that this is never asked. */
const NO_RECEIVER = async () => ({ kind: 'failed', why: 'no receiver is set', tries: 0 }) as const;

/** Performs what `step` decides until the end, or until the second signal. Rejects on a bug only. */
export async function runLoop(parts: LoopParts): Promise<EndDecision> {
  let decision: Decision = begin(parts.clock.nowMs(), parts.policy);
  parts.progress(decision.state);
  showView(parts, decision.state);
  while (decision.kind !== 'ended') {
    const before: State = decision.state;
    decision = step(await perform(parts, decision), parts.policy);
    // What the log says is in the message already, should the process be killed in between.
    if (hasProgressed(before, decision.state)) parts.progress(decision.state);
    decision.log.forEach(parts.log);
    showView(parts, decision.state);
  }
  return decision;
}

/** The end of a run; a second signal that came after the last decision decides it. */
export function endLate(end: EndDecision, { signals, policy }: Pick<LoopParts, 'signals' | 'policy'>): EndDecision {
  const interrupted = end.next.by === null ? interrupt(end.state, signals) : null;
  const decision = interrupted === null ? end : step(interrupted, policy);
  return decision.kind === 'ended' ? decision : end;
}

function showView({ front, onView }: LoopParts, state: State): void {
  const view = viewMain(state);
  front?.tell(view, state.facts.front);
  onView?.(view);
}

function hasProgressed({ facts: factsBefore, phase: before }: State, { facts, phase }: State): boolean {
  if (phase.kind !== before.kind) return true;
  // From a signal on the report says what a pod that is killed in it lacks.
  if (phase.kind === 'holding' && facts.terminatedAtMs !== factsBefore.terminatedAtMs) return true;
  if (phase.kind !== 'quitting' || before.kind !== 'quitting') return false;
  return phase.reports.length > before.reports.length || phase.push !== before.push;
}

/** Performs the effect of a decision and returns how it ended, or that the second signal came. */
async function perform(parts: LoopParts, decision: Exclude<Decision, EndDecision>): Promise<StepInput> {
  const interrupted = interrupt(decision.state, parts.signals);
  if (interrupted !== null) return interrupted;
  const input = await performNext(parts, decision);
  return interrupt(input.state, parts.signals) ?? input;
}

function performNext(parts: LoopParts, decision: Exclude<Decision, EndDecision>): Promise<StepInput> {
  switch (decision.kind) {
    case 'watching':
      return observe(parts, decision);
    case 'handingOver':
      return performHandOver(parts, decision);
    case 'quitting':
      return quit(parts, decision);
  }
}

/** Scrapes that come meanwhile are answered, and counted after it. */
async function performHandOver(parts: LoopParts, { state, next }: HandOverDecision): Promise<StepInput> {
  const { handOver = NO_RECEIVER, withdraw = NO_RECEIVER } = parts;
  const work = (signal: AbortSignal) =>
    state.phase.kind === 'holding' ? handOver(state.phase, signal) : withdraw(signal);
  const result = await withinLimits(parts, next, work);
  const event = { kind: 'handedOver', sinceMs: next.sinceMs, atMs: parts.clock.nowMs(), result } as const;
  return { kind: 'handingOver', state, event };
}

function interrupt(state: State, { secondName }: Signals): StepInput | null {
  return secondName === null ? null : { kind: 'interrupted', state, by: secondName };
}

/** Waits and observes; a signal or an event of the front may come in between. */
async function observe(parts: LoopParts, decision: WatchDecision): Promise<StepInput> {
  const { policy, clock, signals, front } = parts;
  const { state, next } = decision;
  // A front wakes in between to see whether this process stood still: that is no scraper's silence.
  const dueAtMs = front === null ? next.atMs : Math.min(next.atMs, clock.nowMs() + 2 * LATE_MS);
  const isSignalKnown = state.facts.terminatedAtMs !== null;
  const wakers = isSignalKnown ? [signals.second] : [signals.first, signals.second];
  await pause(dueAtMs - clock.nowMs(), wakers, { clock, ...(front && { listen: front.onEvent }) });
  const interrupted = interrupt(state, signals);
  if (interrupted !== null) return interrupted;
  if (!isSignalKnown && signals.terminatedAtMs !== null) {
    return { kind: 'watching', state, event: { kind: 'signalled', atMs: signals.terminatedAtMs } };
  }
  // An observation that is due does not wait, however many scrape, nor does one after a standstill.
  if (clock.nowMs() < Math.min(next.atMs, dueAtMs + LATE_MS)) {
    const event = front?.takeEvent() ?? null;
    return event === null ? observe(parts, decision) : { kind: 'watching', state, event: { ...event, planned: next } };
  }
  let now = state;
  const take = (event: WatchEvent): WatchDecision | null => {
    const decision = step({ kind: 'watching', state: now, event }, policy);
    decision.log.forEach(parts.log);
    if (decision.kind !== 'watching') return null;
    now = decision.state;
    return decision;
  };
  const ongoing = parts.observe(next);
  const cancels = [
    onAbort(isSignalKnown ? null : signals.first, () => {
      const signalled = take({ kind: 'signalled', atMs: signals.terminatedAtMs ?? clock.nowMs() });
      showView(parts, now);
      if (signalled !== null) ongoing.limit(signalled.next);
    }),
    onAbort(signals.second, ongoing.stop),
  ];
  const observation = { ...(await ongoing.ended), dueAtMs };
  for (const cancel of cancels) cancel();
  if (!signals.second.aborted) {
    for (let late = front?.takeEvent(); late; late = front?.takeEvent()) take({ ...late, planned: next });
  }
  return { kind: 'watching', state: now, event: { kind: 'observed', observation } };
}

async function quit(parts: LoopParts, { state, next }: QuitDecision): Promise<StepInput> {
  const end = await performQuit(parts, state, next);
  const { clock, signals, policy } = parts;
  const event = { ...end, atMs: clock.nowMs() };
  if (signals.terminatedAtMs === null || state.facts.terminatedAtMs !== null) return { kind: 'quitting', state, event };
  const signal = { kind: 'signalled', atMs: signals.terminatedAtMs, planned: next } as const;
  const signalled = step({ kind: 'quitting', state, event: signal }, policy);
  return { kind: 'quitting', state: signalled.kind === 'quitting' ? signalled.state : state, event };
}

async function performQuit(parts: LoopParts, state: State, effect: QuitEffect): Promise<QuitEnd> {
  const { clock, signals } = parts;
  switch (effect.kind) {
    case 'closeFront':
      await parts.closeFront();
      return { kind: 'frontClosed' };
    case 'push':
      return { kind: 'pushed', result: await withinLimits(parts, effect, parts.push ?? NO_RECEIVER) };
    case 'declareDead':
      await parts.declareDead?.();
      return { kind: 'declaredDead' };
    case 'callWebhook': {
      const { callWebhook = NO_RECEIVER } = parts;
      const call = (signal: AbortSignal) => callWebhook(state, signal);
      return { kind: 'webhookCalled', result: await withinLimits(parts, effect, call) };
    }
    case 'ask': {
      const target = parts.targets[effect.index] as Target;
      // The first signal ends a request that hangs, since less time is left from then on.
      const wakers = signals.terminatedAtMs === null ? [signals.first, signals.second] : [signals.second];
      const answer = await target.ask(effect.timeoutMs, AbortSignal.any(wakers));
      return { kind: 'asked', answer, hint: target.hint(answer), leaves: listLeavings(target, answer) };
    }
    case 'probe': {
      const target = parts.targets[effect.index] as Target;
      await pause(effect.atMs - clock.nowMs(), [signals.second], { clock });
      return { kind: 'probed', probe: await target.probe(effect.timeoutMs, signals.second) };
    }
    case 'force': {
      const target = parts.targets[effect.index] as Target;
      const result = (await target.force?.(effect.count, effect.answer)) ?? IMPOSSIBLE;
      return { kind: 'forced', result, leaves: listLeavings(target, result) };
    }
  }
}

function listLeavings(target: Target, result: Answer | ForceResult): LogEntry['fields'] {
  return result.kind === 'signalled' ? (target.signalLeaves?.(result.signal) ?? {}) : {};
}

const IMPOSSIBLE: ForceResult = { kind: 'impossible', why: 'there is no way to force it' };

/**
 * Work that must end by a limit, which the first signal brings nearer; the second one ends it at once. If the
 * process was frozen past the limit, there is time for a last try.
 */
async function withinLimits<Value>(
  { clock, signals }: LoopParts,
  { untilMs, graceMs }: SendLimits,
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const limit = new AbortController();
  let hasStalled = false;
  const end = () => limit.abort('no time is left');
  const cancels = [onAbort(signals.second, () => limit.abort('interrupted'))];
  const endAt = (atMs: number) => {
    const leftMs = atMs - clock.nowMs();
    cancels.push(
      callAfter(clock, leftMs, () => {
        const nowMs = clock.nowMs();
        // Never twice: a process that is always this slow must still keep its limits.
        if (hasStalled || nowMs - atMs < STALL_MS) return end();
        hasStalled = true;
        endAt(nowMs + LAST_TRY_MS);
      }),
    );
  };
  endAt(untilMs);
  cancels.push(onAbort(signals.first, () => endAt((signals.terminatedAtMs ?? clock.nowMs()) + graceMs)));
  const value = await work(limit.signal);
  for (const cancel of cancels) cancel();
  return value;
}
