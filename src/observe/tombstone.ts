// `tombstone:PATH`: main is done when its kubexit tombstone has `Died` (kubexit's README and pkg/tombstone:
// `Born` is written after the start, `Died` and `ExitCode` at the end). It is truncated first, so a reader
// may see it empty.

import { basename } from 'node:path';
import { readFile, stat } from '../base/files.ts';
import { orNull } from '../base/parse.ts';
import type { ConditionObservation } from '../decide/model.ts';
import type { ConditionKind } from './condition-kind.ts';
import { makeFileCondition } from './file.ts';

/** Larger files are rejected: 60 KB of YAML took the parser 1.6 s (measured, yaml 2.9.1). */
export const TOMBSTONE_MAX_BYTES = 4 * 1024;

export const tombstoneKind: ConditionKind = {
  name: 'tombstone',
  usage: 'tombstone:PATH',
  meaning: 'the kubexit tombstone PATH has a `Died`',
  read(path) {
    if (!path.startsWith('/')) return { problem: 'an absolute path such as "/graveyard/main"' };
    return {
      value: makeFileCondition({
        kind: 'tombstone',
        path,
        read: readTombstone,
        show: (what, file) =>
          'text' in file ? readObservation(path, file.text) : { kind: 'unknown', why: `${what} unknown: ${file.why}` },
        showMissing: (what) => ({ kind: 'notStarted', why: `${what} not there yet` }),
      }),
    };
  },
};

/** The text, or why it is not read. @throws with the system's code */
async function readTombstone(path: string): Promise<{ readonly text: string } | { readonly why: string }> {
  const stats = await stat(path);
  if (!stats.isFile()) return { why: 'it is no regular file' };
  if (stats.size > TOMBSTONE_MAX_BYTES) return { why: `it has more than ${TOMBSTONE_MAX_BYTES} bytes` };
  return { text: await readFile(path, 'utf8') };
}

async function readObservation(path: string, text: string): Promise<ConditionObservation> {
  const unknown = (why: string) => ({ kind: 'unknown', why: `tombstone ${path} unknown: ${why}` }) as const;
  const fields = await parseFields(text);
  if (fields === null) return unknown('it cannot be read (half written?)');
  const died = findField(fields, 'Died');
  const wasBorn = findField(fields, 'Born') != null;
  if (died != null) {
    const exitCode = findField(fields, 'ExitCode');
    const isKnown = wasBorn && typeof exitCode === 'number';
    const exit = isKnown ? `, exit code ${exitCode}` : '';
    // `Died` without `Born`: a dependency of main did not come in time.
    return {
      kind: 'done',
      seen: `tombstone ${path} ${wasBorn ? `died${exit}` : 'died, and was never born'}`,
      provesWasAlive: wasBorn,
      provesNeverRan: !wasBorn,
      // The file is named as the container is in kubexit's chain.
      ...(isKnown ? { exitCodes: { [basename(path)]: exitCode } } : {}),
    };
  }
  return wasBorn ? { kind: 'alive', seen: `tombstone ${path} born` } : unknown('it has neither Born nor Died');
}

/** The fields of a YAML mapping (JSON objects included); null for anything else. */
async function parseFields(text: string): Promise<ReadonlyMap<unknown, unknown> | null> {
  const { parse } = await import('yaml');
  const value: unknown = orNull(() => parse(text, { mapAsMap: true, logLevel: 'error' }));
  return value instanceof Map ? value : null;
}

/** The field by its name, else by its name in any case, as Go decodes it (encoding/json, "Unmarshal"). */
function findField(fields: ReadonlyMap<unknown, unknown>, name: string): unknown {
  if (fields.has(name)) return fields.get(name);
  const key = [...fields.keys()].find((each) => typeof each === 'string' && each.toLowerCase() === name.toLowerCase());
  return key === undefined ? undefined : fields.get(key);
}
