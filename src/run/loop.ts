// Observe → decide → act: performs the one effect that `step` names, and tells it what happened. Holds no rule of its own.

import { type Clock, callAfter } from '../base/clock.ts';
import { onAbort, waitWithin } from '../base/waits.ts';
import { type MainView, viewMain } from '../decide/answer.ts';
import type { LogEntry } from '../decide/messages.ts';
import type { FrontObservation, Policy } from '../decide/model.ts';
import type { ServedScrape } from '../decide/scrapers.ts';
import type {
  Decision,
  ObserveEffect,
  PushResult,
  QuitDecision,
  QuitEffect,
  QuitEvent,
  State,
  TellEffect,
  WatchDecision,
  WebhookResult,
} from '../decide/state.ts';
import { begin, step } from '../decide/step.ts';
import { LAST_CALL_MS } from '../decide/tell.ts';
import type { OngoingObservation } from '../observe/observation.ts';
import type { Target } from '../quit/target.ts';

/** The signals that came so far. */
export type Signals = {
  /** When the first one came; null before. */
  readonly terminatedAtMs: number | null;
  /** Aborted by the first one. */
  readonly first: AbortSignal;
  /** Aborted by the second one: give up at once. */
  readonly second: AbortSignal;
};

/** The front, as the loop sees it. */
export type LoopFront = {
  /** Takes the oldest scrape that was handed over and is not told yet; null: there is none. */
  readonly takeScrape: () => { readonly scrape: ServedScrape; readonly front: FrontObservation } | null;
  /** Calls back once there is one, at once where there is; returns how to cancel that. */
  readonly onScrape: (callback: () => void) => () => void;
  /** What scrapes are answered by from now on. */
  readonly tell: (view: MainView) => void;
};

/** What the loop drives. */
export type LoopParts = {
  readonly policy: Policy;
  readonly clock: Clock;
  readonly signals: Signals;
  /** Begins to observe everything. */
  readonly observe: (effect: ObserveEffect) => OngoingObservation;
  /** What stands in front of the exporter; null: nothing does. */
  readonly front: LoopFront | null;
  /** Told what is known of main, where something else than a front wants it. */
  readonly onView?: (view: MainView) => void;
  /** In the order of the policy's. */
  readonly targets: readonly Target[];
  readonly log: (entry: LogEntry) => void;
  /** Called once, when the hold is over and before anything is pushed. Default: nothing is to be done. */
  readonly afterHold?: () => Promise<void>;
  /** Called once, after the push and before anything is asked to quit. */
  readonly beforeQuit: () => Promise<void>;
  /** Pushes the last exposition, until the signal; `lastCall` comes a little before it. Only where the policy has a push. */
  readonly push?: (signal: AbortSignal, lastCall: AbortSignal) => Promise<PushResult>;
  /** Sends the report of this state; the same. Only where the policy has a webhook. */
  readonly tell?: (state: State, signal: AbortSignal, lastCall: AbortSignal) => Promise<WebhookResult>;
  /** Called at each change of phase and after each target. */
  readonly progress: (state: State) => void;
};

/**
 * Watches, holds and quits; ends when everything is done, or at the second signal with what was reached by then.
 * Rejects on a bug only.
 */
export async function runLoop(parts: LoopParts): Promise<State> {
  const { policy, clock, signals } = parts;
  let decision: Decision = begin(clock.nowMs(), policy);
  parts.progress(decision.state);
  showView(parts, decision.state);
  let isQuitBegun = false;
  while (!signals.second.aborted) {
    const before: Decision = decision;
    if (before.kind === 'quitting' && before.next.kind !== 'push' && !isQuitBegun) {
      isQuitBegun = true;
      await parts.beforeQuit();
    }
    if (before.kind === 'watching') decision = await watch(parts, before);
    else if (before.next.kind === 'done') break;
    else decision = await quit(parts, before, before.next);
    // What the log says is in the message already, should the process be killed in between.
    if (hasProgressed(before.state, decision.state)) parts.progress(decision.state);
    decision.log.forEach(parts.log);
    showView(parts, decision.state);
    if (before.kind === 'watching' && decision.kind === 'quitting') await parts.afterHold?.();
  }
  return decision.state;
}

/** Tells those who go by what is known of main. */
function showView({ front, onView }: LoopParts, state: State): void {
  const view = viewMain(state);
  front?.tell(view);
  onView?.(view);
}

function hasProgressed({ phase: before }: State, { phase }: State): boolean {
  if (phase.kind !== before.kind) return true;
  if (phase.kind !== 'quitting' || before.kind !== 'quitting') return false;
  return phase.reports.length > before.reports.length || phase.push !== before.push;
}

