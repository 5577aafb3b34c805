// What this very pod shows of a configuration before anything is watched: entries that cannot work here, and what `--check` tells.

import { findTombstoneProblem } from './act/tombstone.ts';
import type { Config, Misconfigured } from './config.ts';
import type { LogEntry } from './decide/messages.ts';
import { listTargetWarnings } from './decide/target-warnings.ts';
import { formatLogEntry } from './help.ts';
import { describeNamespace, findProcesses, readNamespace } from './procfs.ts';

/** Asks every entry whether it can work in this pod; null: each can, as far as it can be told. */
export async function findEntryProblems({
  conditions,
  targets,
  isExitZero,
  terminationLog,
}: Config): Promise<Misconfigured | null> {
  const entries = [
    ...conditions.map(({ text, check }) => ({ name: text, variable: 'LASTSCRAPE_DONE_WHEN', check })),
    ...targets.map(({ name, check }) => ({ name, variable: 'LASTSCRAPE_QUIT', check })),
  ];
  const problems: string[] = [];
  const unreadable: string[] = [];
  for (const { name, variable, check } of entries) {
    const problem = (await check?.()) ?? null;
    if (problem === null) continue;
    problems.push(`Cannot use "${name}" of ${variable}: ${problem}`);
    unreadable.push(variable);
  }
  return problems.length === 0 ? null : { problems, unreadable, isExitZero, terminationLog };
}

/** What is odd about the targets as a whole. */
export function listWarnings({ targets, conditions, quitTimeoutMs }: Config): readonly LogEntry[] {
  const waitsForAll = conditions.some((condition) => condition.waitsForAll === true);
  return listTargetWarnings(targets, { quitTimeoutMs, waitsForAll });
}

/** Other lastscrapes that can be seen: in a process namespace that the pod's containers share. */
async function findOthers(ownPid: number): Promise<readonly number[]> {
  if ((await readNamespace(ownPid)) !== 'shared') return [];
  const found = await findProcesses('lastscrape', ownPid);
  return found.kind === 'found' ? found.processes.map(({ pid }) => pid) : [];
}

/** A warning where another lastscrape runs in this pod and can be seen. */
export async function warnOfOthers(ownPid: number): Promise<readonly LogEntry[]> {
  const pids = await findOthers(ownPid);
  if (pids.length === 0) return [];
  return [{ id: 'otherLastscrape', fields: { pids } }];
}

/** What `--check` can tell of this very pod, a line each. */
export async function inspectPod(config: Config, ownPid: number): Promise<readonly string[]> {
  const { conditions, targets, tombstonePath } = config;
  const entries = [
    ...conditions.map(({ text, inspect }) => ({ name: text, inspect })),
    ...targets.map(({ name, inspect }) => ({ name, inspect })),
  ];
  const lines = [`process namespace: ${await describeNamespace(ownPid)}`];
  for (const { name, inspect } of entries) {
    lines.push(...((await inspect?.()) ?? []).map((line) => `${name}: ${line}`));
  }
  const problem = tombstonePath === null ? null : await findTombstoneProblem(tombstonePath);
  const others = await findOthers(ownPid);
  const warnings = [
    ...(problem === null ? [] : [problem]),
    ...listWarnings(config).map(formatLogEntry),
    // One of them may be what this very container runs, where `kubectl exec` started the check.
    ...(others.length === 0
      ? []
      : [`lastscrape runs as PID ${others.join(', ')}: two in one pod count each other's polls as scrapes`]),
  ];
  return [...lines, ...warnings.map((warning) => `warning: ${warning}`)];
}
