// The rules of quitting: one target after the other, in their order, each with its share of the time that is left. Pure.
// `target.ts` says what comes next for the one that is being asked.

import type { LogEntry, MessageId } from './messages.ts';
import type { Limits, Policy, TargetPolicy } from './model.ts';
import type { QuitDecision, QuitEffect, QuitEvent, QuitState, TargetReport } from './state.ts';
import {
  beginTarget,
  nextTargetMove,
  type QuitResult,
  shortenTarget,
  type TargetEvent,
  type TargetState,
  type TargetTime,
} from './target.ts';
import { findTellIndex, isPushDue, KEPT_MS, makePushEffect, makeTellEffect, reportPush } from './tell.ts';

/** Quitting gets at least this long after a signal, whatever the grace. */
export const QUIT_MIN_MS = 1_000;

/** Begins to quit: what must be pushed is pushed, and the first target is asked. */
export function beginQuitting(state: QuitState, log: readonly LogEntry[], policy: Policy): QuitDecision {
  const { facts, phase } = state;
  if (policy.push === undefined) return beginNextTarget(state, phase.sinceMs, log, policy);
  const { to } = policy.push;
  if (isPushDue(phase, policy)) {
    const entry: LogEntry = { id: 'pushing', fields: { to, outcome: phase.outcome } };
    return { kind: 'quitting', state, log: [...log, entry], next: makePushEffect(phase, policy) };
  }
  const told: QuitState = { facts, phase: { ...phase, push: { to, result: 'notNeeded' } } };
  return beginNextTarget(told, phase.sinceMs, log, policy);
}

/** Decides what an event means for the target that is being asked, or what comes after something was told elsewhere. */
export function decideQuitEvent(state: QuitState, event: QuitEvent, policy: Policy): QuitDecision {
  const told = tellSignal(state, event, policy);
  if (event.kind === 'pushed' || event.kind === 'told') return continueAfterTelling(told, event, policy);
  const { target } = told.phase;
  if (target === null) throw new Error('Bug: no target is being asked');
  return moveTarget(told, target, event, event.atMs, logEvent(event, readPolicy(told, policy)), policy);
}

/** Targets have their whole time from now on. */
function continueAfterTelling(
  { facts, phase }: QuitState,
  event: Extract<QuitEvent, { readonly kind: 'pushed' | 'told' }>,
  policy: Policy,
): QuitDecision {
  const { atMs } = event;
  const { kind, ...fields } = event.result;
  const after: QuitState['phase'] = { ...phase, quitSinceMs: atMs };
  if (event.kind === 'told') {
    const entry: LogEntry = { id: kind === 'accepted' ? 'webhookAccepted' : 'webhookFailed', fields };
    return beginNextTarget({ facts, phase: { ...after, isTold: true } }, atMs, [entry], policy);
  }
  const push = reportPush((policy.push as NonNullable<Policy['push']>).to, event.result, atMs - phase.sinceMs);
  const { to, seconds } = push;
  const entry: LogEntry = {
    id: kind === 'accepted' ? 'pushAccepted' : 'pushFailed',
    fields: { to, seconds, ...fields },
  };
  return beginNextTarget({ facts, phase: { ...after, push } }, atMs, [entry], policy);
}

/** The state with the first signal in it, where that came meanwhile: less time is left. */
function tellSignal(state: QuitState, { atMs, terminatedAtMs }: QuitEvent, policy: Policy): QuitState {
  const { facts, phase } = state;
  if (facts.terminatedAtMs !== null || terminatedAtMs === null) return state;
  const told: QuitState = { facts: { ...facts, terminatedAtMs }, phase };
  if (phase.target === null) return told;
  const target = shortenTarget(phase.target, readTime(told, atMs, policy));
  return { facts: told.facts, phase: { ...phase, target } };
}

