// What a process costs, in the kernel's own words: /proc on Linux. Nothing here starts or ends a process.

import { readdirSync, readFileSync } from 'node:fs';

/** One moment of a process, or of a process and all its descendants. */
export type Cost = {
  /** Rss of smaps_rollup: all pages that are in memory, shared ones too. */
  readonly residentBytes: number;
  /** Anonymous of smaps_rollup: what no file stands behind, and what a memory limit cannot take back. */
  readonly anonymousBytes: number;
};

/** proc(5): clock ticks are 1/100 s on every Linux that programs can see. */
const TICK_SECONDS = 0.01;

/** @throws when the process is gone. */
export function readCost(pid: number): Cost {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  return {
    residentBytes: readKilobytes(rollup, 'Rss'),
    anonymousBytes: readKilobytes(rollup, 'Anonymous'),
  };
}

/** The sum over a process and its descendants; one that ends meanwhile is left out. */
export function readTreeCost(pid: number): Cost {
  let [residentBytes, anonymousBytes] = [0, 0];
  for (const member of listTree(pid)) {
    try {
      const cost = readCost(member);
      residentBytes += cost.residentBytes;
      anonymousBytes += cost.anonymousBytes;
    } catch {
      // Gone between the list and the look.
    }
  }
  return { residentBytes, anonymousBytes };
}

/** CPU time so far, of its threads and of the children that it has waited for (seconds, to 0.01). */
export function readCpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name in parentheses may hold blanks; utime is the 12th field after it, then stime, cutime, cstime.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_SECONDS;
}

/** CPU seconds so far of its living threads, by schedstat (Documentation/scheduler/sched-stats.rst). */
export function readThreadSeconds(pid: number): number {
  const folder = `/proc/${pid}/task`;
  const nanoseconds = readdirSync(folder).map((thread) =>
    Number(readFileSync(`${folder}/${thread}/schedstat`, 'utf8').split(' ')[0]),
  );
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1e9;
}

/** How many descriptors a process has open, its sockets among them. */
export function countDescriptors(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function listTree(pid: number): readonly number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return [
      pid,
      ...children
        .split(' ')
        .filter(Boolean)
        .flatMap((child) => listTree(Number(child))),
    ];
  } catch {
    return [pid];
  }
}

function readKilobytes(rollup: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(rollup)?.[1]) * 1024;
}
