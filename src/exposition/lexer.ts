// What a line of text 0.0.4 or 1.0.0 and of OpenMetrics is: the only grammar of names, labels, values and
// timestamps, and the readers built on it. Pure; keeps nothing. (Prometheus documentation, "Exposition formats";
// openmetrics.io, "Specification"; promparse.go and openmetricsparse.go of prometheus/prometheus.)
//
// No text may match in two ways, or a long line takes forever. Regular expressions over many lines, never
// loops over letters: the binary runs without an optimizing compiler, and regular expressions are native.

/** A label; its value is unescaped. */
export type Label = readonly [name: string, value: string];

/** A sample line, its parts as written; only names and label values are unescaped. */
export type SampleLine = {
  readonly name: string;
  /** In the order of the line; without the metric's name, even if that is written in the braces. */
  readonly labels: readonly Label[];
  /** For `readNumber`. */
  readonly value: string;
  /** Milliseconds since the epoch, an integer of any length; undefined if the line has none. */
  readonly timestamp: string | undefined;
};

const BLANKS = '[ \\t]*';
const NAME = '[a-zA-Z_:][\\w:]*';
const LABEL_NAME = '[a-zA-Z_]\\w*';
const TEXT = String.raw`[^"\\\n]*(?:\\[^\n][^"\\\n]*)*`;
/** A label's value, or a UTF-8 name, which some programs write without being asked to. */
const QUOTED = `"${TEXT}"`;
const LABEL = `(?:${LABEL_NAME}|${QUOTED})${BLANKS}=${BLANKS}${QUOTED}${BLANKS}`;
const MORE_LABELS = `(?:,${BLANKS}${LABEL})*(?:,${BLANKS})?`;
const LABELS = `${BLANKS}(?:${LABEL}${MORE_LABELS})?`;
// What Go's strconv.ParseFloat takes, without `p` and `_`, and so without hexadecimal numbers: Prometheus
// refuses those (parseFloat in model/textparse of prometheus/prometheus and in expfmt of prometheus/common:
// "unsupported character in float"); what is beyond a double, it refuses as well (`isTooLarge`).
const INFINITE = '[iI][nN][fF](?:[iI][nN][iI][tT][yY])?';
const DECIMAL = '(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][+-]?\\d+)?';
const VALUE = `(?:[nN][aA][nN]|[+-]?(?:${INFINITE}|${DECIMAL}))`;
/** The last line of a body may have no line feed. */
const END = '(?:\\n|$)';
/** Groups: name and labels; or name in the braces and labels after it; value. */
const SERIES =
  `${BLANKS}(?:(${NAME})(?:${BLANKS}\\{(${LABELS})\\}${BLANKS}|[ \\t]+)|\\{${BLANKS}(${QUOTED})${BLANKS}(${MORE_LABELS})\\}${BLANKS})` +
  `(${VALUE})`;
/** Another group: timestamp. */
const SAMPLE = `${SERIES}(?:[ \\t]+(-?\\d+))?${BLANKS}\\r?${END}`;
/** The same in OpenMetrics: seconds, and an exemplar. */
const OM_TIMESTAMP = `(?:[ \\t]+[+-]?${DECIMAL})?`;
const OM_SAMPLE = `${SERIES}${OM_TIMESTAMP}(?:[ \\t]+#${BLANKS}\\{${LABELS}\\}[ \\t]+${VALUE}${OM_TIMESTAMP})?${BLANKS}${END}`;
/** Groups: `TYPE`, or nothing for another of `words`; name; text. */
function header(words: string): string {
  return `${BLANKS}#${BLANKS}(?:(TYPE)|${words})[ \\t]+(${NAME}|${QUOTED})(?:[ \\t]+([^\\n]*))?\\r?${END}`;
}
const ANY_LINE = `[^\\n]*${END}`;

/** OpenMetrics has no blank lines, and ends with `# EOF`. */
const READABLE_LINES = {
  text: new RegExp(`(?:${withoutGroups(SAMPLE)}|${BLANKS}#${ANY_LINE}|${BLANKS}\\r?${END})*`, 'y'),
  openMetrics: new RegExp(`(?:${withoutGroups(OM_SAMPLE)}|#(?! EOF)${ANY_LINE})*`, 'y'),
} as const;
const ONE_SAMPLE = new RegExp(SAMPLE, 'y');
const ONE_LINE = new RegExp(`${SAMPLE}|${header('HELP')}|${ANY_LINE}`, 'y');
const ONE_LABEL = new RegExp(`[ \\t,]*(?:(${LABEL_NAME})|(${QUOTED}))${BLANKS}=${BLANKS}"(${TEXT})"`, 'y');
const ONE_SERIES = new RegExp(SERIES, 'y');
/** What may be beyond a double: hardly any text has it, and each value is looked at only there. */
const LARGE = /[ \t}][+-]?(?:[\d.]{300}|[\d.]+[eE]\+?\d{3})/;
const ONE_VALUE = new RegExp(`^${VALUE}$`);
/** A header, consecutive samples of one name, or any other line and the blank ones after it. */
const RUN = new RegExp(
  [
    header('HELP|UNIT'),
    `${BLANKS}(${NAME})(?![\\w:])${ANY_LINE}(?:${BLANKS}\\4(?![\\w:])${ANY_LINE})*`,
    `${BLANKS}\\{${BLANKS}(${QUOTED})${ANY_LINE}`,
    `${ANY_LINE}(?:${BLANKS}\\r?\\n)*`,
  ].join('|'),
  'y',
);

