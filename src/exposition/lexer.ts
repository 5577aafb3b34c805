// What a line of text 0.0.4 or 1.0.0 and of OpenMetrics is: the only grammar of names, labels, values and
// timestamps, and the readers of one line and of whole texts. Pure; keeps nothing.
// (Prometheus documentation, "Exposition formats"; openmetrics.io, "Specification"; promparse.go and
// openmetricsparse.go of prometheus/prometheus.)
//
// No text may match in two ways, or a long line takes forever. Regular expressions over many lines, never
// loops over letters: the binary runs without an optimizing compiler, and regular expressions are native.

import type { Format, TextFormat } from './format.ts';

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
const LABEL_NAME = '[a-zA-Z_]\\w*';
const TEXT = String.raw`[^"\\\n]*(?:\\[^\n][^"\\\n]*)*`;
/** A label's value, or a UTF-8 name, which some programs write without being asked to. */
export const QUOTED = `"${TEXT}"`;
const LABEL = `(?:${LABEL_NAME}|${QUOTED})${BLANKS}=${BLANKS}${QUOTED}${BLANKS}`;
/** Each is followed by a comma or by the closing brace. */
const LABELS = `(?:${LABEL}(?:,${BLANKS}|(?=\\})))*`;
// What Go's strconv.ParseFloat takes, without `p` and `_`, and so without hexadecimal numbers: Prometheus
// refuses those (parseFloat in model/textparse of prometheus/prometheus and in expfmt of prometheus/common:
// "unsupported character in float"); what is beyond a double, it refuses as well (`isTooLarge`).
const INFINITE = '[iI][nN][fF](?:[iI][nN][iI][tT][yY])?';
const DECIMAL = '(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][+-]?\\d+)?';
const VALUE = `(?:[nN][aA][nN]|[+-]?(?:${INFINITE}|${DECIMAL}))`;
/** The last line of a body may have no line feed. */
const END = '(?:\\n|$)';
// The labels stand in it once: in the binary each copy is some 4 KB of machine code.
/** Groups: name without labels; name before the braces, or in them; labels; value. */
const SERIES =
  `${BLANKS}(?:(${NAME})[ \\t]+|(?:(${NAME})${BLANKS}\\{${BLANKS}|\\{${BLANKS}(${QUOTED})${BLANKS}(?:,${BLANKS}|(?=\\})))(${LABELS})\\}${BLANKS})` +
  `(${VALUE})`;
/** Another group: timestamp. */
const SAMPLE = `${SERIES}(?:[ \\t]+(-?\\d+))?${BLANKS}\\r?${END}`;
/** The same in OpenMetrics: seconds, and an exemplar. */
const OM_SAMPLE =
  `${SERIES}(?:[ \\t]+([+-]?${DECIMAL}))?` +
  `(?:[ \\t]+#${BLANKS}\\{${BLANKS}${LABELS}\\}[ \\t]+${VALUE}(?:[ \\t]+[+-]?${DECIMAL})?)?${BLANKS}${END}`;
/** Any line, to its end. */
export const ANY_LINE = `[^\\n]*${END}`;
/** Groups: `TYPE`, or nothing for another of `words`; name; text. */
export function header(words: string): string {
  return `${BLANKS}#${BLANKS}(?:(TYPE)|${words})[ \\t]+(${NAME}|${QUOTED})(?:[ \\t]+([^\\n]*))?\\r?${END}`;
}
/** Of a line that is no sample, only the last groups match, or none: the last alternative takes any line. */
const TEXT_LINE = new RegExp(`${SAMPLE}|${header('HELP')}|${ANY_LINE}`, 'y');
const OM_LINE = new RegExp(`${OM_SAMPLE}|${header('HELP')}|${ANY_LINE}`, 'y');
const ONE_LABEL = new RegExp(`[ \\t,]*(?:(${LABEL_NAME})|(${QUOTED}))${BLANKS}=${BLANKS}"(${TEXT})"`, 'y');
const ONE_VALUE = new RegExp(`^${VALUE}$`);
const ONE_SERIES = new RegExp(SERIES, 'y');
/** What may exceed a double or 64 bits: rare, so each number is checked only where this matches. */
const LARGE = /[ \t}][+-]?(?:[\d.]{200}|[\d.]+[eE]\+?\d{3})|[ \t]-?\d{19}/;
const QUOTED_TEXTS = new RegExp(QUOTED, 'g');
/** OpenMetrics has no blank lines, and ends with `# EOF`. */
const READABLE_LINES = {
  text: new RegExp(`(?:${withoutGroups(SAMPLE)}|${BLANKS}#${ANY_LINE}|${BLANKS}\\r?${END})*`, 'y'),
  openMetrics: new RegExp(`(?:${withoutGroups(OM_SAMPLE)}|#(?! EOF)${ANY_LINE})*`, 'y'),
} as const;

