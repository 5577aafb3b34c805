// `file:PATH`: main is done when PATH exists. A missing file proves that main is alive, and one that exists that it was:
// main makes it at its end. An emptyDir is empty when a pod starts.

import { dirname } from 'node:path';
import { stat } from '../base/files.ts';
import { prepareThreadCall } from '../base/thread-call.ts';
import type { Condition, ConditionKind } from './condition.ts';
import { describeFailedCall, describePendingCall, FILE_TIMEOUT_MS } from './file-access.ts';

export const fileKind: ConditionKind = {
  name: 'file',
  usage: 'file:PATH',
  meaning: 'PATH exists',
  read(path) {
    if (!path.startsWith('/')) return { problem: 'an absolute path such as "/shared/done"' };
    return { value: makeCondition(path) };
  },
};

function makeCondition(path: string): Condition {
  const what = `file ${path}`;
  const findFile = prepareThreadCall(() => readStatCode(path));
  return {
    text: `file:${path}`,
    metricName: null,
    outsidePod: {
      why: "main's files are not here",
      need: `main and lastscrape must mount the same volume at ${dirname(path)}`,
    },
    async observe({ signal }) {
      const result = await findFile({ timeoutMs: FILE_TIMEOUT_MS, signal });
      if (result.kind === 'pending') return describePendingCall(what, result.why, signal.aborted);
      switch (result.value) {
        case null:
          return { kind: 'done', seen: `${what} exists`, provesWasAlive: true };
        case 'ENOENT':
          return { kind: 'alive', seen: `${what} not there` };
        default:
          return describeFailedCall(what, result.value);
      }
    },
  };
}

/** null where the file exists, else the code of the error. */
async function readStatCode(path: string): Promise<string | null> {
  try {
    await stat(path);
    return null;
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}
