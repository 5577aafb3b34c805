// What is odd about the targets as a whole: their order, their time, a condition that waits for them. Warns only: what stands in
// the list is done as it stands there.

import type { LogEntry } from '../decide/messages.ts';

/** The properties of a target that lead to a warning. */
export type TargetTraits = {
  readonly name: string;
  /** How long it may take to go. Default: 0. */
  readonly needsMs?: number;
  /** It is a mesh's proxy, which carries scrapes and reports. Default: false. */
  readonly isMesh?: boolean;
};

/** The rest of the configuration that leads to a warning. */
export type TargetsContext = {
  readonly quitTimeoutMs: number;
  /** A condition waits for every other container, those of the targets included. */
  readonly waitsForAll: boolean;
};

/** Warnings about targets in the order given: one that is waited for, a mesh's proxy that is not the last, a QUIT_TIMEOUT that is too short. */
export function listTargetWarnings(
  targets: readonly TargetTraits[],
  { quitTimeoutMs, waitsForAll }: TargetsContext,
): readonly LogEntry[] {
  const waiting: LogEntry = {
    id: 'waitsForTargets',
    fields: { targets: targets.map(({ name }) => name).join(',') },
  };
  const each = targets.flatMap(({ name, isMesh = false, needsMs = 0 }, index): LogEntry[] => {
    const later = targets.slice(index + 1).filter((target) => target.isMesh !== true);
    const entries: LogEntry[] = [];
    if (isMesh && later.length > 0) {
      const fields = { target: name, before: later.map((target) => target.name).join(',') };
      entries.push({
        id: 'meshNotLast',
        fields,
      });
    }
    if (needsMs > 0 && quitTimeoutMs <= needsMs) {
      const fields = { target: name, needsSeconds: needsMs / 1000, quitTimeoutSeconds: quitTimeoutMs / 1000 };
      entries.push({
        id: 'quitTimeoutShort',
        fields,
      });
    }
    return entries;
  });
  return waitsForAll && targets.length > 0 ? [waiting, ...each] : each;
}
