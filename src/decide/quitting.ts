// The rules of quitting: what is done between the hold and the end, one thing after the other; each target
// has its share of the time that is left. Pure. `quit-target.ts` says what comes next for one target.

import { findExitCode } from './exit-codes.ts';
import type { LogEntry, MessageId } from './messages.ts';
import { type Limits, type Policy, type SignalName, type TargetPolicy, toSeconds } from './model.ts';
import {
  beginTarget,
  nextTargetMove,
  type QuitResult,
  shortenTarget,
  type TargetEvent,
  type TargetState,
  type TargetTime,
} from './quit-target.ts';
import type {
  Decision,
  EndDecision,
  Facts,
  QuitDecision,
  QuitEffect,
  QuitEvent,
  QuitState,
  QuitTask,
  Quitting,
  State,
  TargetReport,
} from './state.ts';
import { findWebhookIndex, isPushDue, KEPT_MS, makePushEffect, makeWebhookEffect, reportPush } from './tell.ts';

/** Quitting gets at least this long after a signal, whatever the grace. */
export const QUIT_MIN_MS = 1_000;

export type WatchEnd = Pick<
  Quitting,
  'sinceMs' | 'outcome' | 'because' | 'mainEndedAtMs' | 'scrapesSeenCount' | 'hasAnswered'
>;

/** Begins to quit: lists what is left to do, and begins the first of it. */
export function beginQuitting(facts: Facts, end: WatchEnd, log: readonly LogEntry[], policy: Policy): Decision {
  const tasks = listTasks(end, policy);
  const isPushSpared = policy.push !== undefined && !tasks.includes('push');
  const phase: Quitting = {
    kind: 'quitting',
    ...end,
    tasks,
    quitSinceMs: end.sinceMs,
    ...(isPushSpared ? { push: { to: policy.push.to, result: 'notNeeded' } } : {}),
    reports: [],
    target: null,
  };
  return beginTask({ facts, phase }, end.sinceMs, log, policy);
}

/** All tasks in order: stop serving, save the numbers, let others react, then stop the targets. */
function listTasks(end: WatchEnd, policy: Policy): readonly QuitTask[] {
  const targets: QuitTask[] = policy.targets.map(() => 'target');
  if (policy.hasWebhook === true) targets.splice(findWebhookIndex(policy), 0, 'webhook');
  return [
    ...(policy.hasFront === true ? (['closeFront'] as const) : []),
    ...(isPushDue(end, policy) ? (['push'] as const) : []),
    ...(policy.tombstonePath === undefined ? [] : (['declareDead'] as const)),
    ...targets,
  ];
}

/** Decides what comes after the end of an effect. */
export function decideQuitEvent(before: QuitState, event: QuitEvent, policy: Policy): Decision {
  const state = addSignal(before, event, policy);
  const { atMs } = event;
  switch (event.kind) {
    case 'frontClosed':
    case 'declaredDead':
      return endTask(state, atMs, [], policy);
    case 'pushed':
      return decidePushed(state, event, policy);
    case 'webhookCalled': {
      const { kind, ...fields } = event.result;
      const id = kind === 'accepted' ? 'webhookAccepted' : 'webhookFailed';
      return endTask(state, atMs, [{ id, fields }], policy);
    }
    default: {
      const { target } = state.phase;
      if (target === null) throw new Error('Bug: no target is being asked');
      return moveTarget(state, target, event, atMs, logEvent(event, readPolicy(state, policy)), policy);
    }
  }
}

/** The run is over. `by`: the second signal, where that ended it. */
export function endRun(state: State, by: SignalName | null, log: readonly LogEntry[], policy: Policy): EndDecision {
  return { kind: 'ended', state, log, next: { kind: 'done', exitCode: findExitCode(state, policy, by), by } };
}

function beginTask(state: QuitState, nowMs: number, log: readonly LogEntry[], policy: Policy): Decision {
  const { phase } = state;
  const [task] = phase.tasks;
  const perform = (next: QuitEffect, entries = log): QuitDecision => ({ kind: 'quitting', state, log: entries, next });
  if (task === undefined) return endRun(state, null, log, policy);
  switch (task) {
    case 'closeFront':
      return perform({ kind: task });
    case 'push': {
      const fields = { to: policy.push?.to, outcome: phase.outcome };
      return perform(makePushEffect(nowMs, policy), [...log, { id: 'pushing', fields }]);
    }
    case 'declareDead': {
      if (!policy.isDryRun) return perform({ kind: task });
      const entry: LogEntry = { id: 'tombstoneSkipped', fields: { path: policy.tombstonePath } };
      return endTask(state, nowMs, [...log, entry], policy);
    }
    case 'webhook':
      return perform(makeWebhookEffect(nowMs, phase, policy));
    case 'target': {
      const next = readPolicy(state, policy);
      if (!policy.isDryRun) {
        const target = beginTarget(next, readTime(state, nowMs, policy));
        return moveTarget(state, target, { kind: 'begun' }, nowMs, log, policy);
      }
      const { name, request } = next;
      const entry: LogEntry = { id: 'targetSkipped', fields: { target: name, request } };
      return endTarget(state, { target: name, result: 'skipped', seconds: 0 }, nowMs, [...log, entry], policy);
    }
  }
}

