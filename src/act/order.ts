// What is odd about the targets as a whole: their order, their time, a mesh's proxy that is not among them.
// Looks only; what stands in the list is done as it stands there.

import { type LogEntry, MESSAGES } from '../decide/messages.ts';
import { dial } from '../net/dial.ts';
import type { Preset } from './presets.ts';
import type { Target } from './target.ts';

/** Loopback accepts or refuses in less than a millisecond; what does neither is not worth a wait at the end of a run. */
const FIND_TIMEOUT_MS = 200;

/** What the targets are to be seen beside. */
export type TargetsContext = {
  readonly quitTimeoutMs: number;
  /** A condition waits for every other container, those of the targets too. */
  readonly waitsForAll: boolean;
};

/** Warnings about targets in the order given: one that is waited for, a mesh's proxy that is not the last, a QUIT_TIMEOUT that is too short. */
export function listTargetWarnings(
  targets: readonly Target[],
  { quitTimeoutMs, waitsForAll }: TargetsContext,
): readonly LogEntry[] {
  const waiting: LogEntry = {
    id: 'waitsForTargets',
    fields: { targets: targets.map(({ name }) => name).join(',') },
  };
  const each = targets.flatMap(({ name, isMesh = false, needsMs = 0 }, index): LogEntry[] => {
    const later = targets.slice(index + 1).filter((target) => target.isMesh !== true);
    const notes: LogEntry[] = [];
    if (isMesh && later.length > 0) {
      const fields = { target: name, before: later.map((target) => target.name).join(',') };
      notes.push({
        id: 'meshNotLast',
        fields,
      });
    }
    if (needsMs > 0 && quitTimeoutMs <= needsMs) {
      const fields = { target: name, needsSeconds: needsMs / 1000, quitTimeoutSeconds: quitTimeoutMs / 1000 };
      notes.push({
        id: 'quitTimeoutShort',
        fields,
      });
    }
    return notes;
  });
  return waitsForAll && targets.length > 0 ? [waiting, ...each] : each;
}

/** A warning as a line for a person. */
export function formatWarning({ id, fields }: LogEntry): string {
  const said = Object.entries(fields).map(([name, value]) => `${name} ${value}`);
  return `${MESSAGES[id].text} (${said.join(', ')})`;
}

/**
 * A warning for each mesh proxy that answers on loopback after the last quit, although no mesh proxy was listed; nothing is
 * looked for where one was, or where nothing was to be stopped. Connects, sends no byte; never rejects.
 */
export async function findForgottenMesh(
  targets: readonly Target[],
  presets: readonly Preset[],
): Promise<readonly LogEntry[]> {
  if (targets.length === 0 || targets.some(({ isMesh }) => isMesh === true)) return [];
  const notes = presets.map(async ({ name, foundBy }): Promise<LogEntry[]> => {
    if (foundBy === null) return [];
    const dialled = await dial('localhost', foundBy, { timeoutMs: FIND_TIMEOUT_MS });
    if (dialled.kind !== 'open') return [];
    dialled.socket.destroy();
    const fields = { port: foundBy, add: `${name}, as the last entry of LASTSCRAPE_QUIT` };
    return [
      {
        id: 'meshForgotten',
        fields,
      },
    ];
  });
  return (await Promise.all(notes)).flat();
}
