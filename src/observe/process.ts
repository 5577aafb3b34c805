// `process:NAME`: main is done when no process has that name, which does not prove that it ever ran. Needs
// the pod's PID namespace (shareProcessNamespace).

import { findNamespaceProblem, findProcesses } from '../base/procfs.ts';
import { prepareThreadCall } from '../base/thread-call.ts';
import type { Condition, ConditionKind } from './condition-kind.ts';

/** A file name. */
const NAME = /^[^/\0]+$/;
/** /proc answers in milliseconds, but a command line may hang with its process in the kernel. */
const PROC_TIMEOUT_MS = 1_000;

export const processKind: ConditionKind = {
  name: 'process',
  usage: 'process:NAME',
  meaning: 'no process of the pod is named NAME, by its comm or the base name of its argv[0]',
  read(name, { pid }) {
    if (!NAME.test(name)) return { problem: 'the name of a program without its folder, such as "nginx"' };
    const what = `process ${name}`;
    const find = prepareThreadCall(() => findProcesses(name, pid));
    const value: Condition = {
      text: `process:${name}`,
      metricName: null,
      usesProcesses: true,
      need: 'shareProcessNamespace: true must be in its spec',
      async observe({ signal }) {
        const result = await find({ timeoutMs: PROC_TIMEOUT_MS, signal });
        if (result.kind === 'pending') return { kind: 'blind', why: `${what} unknown: ${result.why}` };
        const found = result.value;
        if (found.kind === 'unknown') {
          const advice = "other users' processes must be shown: mount /proc without hidepid, or use another condition";
          return { kind: 'blind', why: `${what} unknown: ${found.why}`, problem: `${what} cannot be seen; ${advice}` };
        }
        if (found.processes.length > 0) return { kind: 'alive', seen: `${what} runs` };
        return { kind: 'done', seen: `no ${what}`, provesWasAlive: false };
      },
      check: () => findNamespaceProblem(pid),
      async inspect() {
        const found = await findProcesses(name, pid);
        if (found.kind === 'unknown') return [`unknown: ${found.why}`];
        if (found.processes.length === 0) return ['no such process runs'];
        return [`runs as PID ${found.processes.map((each) => each.pid).join(', ')}`];
      },
    };
    return { value };
  },
};
