// What this pod shows of a configuration before the watch: entries that cannot work here, and odd targets.

import { findProcesses, readNamespace } from '../base/procfs.ts';
import type { Config, Misconfigured } from '../config/config.ts';
import type { LogEntry } from '../decide/messages.ts';
import { findOddLimit, findOfLastSeconds } from '../decide/verdict.ts';
import type { Target } from '../quit/target-kind.ts';

/** Why an entry cannot work in this pod; `problem` names both. */
type EntryProblem = { readonly entry: string; readonly variable: string; readonly problem: string };

/** Every entry that cannot work in this pod, in the order of the configuration. */
export async function listEntryProblems({ conditions, targets }: Config): Promise<readonly EntryProblem[]> {
  const entries = [
    ...conditions.map(({ text, check }) => ({ entry: text, variable: 'LASTSCRAPE_DONE_WHEN', check })),
    ...targets.map(({ name, check }) => ({ entry: name, variable: 'LASTSCRAPE_QUIT', check })),
  ];
  const problems: EntryProblem[] = [];
  for (const { entry, variable, check } of entries) {
    const why = (await check?.()) ?? null;
    if (why !== null) problems.push({ entry, variable, problem: `Cannot use "${entry}" of ${variable}: ${why}` });
  }
  return problems;
}

/** The same as what makes a configuration unusable; null: nothing does. */
export async function findEntryProblems(config: Config): Promise<Misconfigured | null> {
  const { isExitZero, terminationLog } = config;
  const found = await listEntryProblems(config);
  if (found.length === 0) return null;
  const unreadable = found.map(({ variable }) => variable);
  return { problems: found.map(({ problem }) => problem), unreadable, isExitZero, terminationLog };
}

/** What is odd about the targets as a whole, and the thresholds. */
export function listWarnings({ targets, conditions, quitTimeoutMs, thresholds }: Config): readonly LogEntry[] {
  const listNames = (all: readonly Target[]) => all.map(({ name }) => name).join(',');
  const entries: LogEntry[] = [];
  if (conditions.some(({ waitsForAll }) => waitsForAll === true) && targets.length > 0) {
    entries.push({ id: 'waitsForTargets', fields: { targets: listNames(targets) } });
  }
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
  const ofLastSeconds = findOfLastSeconds(thresholds);
  if (ofLastSeconds !== undefined)
    entries.push({ id: 'thresholdOfLastSeconds', fields: { entry: ofLastSeconds.text } });
  for (const threshold of thresholds) {
    const because = findOddLimit(threshold);
    if (because !== null) entries.push({ id: 'thresholdOddLimit', fields: { entry: threshold.text, because } });
  }
  return entries;
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
