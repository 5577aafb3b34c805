// Checks that a body is an exposition in the text format, without a line for which Prometheus would refuse
// all of it. Changes nothing. Pure; holds one line at most.

import { findUnreadableLine } from './lexer.ts';
import { type BodyReader, openLineCutter } from './line-cutter.ts';

/** The longest line of an exposition. */
export const READABLE_LINE_MAX_BYTES = 1024 * 1024;
/** How much of an unreadable line `why` quotes. */
const EXCERPT_LENGTH = 60;

export type Readability = { readonly isReadable: true } | { readonly isReadable: false; readonly why: string };

export type ReadableCheck = BodyReader<void, Readability>;

/** Finds a sample among lines that are blank, comments or samples. */
const ANY_SAMPLE = /(?:^|\n)[ \t]*[^#\s]/;

/** Opens the check of one body. */
export function openReadableCheck(): ReadableCheck {
  let hasSample = false;
  let why: string | null = null;
  const cutter = openLineCutter({
    lineMaxBytes: READABLE_LINE_MAX_BYTES,
    onLines(lines) {
      if (why !== null) return;
      const text = lines.toString('latin1');
      const at = findUnreadableLine(text);
      if (at < text.length) why = `neither a sample nor a comment: ${quoteLine(text, at)}`;
      else hasSample ||= ANY_SAMPLE.test(text);
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
      if (why === null && !hasSample) why = 'no sample';
      return why === null ? { isReadable: true } : { isReadable: false, why };
    },
  };
}

function quoteLine(text: string, from: number): string {
  const [line = ''] = text.slice(from).split('\n', 1);
  const start = Buffer.from(line.slice(0, EXCERPT_LENGTH), 'latin1').toString();
  return JSON.stringify(line.length > EXCERPT_LENGTH ? `${start}…` : start);
}
