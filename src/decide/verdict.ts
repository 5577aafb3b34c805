// The verdict: whether the last numbers of the metrics that LASTSCRAPE_FAIL_IF names fail the job. Pure.
// What cannot be judged fails: a threshold that cannot be checked must not pass.

import type { Comparison, ExporterObservation, ThresholdPolicy, ThresholdReading } from './model.ts';

/** What is remembered of one exporter; plain data. */
export type Continuity = {
  /** promhttp's newest counter of finished scrapes; null: none yet, or none since a refusal. */
  readonly finishedCount: number | null;
  readonly hasAnswered: boolean;
  /** Since its last answer it refused; or that answer's counter fell, and main was not seen alive since. */
  readonly isInterrupted: boolean;
  /** It has not answered since it refused. */
  readonly isRefused: boolean;
  /** It was interrupted while main's end was known or being proven; false again once main is alive. */
  readonly isLost: boolean;
};

export const UNSEEN: Continuity = {
  finishedCount: null,
  hasAnswered: false,
  isInterrupted: false,
  isRefused: false,
  isLost: false,
};

/** What is remembered of the numbers that are judged. */
export type JudgedNumbers = {
  /** Of each entry, the newest conclusive one since main was first alive; may be shorter than the entries. */
  readonly readings: readonly ThresholdReading[];
  /** Of each entry: it was a number other than 0 at some time. */
  readonly wereNonZero: readonly boolean[];
  /** Whether what the exporter shows is of this run; with a front its source's own state says that. */
  readonly continuity: Continuity;
};

export const NO_NUMBERS: JudgedNumbers = { readings: [], wereNonZero: [], continuity: UNSEEN };

/** Why an entry fails: the number, or in words why there is none, with names or labels that may be meant. */
export type FailedThreshold = {
  readonly entry: string;
  readonly seen: number | string;
  readonly nearest?: readonly string[];
};

export type Verdict =
  | { readonly kind: 'passed' }
  /** In the order of the entries; at least one. */
  | { readonly kind: 'failed'; readonly failed: readonly FailedThreshold[] }
  /** The run was cut short: its numbers are not those of a whole run. */
  | { readonly kind: 'notJudged'; readonly by: 'a signal' | 'a second signal' | 'LASTSCRAPE_RUN_TIMEOUT' };

/** Of one entry the newer reading, unless it says nothing. */
export function mergeReading<Reading extends ThresholdReading>(older: Reading, newer: Reading): Reading {
  if (newer.kind !== 'none') return newer;
  if (older.kind !== 'none') return older;
  // What a page has that is like the name, it may not have any more when main has gone: three of two pages.
  const nearest = [...new Set([...(newer.nearest ?? []), ...(older.nearest ?? [])])];
  return nearest.length === 0 ? newer : { ...newer, nearest: nearest.slice(0, 6) };
}

/** The numbers after newer readings; none of them: they stay as they are. */
export function takeReadings(numbers: JudgedNumbers, newer: readonly ThresholdReading[]): JudgedNumbers {
  if (newer.length === 0) return numbers;
  const readings = newer.map((reading, index) => mergeReading(numbers.readings[index] ?? reading, reading));
  const isNonZero = (reading: ThresholdReading) => reading.kind === 'value' && reading.value !== 0;
  const wereNonZero = readings.map((reading, index) => numbers.wereNonZero[index] === true || isNonZero(reading));
  return { ...numbers, readings, wereNonZero };
}

/** Judges every entry by the remembered numbers; null without entries. */
export function judgeNumbers(thresholds: readonly ThresholdPolicy[], numbers: JudgedNumbers): Verdict | null {
  if (thresholds.length === 0) return null;
  const failed = thresholds.flatMap((each, index) => describeFailure(each, readReading(numbers, index)));
  return failed.length === 0 ? { kind: 'passed' } : { kind: 'failed', failed };
}

/** The entries for which no page has had a number so far, and why. */
export function listUnread(thresholds: readonly ThresholdPolicy[], numbers: JudgedNumbers): readonly FailedThreshold[] {
  return thresholds.flatMap((each, index) => {
    const reading = readReading(numbers, index);
    return reading.kind === 'value' ? [] : describeFailure(each, reading);
  });
}

function readReading({ readings }: JudgedNumbers, index: number): ThresholdReading {
  return readings[index] ?? { kind: 'none' };
}

function describeFailure(threshold: ThresholdPolicy, reading: ThresholdReading): readonly FailedThreshold[] {
  const seen = findFailure(threshold, reading);
  const nearest = 'nearest' in reading ? { nearest: reading.nearest } : {};
  return seen === null ? [] : [{ entry: threshold.text, seen, ...nearest }];
}

