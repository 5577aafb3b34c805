// `tombstone:PATH`: main is done when the tombstone that kubexit keeps of it says so. Its rules (kubexit's README and
// pkg/tombstone): `Born` is written just after main started, `Died` and `ExitCode` when it ended; a restart writes the file
// anew with `Born` alone. The file is truncated and then written, so a reader may see it empty.

import { basename, dirname } from 'node:path';
import { readFile, stat } from '../base/files.ts';
import { prepareThreadCall } from '../base/thread-call.ts';
import type { ConditionObservation } from '../decide/model.ts';
import type { Condition, ConditionKind } from './condition.ts';
import { describeFailedCall, describePendingCall, FILE_TIMEOUT_MS } from './file-access.ts';

/** A tombstone is three lines; a longer file is none, and 60 KB of YAML took the parser 1.6 s (measured, yaml 2.9.1). */
export const TOMBSTONE_MAX_BYTES = 4 * 1024;

export const tombstoneKind: ConditionKind = {
  name: 'tombstone',
  usage: 'tombstone:PATH',
  meaning: 'the kubexit tombstone PATH has a `Died`',
  read(path) {
    if (!path.startsWith('/')) return { problem: 'an absolute path such as "/graveyard/main"' };
    return { value: makeCondition(path) };
  },
};

function makeCondition(path: string): Condition {
  const what = `tombstone ${path}`;
  const readTombstone = prepareThreadCall(() => readFileText(path));
  return {
    text: `tombstone:${path}`,
    metricName: null,
    outsidePod: {
      why: 'the graveyard of kubexit is not here',
      need: `main and lastscrape must mount the same volume at ${dirname(path)}`,
    },
    async observe({ signal }) {
      const result = await readTombstone({ timeoutMs: FILE_TIMEOUT_MS, signal });
      if (result.kind === 'pending') return describePendingCall(what, result.why, signal.aborted);
      const file = result.value;
      if ('text' in file) return readObservation(path, file.text);
      if ('why' in file) return { kind: 'unknown', why: `${what} unknown: ${file.why}` };
      if (file.code === 'ENOENT') return { kind: 'notStarted', why: `${what} not there yet` };
      return describeFailedCall(what, file.code);
    },
  };
}

/** The text, why it is no tombstone's, or the code of the error. */
type FileText = { readonly text: string } | { readonly why: string } | { readonly code: string };

async function readFileText(path: string): Promise<FileText> {
  try {
    const stats = await stat(path);
    if (!stats.isFile()) return { why: 'it is no regular file' };
    if (stats.size > TOMBSTONE_MAX_BYTES) return { why: `it has more than ${TOMBSTONE_MAX_BYTES} bytes` };
    return { text: await readFile(path, 'utf8') };
  } catch (error) {
    return { code: String((error as NodeJS.ErrnoException).code) };
  }
}

async function readObservation(path: string, text: string): Promise<ConditionObservation> {
  const unknown = (why: string) => ({ kind: 'unknown', why: `tombstone ${path} unknown: ${why}` }) as const;
  const fields = await parseFields(text);
  if (fields === null) return unknown('it cannot be read (half written?)');
  const died = findField(fields, 'Died');
  const wasBorn = hasValue(findField(fields, 'Born'));
  if (hasValue(died)) {
    const exitCode = findField(fields, 'ExitCode');
    const isKnown = wasBorn && typeof exitCode === 'number';
    const exit = isKnown ? `, exit code ${exitCode}` : '';
    // kubexit gives up before the start when what main waits for is not there in time: `Died` without `Born`.
    return {
      kind: 'done',
      seen: `tombstone ${path} ${wasBorn ? `died${exit}` : 'died, and was never born'}`,
      provesWasAlive: wasBorn,
      provesNeverRan: !wasBorn,
      // A tombstone has the name that its container has in kubexit's chain.
      ...(isKnown ? { exitCodes: { [basename(path)]: exitCode } } : {}),
    };
  }
  return wasBorn ? { kind: 'alive', seen: `tombstone ${path} born` } : unknown('it has neither Born nor Died');
}

/** The fields of a YAML mapping, or of a JSON object, which is one; null for anything else. */
async function parseFields(text: string): Promise<ReadonlyMap<unknown, unknown> | null> {
  const { parse } = await import('yaml');
  try {
    const value: unknown = parse(text, { mapAsMap: true, logLevel: 'error' });
    return value instanceof Map ? value : null;
  } catch {
    return null;
  }
}

/** The field by its name, else by its name in any case, as Go decodes it (encoding/json, "Unmarshal"). */
function findField(fields: ReadonlyMap<unknown, unknown>, name: string): unknown {
  if (fields.has(name)) return fields.get(name);
  const key = [...fields.keys()].find((each) => typeof each === 'string' && each.toLowerCase() === name.toLowerCase());
  return key === undefined ? undefined : fields.get(key);
}

function hasValue(value: unknown): boolean {
  return value !== undefined && value !== null;
}
