// How an entry of LASTSCRAPE_FAIL_IF becomes a threshold: METRIC[{label="value",…}] OP NUMBER. Pure.
// A problem completes the sentence "must be …"; a value is never repaired.

import type { ParseResult } from '../base/parse.ts';
import { COMPARISONS, type ThresholdPolicy } from '../decide/model.ts';
import { type ReadResult, readEntries } from './entries.ts';

/** One entry: which sample is compared, and with what. */
export type Threshold = ThresholdPolicy & {
  /** Labels that the sample must have, unescaped; an empty value also matches an absent label. */
  readonly labels: readonly (readonly [name: string, value: string])[];
};

/** Every exposition is searched once for each entry. */
const THRESHOLDS_MAX_COUNT = 50;

/** Reads the list; `none` is the empty one. */
export function readThresholds(text: string): ReadResult<readonly Threshold[]> {
  if (text === 'none') return { value: [] };
  const entries = splitThresholds(text);
  if (entries.length > THRESHOLDS_MAX_COUNT) {
    return { problems: [`it has ${entries.length} entries; must be ${THRESHOLDS_MAX_COUNT} at most`] };
  }
  return readEntries(entries, parseThreshold);
}

/** Splits at commas outside of braces and quotes. */
function splitThresholds(text: string): readonly string[] {
  const entries: string[] = [];
  let from = 0;
  let isInBraces = false;
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const letter = text[at];
    if (isQuoted && letter === '\\') at++;
    else if (letter === '"') isQuoted = isInBraces && !isQuoted;
    else if (isQuoted) continue;
    else if (letter === '{') isInBraces = true;
    else if (letter === '}') isInBraces = false;
    else if (letter === ',' && !isInBraces) {
      entries.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  return [...entries, text.slice(from).trim()];
}

const EXAMPLE = '"locust_requests_fail_ratio > 0.01"';
const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*/;
const LABELS_EXAMPLE = 'label="value", separated by commas, such as {name="Aggregated"}';
const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;

export function parseThreshold(entry: string): ParseResult<Threshold> {
  const [name] = NAME.exec(entry) ?? [];
  if (name === undefined) return { problem: `a metric, a comparison and a number, such as ${EXAMPLE}` };
  let rest = entry.slice(name.length).trimStart();
  let labels: Threshold['labels'] = [];
  if (rest.startsWith('{')) {
    const parsed = parseLabels(rest);
    if ('problem' in parsed) return parsed;
    labels = parsed.value.labels;
    rest = parsed.value.rest.trimStart();
  }
  const sign = rest.slice(0, rest.search(/[^<>=!~]|$/));
  const comparison = COMPARISONS.find((each) => each === sign);
  if (comparison === undefined) return { problem: `compared with one of ${COMPARISONS.join(' ')}, such as ${EXAMPLE}` };
  const number = rest.slice(sign.length).trim();
  const limit = NUMBER.test(number) ? Number(number) : Number.NaN;
  if (!Number.isFinite(limit)) {
    return { problem: 'compared with a plain number such as 0.01 or 500, in the unit of the metric' };
  }
  return { value: { text: entry, name, labels, comparison, limit } };
}

const LABEL = /\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"([^"\\]*(?:\\.[^"\\]*)*)"\s*/sy;

/** Reads from an opening brace on: the labels, and what follows the closing one. */
function parseLabels(text: string): ParseResult<{ readonly labels: Threshold['labels']; readonly rest: string }> {
  const labels: (readonly [string, string])[] = [];
  let at = 1;
  for (;;) {
    LABEL.lastIndex = at;
    const [match, name = '', escaped = ''] = LABEL.exec(text) ?? [];
    if (match === undefined) break;
    if (labels.some(([each]) => each === name))
      return { problem: `written with each label once; ${name} appears twice` };
    const value = unescapeValue(escaped);
    if (value === null) return { problem: 'written without escapes in a value other than \\\\, \\" and \\n' };
    labels.push([name, value]);
    at += match.length;
    if (text[at] !== ',') break;
    at++;
  }
  const end = /^\s*\}/.exec(text.slice(at))?.[0];
  if (end === undefined) return { problem: `written with ${LABELS_EXAMPLE} between { and }` };
  return { value: { labels, rest: text.slice(at + end.length) } };
}

/** Reads the value of a label, escaped as in the exposition format; null if it has other escapes. */
function unescapeValue(text: string): string | null {
  if (/\\[^\\"n]/s.test(text.replaceAll('\\\\', ''))) return null;
  return text.replace(/\\([\\"n])/g, (_, letter: string) => (letter === 'n' ? '\n' : letter));
}
