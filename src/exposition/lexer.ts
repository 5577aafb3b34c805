// What a line of text 0.0.4 or 1.0.0 and of OpenMetrics is: the only grammar of names, labels, values and
// timestamps, and the readers of one line (of whole texts: lines.ts). Pure; keeps nothing.
// (Prometheus documentation, "Exposition formats"; openmetrics.io, "Specification"; promparse.go and
// openmetricsparse.go of prometheus/prometheus.)
//
// No text may match in two ways, or a long line takes forever. Regular expressions over many lines, never
// loops over letters: the binary runs without an optimizing compiler, and regular expressions are native.

import type { TextFormat } from './format.ts';

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
export const LABELS = `(?:${LABEL}(?:,${BLANKS}|(?=\\})))*`;
// What Go's strconv.ParseFloat takes, without `p` and `_`, and so without hexadecimal numbers: Prometheus
// refuses those (parseFloat in model/textparse of prometheus/prometheus and in expfmt of prometheus/common:
// "unsupported character in float"); what is beyond a double, it refuses as well (`isTooLarge`).
const INFINITE = '[iI][nN][fF](?:[iI][nN][iI][tT][yY])?';
export const DECIMAL = '(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][+-]?\\d+)?';
export const VALUE = `(?:[nN][aA][nN]|[+-]?(?:${INFINITE}|${DECIMAL}))`;
/** The last line of a body may have no line feed. */
export const END = '(?:\\n|$)';
// The labels stand in it once: in the binary each copy is some 4 KB of machine code.
/** Groups: name without labels; name before the braces, or in them; labels; value. */
export const SERIES =
  `${BLANKS}(?:(${NAME})[ \\t]+|(?:(${NAME})${BLANKS}\\{${BLANKS}|\\{${BLANKS}(${QUOTED})${BLANKS}(?:,${BLANKS}|(?=\\})))(${LABELS})\\}${BLANKS})` +
  `(${VALUE})`;
/** Another group: timestamp. */
export const SAMPLE = `${SERIES}(?:[ \\t]+(-?\\d+))?${BLANKS}\\r?${END}`;
/** The same in OpenMetrics: seconds, and an exemplar. */
export const OM_SAMPLE =
  `${SERIES}(?:[ \\t]+([+-]?${DECIMAL}))?` +
  `(?:[ \\t]+#${BLANKS}\\{${BLANKS}${LABELS}\\}[ \\t]+${VALUE}(?:[ \\t]+[+-]?${DECIMAL})?)?${BLANKS}${END}`;
const ONE_SAMPLE = {
  text: new RegExp(SAMPLE, 'y'),
  openMetrics: new RegExp(OM_SAMPLE, 'y'),
} as const;
const ONE_LABEL = new RegExp(`[ \\t,]*(?:(${LABEL_NAME})|(${QUOTED}))${BLANKS}=${BLANKS}"(${TEXT})"`, 'y');
const ONE_VALUE = new RegExp(`^${VALUE}$`);
/** Reads one line, with or without its line feed; null if it is not a sample. */
export function readSampleLine(line: string, format: TextFormat = 'text'): SampleLine | null {
  const sample = ONE_SAMPLE[format];
  sample.lastIndex = 0;
  const match = sample.exec(line);
  if (match === null || sample.lastIndex !== line.length || isTooLarge(match[5] as string)) return null;
  return makeSample(match);
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
export function unescapeValue(text: string): string {
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
export function makeSample([, bare, named, quoted, labels = '', value = '', timestamp]: RegExpExecArray): SampleLine {
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

export function unquote(name: string): string {
  return unescapeValue(stripQuotes(name));
}

export function stripQuotes(name: string): string {
  return name.startsWith('"') ? name.slice(1, -1) : name;
}