/** Reads one line, with or without its line feed; null if it is not a sample. */
export function readSampleLine(line: string, format: Format = 'text'): SampleLine | null {
  const one = format === 'openMetrics' ? OM_LINE : TEXT_LINE;
  one.lastIndex = 0;
  const match = one.exec(line) as RegExpExecArray;
  const [, , , , , value] = match;
  return value === undefined || one.lastIndex !== line.length || isTooLarge(value) ? null : makeSample(match);
}

/** Reads a value, `le` or `quantile`; NaN if it is not a number. */
export function readNumber(text: string): number {
  if (!ONE_VALUE.test(text) || isTooLarge(text)) return Number.NaN;
  return Number(text.replace(/inf(?:inity)?/i, 'Infinity'));
}

/** Whether a value is beyond a double: `strconv.ParseFloat` returns an error there. */
function isTooLarge(value: string): boolean {
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

/** The sample of a match of SAMPLE. */
function makeSample([, bare, named, quoted, labels = '', value = '', timestamp]: RegExpExecArray): SampleLine {
  return { name: bare ?? named ?? unquote(quoted as string), labels: readLabels(labels), value, timestamp };
}

const NO_LABELS: readonly Label[] = [];

/** Reads the text between the braces; SAMPLE has checked it. */
function readLabels(text: string): readonly Label[] {
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

function withoutGroups(pattern: string): string {
  return pattern.replace(/\((?!\?)/g, '(?:');
}

/** The index of the first line that is no sample, comment or blank, or is `# EOF`; else the text's length. */
export function findUnreadableLine(text: string, format: TextFormat = 'text'): number {
  const lines = READABLE_LINES[format];
  lines.lastIndex = 0;
  lines.test(text);
  const readable = text.slice(0, lines.lastIndex);
  return (LARGE.test(readable) ? findTooLarge(readable, format) : null) ?? readable.length;
}

/** The line of a number for which Prometheus's parsers refuse the whole page; null: none. */
function findTooLarge(text: string, format: TextFormat): number | null {
  const isRefused = format === 'text' ? isBeyond64Bits : isTooLarge;
  for (let at = 0, end = 0; at < text.length; at = end) {
    end = text.indexOf('\n', at) + 1 || text.length;
    ONE_SERIES.lastIndex = at;
    const value = ONE_SERIES.exec(text)?.[5];
    if (value === undefined) continue;
    if (isTooLarge(value)) return at;
    // The timestamp, and the numbers of an exemplar.
    const rest = text.slice(ONE_SERIES.lastIndex, end).replace(QUOTED_TEXTS, '');
    if (rest.match(/(?<=[ \t])[-+]?[\d.]\S*/g)?.some(isRefused)) return at;
  }
  return null;
}

function isBeyond64Bits(timestamp: string): boolean {
  const digits = timestamp.replace(/^-?0*/, '');
  return digits.length > 19 || BigInt.asIntN(64, BigInt(timestamp)) !== BigInt(timestamp);
}

/** Gets the samples and headers of a text; other lines are skipped. */
export type LineSink = {
  readonly onSample: (sample: SampleLine) => void;
  /** `text`: the type, or the help as written; with any blanks and CR at the end. */
  readonly onHeader: (kind: 'type' | 'help', name: string, text: string) => void;
};

/** Reads whole lines. Timestamps of OpenMetrics are seconds, as written; its exemplars are skipped. */
export function readLines(text: string, { onSample, onHeader }: LineSink, format: Format = 'text'): void {
  const line = format === 'openMetrics' ? OM_LINE : TEXT_LINE;
  for (let at = 0; at < text.length; ) {
    line.lastIndex = at;
    const match = line.exec(text) as RegExpExecArray;
    at = line.lastIndex;
    if (match[5] !== undefined) onSample(makeSample(match));
    else if (match[8] !== undefined)
      onHeader(match[7] === undefined ? 'help' : 'type', unquote(match[8]), match[9] ?? '');
  }
}
