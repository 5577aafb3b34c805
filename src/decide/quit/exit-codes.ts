// Exit codes: which there are, and the one rule which of them a run has. Pure.

import type { Policy, SignalName } from '../model.ts';
import type { Facts, Quitting, State } from '../state.ts';
import { judgeNumbers, type Verdict } from '../verdict.ts';

/** Exit codes, from sysexits(3) where one fits. */
export const EXIT = {
  done: 0,
  thresholdFailed: 1,
  usage: 64,
  unreadable: 65,
  targetRuns: 69,
  bug: 70,
  notJudged: 75,
  misconfigured: 78,
  interrupted: 130,
} as const;

/** The exit code if the run ended in this state. `by`: the second signal. */
export function findExitCode(state: State, policy: Policy, by: SignalName | null): number {
  if (by === 'SIGINT') return EXIT.interrupted;
  const verdict = judgeRun(state, policy, by);
  if (verdict?.kind === 'failed') return EXIT.thresholdFailed;
  if (verdict?.kind === 'notJudged') return EXIT.notJudged;
  const { phase } = state;
  const isTargetLeft = phase.kind === 'quitting' && phase.reports.some(({ result }) => result === 'failed');
  return isTargetLeft && by === null ? EXIT.targetRuns : EXIT.done;
}

/**
 * What the process exits with. With LASTSCRAPE_EXIT_ZERO only a verdict that was asked for fails it; a native
 * sidecar ends with 0, since a podFailurePolicy reads its code where main fails too (Kubernetes 1.36.3).
 */
export function findProcessExitCode(exitCode: number, { isExitZero, conditions = [] }: ExitSettings): number {
  const isVerdict = exitCode === EXIT.thresholdFailed || exitCode === EXIT.notJudged;
  const isSidecar = conditions.some(({ isSignal }) => isSignal);
  return isExitZero && (isSidecar || !isVerdict) ? EXIT.done : exitCode;
}

type ExitSettings = {
  readonly isExitZero: boolean;
  readonly conditions?: readonly { readonly isSignal?: boolean }[];
};

/** The verdict by the numbers so far; null before main's end, and where nothing is judged. */
export function judgeRun({ facts, phase }: State, policy: Policy, by: SignalName | null): Verdict | null {
  if (by !== null) return policy.thresholds?.length ? { kind: 'notJudged', by: 'a second signal' } : null;
  return phase.kind === 'holding' || phase.kind === 'quitting' ? judgeEnd(facts, phase, policy) : null;
}

/** The verdict at main's end, or where its end is waited for no longer; null: nothing is judged. */
export function judgeEnd(
  facts: Facts,
  { because, mainEndedAtMs }: Pick<Quitting, 'because' | 'mainEndedAtMs'>,
  { thresholds = [] }: Policy,
): Verdict | null {
  const verdict = judgeNumbers(thresholds, facts.numbers);
  if (verdict === null) return null;
  if (because === 'runTimeout') return { kind: 'notJudged', by: 'LASTSCRAPE_RUN_TIMEOUT' };
  const isUnended = mainEndedAtMs === null && facts.terminatedAtMs !== null;
  return facts.wasAliveAtSignal || isUnended ? { kind: 'notJudged', by: 'a signal' } : verdict;
}
