// The log: one JSON object a line. Bounded, so that a pipe without a reader (64 KiB) never blocks the run.

import { cut } from '../base/text.ts';
import { type LogEntry, type LogLevel, MESSAGES } from '../decide/messages.ts';

/** All lines of a run at `info` and above, the report not among them. */
export const LOG_MAX_BYTES = 28 * 1024;
/** All `debug` lines of a run. */
export const DEBUG_MAX_BYTES = 24 * 1024;
/** Beyond this, a repeated message (with its `problem`) is written at powers of two only, with its count. */
const REPEATS_WRITTEN_COUNT = 4;
const FIELD_MAX_LENGTH = 400;

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

export type Log = {
  /** Writes one entry, unless the level or a bound leaves it out. */
  readonly write: (entry: LogEntry) => void;
  /** Writes the last line, at every level; the caller keeps it short. */
  readonly report: (fields: Readonly<Record<string, unknown>>) => void;
};

/** What a log needs. `print` takes one line with its line feed; `time`: RFC 3339, UTC. */
type LogParts = { readonly level: LogLevel; readonly print: (line: string) => void; readonly time: () => string };

export function openLog({ level, print, time }: LogParts): Log {
  const counts = new Map<string, number>();
  let logBytes = 0;
  let debugBytes = 0;
  let isFull = false;
  let isDebugFull = false;

  function formatLine({ id, fields }: LogEntry): string {
    const shortened = Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [
        name,
        typeof value === 'string' ? cut(value, FIELD_MAX_LENGTH) : value,
      ]),
    );
    return `${JSON.stringify({ time: time(), level: MESSAGES[id].level, msg: MESSAGES[id].text, ...shortened })}\n`;
  }
  function writeDebug(entry: LogEntry): void {
    if (isDebugFull) return;
    const line = formatLine(entry);
    debugBytes += Buffer.byteLength(line);
    isDebugFull = debugBytes > DEBUG_MAX_BYTES;
    print(isDebugFull ? formatLine({ id: 'debugFull', fields: {} }) : line);
  }

  return {
    write({ id, fields }) {
      const { level: ownLevel } = MESSAGES[id];
      if (LEVELS.indexOf(ownLevel) < LEVELS.indexOf(level)) return;
      if (ownLevel === 'debug') {
        writeDebug({ id, fields });
        return;
      }
      const key = `${id} ${fields['problem'] ?? ''}`;
      const count = (counts.get(key) ?? 0) + 1;
      counts.set(key, count);
      const isPowerOfTwo = (count & (count - 1)) === 0;
      if (isFull || (count > REPEATS_WRITTEN_COUNT && !isPowerOfTwo)) return;
      const line = formatLine({ id, fields: count > REPEATS_WRITTEN_COUNT ? { ...fields, times: count } : fields });
      logBytes += Buffer.byteLength(line);
      isFull = logBytes > LOG_MAX_BYTES;
      print(isFull ? formatLine({ id: 'logFull', fields: {} }) : line);
    },
    report(fields) {
      const { level: ownLevel, text } = MESSAGES.report;
      print(`${JSON.stringify({ time: time(), level: ownLevel, msg: text, ...fields })}\n`);
    },
  };
}
