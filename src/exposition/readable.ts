// Checks that a body is an exposition that Prometheus takes whole: for one line or message that it refuses,
// it drops the entire scrape. Changes nothing. Pure; holds one line at most. The rules are those of the
// newest Prometheus, which test/exposition/prometheus-judge.test.ts asks (docs/front.md names differences).

import { decodeUtf8 } from '../base/text.ts';
import type { Format, TextFormat } from './format.ts';
import { type BodyReader, openLineCutter } from './line-cutter.ts';
import { openMessageCheck, type WantedMetric } from './protobuf-messages.ts';
import { findStop } from './readable-lines.ts';

/**
 * The longest line of an exposition. Prometheus has no bound; holding more would cost the container's memory.
 */
export const READABLE_LINE_MAX_BYTES = 1024 * 1024;
/** How much of an unreadable line `why` quotes. */
const EXCERPT_LENGTH = 60;

const AFTER_END = 'text after "# EOF"';

/**
 * Its end returns why the body is not readable, or null. An empty body is readable, as one without samples
 * is.
 */
export type ReadableCheck = BodyReader<unknown, string | null>;

/** Opens the check of one body. `isQuoted`: `why` may quote a line. `wanted`: of protobuf. */
export function openReadableCheck(
  format: Format = 'text',
  { isQuoted = true, wanted }: { readonly isQuoted?: boolean; readonly wanted?: WantedMetric } = {},
): ReadableCheck {
  if (format === 'protobuf') return openMessageCheck(wanted);
  let isEmpty = true;
  let hasEnd = false;
  let why: string | null = null;

  /** Returns how many of the last bytes are the beginning of a line. */
  function readLines(lines: Buffer, isLast: boolean): number {
    isEmpty = false;
    if (why !== null) return 0;
    if (hasEnd) {
      if (format === 'openMetrics') why = AFTER_END;
      return 0;
    }
    const decoded = decodeUtf8(lines);
    const text = decoded ?? lines.toString('latin1');
    const { kind, at } = findStop(text, format as TextFormat, { isUtf8: decoded !== null, isLast });
    if (kind === 'begun') return decoded === null ? text.length - at : Buffer.byteLength(text.slice(at));
    hasEnd = kind === 'end';
    if (hasEnd && format === 'openMetrics' && at < text.length) why = AFTER_END;
    if (kind === 'refused') why = `a line that Prometheus refuses${isQuoted ? `: ${quoteLine(text, at)}` : ''}`;
    return 0;
  }
  const cutter = openLineCutter({
    lineMaxBytes: READABLE_LINE_MAX_BYTES,
    onLines: readLines,
    onLongLine() {
      if (!hasEnd || format === 'openMetrics') why ??= `a line of more than ${READABLE_LINE_MAX_BYTES} bytes`;
    },
  });

  return {
    write(chunk) {
      if (why === null) cutter.write(chunk);
    },
    end() {
      cutter.end();
      if (format === 'openMetrics' && !hasEnd && !isEmpty) why ??= 'no "# EOF" at its end';
      return why;
    },
  };
}

function quoteLine(text: string, from: number): string {
  const [line = ''] = text.slice(from, from + READABLE_LINE_MAX_BYTES).split('\n', 1);
  return JSON.stringify(line.length > EXCERPT_LENGTH ? `${line.slice(0, EXCERPT_LENGTH)}…` : line);
}