/**
 * When quitting, which began at `sinceMs`, must end after a signal at `terminatedAtMs`; null without one. `keptMs`: of the
 * grace, for what comes after it.
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

function beginNextTarget(state: QuitState, nowMs: number, log: readonly LogEntry[], policy: Policy): QuitDecision {
  const { facts, phase } = state;
  if (isTellLeft(phase, policy) && phase.reports.length === findTellIndex(policy)) {
    const quiet: QuitState = { facts, phase: { ...phase, target: null } };
    return { kind: 'quitting', state: quiet, log, next: makeTellEffect(nowMs, phase, policy) };
  }
  const next = policy.targets[phase.reports.length];
  if (next === undefined) {
    return { kind: 'quitting', state: { facts, phase: { ...phase, target: null } }, log, next: { kind: 'done' } };
  }
  if (policy.isDryRun) {
    const { name, request } = next;
    const report: TargetReport = { target: name, result: 'skipped', seconds: 0 };
    const entry: LogEntry = { id: 'targetSkipped', fields: { target: name, request } };
    return beginNextTarget(addReport(state, report), nowMs, [...log, entry], policy);
  }
  const target = beginTarget(next, readTime(state, nowMs, policy));
  return moveTarget(state, target, { kind: 'begun' }, nowMs, log, policy);
}

function moveTarget(
  state: QuitState,
  before: TargetState,
  event: TargetEvent,
  nowMs: number,
  log: readonly LogEntry[],
  policy: Policy,
): QuitDecision {
  const { facts, phase } = state;
  const { state: target, move } = nextTargetMove(before, event, nowMs);
  if (move.kind === 'ended') {
    const report = buildTargetReport(readPolicy(state, policy), move, nowMs - target.beganAtMs);
    const { target: name, result: _, ...fields } = report;
    const entry: LogEntry = { id: RESULT_MESSAGES[move.result], fields: { target: name, ...fields } };
    return beginNextTarget(addReport(state, report), nowMs, [...log, entry], policy);
  }
  const next: QuitEffect = { ...move, index: phase.reports.length };
  return { kind: 'quitting', state: { facts, phase: { ...phase, target } }, log, next };
}

const RESULT_MESSAGES = {
  stopped: 'targetStopped',
  alreadyGone: 'targetAlreadyGone',
  failed: 'targetFailed',
} as const satisfies Record<QuitResult, MessageId>;

function buildTargetReport(
  { name }: TargetPolicy,
  { result, hint }: { readonly result: QuitResult; readonly hint: string },
  tookMs: number,
): TargetReport {
  const seconds = Math.round(tookMs / 10) / 100;
  return { target: name, result, seconds, ...(result === 'failed' ? { hint } : {}) };
}

type TargetQuitEvent = Exclude<QuitEvent, { readonly kind: 'pushed' | 'told' }>;

/** What is worth a line of an event: what a signal leaves behind is seen outside of this run, as an exit code. */
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

function addReport({ facts, phase }: QuitState, report: TargetReport): QuitState {
  return { facts, phase: { ...phase, target: null, reports: [...phase.reports, report] } };
}

/** The policy of the target that is being asked. */
function readPolicy({ phase }: QuitState, { targets }: Policy): TargetPolicy {
  return targets[phase.reports.length] as TargetPolicy;
}

/** The webhook is still to be told. */
function isTellLeft({ isTold }: QuitState['phase'], { hasWebhook }: Policy): boolean {
  return hasWebhook === true && isTold !== true;
}

function readTime({ facts, phase }: QuitState, nowMs: number, policy: Policy): TargetTime {
  return {
    nowMs,
    quitTimeoutMs: policy.quitTimeoutMs,
    quitByMs: findQuitDeadline(
      phase.quitSinceMs ?? phase.sinceMs,
      facts.terminatedAtMs,
      policy.limits,
      isTellLeft(phase, policy) ? KEPT_MS : 0,
    ),
    leftCount: policy.targets.length - phase.reports.length,
  };
}
