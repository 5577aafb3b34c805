// A PID namespace as a pod's containers share it: PID 1 is a pause process, the others have their own UIDs.
// It ends with the test.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { makeFolder } from './folder.ts';
import { gateMissing } from './programs.ts';
import { until } from './until.ts';
import { COMMAND, startWatcher, type Watcher } from './watcher.ts';

/** The UID that the image of lastscrape sets. */
export const WATCHER_UID = 65_532;

/** Where every UID may look. */
const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export type Inhabitant = {
  /** As the test sees it, outside of the namespace. */
  readonly pid: number;
  /** The exit code as a container has it: 128 plus the number of the fatal signal. */
  readonly ended: Promise<number>;
};

export type PidNamespace = AsyncDisposable & {
  /** A folder that every UID may write to, the same inside and outside. */
  readonly folder: string;
  /** Starts a program with a UID, and waits until its name is `comm`. */
  start(command: readonly string[], options: { readonly uid: number; readonly comm: string }): Promise<Inhabitant>;
  /**
   * Starts lastscrape with exactly these variables; `isAlone`: as PID 1 of a namespace inside this one;
   * `init`: a command that starts it, and is the first program of its container.
   */
  watch(
    env: Readonly<Record<string, string>>,
    options?: {
      readonly uid?: number;
      readonly args?: readonly string[];
      readonly isAlone?: boolean;
      readonly init?: readonly string[];
    },
  ): Watcher;
};

/** Why there can be no PID namespace here, or false. @throws with CI=true */
export function gateNamespaces(file: string): string | false {
  try {
    execFileSync('unshare', ['--pid', '--fork', '--mount-proc', 'nsenter', '--version'], { stdio: 'ignore' });
    execFileSync('setpriv', ['--version'], { stdio: 'ignore' });
    execFileSync('python3', ['--version'], { stdio: 'ignore', env: { PATH: SYSTEM_PATH } });
    if (process.getuid?.() === 0) return false;
  } catch {}
  return gateMissing(file, ['it needs Linux, root, python3, and unshare, nsenter and setpriv of util-linux']);
}

/** Opens one; `isHiding`: its /proc shows a user only their own processes (hidepid=2). */
export async function openPidNamespace({ isHiding = false } = {}): Promise<PidNamespace> {
  const folder = makeFolder();
  chmodSync(folder, 0o777);
  // The checkout and Node may lie where another UID may not look.
  const [file = '', ...rest] = COMMAND;
  const root = join(import.meta.dirname, '../..');
  const [program, checkout] = [join(folder, 'program'), join(folder, 'checkout')];
  for (const path of [program, checkout]) mkdirSync(path);
  const commandInside = [join(program, basename(file)), ...rest.map((path) => path.replace(root, checkout))];
  const prepare = [
    'mount --bind "$1" "$2"',
    'mount --bind "$3" "$4"',
    isHiding ? 'mount -o remount,hidepid=2 /proc' : 'true',
    'echo ready',
    'exec sleep infinity',
  ].join(' && ');
  const anchor = spawn(
    'setpriv',
    // biome-ignore format: one command
    ['--pdeathsig', 'KILL', 'unshare', '--pid', '--fork', '--kill-child', '--mount-proc',
      'sh', '-c', prepare, 'sh', dirname(file), program, root, checkout],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const gone = once(anchor, 'close');
  await Promise.race([
    once(anchor.stdout, 'data'),
    gone.then(() => Promise.reject(new Error('Cannot open a PID namespace: it ended at once'))),
  ]);
  const [first = 0] = listChildren(anchor.pid as number);
  await until('the PID 1 of the namespace', 60_000, async () => readComm(first) === 'sleep' || undefined);

  function enter(command: readonly string[], uid: number): readonly string[] {
    // biome-ignore format: one command
    return ['nsenter', `--pid=/proc/${first}/ns/pid`, `--mount=/proc/${first}/ns/mnt`,
      ...setUid(uid), ...command];
  }

  return {
    folder,
    async start(command, { uid, comm }) {
      const [entry = '', ...args] = enter(command, uid);
      const child = spawn(entry, args, { stdio: 'ignore', env: { PATH: SYSTEM_PATH } });
      const ended = once(child, 'close').then(([code, signal]) => code ?? findCode(signal));
      const pid = await until(`a process "${comm}"`, 60_000, async () =>
        listChildren(child.pid as number).find((each) => readComm(each) === comm),
      );
      return { pid, ended };
    },
    watch(env, { uid = WATCHER_UID, args = [], isAlone = false, init = [] } = {}) {
      const container = [...init, ...commandInside];
      const alone = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', ...setUid(uid), ...container];
      const command = isAlone ? enter(alone, 0) : enter(container, uid);
      return startWatcher({ PATH: process.env['PATH'] ?? '', ...env }, args, command);
    },
    async [Symbol.asyncDispose]() {
      // unshare takes PID 1 with it, and PID 1 the whole namespace.
      anchor.kill('SIGKILL');
      await gone;
    },
  };
}

function setUid(uid: number): readonly string[] {
  return ['setpriv', '--reuid', String(uid), '--regid', String(uid), '--clear-groups'];
}

/** Signals the program that `child` starts by way of others, each with one child. */
export function signalInnermost({ pid = 0 }: ChildProcess, signal: NodeJS.Signals): void {
  let innermost = pid;
  for (let [only] = listChildren(pid); only !== undefined; [only] = listChildren(innermost)) innermost = only;
  process.kill(innermost, signal);
}

function listChildren(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function readComm(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trimEnd();
  } catch {
    return '';
  }
}

/** nsenter ends itself with the signal that ended its program. */
function findCode(signal: string): number {
  return 128 + ({ SIGTERM: 15, SIGINT: 2, SIGKILL: 9 }[signal] ?? 0);
}