/** Waits and observes; a signal, and a scrape through the front, are told at once. */
async function watch(parts: LoopParts, decision: WatchDecision): Promise<Decision> {
  const { policy, clock, signals, front } = parts;
  const { state, next } = decision;
  const isTold = state.facts.terminatedAtMs !== null;
  await pause(parts, next.atMs, isTold ? [signals.second] : [signals.first, signals.second], front);
  if (signals.second.aborted) return { ...decision, log: [] };
  if (!isTold && signals.terminatedAtMs !== null) {
    return step(state, { kind: 'signalled', atMs: signals.terminatedAtMs }, policy);
  }
  // However many scrape: an observation that is due is not kept waiting.
  const scraped = clock.nowMs() < next.atMs ? (front?.takeScrape() ?? null) : null;
  if (scraped !== null) return step(state, { kind: 'scraped', ...scraped, planned: next }, policy);
  let now = state;
  const ongoing = parts.observe(next);
  const cancels = [
    onAbort(isTold ? null : signals.first, () => {
      const told = step(now, { kind: 'signalled', atMs: signals.terminatedAtMs ?? clock.nowMs() }, policy);
      told.log.forEach(parts.log);
      if (told.kind !== 'watching') return;
      now = told.state;
      showView(parts, now);
      ongoing.limit(told.next);
    }),
    onAbort(signals.second, ongoing.stop),
  ];
  const observation = await ongoing.ended;
  for (const cancel of cancels) cancel();
  if (signals.second.aborted) return { ...decision, state: now, log: [] };
  for (let late = front?.takeScrape(); late; late = front?.takeScrape()) {
    const told = step(now, { kind: 'scraped', ...late, planned: next }, policy);
    told.log.forEach(parts.log);
    if (told.kind === 'watching') now = told.state;
  }
  return step(now, { kind: 'observed', observation }, policy);
}

/** Performs one effect of quitting. */
async function quit(parts: LoopParts, decision: QuitDecision, effect: Exclude<QuitEffect, { kind: 'done' }>) {
  const event = await perform(parts, decision.state, effect);
  if (parts.signals.second.aborted) return { ...decision, log: [] };
  return step(decision.state, event, parts.policy);
}

async function perform(
  parts: LoopParts,
  state: State,
  effect: Exclude<QuitEffect, { kind: 'done' }>,
): Promise<QuitEvent> {
  const { signals } = parts;
  if (effect.kind === 'push' || effect.kind === 'tell') return tellOthers(parts, state, effect);
  const target = parts.targets[effect.index] as Target;
  switch (effect.kind) {
    case 'ask': {
      const answer = await ask(parts, target, effect.timeoutMs);
      const leaves = answer.kind === 'signalled' ? (target.signalLeaves?.(answer.signal) ?? {}) : {};
      return { kind: 'asked', ...readTimes(parts), answer, hint: target.hint(answer), leaves };
    }
    case 'probe': {
      await pause(parts, effect.atMs, [signals.second]);
      const probe = await target.probe(effect.timeoutMs, signals.second);
      return { kind: 'probed', ...readTimes(parts), probe };
    }
    case 'force': {
      const forced = await target.force?.(effect.count, effect.answer);
      const result = forced ?? ({ kind: 'impossible', why: 'there is no way to force it' } as const);
      const leaves = result.kind === 'signalled' ? (target.signalLeaves?.(result.signal) ?? {}) : {};
      return { kind: 'forced', ...readTimes(parts), result, leaves };
    }
  }
}

function readTimes({ clock, signals }: LoopParts): { atMs: number; terminatedAtMs: number | null } {
  return { atMs: clock.nowMs(), terminatedAtMs: signals.terminatedAtMs };
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

async function tellOthers(parts: LoopParts, state: State, effect: TellEffect): Promise<QuitEvent> {
  if (effect.kind === 'push') {
    const result = await withinLimits(parts, effect, present(parts.push));
    return { kind: 'pushed', ...readTimes(parts), result };
  }
  const tell = present(parts.tell);
  const result = await withinLimits(parts, effect, (signal, lastCall) => tell(state, signal, lastCall));
  return { kind: 'told', ...readTimes(parts), result };
}

/** Work that must end by a limit, which the first signal brings nearer; the second one ends it at once. */
async function withinLimits<Value>(
  { clock, signals }: LoopParts,
  { untilMs, graceMs }: TellEffect,
  work: (signal: AbortSignal, lastCall: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const limit = new AbortController();
  const lastCall = new AbortController();
  const end = () => limit.abort('no time is left');
  const cancels = [onAbort(signals.second, () => limit.abort('interrupted'))];
  const endAt = (atMs: number) => {
    const leftMs = atMs - clock.nowMs();
    cancels.push(callAfter(clock, leftMs - LAST_CALL_MS, () => lastCall.abort()));
    cancels.push(callAfter(clock, leftMs, end));
  };
  endAt(untilMs);
  cancels.push(onAbort(signals.first, () => endAt((signals.terminatedAtMs ?? clock.nowMs()) + graceMs)));
  const value = await work(limit.signal, lastCall.signal);
  for (const cancel of cancels) cancel();
  return value;
}

function present<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('Bug: nothing can be told');
  return value;
}

/** Waits until `atMs`, or for a scrape where there is a front; a signal that came before with none to follow does not shorten it. */
async function pause(
  { clock }: LoopParts,
  atMs: number,
  signals: readonly AbortSignal[],
  front: LoopFront | null = null,
): Promise<void> {
  const cancels: (() => void)[] = [];
  await waitWithin<void>(
    { timeoutMs: atMs - clock.nowMs(), clock },
    () => {},
    (end) => {
      for (const signal of signals) cancels.push(onAbort(signal, end));
      if (front !== null) cancels.push(front.onScrape(end));
    },
  );
  for (const cancel of cancels) cancel();
}
