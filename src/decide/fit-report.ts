// Cuts a report to what a termination message may have, in the order in which its parts can be missed. Pure.

import { cut } from '../base/text.ts';
import { cutFailed, type Report } from './report-fields.ts';
import type { PushReport } from './state.ts';

/** Kubernetes cuts a message at 4,096 bytes and gives 12 KiB to all containers of a pod; this leaves room for twelve. */
export const REPORT_MAX_BYTES = 1_024;

/** The lists of a report, in the order in which they are shortened: which end goes first, and how many stay. */
const LISTS = [
  { field: 'scrapers', omitted: 'scrapersOmitted', rest: [1], keptCount: 0 },
  { field: 'alsoFailed', omitted: 'failedOmitted', rest: [0, -1], keptCount: 0 },
  { field: 'targets', omitted: 'targetsOmitted', rest: [0, -1], keptCount: 0 },
  { field: 'problems', omitted: 'problemsOmitted', rest: [0, -1], keptCount: 1 },
] as const;
/** No text is cut any shorter, in characters. */
const TEXT_MIN_LENGTH = 16;

/** The report cut to at most `maxBytes` bytes of JSON. */
export function fitReport(report: Report, maxBytes = REPORT_MAX_BYTES): Report {
  let fitted = report;
  for (const smaller of listSmaller(report, maxBytes)) {
    if (new TextEncoder().encode(JSON.stringify(fitted)).byteLength <= maxBytes) break;
    fitted = smaller;
  }
  return fitted;
}

/** The report without hints, then without exit codes, then with one list after the other shortened, then with its texts cut. */
function* listSmaller(report: Report, maxBytes: number): Generator<Report> {
  let now = dropHints(report);
  yield now;
  const { mainExitCodes: _, ...rest } = now;
  now = rest;
  yield now;
  for (const { field, omitted, rest, keptCount } of LISTS) {
    for (let list = now[field] ?? []; list.length > keptCount; list = now[field] ?? []) {
      now = { ...now, [field]: list.slice(...rest), [omitted]: (now[omitted] ?? 0) + 1 };
      yield now;
    }
  }
  // One problem may quote a long value, a summary a long error, and an entry a long label.
  for (let length = maxBytes; length >= TEXT_MIN_LENGTH; length = Math.floor(length / 2)) {
    now = cutTexts(now, length);
    yield now;
  }
}

function dropHints({ hint: _, ...report }: Report): Report {
  const { targets, push } = report;
  return {
    ...report,
    ...(targets === undefined ? {} : { targets: targets.map(({ hint: _hint, ...target }) => target) }),
    ...(push === undefined ? {} : { push: dropWhy(push) }),
  };
}

function dropWhy({ why: _, ...push }: PushReport): PushReport {
  return push;
}

function cutTexts(report: Report, length: number): Report {
  const { summary, problems, failed } = report;
  return {
    ...report,
    summary: cut(summary, length),
    ...(problems === undefined ? {} : { problems: problems.map((problem) => cut(problem, length)) }),
    ...(failed === undefined ? {} : { failed: cutFailed(failed, length) }),
  };
}
