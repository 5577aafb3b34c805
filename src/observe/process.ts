// `process:NAME`: main is done when no process of that name runs. One that runs proves that main is alive; none proves
// nothing of before. Needs the PID namespace of the pod (shareProcessNamespace).

import { findNamespaceProblem, findProcesses } from '../procfs.ts';
import type { ConditionKind } from './condition.ts';

/** A name as a file has it. */
const NAME = /^[^/\0]+$/;

export const processKind: ConditionKind = {
  name: 'process',
  usage: 'process:NAME',
  meaning: 'no process of the pod is named NAME, by its comm or the base name of its argv[0]',
  read(name, { pid }) {
    if (!NAME.test(name)) return { problem: 'the name of a program without its folder, such as "nginx"' };
    return {
      value: {
        text: `process:${name}`,
        metricName: null,
        async observe() {
          const found = await findProcesses(name, pid);
          if (found.kind === 'unknown') return { kind: 'unknown', why: `process ${name} unknown: ${found.why}` };
          if (found.processes.length > 0) return { kind: 'alive', seen: `process ${name} runs` };
          return { kind: 'done', seen: `no process ${name}`, provesWasAlive: false };
        },
        check: () => findNamespaceProblem(pid),
        async inspect() {
          const found = await findProcesses(name, pid);
          if (found.kind === 'unknown') return [`unknown: ${found.why}`];
          if (found.processes.length === 0) return ['no such process runs'];
          return [`runs as PID ${found.processes.map((each) => each.pid).join(', ')}`];
        },
      },
    };
  },
};
