// What whole texts of the text format and of OpenMetrics are, line by line, by the grammar of `lexer.ts`.
// Loaded only where a body is served or pushed. Pure; keeps nothing.

import type { TextFormat } from './format.ts';
import {
  BLANKS,
  END,
  isTooLarge,
  makeSample,
  NAME,
  OM_SAMPLE,
  QUOTED,
  SAMPLE,
  type SampleLine,
  SERIES,
  stripQuotes,
  unquote,
} from './lexer.ts';

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
const ONE_SERIES = new RegExp(SERIES, 'y');
/** What may exceed a double or 64 bits: rare, so each number is checked only where this matches. */
const LARGE = /[ \t}][+-]?(?:[\d.]{200}|[\d.]+[eE]\+?\d{3})|[ \t]-?\d{19}/;
const QUOTED_TEXTS = new RegExp(QUOTED, 'g');
const ONE_LINE = {
  text: new RegExp(`${SAMPLE}|${header('HELP')}|${ANY_LINE}`, 'y'),
  openMetrics: new RegExp(`${OM_SAMPLE}|${header('HELP')}|${ANY_LINE}`, 'y'),
} as const;
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

/** The index of the first line that is no sample, comment or blank, or is `# EOF`; else the text's length. */
export function findUnreadableLine(text: string, format: TextFormat = 'text'): number {
  const lines = READABLE_LINES[format];
  lines.lastIndex = 0;
  lines.test(text);
  const readable = text.slice(0, lines.lastIndex);
  return (LARGE.test(readable) ? findTooLarge(readable, format) : null) ?? readable.length;
}

/** The line of a number for which Prometheus's parsers (see lexer.ts) refuse the whole page; null: none. */
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
export function readLines(text: string, { onSample, onHeader }: LineSink, format: TextFormat = 'text'): void {
  const line = ONE_LINE[format];
  for (let at = 0; at < text.length; ) {
    line.lastIndex = at;
    // The last alternative takes any line.
    const match = line.exec(text) as RegExpExecArray;
    at = line.lastIndex;
    if (match[5] !== undefined) onSample(makeSample(match));
    else if (match[8] !== undefined)
      onHeader(match[7] === undefined ? 'help' : 'type', unquote(match[8]), match[9] ?? '');
  }
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

function withoutGroups(pattern: string): string {
  return pattern.replace(/\((?!\?)/g, '(?:');
}
