// The rules of quitting: what is done between the hold and the end, one thing after the other; when a push is
// due, where the webhook comes, and how long each may take. Pure. `quit-target.ts` says what comes next for
// one target; each has its share of the time that is left.

import { cut } from '../../base/text.ts';
import type { LogEntry, MessageId } from '../messages.ts';
import { findLeastWanted, type Limits, type Policy, type SignalName, type TargetPolicy, toSeconds } from '../model.ts';
import type {
  Decision,
  EndDecision,
  Facts,
  HandOverResult,
  PushResult,
  QuitDecision,
  QuitEffect,
  QuitEvent,
  QuitState,
  QuitTask,
  Quitting,
  SendReport,
  State,
  TargetReport,
} from '../state.ts';
import { findExitCode } from './exit-codes.ts';
import { beginTarget, nextTargetMove, shortenTarget, type TargetEvent, type TargetState } from './quit-target.ts';

/** Quitting gets at least this long after a signal, whatever the grace. */
export const QUIT_MIN_MS = 1_000;
/** How much of the grace a push or a webhook reserves: the watch and the hold end earlier by this. */
export const RESERVE_MS = 5_000;
/** A push takes no longer, retries included; nothing is quit before. */
export const PUSH_MAX_MS = 30_000;
/** A webhook takes no longer: three tries of 5 s, and the pauses between them. */
const WEBHOOK_MAX_MS = 20_000;
/** How long a last try has where the process was frozen past the limit. */
export const LAST_TRY_MS = 1_000;
/** How much of the grace is left for targets by what comes before them, and for a webhook. */
const KEPT_MS = 1_000;
/** The longest reason in the report; the log has it whole. */
const WHY_MAX_LENGTH = 160;

export type WatchEnd = Pick<
  Quitting,
  'sinceMs' | 'outcome' | 'because' | 'mainEndedAtMs' | 'scrapesSeenCount' | 'hasAnswered' | 'handOver'
>;

/** What is logged with a decision. */
type Logged = { readonly log: readonly LogEntry[] };

/** The same turn, with one entry more. */
export function addLog<Turn extends Logged>(turn: Turn, id: MessageId, fields: LogEntry['fields']): Turn {
  return { ...turn, log: [...turn.log, { id, fields }] };
}

/** One event on its way through the rules. */
type Turn = Logged & { readonly nowMs: number; readonly policy: Policy };

/** Begins to quit: lists what is left to do, and begins the first of it. */
export function beginQuitting(facts: Facts, end: WatchEnd, log: Logged['log'], policy: Policy): Decision {
  const tasks = listTasks(end, policy);
  const spared = tasks.includes('push') ? undefined : policy.push;
  const isPushed = end.outcome === 'handedOver' && policy.handOver?.kind === 'push';
  const phase: Quitting = {
    kind: 'quitting',
    ...end,
    tasks,
    quitSinceMs: end.sinceMs,
    ...(spared && { push: (isPushed && end.handOver) || { to: spared.to, result: 'notNeeded' } }),
    reports: [],
    target: null,
  };
  return beginTask({ facts, phase }, { nowMs: end.sinceMs, policy, log });
}

/** All tasks in order: stop serving, save the numbers, let others react, then stop the targets. */
function listTasks(end: WatchEnd, policy: Policy): readonly QuitTask[] {
  const { front, tombstonePath } = policy;
  const targets: QuitTask[] = policy.targets.map(() => 'target');
  // Before the first mesh proxy, which would carry it; else after all targets.
  const meshAt = policy.targets.findIndex(({ isMesh }) => isMesh === true);
  if (policy.hasWebhook === true) targets.splice(meshAt < 0 ? targets.length : meshAt, 0, 'webhook');
  const first: QuitTask[] = [];
  if (front !== null) first.push('closeFront');
  if (isPushDue(end, policy)) first.push('push');
  if (tombstonePath !== undefined) first.push('declareDead');
  return [...first, ...targets];
}