/** The next task begins; targets have their whole time from now on. */
function endTask({ facts, phase }: QuitState, nowMs: number, log: readonly LogEntry[], policy: Policy): Decision {
  const after: QuitState = { facts, phase: { ...phase, tasks: phase.tasks.slice(1), quitSinceMs: nowMs } };
  return beginTask(after, nowMs, log, policy);
}

function endTarget(
  { facts, phase }: QuitState,
  report: TargetReport,
  nowMs: number,
  log: readonly LogEntry[],
  policy: Policy,
): Decision {
  const reports = [...phase.reports, report];
  const after: QuitState = { facts, phase: { ...phase, tasks: phase.tasks.slice(1), target: null, reports } };
  return beginTask(after, nowMs, log, policy);
}

function decidePushed(
  { facts, phase }: QuitState,
  { atMs, result }: Extract<QuitEvent, { readonly kind: 'pushed' }>,
  policy: Policy,
): Decision {
  const push = reportPush((policy.push as NonNullable<Policy['push']>).to, result, atMs - phase.quitSinceMs);
  const { to, seconds } = push;
  const { kind, ...why } = result;
  const id = kind === 'accepted' ? 'pushAccepted' : 'pushFailed';
  return endTask({ facts, phase: { ...phase, push } }, atMs, [{ id, fields: { to, seconds, ...why } }], policy);
}

/** The state with the first signal in it, if that came meanwhile: less time is left. */
function addSignal(state: QuitState, { atMs, terminatedAtMs }: QuitEvent, policy: Policy): QuitState {
  const { facts, phase } = state;
  if (facts.terminatedAtMs !== null || terminatedAtMs === null) return state;
  const told: QuitState = { facts: { ...facts, terminatedAtMs }, phase };
  if (phase.target === null) return told;
  const target = shortenTarget(phase.target, readTime(told, atMs, policy));
  return { facts: told.facts, phase: { ...phase, target } };
}

/**
 * When quitting, which began at `sinceMs`, must end after a signal at `terminatedAtMs`; null without one.
 * `keptMs`: of the grace, for what comes after it.
 */
export function findQuitDeadline(
  sinceMs: number,
  terminatedAtMs: number | null,
  limits: Limits,
  keptMs = 0,
): number | null {
  if (terminatedAtMs === null) return null;
  const beginsMs = Math.max(sinceMs, terminatedAtMs);
  return Math.max(terminatedAtMs + limits.terminationGraceMs - keptMs, beginsMs + QUIT_MIN_MS);
}

function moveTarget(
  state: QuitState,
  before: TargetState,
  event: TargetEvent,
  nowMs: number,
  log: readonly LogEntry[],
  policy: Policy,
): Decision {
  const { facts, phase } = state;
  const { state: target, move } = nextTargetMove(before, event, nowMs);
  if (move.kind === 'ended') {
    const { name } = readPolicy(state, policy);
    const { result, hint } = move;
    const fields = { seconds: toSeconds(nowMs - target.beganAtMs, 2), ...(result === 'failed' ? { hint } : {}) };
    const entry: LogEntry = { id: RESULT_MESSAGES[result], fields: { target: name, ...fields } };
    return endTarget(state, { target: name, result, ...fields }, nowMs, [...log, entry], policy);
  }
  const next: QuitEffect = { ...move, index: phase.reports.length };
  return { kind: 'quitting', state: { facts, phase: { ...phase, target } }, log, next };
}

const RESULT_MESSAGES = {
  stopped: 'targetStopped',
  alreadyGone: 'targetAlreadyGone',
  failed: 'targetFailed',
} as const satisfies Record<QuitResult, MessageId>;

type TargetQuitEvent = Extract<QuitEvent, { readonly kind: 'asked' | 'probed' | 'forced' }>;

/** What to log of an event. What a signal leaves behind shows outside of this run, as an exit code. */
function logEvent(event: TargetQuitEvent, { name }: TargetPolicy): readonly LogEntry[] {
  if (event.kind === 'probed') return [];
  if (event.kind === 'asked') {
    const { answer, leaves } = event;
    const asked: LogEntry = { id: 'targetAsked', fields: { target: name, ...answer } };
    if (answer.kind !== 'signalled' || answer.pids.length === 0) return [asked];
    const { signal, pids } = answer;
    return [{ id: 'targetSignalled', fields: { target: name, signal, pids, ...leaves } }, asked];
  }
  const { result, leaves } = event;
  if (result.kind === 'impossible') return [{ id: 'targetNotForced', fields: { target: name, why: result.why } }];
  const { signal, pids } = result;
  return pids.length === 0 ? [] : [{ id: 'targetForced', fields: { target: name, signal, pids, ...leaves } }];
}

/** The policy of the target that is, or comes, under way. */
function readPolicy({ phase }: QuitState, { targets }: Policy): TargetPolicy {
  return targets[phase.reports.length] as TargetPolicy;
}

function readTime({ facts, phase }: QuitState, nowMs: number, policy: Policy): TargetTime {
  const keptMs = phase.tasks.includes('webhook') ? KEPT_MS : 0;
  return {
    nowMs,
    quitTimeoutMs: policy.quitTimeoutMs,
    quitByMs: findQuitDeadline(phase.quitSinceMs, facts.terminatedAtMs, policy.limits, keptMs),
    leftCount: phase.tasks.filter((task) => task === 'target').length,
  };
}
