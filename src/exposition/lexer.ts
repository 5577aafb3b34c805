// What a line of text 0.0.4 or 1.0.0 and of OpenMetrics is: the grammar of names, labels, values and times,
// and the readers of one line and of whole texts. More lenient than Prometheus: what that takes, and no more,
// is in `readable.ts`. Pure; keeps nothing. (Prometheus documentation, "Exposition formats";
// openmetrics.io, "Specification"; promparse.go and openmetricsparse.go of prometheus/prometheus.)
//
// No text may match in two ways, or a long line takes forever. Regular expressions over many lines, never
// loops over letters: the binary runs without an optimizing compiler, and regular expressions are native.

import type { Format } from './format.ts';

/** A label; its value is unescaped. */
export type Label = readonly [name: string, value: string];

/** A sample line, its parts as written; only names and label values are unescaped. */
export type SampleLine = {
  readonly name: string;
  /** In the order of the line; without the metric's name, even if that is written in the braces. */
  readonly labels: readonly Label[];
  /** For `readNumber`. */
  readonly value: string;
  /** Milliseconds since 1970, an integer of any length; in OpenMetrics seconds; undefined without any. */
  readonly timestamp: string | undefined;
};

export const BLANKS = '[ \\t]*';
export const NAME = '[a-zA-Z_:][\\w:]*';
export const LABEL_NAME = '[a-zA-Z_]\\w*';
/** A UTF-8 name, which some programs write without being asked to. */
export const QUOTED = String.raw`"[^"\\\0]*(?:\\[^\n\0][^"\\\0]*)*"`;
export const QUOTED_NAME = `(?!"")${QUOTED}`;
/** Prometheus takes line feeds here and in names, and passes over NUL, also behind a backslash. */
const TEXT = String.raw`[^"\\]*(?:\\\0*[^\n\0][^"\\]*)*`;
/** The comma may be missing. */
export const LABELS = `(?:(?:${LABEL_NAME}|${QUOTED})${BLANKS}=${BLANKS}"${TEXT}"${BLANKS}(?:,${BLANKS})?)*`;
// What Go's strconv.ParseFloat takes, without `p` and `_`, and so without hexadecimal numbers: Prometheus
// refuses those (parseFloat in model/textparse of prometheus/prometheus and in expfmt of prometheus/common:
// "unsupported character in float"); what is beyond a double, it refuses as well (`isTooLarge`).
const INFINITE = '[iI][nN][fF](?:[iI][nN][iI][tT][yY])?';
export const DECIMAL = '(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][+-]?\\d+)?';
export const VALUE = `(?:[nN][aA][nN]|[+-]?(?:${INFINITE}|${DECIMAL}))`;
/** Group: the name. */
export const NAME_IN_BRACES = `\\{${BLANKS}${LABELS}(${QUOTED_NAME})${BLANKS}[,}]`;
/** The last line of a body may have no line feed. */
export const END = '(?:\\n|$)';
/**
 * Groups: name without labels; name before the braces; labels before a name in the braces, that name; labels;
 * value.
 */
export const SERIES =
  `${BLANKS}(?:(${NAME})(?:[ \\t]+|(?=[-+.]))|(?:(${NAME})${BLANKS}\\{${BLANKS}|` +
  `\\{${BLANKS}(${LABELS})(${QUOTED_NAME})${BLANKS}(?:,${BLANKS}|(?=\\})))(${LABELS})\\}${BLANKS})(${VALUE})`;
/** Another group: timestamp. Unlike Prometheus, takes CR at the end, so that conditions read such pages. */
const SAMPLE = `${SERIES}(?:[ \\t]+(-?\\d+))?${BLANKS}\\r?${END}`;
/** The same in OpenMetrics: seconds, and an exemplar. */
const OM_SAMPLE =
  `${SERIES}(?:[ \\t]+([+-]?${DECIMAL}))?` +
  `(?:[ \\t]+#${BLANKS}\\{${BLANKS}${LABELS}\\}[ \\t]+${VALUE}(?:[ \\t]+[+-]?${DECIMAL})?)?${BLANKS}${END}`;
/** Any line, to its end. */
export const ANY_LINE = `[^\\n]*${END}`;
const CLOSED = `[^"\\n]*(?:"${TEXT}"[^"\\n]*)*`;
/** The same, but for line feeds between quotes. */
export const QUOTED_LINE = `${CLOSED}${END}`;
/** A line, up to the quotes in which a block ends: the line feed behind it belongs to a name or a value. */
const BEGUN_LINE = new RegExp(
  `${BLANKS}(?:#[ \\t]+(?:HELP|TYPE|UNIT)[ \\t]+|(?:${NAME}${BLANKS})?\\{)${CLOSED}"${TEXT}\\\\?$`,
  'y',
);
/** Groups: `TYPE`, or nothing for another of `words`; name; text. */
export function header(words: string): string {
  return `${BLANKS}#${BLANKS}(?:(TYPE)|${words})[ \\t]+(${NAME}|${QUOTED})(?:[ \\t]+([^\\n]*))?\\r?${END}`;
}
/** Of a line that is no sample, only the last groups match, or none: the last alternative takes any line. */
const TEXT_LINE = new RegExp(`${SAMPLE}|${header('HELP')}|${ANY_LINE}`, 'y');
const OM_LINE = new RegExp(`${OM_SAMPLE}|${header('HELP')}|${ANY_LINE}`, 'y');
const ONE_LABEL = new RegExp(`[ \\t,]*(?:(${LABEL_NAME})|(${QUOTED}))${BLANKS}=${BLANKS}"(${TEXT})"`, 'y');
const BRACED_NAME = new RegExp(`^${BLANKS}${NAME_IN_BRACES}`);
const ONE_VALUE = new RegExp(`^${VALUE}$`);