/** Whether the last exposition is to be pushed: the wanted scrapes did not come, or it is pushed always. */
export function isPushDue(
  { outcome, scrapesSeenCount }: Pick<Quitting, 'outcome' | 'scrapesSeenCount'>,
  { push, limits, handOver }: Policy,
): boolean {
  // Main never ran: what was seen is not of it.
  if (push === undefined || outcome === 'neverStarted') return false;
  if (outcome === 'handedOver') return push.when === 'always' && handOver?.kind === 'keeper';
  if (push.when === 'always') return true;
  if (outcome === 'scraped' || limits.scrapesWantedCount === 0) return false;
  // With RUN_TIMEOUT the hold may have ended by the count.
  const isCounted = outcome === 'timedOut' && limits.scrapesWantedCount !== 'auto' && scrapesSeenCount !== null;
  return !isCounted || scrapesSeenCount < findLeastWanted(limits);
}

/** Decides what comes after the end of an effect. */
export function decideQuitEvent(state: QuitState, event: QuitEvent, policy: Policy): Decision {
  const { facts, phase } = state;
  const turn: Turn = { nowMs: event.atMs, policy, log: [] };
  switch (event.kind) {
    case 'signalled':
      return { kind: 'quitting', state: addSignal(state, event.atMs, policy), log: [], next: event.planned };
    case 'frontClosed':
    case 'declaredDead':
      return endTask(state, turn);
    case 'pushed': {
      const to = String(policy.push?.to);
      const { kind, ...why } = event.result;
      const push = reportSending(to, event.result, event.atMs - phase.quitSinceMs);
      const fields = { to, seconds: push.seconds, ...why };
      const id = kind === 'accepted' ? 'pushAccepted' : 'pushFailed';
      return endTask({ facts, phase: { ...phase, push } }, addLog(turn, id, fields));
    }
    case 'webhookCalled': {
      const { kind, ...fields } = event.result;
      return endTask(state, addLog(turn, kind === 'accepted' ? 'webhookAccepted' : 'webhookFailed', fields));
    }
    default: {
      if (phase.target === null) throw new Error('Bug: no target is being asked');
      return moveTarget(state, phase.target, event, logTargetEvent(turn, event, readPolicy(state, policy)));
    }
  }
}

/** A push, or a hand-over, as the report shows it. */
export function reportSending(to: string, result: PushResult | HandOverResult, tookMs: number): SendReport {
  const seconds = toSeconds(tookMs, 1);
  if (result.kind === 'accepted') return { to, result: 'accepted', seconds };
  return { to, result: 'failed', seconds, why: cut(result.why, WHY_MAX_LENGTH) };
}

/** The run is over. `by`: the second signal, where that ended it. */
export function endRun(state: State, by: SignalName | null, log: readonly LogEntry[], policy: Policy): EndDecision {
  return { kind: 'ended', state, log, next: { kind: 'done', exitCode: findExitCode(state, policy, by), by } };
}

function beginTask(state: QuitState, turn: Turn): Decision {
  const { nowMs, policy, log } = turn;
  const { phase } = state;
  const [task] = phase.tasks;
  if (task === undefined) return endRun(state, null, log, policy);
  const perform = (next: QuitEffect, { log } = turn): QuitDecision => ({ kind: 'quitting', state, log, next });
  const sendWithin = (maxMs: number) => ({ untilMs: nowMs + maxMs, graceMs: findSendGrace(phase, policy) });
  switch (task) {
    case 'closeFront':
      return perform({ kind: 'closeFront' });
    case 'push': {
      const pushing = addLog(turn, 'pushing', { to: policy.push?.to, outcome: phase.outcome });
      return perform({ kind: 'push', ...sendWithin(PUSH_MAX_MS) }, pushing);
    }
    case 'declareDead':
      if (!policy.isDryRun) return perform({ kind: 'declareDead' });
      return endTask(state, addLog(turn, 'tombstoneSkipped', { path: policy.tombstonePath }));
    case 'webhook':
      return perform({ kind: 'callWebhook', ...sendWithin(WEBHOOK_MAX_MS) });
    case 'target': {
      const next = readPolicy(state, policy);
      if (!policy.isDryRun) {
        return moveTarget(state, beginTarget(next, readTime(state, nowMs, policy)), { kind: 'begun' }, turn);
      }
      const { name, request } = next;
      const skipped = addLog(turn, 'targetSkipped', { target: name, request });
      return endTarget(state, { target: name, result: 'skipped', seconds: 0 }, skipped);
    }
  }
}

/** How long after a signal the task under way is given up: the grace, but for what comes after it. */
function findSendGrace({ tasks }: Quitting, { limits }: Policy): number {
  const later = new Set(tasks.slice(1));
  const keptCount = Number(later.has('target')) + Number(later.has('webhook'));
  return Math.max(0, limits.terminationGraceMs - keptCount * KEPT_MS);
}

