// Whether a body is an exposition in the text format, whole and without a line that Prometheus would refuse it for.
// Judges, and changes nothing. Pure; holds one line at most.

import { openLineCutter } from './line-cutter.ts';

/** A longer line is none of an exposition. */
export const READABLE_LINE_MAX_BYTES = 1024 * 1024;
/** So much of a line stands in `why`. */
const EXCERPT_LENGTH = 60;

export type Readability = { readonly isReadable: true } | { readonly isReadable: false; readonly why: string };

export type ReadableCheck = {
  /** Takes the next piece of the body, of any size. */
  readonly write: (chunk: Uint8Array) => void;
  /** The body has ended: what follows the last line feed is a whole line. */
  readonly end: () => Readability;
};

// Nothing here may match a text in two ways, lest a long line take for ever.
const BLANKS = '[ \\t]*';
const NAME = '[a-zA-Z_:][\\w:]*';
const QUOTED = String.raw`"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"`;
// Quotes round the name of a label, or in the braces round that of the metric: UTF-8 names (Prometheus documentation, "Exposition
// formats"), which a program may write in spite of what it was asked for.
const LABEL = `(?:[a-zA-Z_]\\w*|${QUOTED})${BLANKS}=${BLANKS}${QUOTED}${BLANKS}`;
const LABELS = `\\{${BLANKS}(?:${LABEL}(?:,${BLANKS}${LABEL})*(?:,${BLANKS})?)?\\}`;
const NAME_AND_LABELS = `\\{${BLANKS}${QUOTED}${BLANKS}(?:,${BLANKS}${LABEL})*(?:,${BLANKS})?\\}`;
// As Go's strconv.ParseFloat reads it, but for `p` and `_`, and with them hexadecimal numbers: Prometheus refuses those
// (parseFloat in model/textparse of prometheus/prometheus and in expfmt of prometheus/common: "unsupported character in float").
const INFINITE = '[iI][nN][fF](?:[iI][nN][iI][tT][yY])?';
const VALUE = `(?:[nN][aA][nN]|[+-]?(?:${INFINITE}|(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][+-]?\\d+)?))`;
const START = `(?:${NAME}(?:${BLANKS}${LABELS}${BLANKS}|[ \\t]+)|${NAME_AND_LABELS}${BLANKS})`;
const SAMPLE = `${START}${VALUE}(?:[ \\t]+-?\\d+)?${BLANKS}\\r?\\n`;
const LINES = new RegExp(`(?:${BLANKS}(?:#[^\\n]*\\n|${SAMPLE}|\\r?\\n))*`, 'y');
/** In lines of which each is blank, a comment or a sample: a sample. */
const ANY_SAMPLE = /(?:^|\n)[ \t]*[^#\s]/;

/** Opens the check of one body. */
export function openReadableCheck(): ReadableCheck {
  let hasSample = false;
  let why: string | null = null;

  function judge(text: string): void {
    LINES.lastIndex = 0;
    LINES.test(text);
    if (LINES.lastIndex !== text.length) {
      why = `neither a sample nor a comment: ${quoteLine(text, LINES.lastIndex)}`;
    } else if (!hasSample) {
      hasSample = ANY_SAMPLE.test(text);
    }
  }
  const cutter = openLineCutter((lines) => {
    if (why !== null) return;
    if (lines.indexOf(0x0a) > READABLE_LINE_MAX_BYTES) why = TOO_LONG;
    else judge(lines.toString('latin1'));
  });

  return {
    write(chunk) {
      if (why !== null) return;
      cutter.write(chunk);
      if (cutter.pendingBytes > READABLE_LINE_MAX_BYTES) why = TOO_LONG;
    },
    end() {
      if (why === null && cutter.pendingBytes > 0) judge(`${cutter.takePending().toString('latin1')}\n`);
      if (why !== null) return { isReadable: false, why };
      return hasSample ? { isReadable: true } : { isReadable: false, why: 'no sample' };
    },
  };
}

const TOO_LONG = `a line of more than ${READABLE_LINE_MAX_BYTES} bytes`;

function quoteLine(text: string, from: number): string {
  const line = text.slice(from, text.indexOf('\n', from));
  const start = Buffer.from(line.slice(0, EXCERPT_LENGTH), 'latin1').toString();
  return JSON.stringify(line.length > EXCERPT_LENGTH ? `${start}…` : start);
}
