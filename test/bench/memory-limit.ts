// Starts programs under a memory limit, in a control group (version 1 or 2) below this process's own.

import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A group whose members together get no more than its limit. Disposing needs all members to be gone. */
export type MemoryGroup = Disposable & {
  setLimit(bytes: number): void;
  /** The most that they had together. */
  peakBytes(): number;
  wrap(command: readonly string[]): readonly string[];
};

let groupsCount = 0;

/** Makes a group; `undefined` where this user or this machine cannot (no memory controller, not root). */
export function openMemoryGroup(): MemoryGroup | undefined {
  const name = `lastscrape-bench-${process.pid}-${++groupsCount}`;
  for (const { parent, limitFile } of listParents()) {
    const folder = join(parent, name);
    try {
      mkdirSync(folder);
    } catch {
      continue;
    }
    if (existsSync(join(folder, limitFile))) return openGroup(folder, limitFile);
    rmdirSync(folder);
  }
  return undefined;
}

function openGroup(folder: string, limitFile: string): MemoryGroup {
  const script = `echo $$ >'${join(folder, 'cgroup.procs')}' && exec "$@"`;
  return {
    setLimit: (bytes) => writeFileSync(join(folder, limitFile), String(bytes)),
    peakBytes: () => {
      const file = limitFile === 'memory.max' ? 'memory.peak' : 'memory.max_usage_in_bytes';
      return Number(readFileSync(join(folder, file), 'utf8'));
    },
    wrap: (command) => ['sh', '-c', script, 'sh', ...command],
    [Symbol.dispose]: () => rmdirSync(folder),
  };
}

// "4:memory:/path" in version 1, "0::/path" in version 2 (cgroups(7)).
function listParents(): { readonly parent: string; readonly limitFile: string }[] {
  if (!existsSync('/proc/self/cgroup')) return [];
  const lines = readFileSync('/proc/self/cgroup', 'utf8').trim().split('\n');
  return lines.flatMap((line): { readonly parent: string; readonly limitFile: string }[] => {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers.split(',').includes('memory'))
      return [{ parent: join('/sys/fs/cgroup/memory', path), limitFile: 'memory.limit_in_bytes' }];
    return controllers === '' ? [{ parent: join('/sys/fs/cgroup', path), limitFile: 'memory.max' }] : [];
  });
}