/** The next task begins. Targets have their whole time from the end of the last task that is none. */
function endTask({ facts, phase }: QuitState, turn: Turn): Decision {
  const [ended, ...tasks] = phase.tasks;
  const quitSinceMs = ended === 'target' ? phase.quitSinceMs : turn.nowMs;
  return beginTask({ facts, phase: { ...phase, tasks, quitSinceMs } }, turn);
}

function endTarget({ facts, phase }: QuitState, report: TargetReport, turn: Turn): Decision {
  return endTask({ facts, phase: { ...phase, target: null, reports: [...phase.reports, report] } }, turn);
}

/** The first signal came: less time is left. */
function addSignal({ facts, phase }: QuitState, atMs: number, policy: Policy): QuitState {
  const signalled: QuitState = { facts: { ...facts, terminatedAtMs: facts.terminatedAtMs ?? atMs }, phase };
  if (phase.target === null) return signalled;
  const target = shortenTarget(phase.target, readTime(signalled, atMs, policy));
  return { ...signalled, phase: { ...phase, target } };
}

/**
 * When quitting, which began at `sinceMs`, must end after a signal at `terminatedAtMs`; null without one.
 * `keptMs`: of the grace, for what comes after it.
 */
export function findQuitDeadline(sinceMs: number, terminatedAtMs: number | null, limits: Limits, keptMs = 0) {
  if (terminatedAtMs === null) return null;
  const beginsMs = Math.max(sinceMs, terminatedAtMs);
  return Math.max(terminatedAtMs + limits.terminationGraceMs - keptMs, beginsMs + QUIT_MIN_MS);
}

function moveTarget(state: QuitState, before: TargetState, event: TargetEvent, turn: Turn): Decision {
  const { nowMs, policy, log } = turn;
  const { facts, phase } = state;
  const { state: target, move } = nextTargetMove(before, event, nowMs);
  if (move.kind === 'ended') {
    const { name } = readPolicy(state, policy);
    const { result, hint } = move;
    const fields = { seconds: toSeconds(nowMs - target.beganAtMs, 2), ...(result === 'failed' ? { hint } : {}) };
    const logged = addLog(turn, RESULT_MESSAGES[result], { target: name, ...fields });
    return endTarget(state, { target: name, result, ...fields }, logged);
  }
  const next: QuitEffect = { ...move, index: phase.reports.length };
  return { kind: 'quitting', state: { facts, phase: { ...phase, target } }, log, next };
}

const RESULT_MESSAGES = {
  stopped: 'targetStopped',
  alreadyGone: 'targetAlreadyGone',
  failed: 'targetFailed',
} as const satisfies Record<string, MessageId>;

/** Logs an event. What a signal leaves behind shows outside of this run, as an exit code. */
function logTargetEvent(turn: Turn, event: QuitEvent, { name: target }: TargetPolicy): Turn {
  if (event.kind !== 'asked' && event.kind !== 'forced') return turn;
  const result = event.kind === 'asked' ? event.answer : event.result;
  const isSignalled = result.kind === 'signalled' && result.pids.length > 0;
  const id = event.kind === 'asked' ? 'targetSignalled' : 'targetForced';
  const sent = isSignalled && { target, signal: result.signal, pids: result.pids, ...event.leaves };
  const logged = sent ? addLog(turn, id, sent) : turn;
  if (event.kind === 'asked') return addLog(logged, 'targetAsked', { target, ...result });
  return result.kind === 'impossible' ? addLog(logged, 'targetNotForced', { target, why: result.why }) : logged;
}

/** The policy of the target that is, or comes, under way. */
function readPolicy({ phase }: QuitState, { targets }: Policy): TargetPolicy {
  return targets[phase.reports.length] as TargetPolicy;
}

function readTime({ facts, phase }: QuitState, nowMs: number, policy: Policy) {
  const keptMs = phase.tasks.includes('webhook') ? KEPT_MS : 0;
  return {
    nowMs,
    quitTimeoutMs: policy.quitTimeoutMs,
    quitByMs: findQuitDeadline(phase.quitSinceMs, facts.terminatedAtMs, policy.limits, keptMs),
    leftCount: phase.tasks.filter((task) => task === 'target').length,
  };
}
