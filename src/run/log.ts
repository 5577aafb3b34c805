// The log: one JSON object a line. Bounded, so that a pipe without a reader (64 KiB) never blocks the run.

import { cut, formatJson } from '../base/text.ts';
import { type LogEntry, type LogLevel, MESSAGES, type MessageId } from '../decide/messages.ts';

/** All lines of a run at `info` and above, the report not among them. */
export const LOG_MAX_BYTES = 28 * 1024;
/** All `debug` lines of a run. */
export const DEBUG_MAX_BYTES = 24 * 1024;
/** Beyond this, a repeated message (with its `problem`) is written at powers of two only, with its count. */
const REPEATS_WRITTEN_COUNT = 4;
const FIELD_MAX_LENGTH = 400;

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

/** Where a run writes. */
export type Log = {
  /** Writes one entry, unless the level or a bound leaves it out. */
  readonly write: (entry: LogEntry) => void;
  /** Writes the last line, at every level; the caller keeps it short. */
  readonly report: (fields: LogEntry['fields']) => void;
};

/** What a log needs. `print` takes one line with its line feed; `time`: RFC 3339, UTC. */
type LogParts = { readonly level: LogLevel; readonly print: (line: string) => void; readonly time: () => string };

/** Opens a log; writes nothing yet. */
export function openLog({ level, print, time }: LogParts): Log {
  const counts = new Map<string, number>();

  /** Writes lines until they are too many; the next is `last` instead, and no other follows. */
  function openLines(maxBytes: number, last: MessageId): (entry: LogEntry) => void {
    let sizeBytes = 0;
    return ({ id, fields }) => {
      if (sizeBytes > maxBytes) return;
      const short = Object.entries(fields).map(([name, value]) => {
        return [name, typeof value === 'string' ? cut(value, FIELD_MAX_LENGTH) : value];
      });
      const line = formatLogLine({ id, fields: Object.fromEntries(short) }, time());
      sizeBytes += Buffer.byteLength(line);
      print(sizeBytes > maxBytes ? formatLogLine({ id: last, fields: {} }, time()) : line);
    };
  }
  const writeLine = openLines(LOG_MAX_BYTES, 'logFull');
  const writeDebug = openLines(DEBUG_MAX_BYTES, 'debugFull');
  function writeUnlessRepeated({ id, fields }: LogEntry): void {
    const key = `${id} ${fields['problem'] ?? ''}`;
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    const isPowerOfTwo = (count & (count - 1)) === 0;
    if (count <= REPEATS_WRITTEN_COUNT) writeLine({ id, fields });
    else if (isPowerOfTwo) writeLine({ id, fields: { ...fields, times: count } });
  }

  return {
    write(entry) {
      const { level: ownLevel } = MESSAGES[entry.id];
      if (LEVELS.indexOf(ownLevel) < LEVELS.indexOf(level)) return;
      if (ownLevel === 'debug') writeDebug(entry);
      else writeUnlessRepeated(entry);
    },
    report: (fields) => print(formatLogLine({ id: 'report', fields }, time())),
  };
}

/** A line with its line feed. `time`: RFC 3339, UTC. */
export function formatLogLine({ id, fields }: LogEntry, time: string): string {
  return `${formatJson({ time, level: MESSAGES[id].level, msg: MESSAGES[id].text, ...fields })}\n`;
}
