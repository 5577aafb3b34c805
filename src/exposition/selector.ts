// Finds the sample that an entry of LASTSCRAPE_FAIL_IF selects. Pure; keeps no line.
// An unreadable line that may be this sample makes the exposition say nothing about it.

import type { WantedSample } from './sample-filter.ts';

/**
 * Selects samples of a metric that have these labels, among others; an empty value also matches a missing
 * label.
 */
export type Selector = {
  readonly name: string;
  /** Unescaped. */
  readonly labels: readonly (readonly [name: string, value: string])[];
};

/**
 * What one exposition shows: no sample of the name, none with the labels, several, or one number (NaN and
 * infinities too).
 */
export type SelectorReading =
  | { readonly kind: 'none' }
  | { readonly kind: 'unmatched' }
  | { readonly kind: 'several' }
  | { readonly kind: 'value'; readonly value: number };

export type Selection = {
  /** The samples that it must see. */
  readonly wanted: readonly WantedSample[];
  /** Ends the body; returns what was found. */
  readonly end: () => SelectorReading;
};

/** Opens the search of one body. */
export function openSelection({ name, labels }: Selector): Selection {
  let isThere = false;
  let isUnreadable = false;
  const values: number[] = [];
  const named: WantedSample = {
    name,
    onSample(sample) {
      isThere = sample !== null;
      return !isThere;
    },
  };
  const matching: WantedSample = {
    name,
    contains: labels.flatMap(([, text]) => (isPlain(text) ? [`"${text}"`] : [])),
    onSample(sample) {
      if (sample === null) isUnreadable = true;
      else if (hasLabels(sample.labels, labels)) values.push(sample.value);
      return !isUnreadable && values.length < 2;
    },
    onTooLong() {
      isUnreadable = true;
    },
  };
  return {
    wanted: [named, matching],
    end() {
      if (isUnreadable || !isThere) return { kind: 'none' };
      const [value] = values;
      if (value === undefined) return { kind: 'unmatched' };
      return values.length === 1 ? { kind: 'value', value } : { kind: 'several' };
    },
  };
}

/** Whether a value can be written in only one way: not if it is empty (may be missing), or has escapes. */
function isPlain(text: string): boolean {
  return text !== '' && !/[\\"\n]/.test(text);
}

function hasLabels(labels: Selector['labels'], wanted: Selector['labels']): boolean {
  return wanted.every(([name, value]) => (labels.findLast(([each]) => each === name)?.[1] ?? '') === value);
}
