// Signals to processes of the pod. `signal:NAME` and `signal:SIGNAL:NAME`: every process of that name gets
// one, and KILL after half of QUIT_TIMEOUT. It is gone when no process that was signalled runs any more. And
// how the owner of a port is forced.

import {
  findNamespaceProblem,
  findPortOwners,
  findProcesses,
  isStillRunning,
  type ProcessId,
  readUid,
} from '../base/procfs.ts';
import type { Answer, ForceResult } from '../decide/quit/quit-target.ts';
import { PRESETS } from './programs.ts';
import type { Target, TargetContext, TargetKind } from './target-kind.ts';

/** The signals that end a program by default, with their numbers on Linux (signal(7)). */
const SIGNALS = new Map(Object.entries({ TERM: 15, INT: 2, QUIT: 3, HUP: 1, USR1: 10, USR2: 12, KILL: 9 }));

const ENTRY = /^signal:(?:([^:]*):)?([^:]*)$/;

export const signalKind: TargetKind = {
  usage: 'signal:[SIGNAL:]NAME',
  meaning:
    'a signal (TERM by default) to the processes of the pod named NAME, and KILL after half of `LASTSCRAPE_QUIT_TIMEOUT`',
  read(entry, context) {
    if (!entry.startsWith('signal:')) return null;
    const [, given = 'TERM', name = ''] = ENTRY.exec(entry) ?? [];
    const signal = given.replace(/^SIG/, '');
    if (!SIGNALS.has(signal) || !/^[^/\0]+$/.test(name)) {
      return {
        problem: `signal:NAME or signal:SIGNAL:NAME, with the name of a program without its folder and one of ${[...SIGNALS.keys()].join(', ')}, such as "signal:INT:nginx"`,
      };
    }
    return { value: signalTarget(entry, signal, name, context) };
  },
};

function signalTarget(entry: string, signal: string, name: string, context: TargetContext): Target {
  const { pid } = context;
  /** Its processes when it was asked: it is gone when they are. */
  const seen: ProcessId[] = [];
  /** Which of them got the signal. */
  const signalled: ProcessId[] = [];

  return {
    name: entry,
    request: `SIG${signal} to every process named ${name}`,
    stops: { processName: name },
    usesProcesses: true,
    need: 'shareProcessNamespace: true must be in its spec',
    async ask() {
      const found = await findProcesses(name, pid);
      if (found.kind === 'unknown') return { kind: 'failed', why: found.why, wasSent: false };
      seen.push(...found.processes.filter((each) => !isAmong(seen, each)));
      if (seen.length === 0) return { kind: 'refused' };
      // Once only: programs take a second TERM for "at once".
      const rest = found.processes.filter((each) => !isAmong(signalled, each));
      const { reached, why } = await sendSignal(signal, rest, context);
      signalled.push(...reached);
      if (why !== null) return { kind: 'failed', why, wasSent: signalled.length > 0 };
      return { kind: 'signalled', signal, pids: reached.map((each) => each.pid) };
    },
    async probe() {
      const running = await Promise.all(seen.map(isStillRunning));
      if (running.includes(true)) return 'open';
      return running.length === 0 || running.includes('unknown') ? 'unknown' : 'refused';
    },
    async force() {
      const { reached, why } = await sendSignal('KILL', seen, context);
      if (why !== null) return { kind: 'impossible', why: 'KILL is not allowed either' };
      return { kind: 'signalled', signal: 'KILL', pids: reached.map((each) => each.pid) };
    },
    signalLeaves: (sent) => ({ leaves: describeExitCode(sent), instead: describeAlternative(name) }),
    hint: describeAnswer,
    async check() {
      const problem = await findNamespaceProblem(pid);
      if (problem !== null) return problem;
      const found = await findProcesses(name, pid);
      return found.kind === 'unknown' ? null : (await sendSignal(0, found.processes, context)).why;
    },
    async inspect() {
      const found = await findProcesses(name, pid);
      if (found.kind === 'unknown') return [`unknown: ${found.why}`];
      const runs =
        found.processes.length === 0
          ? 'no such process runs'
          : `runs as PID ${found.processes.map((each) => each.pid).join(', ')}, and may be signalled`;
      return [runs, `${signal} leaves ${describeExitCode(signal)}`, `instead: ${describeAlternative(name)}`];
    },
  };
}

/** What ends the program `name` without a signal, or makes it exit with 0. */
function describeAlternative(name: string): string {
  const preset = PRESETS.find(({ programs: [program] }) => program === name);
  if (preset === undefined) return 'a quit endpoint, as METHOD URL in LASTSCRAPE_QUIT, if it has one';
  const { flag, exitZeroFlag } = preset;
  const endpoint = `${preset.name} in LASTSCRAPE_QUIT${flag === null ? '' : `, with ${flag} set on it`}`;
  return exitZeroFlag === undefined ? endpoint : `${endpoint}; or its flag ${exitZeroFlag}`;
}

function isAmong(all: readonly ProcessId[], one: ProcessId): boolean {
  return all.some(({ pid, startTicks }) => pid === one.pid && startTicks === one.startTicks);
}

function describeAnswer(answer: Answer | null): string {
  if (answer?.kind === 'failed') return answer.why;
  if (answer?.kind !== 'signalled') return 'no signal could be sent';
  return 'it outlived KILL: does it hang in the kernel (state D)?';
}

export type Sender = Pick<TargetContext, 'pid' | 'kill'>;

/**
 * Sends `signal`, such as `TERM`, to those of them that still run; 0 only tries. Returns those, and why one
 * of them may not be signalled, with what to do. Never rejects.
 */
export async function sendSignal(signal: string | 0, processes: readonly ProcessId[], { kill }: Sender) {
  const reached: ProcessId[] = [];
  let refusedPid: number | null = null;
  for (const each of processes) {
    // The PID may have gone to another process since it was found.
    if ((await isStillRunning(each)) === false) continue;
    try {
      kill(each.pid, signal === 0 ? 0 : `SIG${signal}`);
      reached.push(each);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EPERM') refusedPid ??= each.pid;
    }
  }
  return { reached, why: refusedPid === null ? null : await describeRefusal(refusedPid) };
}

/** kill(2): the sender's real or effective UID must equal the target's, or it must have CAP_KILL. */
async function describeRefusal(pid: number): Promise<string> {
  const [theirs, own] = [await readUid(pid), await readUid('self')];
  // Kubernetes gives an added capability to a program of root only (kubernetes/kubernetes issue 56374).
  return `PID ${pid} runs as UID ${theirs} and lastscrape as UID ${own}, which may not signal it; set the same runAsUser for both, or run lastscrape as root with the capability KILL`;
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