/** The index of the first line that is no sample, comment or blank, or is `# EOF`; if none, the text's length. */
export function findUnreadableLine(text: string, format: keyof typeof READABLE_LINES = 'text'): number {
  const lines = READABLE_LINES[format];
  lines.lastIndex = 0;
  lines.test(text);
  const readable = text.slice(0, lines.lastIndex);
  return (LARGE.test(readable) ? findTooLarge(readable) : null) ?? readable.length;
}

function findTooLarge(text: string): number | null {
  for (let at = 0; at < text.length; at = text.indexOf('\n', at) + 1 || text.length) {
    ONE_SERIES.lastIndex = at;
    if (isTooLarge(ONE_SERIES.exec(text)?.[5] ?? '')) return at;
  }
  return null;
}

/** Whether a value is beyond a double: `strconv.ParseFloat` returns an error there. */
function isTooLarge(value: string): boolean {
  return /\d/.test(value) && !Number.isFinite(Number(value));
}

/** Gets the samples and headers of a text; other lines are skipped. */
export type LineSink = {
  readonly onSample: (sample: SampleLine) => void;
  /** `text`: the type, or the help as written; with any blanks and CR at the end. */
  readonly onHeader: (kind: 'type' | 'help', name: string, text: string) => void;
};

/** Reads whole lines. */
export function readLines(text: string, { onSample, onHeader }: LineSink): void {
  for (let at = 0; at < text.length; ) {
    ONE_LINE.lastIndex = at;
    // The last alternative takes any line.
    const match = ONE_LINE.exec(text) as RegExpExecArray;
    at = ONE_LINE.lastIndex;
    if (match[5] !== undefined) onSample(makeSample(match));
    else if (match[8] !== undefined)
      onHeader(match[7] === undefined ? 'help' : 'type', unquote(match[8]), match[9] ?? '');
  }
}

/** Reads one line, with or without its line feed; null if it is not a sample. */
export function readSampleLine(line: string): SampleLine | null {
  ONE_SAMPLE.lastIndex = 0;
  const match = ONE_SAMPLE.exec(line);
  if (match === null || ONE_SAMPLE.lastIndex !== line.length || isTooLarge(match[5] as string)) return null;
  return makeSample(match);
}

/** Consecutive samples of one name, its HELP (or UNIT) or TYPE, or `other`: comments, blank and odd lines. */
export type Run =
  | { readonly kind: 'samples' | 'help'; readonly name: string }
  | { readonly kind: 'type'; readonly name: string; readonly type: string }
  | { readonly kind: 'other' };

/**
 * Finds the runs of whole lines by the names at their start, readable or not; calls `onRun` with where each
 * begins and ends. Names keep their escapes, and are slices of `text`.
 */
export function findRuns(text: string, onRun: (run: Run, from: number, to: number) => void): void {
  for (let at = 0; at < text.length; ) {
    const from = at;
    RUN.lastIndex = from;
    const match = RUN.exec(text) as RegExpExecArray;
    // Read before `onRun`, which may use the same expression.
    at = RUN.lastIndex;
    onRun(makeRun(match), from, at);
  }
}

function makeRun([, isType, announced, text = '', sampled, quoted]: RegExpExecArray): Run {
  if (announced !== undefined) {
    const name = stripQuotes(announced);
    return isType === undefined ? { kind: 'help', name } : { kind: 'type', name, type: text.trimEnd() };
  }
  const name = sampled ?? quoted;
  return name === undefined ? OTHER : { kind: 'samples', name: stripQuotes(name) };
}

const OTHER: Run = { kind: 'other' };

/** Reads a value, `le` or `quantile`; NaN if it is not a number. */
export function readNumber(text: string): number {
  if (!ONE_VALUE.test(text) || isTooLarge(text)) return Number.NaN;
  return Number(text.replace(/inf(?:inity)?/i, 'Infinity'));
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

function makeSample([, name, labels, quoted, moreLabels, value = '', timestamp]: RegExpExecArray): SampleLine {
  return {
    name: name ?? unquote(quoted as string),
    labels: readLabels(labels ?? moreLabels ?? ''),
    value,
    timestamp,
  };
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

function stripQuotes(name: string): string {
  return name.startsWith('"') ? name.slice(1, -1) : name;
}

function withoutGroups(pattern: string): string {
  return pattern.replace(/\((?!\?)/g, '(?:');
}
