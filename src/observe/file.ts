// `file:PATH`: main is done when PATH exists. A missing file proves that main is alive, and one that exists that it was:
// main makes it at its end. An emptyDir is empty when a pod starts.

import { stat } from '../files.ts';
import type { ConditionKind } from './condition.ts';

export const fileKind: ConditionKind = {
  name: 'file',
  usage: 'file:PATH',
  meaning: 'PATH exists',
  read(path) {
    if (!path.startsWith('/')) return { problem: 'an absolute path such as "/shared/done"' };
    return {
      value: {
        text: `file:${path}`,
        metricName: null,
        async observe() {
          try {
            await stat(path);
            return { kind: 'done', seen: `file ${path} exists`, provesWasAlive: true };
          } catch (error) {
            const { code } = error as NodeJS.ErrnoException;
            if (code === 'ENOENT') return { kind: 'alive', seen: `file ${path} not there` };
            return { kind: 'unknown', why: `file ${path} unknown: ${code}` };
          }
        },
      },
    };
  },
};
