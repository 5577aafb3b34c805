// Checks that a body is an exposition that Prometheus takes whole: for one line or message that it refuses,
// it drops the entire scrape. Changes nothing. Pure; holds one line at most. The rules are those of the
// newest Prometheus, which test/exposition/prometheus-judge.test.ts asks (docs/front.md names differences):
// promlex.l, openmetricslex.l and the parsers beside them in model/textparse of prometheus/prometheus 3.16;
// "append" in its scrape/scrape.go; getOrCreate in its tsdb/head_append.go.
//
// Two grammars for each format: a fast one for lines as programs write them, many at a time, and an exact
// one for any other line, whose numbers, labels and letters are then looked at one by one.

import { decodeUtf8 } from '../base/text.ts';
import type { Format, TextFormat } from './format.ts';
import {
  BLANKS,
  DECIMAL,
  END,
  isBegun,
  isTooLarge,
  LABEL_NAME,
  type Label,
  NAME,
  QUOTED,
  QUOTED_NAME,
  readLabels,
  SERIES,
  stripQuotes,
  VALUE,
} from './lexer.ts';
import { type BodyReader, openLineCutter } from './line-cutter.ts';
import { openMessageCheck, type WantedMetric } from './protobuf-messages.ts';

/**
 * The longest line of an exposition. Prometheus has no bound; holding more would cost the container's memory.
 */
export const READABLE_LINE_MAX_BYTES = 1024 * 1024;
const EXCERPT_LENGTH = 60;

const AFTER_END = 'text after "# EOF"';

/**
 * Opens the check of one body; its end returns why that is not readable, or null. An empty one is readable,
 * as one without samples is. `isQuoted`: `why` may quote a line. `wanted`: of protobuf.
 */
