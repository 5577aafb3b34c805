// Checks that a body is a whole exposition, without a line or message for which Prometheus would refuse all
// of it. Changes nothing. Pure; holds one line at most.

import type { Format } from './format.ts';
import { findUnreadableLine } from './lexer.ts';
import { type BodyReader, openLineCutter } from './line-cutter.ts';
import { openMessageCheck } from './protobuf-messages.ts';

/** The longest line of an exposition. */
export const READABLE_LINE_MAX_BYTES = 1024 * 1024;
/** How much of an unreadable line `why` quotes. */
const EXCERPT_LENGTH = 60;

/** Its end returns why the body is not readable, or null. */
export type ReadableCheck = BodyReader<unknown, string | null>;

/** Finds a sample among lines that are blank, comments or samples. */
const ANY_SAMPLE = /(?:^|\n)[ \t]*[^#\s]/;

/** The last line of OpenMetrics, whose line feed may be missing, and what follows it. */
const END_AND_REST = /^# EOF(?:$|\n(.*))/s;

/** Opens the check of one body. `isQuoted`: `why` may quote a line. `wantsSample`: text must have one. */
export function openReadableCheck(
  format: Format = 'text',
  { isQuoted = true, wantsSample = true } = {},
): ReadableCheck {
  if (format === 'protobuf') return openMessageCheck();
  let hasSample = !wantsSample;
  let hasEnd = format === 'text';
  let why: string | null = null;
  const cutter = openLineCutter({
    lineMaxBytes: READABLE_LINE_MAX_BYTES,
    onLines(lines) {
      if (why !== null) return;
      const text = lines.toString('latin1');
      const at = findUnreadableLine(text, format);
      hasSample ||= ANY_SAMPLE.test(text.slice(0, at));
      if (format === 'openMetrics') {
        const end = END_AND_REST.exec(text.slice(at));
        if (hasEnd || end?.[1]) why = 'text after "# EOF"';
        hasEnd ||= end !== null;
        if (hasEnd) return;
      }
      if (at < text.length) why ??= `neither a sample nor a comment${isQuoted ? `: ${quoteLine(text, at)}` : ''}`;
    },
    onLongLine() {
      why ??= `a line of more than ${READABLE_LINE_MAX_BYTES} bytes`;
    },
  });

  return {
    write(chunk) {
      if (why === null) cutter.write(chunk);
    },
    end() {
      cutter.end();
      if (!hasEnd) why ??= 'no "# EOF" at its end';
      if (!hasSample) why ??= 'no sample';
      return why;
    },
  };
}

function quoteLine(text: string, from: number): string {
  const [line = ''] = text.slice(from).split('\n', 1);
  const start = Buffer.from(line.slice(0, EXCERPT_LENGTH), 'latin1').toString();
  return JSON.stringify(line.length > EXCERPT_LENGTH ? `${start}…` : start);
}
