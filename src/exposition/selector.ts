// Which samples of an exposition an entry of LASTSCRAPE_FAIL_IF means, and what their number is. Pure; keeps no line.
// A line of its name that cannot be read makes the whole exposition say nothing of it: it may be the very sample.

import type { WantedLine } from './sample-filter.ts';

/** The samples of a metric that have these labels among others; an empty value means that the label may be absent. */
export type Selector = {
  readonly name: string;
  /** Unescaped. */
  readonly labels: readonly (readonly [name: string, value: string])[];
};

/** What one exposition shows of it: no sample of that name, none with these labels, more than one, or one number (NaN and infinite too). */
export type SelectorReading =
  | { readonly kind: 'none' }
  | { readonly kind: 'unmatched' }
  | { readonly kind: 'several' }
  | { readonly kind: 'value'; readonly value: number };

/** A sample line that was read; `labels` as the line has them, without blanks and a last comma. */
export type SelectedSample = { readonly value: number; readonly labels: string };

export type Selection = {
  /** The lines that it must see. */
  readonly wanted: readonly WantedLine[];
  /** What was found; the body has ended. */
  readonly end: () => SelectorReading;
};

/** Opens the search of one body; `read` reads a line, null where it is no sample with a number. */
export function openSelection(selector: Selector, read: (line: string) => SelectedSample | null): Selection {
  const { name, labels } = selector;
  let isThere = false;
  let isUnreadable = false;
  let matchCount = 0;
  let value = Number.NaN;
  const named: WantedLine = {
    name,
    isPrefix: false,
    labels: [],
    onLine(line) {
      isThere = read(line) !== null;
      return !isThere;
    },
  };
  const matching: WantedLine = {
    name,
    isPrefix: false,
    labels: [],
    contains: labels.flatMap(([, text]) => (isPlain(text) ? [`"${text}"`] : [])),
    onLine(line) {
      const sample = read(line);
      if (sample === null) isUnreadable = true;
      else if (hasLabels(sample.labels, labels)) {
        value = sample.value;
        matchCount++;
      }
      return !isUnreadable && matchCount < 2;
    },
    onTooLong() {
      isUnreadable = true;
    },
  };
  return {
    wanted: [named, matching],
    end() {
      if (isUnreadable || !isThere) return { kind: 'none' };
      if (matchCount === 1) return { kind: 'value', value };
      return { kind: matchCount === 0 ? 'unmatched' : 'several' };
    },
  };
}

/** It stands in a line as it is; one that is empty may be absent, and one with escapes may be written in two ways. */
function isPlain(text: string): boolean {
  return text !== '' && !/[\\"\n]/.test(text);
}

const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="([^"\\]*(?:\\.[^"\\]*)*)",?/gs;

function hasLabels(text: string, wanted: Selector['labels']): boolean {
  if (wanted.length === 0) return true;
  const found = new Map<string, string>();
  for (const [, name = '', escaped = ''] of text.matchAll(LABEL)) found.set(name, unescapeValue(escaped));
  return wanted.every(([name, value]) => (found.get(name) ?? '') === value);
}

/** The value of a label as Prometheus reads it (lvalReplacer in model/textparse): any other backslash stands for itself. */
export function unescapeValue(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(/\\([\\"n])/g, (_, letter: string) => (letter === 'n' ? '\n' : letter));
}
