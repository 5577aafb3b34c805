// Starts programs under a memory limit, and of the processors as well, in a control group below the one that
// this process is in (version 1 or 2). It makes that group only where it may, and removes it.

import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A group whose members together get no more than its limits. Disposing of it needs all members to be gone.
 */
export type MemoryGroup = Disposable & {
  setLimit(bytes: number): void;
  /**
   * `share`: of one processor in each tenth of a second, as the kubelet has it. False: it cannot be limited
   * here.
   */
  limitCpu(share: number): boolean;
  /** The command that runs `command` as a member, by all limits that were set by then. */
  wrap(command: readonly string[]): readonly string[];
};

/**
 * What a control group is limited by: the controller's name, and of each version the file that shows that it
 * is there.
 */
const CONTROLLERS = {
  memory: ['memory.limit_in_bytes', 'memory.max'],
  cpu: ['cpu.cfs_quota_us', 'cpu.max'],
} as const;
type Controller = keyof typeof CONTROLLERS;
type Group = { readonly folder: string; readonly limitFile: string };

const PERIOD_MICROSECONDS = 100_000;

let groupsCount = 0;

/** Makes a group; `undefined` where this user or this machine cannot (no memory controller, not root). */
export function openMemoryGroup(): MemoryGroup | undefined {
  const name = `lastscrape-bench-${process.pid}-${++groupsCount}`;
  const memory = makeGroup('memory', name);
  if (memory === undefined) return undefined;
  const folders = new Set([memory.folder]);
  return {
    setLimit: (bytes) => writeFileSync(join(memory.folder, memory.limitFile), String(bytes)),
    limitCpu(share) {
      const cpu = makeGroup('cpu', name);
      if (cpu === undefined) return false;
      folders.add(cpu.folder);
      const quota = Math.round(share * PERIOD_MICROSECONDS);
      const text = cpu.limitFile === 'cpu.max' ? `${quota} ${PERIOD_MICROSECONDS}` : String(quota);
      writeFileSync(join(cpu.folder, cpu.limitFile), text);
      return true;
    },
    wrap(command) {
      const joins = [...folders].map((folder) => `echo $$ >'${join(folder, 'cgroup.procs')}'`);
      return ['sh', '-c', [...joins, 'exec "$@"'].join(' && '), 'sh', ...command];
    },
    [Symbol.dispose]() {
      for (const folder of folders) rmdirSync(folder);
    },
  };
}

/** The same group for both controllers in version 2. */
function makeGroup(controller: Controller, name: string): Group | undefined {
  for (const { parent, limitFile } of listParents(controller)) {
    const folder = join(parent, name);
    const isMade = existsSync(folder);
    try {
      if (!isMade) mkdirSync(folder);
    } catch {
      continue;
    }
    if (existsSync(join(folder, limitFile))) return { folder, limitFile };
    if (!isMade) rmdirSync(folder);
  }
  return undefined;
}

// "4:memory:/path" in version 1, "0::/path" in version 2 (cgroups(7)).
function listParents(controller: Controller): { readonly parent: string; readonly limitFile: string }[] {
  if (!existsSync('/proc/self/cgroup')) return [];
  const [inFirst, inSecond] = CONTROLLERS[controller];
  const lines = readFileSync('/proc/self/cgroup', 'utf8').trim().split('\n');
  return lines.flatMap((line): { readonly parent: string; readonly limitFile: string }[] => {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers.split(',').includes(controller))
      return [{ parent: join('/sys/fs/cgroup', controller, path), limitFile: inFirst }];
    return controllers === '' ? [{ parent: join('/sys/fs/cgroup', path), limitFile: inSecond }] : [];
  });
}
