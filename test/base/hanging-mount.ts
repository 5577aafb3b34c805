// A file system that hangs: a FUSE mount whose server never answers, in a namespace of its own.

import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Inhabitant, PidNamespace } from '../support/pid-namespace.ts';
import { until } from '../support/until.ts';

const MOUNT = join(import.meta.dirname, 'hanging-mount.py');

/** Mounts it in the folder of the namespace; the end of its server ends the waiting. */
export async function mountHanging({ folder, start }: PidNamespace): Promise<{ path: string; server: Inhabitant }> {
  const [path, ready] = [join(folder, 'mount'), join(folder, 'ready')];
  mkdirSync(path);
  const server = await start(['python3', MOUNT, path, ready], { uid: 0, comm: 'python3' });
  await until('the mount', 60_000, async () => existsSync(ready) || undefined);
  return { path, server };
}
