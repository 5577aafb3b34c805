// `file:PATH`: main is done when PATH exists. A missing file proves that main is alive, and one that exists
// that it was: main makes it at its end, and an emptyDir is empty when a pod starts.

import { stat } from '../base/files.ts';
import type { ConditionKind } from './condition.ts';
import { makeFileCondition } from './file-condition.ts';

export const fileKind: ConditionKind = {
  name: 'file',
  usage: 'file:PATH',
  meaning: 'PATH exists',
  read(path) {
    if (!path.startsWith('/')) return { problem: 'an absolute path such as "/shared/done"' };
    return {
      value: makeFileCondition({
        kind: 'file',
        path,
        outsideWhy: "main's files are not here",
        read: stat,
        show: (what) => ({ kind: 'done', seen: `${what} exists`, provesWasAlive: true }),
        showMissing: (what) => ({ kind: 'alive', seen: `${what} not there` }),
      }),
    };
  },
};
