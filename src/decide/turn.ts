// One event on its way through the rules of watching, and what they share: the log, and whether a limit is over. Pure.

import type { Evidence } from './evidence.ts';
import type { LogEntry, MessageId } from './messages.ts';
import { findWatchEnd, type Observation, type Policy } from './model.ts';
import type { Facts } from './state.ts';

/** A refused exporter is gone after this long, while every other condition is proven: a container restart takes less. */
export const GONE_AFTER_MS = 15_000;

/** One observation on its way through the rules. */
export type Turn = {
  /** The facts from before it. */
  readonly before: Facts;
  facts: Facts;
  readonly observation: Observation;
  readonly evidence: Evidence;
  readonly policy: Policy;
  readonly log: LogEntry[];
};

/** Whether a limit is over, and this observation saw what is there since. */
export function isOver({ observation, evidence }: Turn, limitMs: number): boolean {
  return observation.readAtMs >= limitMs && !evidence.isStalled;
}

export function isGraceOver(turn: Turn): boolean {
  const { terminatedAtMs } = turn.facts;
  return terminatedAtMs !== null && isOver(turn, findWatchEnd(terminatedAtMs, turn.policy.limits));
}

export function isGone(sinceMs: number | null, turn: Turn): boolean {
  if (sinceMs === null || !turn.evidence.isRefused || !turn.evidence.areOthersDone) return false;
  return turn.facts.terminatedAtMs !== null || turn.observation.atMs - sinceMs >= GONE_AFTER_MS;
}

/** Three decimals: a log line is for people. */
export function toSeconds(ms: number): number {
  return Math.round(ms) / 1000;
}

export function log(turn: Turn, id: MessageId, fields: LogEntry['fields']): void {
  turn.log.push({ id, fields });
}

/** `key`: what is warned of once; the message where it is left out. */
export function warnOnce(turn: Turn, id: MessageId, fields: LogEntry['fields'], key: string = id): void {
  if (turn.facts.warned.includes(key)) return;
  turn.facts = { ...turn.facts, warned: [...turn.facts.warned, key] };
  log(turn, id, fields);
}
