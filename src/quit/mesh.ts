// A mesh's proxy that was not listed: found by the port that it answers on.

import { dial } from '../base/net/dial.ts';
import type { LogEntry } from '../decide/messages.ts';
import type { Preset } from './programs.ts';
import type { Target } from './target.ts';

/** Loopback accepts or refuses within a millisecond; what does neither is not worth a wait at the end. */
const FIND_TIMEOUT_MS = 200;

/**
 * A warning for each mesh proxy that answers on loopback after the last quit. Searches only where
 * targets were listed, and no mesh proxy among them. Connects, sends no byte; never rejects.
 */
export async function findForgottenMesh(
  targets: readonly Target[],
  presets: readonly Preset[],
): Promise<readonly LogEntry[]> {
  if (targets.length === 0 || targets.some(({ isMesh }) => isMesh === true)) return [];
  const entries = presets.map(async ({ name, foundBy }): Promise<LogEntry[]> => {
    if (foundBy === undefined) return [];
    const result = await dial('localhost', foundBy, { timeoutMs: FIND_TIMEOUT_MS });
    if (result.kind !== 'open') return [];
    result.socket.destroy();
    const add = `${name}, as the last entry of LASTSCRAPE_QUIT`;
    return [{ id: 'meshForgotten', fields: { port: foundBy, add } }];
  });
  return (await Promise.all(entries)).flat();
}