/** Reads one line, with or without its line feed; null if it is not a sample. */
export function readSampleLine(line: string, format: Format = 'text'): SampleLine | null {
  const one = format === 'openMetrics' ? OM_LINE : TEXT_LINE;
  one.lastIndex = 0;
  const match = one.exec(line) as RegExpExecArray;
  const value = match[6];
  return value === undefined || one.lastIndex !== line.length || isTooLarge(value) ? null : makeSample(match);
}

/** The name of a line that begins with a brace; null: there is none in the braces. */
export function readBracedName(line: string): string | null {
  const quoted = BRACED_NAME.exec(line)?.[1];
  return quoted === undefined ? null : unquote(quoted);
}

/** Whether the line at `at`, which is no sample, may be the beginning of one that goes on behind the text. */
export function isBegun(text: string, at: number): boolean {
  BEGUN_LINE.lastIndex = at;
  return BEGUN_LINE.test(text);
}

/** Reads a value, `le` or `quantile`; NaN if it is not a number. */
export function readNumber(text: string): number {
  if (!ONE_VALUE.test(text) || isTooLarge(text)) return Number.NaN;
  return Number(text.replace(/inf(?:inity)?/i, 'Infinity'));
}

/** Whether a value is beyond a double: `strconv.ParseFloat` returns an error there. */
export function isTooLarge(value: string): boolean {
  return /\d/.test(value) && !Number.isFinite(Number(value));
}

/** Unescapes a label's value; other backslashes stay (lvalReplacer in model/textparse of Prometheus). */
function unescapeValue(text: string): string {
  return text.includes('\\') ? text.replace(/\\([\\"n])/g, unescapeLetter) : text;
}

/** Unescapes the text of a HELP, where quotes are not escaped (helpReplacer in the same file). */
export function unescapeHelp(text: string): string {
  return text.includes('\\') ? text.replace(/\\([\\n])/g, unescapeLetter) : text;
}

function unescapeLetter(_: string, letter: string): string {
  return letter === 'n' ? '\n' : letter;
}

function makeSample([
  ,
  bare,
  named,
  before = '',
  quoted,
  after = '',
  value = '',
  timestamp,
]: RegExpExecArray): SampleLine {
  return { name: bare ?? named ?? unquote(quoted as string), labels: readLabels(before + after), value, timestamp };
}

const NO_LABELS: readonly Label[] = [];

/** Reads the text between the braces; SAMPLE has checked it. */
export function readLabels(text: string): readonly Label[] {
  if (text === '') return NO_LABELS;
  const labels: Label[] = [];
  ONE_LABEL.lastIndex = 0;
  for (let match = ONE_LABEL.exec(text); match !== null; match = ONE_LABEL.exec(text)) {
    const [, name, quoted, value = ''] = match;
    labels.push([name ?? unquote(quoted as string), unescapeValue(value)]);
  }
  return labels;
}

function unquote(name: string): string {
  return unescapeValue(stripQuotes(name));
}

export function stripQuotes(name: string): string {
  return name.startsWith('"') ? name.slice(1, -1) : name;
}

/** Gets the samples and headers of a text. */
export type LineSink = {
  readonly onSample: (sample: SampleLine) => void;
  /** `text`: the type, or the help as written; with any blanks and CR at the end. */
  readonly onHeader: (kind: 'type' | 'help', name: string, text: string) => void;
  /** Any other line, such as a comment; with its line feed. Default: it is skipped. */
  readonly onOther?: (line: string) => void;
};

/**
 * Reads whole lines, and returns where it stopped: before a line that may go on behind the text, unless
 * `isLast`. Timestamps of OpenMetrics are seconds, as written; its exemplars are skipped.
 */
export function readLines(
  text: string,
  { onSample, onHeader, onOther }: LineSink,
  format: Format = 'text',
  isLast = true,
): number {
  const line = format === 'openMetrics' ? OM_LINE : TEXT_LINE;
  for (let at = 0, end = 0; at < text.length; at = end) {
    line.lastIndex = at;
    const match = line.exec(text) as RegExpExecArray;
    end = at + match[0].length;
    if (match[6] !== undefined) onSample(makeSample(match));
    else if (match[9] !== undefined)
      onHeader(match[8] === undefined ? 'help' : 'type', unquote(match[9]), match[10] ?? '');
    else if (!isLast && isBegun(text, at)) return at;
    else onOther?.(match[0]);
  }
  return text.length;
}
