// What is known of main, for what keeps and serves its last numbers. Pure.

import type { State } from './state.ts';

/** Main, as far as it is known. */
export type MainView = {
  /** `ending`: its end is being proven. */
  readonly main: 'living' | 'ending' | 'ended';
  /** It was seen alive, or is known to have been: then a metric of 0 shows its end. */
  readonly wasAlive: boolean;
  /** When it was first seen to have ended; null while that is not known. */
  readonly endedAtMs: number | null;
  /** Since when the hold waits only for answers in flight; absent: it does not. */
  readonly holdOverAtMs?: number;
};

export function viewMain({ facts, phase }: State): MainView {
  const wasAlive = facts.aliveSinceMs !== null || facts.wasAliveBefore;
  if (phase.kind === 'holding' || phase.kind === 'quitting') {
    const holdOverAtMs = phase.kind === 'holding' ? phase.scrapedAtMs : null;
    return { main: 'ended', wasAlive, endedAtMs: phase.mainEndedAtMs, ...(holdOverAtMs !== null && { holdOverAtMs }) };
  }
  // Where a metric stays unreadable, the other conditions prove the end.
  const isRunning = phase.kind === 'running';
  const isEnding = (phase.done !== null && (isRunning || wasAlive)) || (isRunning && phase.others !== null);
  return { main: isEnding ? 'ending' : 'living', wasAlive, endedAtMs: null };
}
