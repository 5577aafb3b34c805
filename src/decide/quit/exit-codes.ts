// Exit codes: which there are, and the one rule which of them a run has. Pure.

import type { Policy, SignalName } from '../model.ts';
import type { State } from '../state.ts';
import { judgeNumbers, type Verdict } from '../verdict.ts';

/** Exit codes, from sysexits(3) where one fits. */
export const EXIT = {
  done: 0,
  thresholdFailed: 1,
  usage: 64,
  unreadable: 65,
  targetRuns: 69,
  bug: 70,
  misconfigured: 78,
  interrupted: 130,
} as const;

/** The exit code if the run ended in this state. `by`: the second signal, after which nothing is judged. */
export function findExitCode(state: State, policy: Policy, by: SignalName | null): number {
  if (by !== null) return by === 'SIGINT' ? EXIT.interrupted : EXIT.done;
  if (judgeRun(state, policy)?.kind === 'failed') return EXIT.thresholdFailed;
  const { phase } = state;
  const isTargetLeft = phase.kind === 'quitting' && phase.reports.some(({ result }) => result === 'failed');
  return isTargetLeft ? EXIT.targetRuns : EXIT.done;
}

/** What the process exits with: with LASTSCRAPE_EXIT_ZERO only a verdict that was asked for fails it. */
export function findProcessExitCode(exitCode: number, isExitZero: boolean): number {
  return isExitZero && exitCode !== EXIT.thresholdFailed ? EXIT.done : exitCode;
}

/** The verdict by the numbers so far; null before main's end, and where nothing is judged. */
export function judgeRun({ facts, phase }: State, { thresholds = [] }: Policy): Verdict | null {
  if (phase.kind !== 'holding' && phase.kind !== 'quitting') return null;
  return judgeNumbers(thresholds, facts.numbers);
}