/** What makes the entry fail; null: it passes. */
function findFailure({ name, comparison, limit }: ThresholdPolicy, reading: ThresholdReading): number | string | null {
  switch (reading.kind) {
    case 'none':
      return `no sample of ${name}`;
    case 'unmatched':
      return 'no sample with these labels';
    case 'several':
      return 'several samples match';
    case 'value': {
      const { value } = reading;
      if (Number.isNaN(value)) return 'NaN';
      if (!COMPARE[comparison](value, limit)) return null;
      // JSON has no infinite numbers.
      return Number.isFinite(value) ? value : value > 0 ? '+Inf' : '-Inf';
    }
  }
}

const COMPARE: Readonly<Record<Comparison, (value: number, limit: number) => boolean>> = {
  '>': (value, limit) => value > limit,
  '>=': (value, limit) => value >= limit,
  '<': (value, limit) => value < limit,
  '<=': (value, limit) => value <= limit,
  '==': (value, limit) => value === limit,
  '!=': (value, limit) => value !== limit,
};

/** What counts failures is 0 in every good run. */
const MAY_STAY_ZERO = /fail|error|exception|drop|lost|miss|reject|timeout|unhandled/i;

/** Entries whose metric was always 0 and does not count failures: perhaps nothing ever sets it. */
export function findAlwaysZero(thresholds: readonly ThresholdPolicy[], { readings, wereNonZero }: JudgedNumbers) {
  return thresholds.filter(({ name }, index) => {
    const reading = readings[index];
    return reading?.kind === 'value' && reading.value === 0 && wereNonZero[index] !== true && !MAY_STAY_ZERO.test(name);
  });
}

/** Of Locust's last seconds in its own page, and always 0 of its exporter with Locust 2.x (recordings). */
const OF_LAST_SECONDS = /_current_response_time_percentile_(50|95)$/;

/** The first entry whose metric says nothing of the whole run. */
export function findOfLastSeconds(thresholds: readonly ThresholdPolicy[]): ThresholdPolicy | undefined {
  return thresholds.find(({ name }) => OF_LAST_SECONDS.test(name));
}

/**
 * A share, 0 to 1; what Locust and others measure in ms; what is measured in seconds; what is never below 0.
 */
const SHARE = /_ratio$/;
const IN_MS = /^locust_\w*response_time|_(?:ms|milliseconds)$/;
const IN_SECONDS = /(?:request|response|latency)(?!.*timestamp)\w*_seconds$/;
const NOT_NEGATIVE = /_(?:total|count|ratio|bucket)$|^locust_requests_/;
/** Nothing that is load-tested answers sooner, or is waited for so long. */
const LEAST_MS = 5;
const MOST_SECONDS = 100;

/** Why an entry is true, or false, whatever the run does: its limit is in another unit; null: it is not. */
export function findOddLimit({ name, comparison, limit }: ThresholdPolicy): string | null {
  const [isUpper, isLower] = [comparison.startsWith('>'), comparison.startsWith('<')];
  const isBeyond = SHARE.test(name) && (limit > 1 || (limit === 1 && (comparison === '>' || comparison === '<=')));
  if (isBeyond) return `a ratio is between 0 and 1: 5 % is 0.05`;
  if (NOT_NEGATIVE.test(name) && (limit < 0 || (limit === 0 && ['<', '>='].includes(comparison)))) {
    return 'it is never below 0';
  }
  if ((isUpper || isLower) && IN_MS.test(name) && limit > 0 && limit < LEAST_MS) return 'it is in milliseconds';
  return (isUpper || isLower) && IN_SECONDS.test(name) && limit >= MOST_SECONDS ? 'it is in seconds' : null;
}

/** What is remembered after one more read, or after main changed (`none`: the exporter was not read). */
export function advanceContinuity(before: Continuity, exporter: ExporterObservation, isLiving: boolean): Continuity {
  const now = advance(before, exporter);
  if (!isLiving) return { ...now, isLost: now.isLost || now.isInterrupted };
  // Main lived after the answer: what it shows is of this run.
  const isOver = exporter.kind === 'none' && !now.isRefused;
  return { ...now, isInterrupted: now.isInterrupted && !isOver, isLost: false };
}

function advance(before: Continuity, exporter: ExporterObservation): Continuity {
  if (exporter.kind === 'refused') {
    return { ...before, isInterrupted: before.isInterrupted || before.hasAnswered, isRefused: true };
  }
  if (exporter.kind !== 'answered') return before;
  const finishedCount = exporter.scrapes?.finishedCount ?? (before.isRefused ? null : before.finishedCount);
  const isInterrupted = before.finishedCount !== null && finishedCount !== null && finishedCount < before.finishedCount;
  return { ...before, finishedCount, hasAnswered: true, isInterrupted, isRefused: false };
}
