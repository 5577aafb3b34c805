// The log: one JSON object a line. Stays so short that a pipe nobody reads (64 KiB on Linux) never blocks the run.

import { type LogEntry, type LogLevel, MESSAGES } from './decide/messages.ts';

/** All lines of a run at `info` and above, the report not among them. */
export const LOG_MAX_BYTES = 28 * 1024;
/** All `debug` lines of a run. */
export const DEBUG_MAX_BYTES = 24 * 1024;
/** A message, with its `problem` if any, that comes more often is written at every power of two only, with its count. */
const REPEATS_WRITTEN_COUNT = 4;
/** A longer text in a field is cut. */
const FIELD_MAX_LENGTH = 400;

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

export type Log = {
  readonly note: (note: LogEntry) => void;
  /** Writes the last line, at every level; whoever calls it keeps it short. */
  readonly report: (fields: Readonly<Record<string, unknown>>) => void;
};

export type LogOptions = {
  readonly level: LogLevel;
  /** Takes one line with its line feed. */
  readonly write: (line: string) => void;
  /** RFC 3339, UTC. */
  readonly time: () => string;
};

/** Opens the log of a run. */
export function openLog({ level, write, time }: LogOptions): Log {
  const counts = new Map<string, number>();
  let logBytes = 0;
  let debugBytes = 0;
  let isFull = false;
  let isDebugFull = false;

  function lineOf(note: LogEntry): string {
    const fields = Object.fromEntries(Object.entries(note.fields).map(([name, value]) => [name, cut(value)]));
    return `${JSON.stringify({ time: time(), level: MESSAGES[note.id].level, msg: MESSAGES[note.id].text, ...fields })}\n`;
  }
  function writeDebug(note: LogEntry): void {
    if (isDebugFull) return;
    const line = lineOf(note);
    debugBytes += byteLength(line);
    isDebugFull = debugBytes > DEBUG_MAX_BYTES;
    write(isDebugFull ? lineOf({ id: 'debugFull', fields: {} }) : line);
  }

  return {
    note(note) {
      const { level: ownLevel } = MESSAGES[note.id];
      if (LEVELS.indexOf(ownLevel) < LEVELS.indexOf(level)) return;
      if (ownLevel === 'debug') {
        writeDebug(note);
        return;
      }
      const what = `${note.id} ${note.fields['problem'] ?? ''}`;
      const count = (counts.get(what) ?? 0) + 1;
      counts.set(what, count);
      const isPowerOfTwo = (count & (count - 1)) === 0;
      if (isFull || (count > REPEATS_WRITTEN_COUNT && !isPowerOfTwo)) return;
      const line = lineOf(count > REPEATS_WRITTEN_COUNT ? { ...note, fields: { ...note.fields, times: count } } : note);
      logBytes += byteLength(line);
      isFull = logBytes > LOG_MAX_BYTES;
      write(isFull ? lineOf({ id: 'logFull', fields: {} }) : line);
    },
    report(fields) {
      write(
        `${JSON.stringify({ time: time(), level: MESSAGES.report.level, msg: MESSAGES.report.text, ...fields })}\n`,
      );
    },
  };
}

function cut(value: unknown): unknown {
  if (typeof value !== 'string' || value.length <= FIELD_MAX_LENGTH) return value;
  return `${value.slice(0, FIELD_MAX_LENGTH - 1)}…`;
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).byteLength;
}
