// Joins the lines of a histogram or summary by their labels: a point of other formats is a dozen lines in the
// text format. Pure; holds a few numbers for each line.

import { type Label, readNumber } from '../../exposition/lexer.ts';
import type { Family, Sample } from '../../exposition/samples.ts';
import { compareNames } from './receiver.ts';

/** One histogram or summary. */
export type BucketPoint = {
  /** Without `le` or `quantile`. */
  readonly labels: readonly Label[];
  /** By `le` or `quantile`, ascending; with the infinite one if a line has it. */
  readonly steps: readonly BucketStep[];
  /** Null if no line has it. */
  readonly sum: number | null;
  readonly count: number | null;
  /** The timestamp of the last line; null if it has none. */
  readonly timestampMs: number | null;
};

export type BucketStep = { readonly bound: number; readonly value: number };

export type BucketPoints = {
  /** Takes a line; false if it belongs to no point, such as a bucket without a bound. */
  readonly add: (family: Family, sample: Sample) => boolean;
  /** Removes the points, in the order of their first lines. */
  readonly take: () => Generator<BucketPoint>;
};

/** Two arrays of numbers take a fifth of the memory of objects. */
type OpenPoint = {
  readonly bounds: number[];
  readonly values: number[];
  sum: number | null;
  count: number | null;
  timestampMs: number | null;
};

/** Collects the points of one family. */
export function openBucketPoints(): BucketPoints {
  /** By their labels. */
  const points = new Map<string, OpenPoint>();

  function findPoint(labels: readonly Label[]): OpenPoint {
    const key = JSON.stringify(labels.toSorted(compareNames));
    const found = points.get(key);
    if (found !== undefined) return found;
    const made: OpenPoint = { bounds: [], values: [], sum: null, count: null, timestampMs: null };
    points.set(key, made);
    return made;
  }
  return {
    add({ name: family, type }, { name, labels, value, timestampMs }) {
      const stepName = type === 'histogram' ? `${family}_bucket` : family;
      if (name === stepName) {
        const boundName = type === 'histogram' ? 'le' : 'quantile';
        const bound = readNumber(labels.find(([label]) => label === boundName)?.[1] ?? '');
        if (Number.isNaN(bound)) return false;
        const point = findPoint(labels.filter(([label]) => label !== boundName));
        point.bounds.push(bound);
        point.values.push(value);
        point.timestampMs = timestampMs;
        return true;
      }
      if (name !== `${family}_sum` && name !== `${family}_count`) return false;
      const point = findPoint(labels);
      if (name === `${family}_sum`) point.sum = value;
      else point.count = value;
      point.timestampMs = timestampMs;
      return true;
    },
    *take() {
      for (const [key, { bounds, values, sum, count, timestampMs }] of points) {
        points.delete(key);
        const steps = bounds.map((bound, index) => ({ bound, value: values[index] as number }));
        steps.sort((left, right) => left.bound - right.bound);
        yield { labels: JSON.parse(key), steps, sum, count, timestampMs };
      }
    },
  };
}
