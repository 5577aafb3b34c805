// What this pod shows of a configuration before the watch: entries that cannot work here, and odd targets.

import { findProcesses, readNamespace } from '../base/procfs.ts';
import type { Config, Misconfigured } from '../config/config.ts';
import type { LogEntry } from '../decide/messages.ts';
import { findOfLastSeconds } from '../decide/verdict.ts';
import type { Target } from '../quit/target-kind.ts';

/** Checks whether every entry can work in this pod; null: nothing speaks against it. */
export async function findEntryProblems(config: Config): Promise<Misconfigured | null> {
  const { isExitZero, terminationLog } = config;
  const found = await listEntryProblems(config);
  if (found.length === 0) return null;
  const unreadable = found.map(({ variable }) => variable);
  return { problems: found.map(formatEntryProblem), unreadable, isExitZero, terminationLog };
}

/** Why an entry cannot work in this pod. */
type EntryProblem = { readonly entry: string; readonly variable: string; readonly problem: string };

/** Every entry that cannot work in this pod, in the order of the configuration. */
export async function listEntryProblems({ conditions, targets }: Config): Promise<readonly EntryProblem[]> {
  const entries = [
    ...conditions.map(({ text, check }) => ({ entry: text, variable: 'LASTSCRAPE_DONE_WHEN', check })),
    ...targets.map(({ name, check }) => ({ entry: name, variable: 'LASTSCRAPE_QUIT', check })),
  ];
  const problems: EntryProblem[] = [];
  for (const { entry, variable, check } of entries) {
    const problem = (await check?.()) ?? null;
    if (problem !== null) problems.push({ entry, variable, problem });
  }
  return problems;
}

export function formatEntryProblem({ entry, variable, problem }: EntryProblem): string {
  return `Cannot use "${entry}" of ${variable}: ${problem}`;
}

/** What is odd about the targets as a whole, and the thresholds. */
export function listWarnings({ targets, conditions, quitTimeoutMs, thresholds }: Config): readonly LogEntry[] {
  const waitsForAll = conditions.some((condition) => condition.waitsForAll === true);
  const entry = findOfLastSeconds(thresholds)?.text;
  return [
    ...listTargetWarnings(targets, { quitTimeoutMs, waitsForAll }),
    ...(entry === undefined ? [] : [{ id: 'thresholdOfLastSeconds', fields: { entry } } as const]),
  ];
}

/** Other lastscrapes that can be seen: in a process namespace that the pod's containers share. */
export async function findOthers(ownPid: number): Promise<readonly number[]> {
  if ((await readNamespace(ownPid)) !== 'shared') return [];
  const found = await findProcesses('lastscrape', ownPid);
  return found.kind === 'found' ? found.processes.map(({ pid }) => pid) : [];
}

/** A warning where another lastscrape runs in this pod and can be seen. */
export async function warnOfOthers(ownPid: number): Promise<readonly LogEntry[]> {
  const pids = await findOthers(ownPid);
  return pids.length === 0 ? [] : [{ id: 'otherLastscrape', fields: { pids } }];
}

export type TargetTraits = Pick<Target, 'name' | 'needsMs' | 'isMesh'>;

/** Warns of targets that are waited for, a mesh proxy that is not last, a QUIT_TIMEOUT that is too short. */
export function listTargetWarnings(
  targets: readonly TargetTraits[],
  { quitTimeoutMs, waitsForAll }: { readonly quitTimeoutMs: number; readonly waitsForAll: boolean },
): readonly LogEntry[] {
  const listNames = (all: readonly TargetTraits[]) => all.map(({ name }) => name).join(',');
  const entries: LogEntry[] = [];
  if (waitsForAll && targets.length > 0)
    entries.push({ id: 'waitsForTargets', fields: { targets: listNames(targets) } });
  for (const [index, { name, isMesh = false, needsMs = 0 }] of targets.entries()) {
    const later = targets.slice(index + 1).filter((target) => target.isMesh !== true);
    if (isMesh && later.length > 0) {
      entries.push({ id: 'meshNotLast', fields: { target: name, before: listNames(later) } });
    }
    if (needsMs > 0 && quitTimeoutMs <= needsMs) {
      const fields = { target: name, needsSeconds: needsMs / 1000, quitTimeoutSeconds: quitTimeoutMs / 1000 };
      entries.push({ id: 'quitTimeoutShort', fields });
    }
  }
  return entries;
}
