// `signal:NAME` and `signal:SIGNAL:NAME`: every process of that name gets one signal, and KILL after half of
// QUIT_TIMEOUT. Gone is proven by the processes themselves: no process that was signalled runs any more.

import { findNamespaceProblem, findProcesses, isStillRunning, type ProcessId } from '../base/procfs.ts';
import type { Answer } from '../decide/quit-target.ts';
import { PRESETS } from './programs.ts';
import { describeExitCode, findSignalProblem, SIGNALS, sendSignal } from './send-signal.ts';
import type { Target, TargetContext, TargetKind } from './target-kind.ts';

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
    outsidePod: { why: "these are not the pod's processes", need: 'shareProcessNamespace: true must be in its spec' },
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
      if (found.kind === 'unknown') return null;
      for (const each of found.processes) {
        const denied = await findSignalProblem(each, context);
        if (denied !== null) return denied;
      }
      return null;
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
  const isSent = answer?.kind === 'signalled';
  return isSent ? 'it outlived KILL: does it hang in the kernel (state D)?' : 'no signal could be sent';
}
