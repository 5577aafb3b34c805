// How an entry of LASTSCRAPE_FAIL_IF becomes a threshold: METRIC[{label="value",…}] OP NUMBER. Pure.
// A problem completes the sentence "must be …"; a value is never repaired.

import type { ParseResult } from '../base/parse.ts';
import { COMPARISONS, type ThresholdPolicy } from '../decide/model.ts';
import { BLANKS, DECIMAL, LABELS, type Label, NAME, readLabels } from '../exposition/lexer.ts';
import { type ReadResult, readEntries } from './entries.ts';

/** One entry: which sample is compared, and with what. */
export type Threshold = ThresholdPolicy & {
  /** Labels that the sample must have, unescaped; an empty value also matches an absent label. */
  readonly labels: readonly Label[];
};

/** Every exposition is searched once for each entry. */
const THRESHOLDS_MAX_COUNT = 50;

/** An entry of the list: a comma between braces separates none, nor does a brace between quotes end them. */
const ENTRY = /(?<=^|,)(?:[^,{]|\{(?:[^"}]|"(?:[^"\\]|\\.)*"?)*\}?)*/gs;

/** Reads the list; `none` is the empty one. */
export function readThresholds(text: string): ReadResult<readonly Threshold[]> {
  if (text === 'none') return { value: [] };
  const entries = Array.from(text.matchAll(ENTRY), ([entry]) => entry.trim());
  if (entries.length > THRESHOLDS_MAX_COUNT) {
    return { problems: [`it has ${entries.length} entries; must be ${THRESHOLDS_MAX_COUNT} at most`] };
  }
  return readEntries(entries, parseThreshold);
}

const EXAMPLE = '"locust_requests_fail_ratio > 0.01"';
/** As in an exposition. Groups: name, labels. */
const SERIES = new RegExp(`^(${NAME})\\s*(?:\\{${BLANKS}(${LABELS})\\}\\s*)?`);
const NUMBER = new RegExp(`^[+-]?${DECIMAL}$`);

export function parseThreshold(entry: string): ParseResult<Threshold> {
  const [series = '', name, labels = ''] = SERIES.exec(entry) ?? [];
  if (name === undefined) return { problem: `a metric, a comparison and a number, such as ${EXAMPLE}` };
  const rest = entry.slice(series.length);
  if (rest.startsWith('{')) {
    return { problem: 'written with label="value", separated by commas, such as {name="Aggregated"} between { and }' };
  }
  const sign = rest.slice(0, rest.search(/[^<>=!~]|$/));
  const comparison = COMPARISONS.find((each) => each === sign);
  if (comparison === undefined) return { problem: `compared with one of ${COMPARISONS.join(' ')}, such as ${EXAMPLE}` };
  const number = rest.slice(sign.length).trim();
  const limit = NUMBER.test(number) ? Number(number) : Number.NaN;
  if (!Number.isFinite(limit)) {
    return { problem: 'compared with a plain number such as 0.01 or 500, in the unit of the metric' };
  }
  return { value: { text: entry, name, labels: readLabels(labels), comparison, limit } };
}
