// `file:PATH`: main is done when PATH exists. Either proves that main was alive: it makes the file at its
// end, and an emptyDir is empty when a pod starts. And what `tombstone:` shares with it.

import { dirname } from 'node:path';
import { stat } from '../base/files.ts';
import { prepareThreadCall } from '../base/thread-call.ts';
import type { ConditionObservation } from '../decide/model.ts';
import type { Condition, ConditionKind } from './condition-kind.ts';

export const fileKind: ConditionKind = {
  name: 'file',
  usage: 'file:PATH',
  meaning: 'PATH exists',
  read(path) {
    if (!path.startsWith('/')) return { problem: 'an absolute path such as "/shared/done"' };
    if (path.endsWith('/')) return { problem: 'the path of a file such as "/shared/done", without a slash at its end' };
    return {
      value: makeFileCondition({
        kind: 'file',
        path,
        read: stat,
        show: (what) => ({ kind: 'done', seen: `${what} exists`, provesWasAlive: true }),
        showMissing: (what) => ({ kind: 'alive', seen: `${what} not there` }),
      }),
    };
  },
};

/** A file system that hangs must not hold up the other conditions. */
export const FILE_TIMEOUT_MS = 1_000;

/** Mistakes in the path (errno(3)), which waiting does not mend. */
const BAD_PATHS = ['ELOOP', 'ENOTDIR', 'ENAMETOOLONG'];

/** What a kind of file condition adds. */
type FileParts<Found> = {
  readonly kind: 'file' | 'tombstone';
  readonly path: string;
  /** Rejects with the system's code, such as ENOENT. */
  readonly read: (path: string) => Promise<Found>;
  /** `what` is the condition with its path. */
  readonly show: (what: string, found: Found) => ConditionObservation | Promise<ConditionObservation>;
  readonly showMissing: (what: string) => ConditionObservation;
};

export function makeFileCondition<Found>({ kind, path, ...parts }: FileParts<Found>): Condition {
  const what = `${kind} ${path}`;
  const read = prepareThreadCall(() =>
    parts.read(path).then(
      (found) => ({ found }),
      (error: NodeJS.ErrnoException) => ({ code: String(error.code) }),
    ),
  );
  return {
    text: `${kind}:${path}`,
    metricName: null,
    need: `main and lastscrape must mount the same volume at ${dirname(path)}`,
    async observe({ signal }) {
      const result = await read({ timeoutMs: FILE_TIMEOUT_MS, signal });
      if (result.kind === 'pending') {
        const problem = `${what} cannot be seen: its file system does not answer; is the server of its volume there?`;
        // A wait that was ended says nothing of the file system.
        return { kind: 'blind', why: `${what} unknown: ${result.why}`, ...(!signal.aborted && { problem }) };
      }
      if ('found' in result.value) return parts.show(what, result.value.found);
      const { code } = result.value;
      return code === 'ENOENT' ? parts.showMissing(what) : describeFailure(what, code);
    },
  };
}

function describeFailure(what: string, code: string): ConditionObservation {
  const why = `${what} unknown: ${code}`;
  if (BAD_PATHS.includes(code)) return { kind: 'unknown', why };
  const advice =
    code === 'EACCES' || code === 'EPERM'
      ? "its folders must be open to lastscrape's UID: the runAsUser of main, or fsGroup for the volume"
      : 'is its volume still mounted, and the server of it there?';
  return { kind: 'blind', why, problem: `${what} cannot be seen (${code}); ${advice}` };
}
