// What conditions on files share: how long they wait for a file system, and what they show where a file cannot be seen.

import type { ConditionObservation } from '../decide/model.ts';

/** A file system that works answers in milliseconds; one that hangs must not hold up the other conditions. */
export const FILE_TIMEOUT_MS = 1_000;

/** The path cannot be a file's, whoever asks (errno(3)): a mistake in it, which waiting does not mend. */
const BAD_PATHS = ['ELOOP', 'ENOTDIR', 'ENAMETOOLONG'];

/** What a condition shows whose file cannot be seen; `what` is it with its path, `code` of an error, but not ENOENT. */
export function describeFailedCall(what: string, code: string): ConditionObservation {
  const why = `${what} unknown: ${code}`;
  if (BAD_PATHS.includes(code)) return { kind: 'unknown', why };
  const advice =
    code === 'EACCES' || code === 'EPERM'
      ? "its folders must be open to lastscrape's UID: the runAsUser of main, or fsGroup for the volume"
      : 'is its volume still mounted, and the server of it there?';
  return { kind: 'blind', why, problem: `${what} cannot be seen (${code}); ${advice}` };
}

/** What a condition shows whose file system has not answered; `isAborted`: nobody waits any more, which says nothing of it. */
export function describePendingCall(what: string, why: string, isAborted: boolean): ConditionObservation {
  const problem = `${what} cannot be seen: its file system does not answer; is the server of its volume there?`;
  return { kind: 'blind', why: `${what} unknown: ${why}`, ...(isAborted ? {} : { problem }) };
}
