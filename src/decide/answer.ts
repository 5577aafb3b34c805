// What a scrape gets through the front, and what becomes of an answer of the source (design of record, "What a scrape gets"). Pure.

import { assertNever } from './model.ts';
import type { State } from './state.ts';

/** Main, as far as it is known. */
export type MainView = {
  /** `ending`: its end is being proven. */
  readonly main: 'living' | 'ending' | 'ended';
  /** It was seen alive, or is known to have been: then a metric of 0 shows its end. */
  readonly wasAlive: boolean;
  /** When it was first seen to have ended; null while that is not known. */
  readonly endedAtMs: number | null;
};

/** How the read for a scrape went: `refused` also where a file is missing. */
export type SourceResult = 'answered' | 'refused' | 'failed';

/**
 * What a scrape gets: the very answer of the source, that with what has vanished from it since, the snapshot as it is, or 503.
 */
export type AnswerKind = 'live' | 'joined' | 'snapshot' | 'unavailable';

/** The view of main that the front goes by. */
export function viewMain({ facts, phase }: State): MainView {
  const wasAlive = facts.aliveSinceMs !== null || facts.wasAliveBefore;
  if (phase.kind === 'holding' || phase.kind === 'quitting') {
    return { main: 'ended', wasAlive, endedAtMs: phase.mainEndedAtMs };
  }
  // Where a metric stays unreadable, the other conditions prove the end.
  const isRunning = phase.kind === 'running';
  const isEnding = (phase.done !== null && (isRunning || wasAlive)) || (isRunning && phase.others !== null);
  return { main: isEnding ? 'ending' : 'living', wasAlive, endedAtMs: null };
}

/** Decides what a scrape gets; never an old number for a living program, but where its source refuses: it may have ended. */
export function chooseAnswer({ main }: MainView, source: SourceResult, hasSnapshot: boolean): AnswerKind {
  switch (source) {
    case 'answered':
      return main === 'living' || !hasSnapshot ? 'live' : 'joined';
    case 'refused':
      return hasSnapshot ? 'snapshot' : 'unavailable';
    case 'failed':
      return main === 'ended' && hasSnapshot ? 'snapshot' : 'unavailable';
    default:
      return assertNever(source);
  }
}

/**
 * Decides what a whole, readable answer becomes: the snapshot itself, or, from main's end on, the snapshot with whatever has
 * vanished from it, so that no number goes back. `showsEnd`: it shows that main has ended, by all of its metrics.
 */
export function chooseSnapshot({ main, wasAlive }: MainView, showsEnd: boolean): 'renewed' | 'joined' {
  return main === 'living' && !(showsEnd && wasAlive) ? 'renewed' : 'joined';
}