export function openReadableCheck(
  format: Format = 'text',
  { isQuoted = true, wanted }: { readonly isQuoted?: boolean; readonly wanted?: WantedMetric } = {},
): BodyReader<unknown, string | null> {
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

// The fast grammar: one blank at most, no number that might be too large, no line feed between quotes.
const PLAIN_QUOTED = '"[^"\\\\\\n\\0]+"';
const PLAIN_NAME = `(?:${NAME}|${PLAIN_QUOTED})`;
const PLAIN_LABEL_NAME = `(?:(?!__name__=)${LABEL_NAME}|(?!"${LABEL_NAME}")${PLAIN_QUOTED})`;
const PLAIN_TEXT = String.raw`"[^"\\\n\0]*(?:\\[^\n\0][^"\\\n\0]*)*"`;
const PLAIN_DECIMAL = '[+-]?\\d{1,30}(?:\\.\\d*)?(?:[eE][+-]?\\d{1,2})?';
const PLAIN_VALUE = `(?:${PLAIN_DECIMAL}|[+-]?Inf|NaN)`;
const plainLabels = (comma: string) => `(?:${PLAIN_LABEL_NAME}=${PLAIN_TEXT}(?:${comma}|(?=\\})))*`;
const plainSeries = (comma: string) =>
  `(?:${NAME}(?:\\{${plainLabels(comma)}\\})?|\\{${PLAIN_QUOTED}(?:${comma}|(?=\\}))${plainLabels(comma)}\\}) ${PLAIN_VALUE}`;
const repeat = (...lines: readonly string[]) => new RegExp(`(?:${lines.join('|')})*`, 'y');
const PLAIN_LINES = {
  text: repeat(
    `${plainSeries(', ?')}(?: \\d{1,18})?\\n`,
    `# HELP ${PLAIN_NAME} [^\\n]*\\n`,
    `# TYPE ${PLAIN_NAME} (?:counter|gauge|histogram|summary|untyped)\\n`,
  ),
  openMetrics: repeat(
    `${plainSeries(',')}(?: ${PLAIN_DECIMAL})?(?: # \\{${plainLabels(',')}\\} ${PLAIN_VALUE}(?: ${PLAIN_DECIMAL})?)?\\n`,
    `# HELP ${PLAIN_NAME} [^\\n]*\\n`,
    `# TYPE ${PLAIN_NAME} (?:counter|gauge|histogram|summary|unknown)\\n`,
  ),
} as const;
/** May be a label that one sample has twice; the fast grammar does not compare their names. */
const LABEL_TWICE = new RegExp(`[{,] ?(${LABEL_NAME}|${PLAIN_QUOTED})="[^\\n]*?, ?\\1=`);
/** In characters: finding a label twice takes time that grows as the square of a line's length. */
const PLAIN_LINE_LENGTH = 2_000;

// The exact grammar. The groups of a sample's series come first, as in SERIES.
/** The name of a HELP or TYPE, and the byte behind it, which is passed over. */
const ANNOUNCED = `(?:${QUOTED}|${NAME}(?![\\w:]))(?<passed>[^\\n\\0])`;
const OM_TEXT = String.raw`"[^"\\\n]*(?:\\\0*[^\n\0][^"\\\n]*)*"`;
const OM_LABELS = `(?:(?:${LABEL_NAME}|${QUOTED})=${OM_TEXT}(?:,|(?=\\})))*`;
const EXEMPLAR_TEXT = String.raw`"[^"\\\n\0]*(?:\\[^\n\0][^"\\\n\0]*)*"`;
const EXEMPLAR_LABELS = `(?:(?:${LABEL_NAME}|${EXEMPLAR_TEXT})=${EXEMPLAR_TEXT}(?:,|(?=\\})))*`;
const OM_SERIES = `(?:(${NAME})(?= )|(?:(${NAME})\\{|\\{(${OM_LABELS})(${QUOTED_NAME})(?:,|(?=\\})))(${OM_LABELS})\\}) (${VALUE})`;
const OM_TIME = `[+-]?${DECIMAL}`;
const TYPES = 'counter|gauge|histogram|summary';
const EXACT_LINE = {
  text: new RegExp(
    [
      `${SERIES}(?:[ \\t]+(?<time>\\d+))?${BLANKS}${END}`,
      // A NUL ends the page there.
      `${BLANKS}(?:#(?:[ \\t]*|[^ \\t\\n\\0][^\\n\\0]*))?(?<end>\\0)`,
      `${BLANKS}#[ \\t]+HELP[ \\t]+(?:${ANNOUNCED}(?<help>[^\\n]*)|(?:${QUOTED}|${NAME}))${END}`,
      `${BLANKS}#[ \\t]+TYPE[ \\t]+${ANNOUNCED}(?:${TYPES}|untyped)${END}`,
      `${BLANKS}#(?![ \\t]+(?:HELP|TYPE)[ \\t])[^\\n]*${END}`,
      `${BLANKS}${END}`,
    ].join('|'),
    'y',
  ),
  openMetrics: new RegExp(
    [
      `${OM_SERIES}(?: (?<time>${OM_TIME}))?` +
        `(?: # \\{${EXEMPLAR_LABELS}\\} (?<exemplar>${VALUE})(?: (?<exemplarTime>${OM_TIME}))?)?\\n`,
      '(?<end># EOF\\n?)',
      `# HELP (?:${QUOTED}|${NAME}) (?<help>[^\\n]*)\\n`,
      `# TYPE (?:${QUOTED}|${NAME}) (?:${TYPES}|gaugehistogram|info|stateset|unknown)\\n`,
      `# UNIT (?<unitName>${QUOTED}|${NAME}) (?<unit>[^\\n]*)\\n`,
    ].join('|'),
    'y',
  ),
} as const;
type Parts = Partial<
  Record<'end' | 'passed' | 'help' | 'unitName' | 'unit' | 'time' | 'exemplar' | 'exemplarTime', string>
>;

/**
 * Looks for where Prometheus stops: at a line that it refuses, behind the one that ends the page, at one
 * whose rest is in the next block, or at the end of this one. Not `isUtf8`: each character is a byte.
 */
function findStop(
  text: string,
  format: TextFormat,
  { isUtf8, isLast }: Readonly<Record<'isUtf8' | 'isLast', boolean>>,
): { readonly kind: 'refused' | 'end' | 'begun' | 'none'; readonly at: number } {
  const plain = isUtf8 && !hasLongLine(text) && !LABEL_TWICE.test(text) ? PLAIN_LINES[format] : null;
  const exact = EXACT_LINE[format];
  for (let at = skipPlain(text, 0, plain); at < text.length; at = skipPlain(text, exact.lastIndex, plain)) {
    exact.lastIndex = at;
    const match = exact.exec(text);
    if (match === null && !isLast && isBegun(text, at)) return { kind: 'begun', at };
    if (match === null || isRefused(match, format, isUtf8)) return { kind: 'refused', at };
    const { end }: Parts = { ...match.groups };
    if (end !== undefined) return { kind: 'end', at: exact.lastIndex };
  }
  return { kind: 'none', at: text.length };
}

function skipPlain(text: string, at: number, plain: RegExp | null): number {
  if (plain === null) return at;
  plain.lastIndex = at;
  plain.test(text);
  return plain.lastIndex;
}

function hasLongLine(text: string): boolean {
  for (let at = 0; at + PLAIN_LINE_LENGTH < text.length; ) {
    const end = text.lastIndexOf('\n', at + PLAIN_LINE_LENGTH);
    if (end < at) return true;
    at = end + 1;
  }
  return false;
}

/** Whether Prometheus refuses a line of the right form for a number, a label, or bytes that are not UTF-8. */
function isRefused(match: RegExpExecArray, format: TextFormat, isUtf8: boolean): boolean {
  const [line, , , before = '', , after = '', value] = match;
  const { passed, help, unitName, unit, time, exemplar, exemplarTime }: Parts = { ...match.groups };
  // The rest of the letter is no UTF-8.
  if (isUtf8 && passed !== undefined && passed > '\x7f') return true;
  const letters = value === undefined ? help : line;
  if (!isUtf8 && letters !== undefined && decodeUtf8(Buffer.from(letters, 'latin1')) === null) return true;
  if (unitName !== undefined) return unit !== '' && !stripQuotes(unitName).endsWith(`_${unit}`);
  if (value === undefined) return false;
  if (format === 'text' && time !== undefined && BigInt(time) >= 2n ** 63n) return true;
  const numbers = [value, time, exemplar, exemplarTime];
  return numbers.some((each) => each !== undefined && isTooLarge(each)) || hasWrongLabel(readLabels(before + after));
}

/**
 * One without a name, twice, or in the name's place. A label with an empty value is none, nor are others of
 * its name.
 */
function hasWrongLabel(labels: readonly Label[]): boolean {
  const empty = new Set(labels.flatMap(([name, value]) => (value === '' ? [name] : [])));
  const names = labels.flatMap(([name]) => (empty.has(name) ? [] : [name]));
  return new Set(['', ...names]).size <= names.length || labels.some(([name]) => name === '__name__');
}
