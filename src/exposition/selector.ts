// Which samples of an exposition an entry of LASTSCRAPE_FAIL_IF means, and what their number is. Pure; keeps no line.
// One unreadable line of the name, and the exposition shows nothing of it: it may be the very sample.

import type { WantedSample } from './sample-filter.ts';

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

export type Selection = {
  /** The samples that it must see. */
  readonly wanted: readonly WantedSample[];
  /** What was found; the body has ended. */
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

/** It is written in one way only; an empty value may be absent, and one with escapes may be written in two ways. */
function isPlain(text: string): boolean {
  return text !== '' && !/[\\"\n]/.test(text);
}

function hasLabels(labels: Selector['labels'], wanted: Selector['labels']): boolean {
  return wanted.every(([name, value]) => (labels.findLast(([each]) => each === name)?.[1] ?? '') === value);
}
