// Signals to processes of the pod: who may send them, what they leave behind, how a port's owner is forced.

import { findNamespaceProblem, findPortOwners, isStillRunning, type ProcessId, readUid } from '../base/procfs.ts';
import type { ForceResult } from '../decide/quit-target.ts';
import type { TargetContext } from './target-kind.ts';

export type Sender = Pick<TargetContext, 'pid' | 'kill'>;

/** The result of sending a signal; `why`: one of them may not be signalled. */
type SendResult = { readonly reached: readonly ProcessId[]; readonly why: string | null };

/** The signals that end a program by default, with their numbers on Linux (signal(7)). */
export const SIGNALS = new Map(Object.entries({ TERM: 15, INT: 2, QUIT: 3, HUP: 1, USR1: 10, USR2: 12, KILL: 9 }));

/** Sends `signal` to those of them that still run; never rejects. */
export async function sendSignal(
  signal: string,
  processes: readonly ProcessId[],
  { kill }: Sender,
): Promise<SendResult> {
  const reached: ProcessId[] = [];
  let refusedPid: number | null = null;
  for (const each of processes) {
    // The PID may have gone to another process since it was found.
    if ((await isStillRunning(each)) === false) continue;
    try {
      kill(each.pid, `SIG${signal}`);
      reached.push(each);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EPERM') refusedPid ??= each.pid;
    }
  }
  return { reached, why: refusedPid === null ? null : await describeRefusal(refusedPid) };
}

/** Why this process may not be signalled, with what to do; null: it may, or is gone. */
export async function findSignalProblem({ pid }: ProcessId, { kill }: Sender): Promise<string | null> {
  try {
    kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPERM') return describeRefusal(pid);
  }
  return null;
}

/** kill(2): the sender's real or effective UID must equal the target's, or it must have CAP_KILL. */
async function describeRefusal(pid: number): Promise<string> {
  const [theirs, own] = [await readUid(pid), await readUid('self')];
  // Kubernetes gives an added capability to a program of root only (kubernetes/kubernetes issue 56374).
  return `PID ${pid} runs as UID ${theirs ?? 'unknown'} and lastscrape as UID ${own ?? 'unknown'}, which may not signal it; set the same runAsUser for both, or run lastscrape as root with the capability KILL`;
}

/** What a signal leaves behind in the pod: 128 and its number, where the program does not handle it. */
export function describeExitCode(signal: string): string {
  const code = 128 + (SIGNALS.get(signal) ?? 0);
  return `exit code ${code} where the program does not end by itself with 0: with restartPolicy Never the pod is Failed then, with OnFailure the container is started again`;
}

/**
 * Signals what listens on a port of loopback: TERM first (`count` is 0), then KILL. Only processes named in
 * `programs` (null: any), never PID 1, never lastscrape. Never rejects.
 */
export async function forcePortOwner(
  port: number,
  programs: readonly string[] | null,
  count: number,
  sender: Sender,
): Promise<ForceResult> {
  const impossible = (why: string) => ({ kind: 'impossible', why: `not forced: ${why}` }) as const;
  const problem = await findNamespaceProblem(sender.pid);
  if (problem !== null) return impossible(problem);
  const found = await findPortOwners(port, programs, sender.pid);
  if (found.kind === 'unknown') return impossible(found.why);
  const signal = count === 0 ? 'TERM' : 'KILL';
  const { reached, why } = await sendSignal(signal, found.processes, sender);
  if (why !== null) return impossible(why);
  return { kind: 'signalled', signal, pids: reached.map(({ pid }) => pid) };
}
