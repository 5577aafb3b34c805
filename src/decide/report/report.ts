// The report: how a run went, as one JSON object and one sentence. Pure.

import { cut, formatJson } from '../../base/text.ts';
import { EXIT } from '../quit/exit-codes.ts';
import { buildFields, cutFailed, type Report, type ReportInput } from './report-fields.ts';
import { findHint, summarize } from './summary.ts';

export function buildReport(input: ReportInput): Report {
  const found = buildFields(input);
  const hint = findHint(found, input);
  return { summary: summarize(found, input), ...(hint === null ? {} : { hint }), ...found.fields };
}

export function buildMisconfiguredReport(problems: readonly string[], version: string): Report {
  const summary = `Misconfigured: ${problems.length === 1 ? 'one problem' : `${problems.length} problems`}; nothing is held or stopped`;
  return { summary, outcome: 'misconfigured', problems, exitCode: EXIT.misconfigured, version };
}

export function buildBugReport(error: string, version: string): Report {
  return { summary: cut(`Bug in lastscrape: ${error}`, 400), outcome: 'bug', exitCode: EXIT.bug, version };
}

/** Kubernetes allows 4,096 bytes a message and 12 KiB a pod; this leaves room for twelve containers. */
export const REPORT_MAX_BYTES = 1_024;

/** The lists of a report: which end goes first, and how many stay. */
const LISTS = {
  scrapers: { field: 'scrapers', omitted: 'scrapersOmitted', rest: [1], keptCount: 0 },
  alsoFailed: { field: 'alsoFailed', omitted: 'failedOmitted', rest: [0, -1], keptCount: 0 },
  targets: { field: 'targets', omitted: 'targetsOmitted', rest: [0, -1], keptCount: 0 },
  problems: { field: 'problems', omitted: 'problemsOmitted', rest: [0, -1], keptCount: 1 },
} as const;
type List = Omit<(typeof LISTS)[keyof typeof LISTS], 'keptCount'> & { readonly keptCount: number };
/** Fields that only help: of a target, the push or an entry that fails. */
const HELP: readonly string[] = ['hint', 'nearest', 'why'];
const TEXT_MIN_LENGTH = 16;

/** The report cut to at most `maxBytes` bytes of JSON. */
export function fitReport(report: Report, maxBytes = REPORT_MAX_BYTES): Report {
  let fitted = report;
  for (const smaller of listSmaller(report, maxBytes)) {
    if (Buffer.byteLength(formatJson(fitted)) <= maxBytes) break;
    fitted = smaller;
  }
  return fitted;
}

/**
 * Drops exit codes and all but the newest scraper, what only explains an entry or a target, that scraper and
 * failed entries; only then the hint, which says what to change; then shortens other lists, and cuts texts.
 */
function* listSmaller(report: Report, maxBytes: number): Generator<Report> {
  const { mainExitCodes: _, ...rest } = report;
  yield rest;
  let now = dropHelp(yield* shorten(rest, { ...LISTS.scrapers, keptCount: 1 }));
  yield now;
  now = yield* shorten(now, LISTS.scrapers, LISTS.alsoFailed);
  const { hint: __, ...unhinted } = now;
  yield unhinted;
  now = yield* shorten(unhinted, LISTS.targets, LISTS.problems);
  // One problem may quote a long value, a summary a long error, and an entry a long label.
  for (let length = maxBytes; length >= TEXT_MIN_LENGTH; length = Math.floor(length / 2)) {
    now = cutTexts(now, length);
    yield now;
  }
}

/** Shortens one list after the other, by one at a time. @returns the shortest */
function* shorten(report: Report, ...lists: readonly List[]): Generator<Report, Report> {
  let now = report;
  for (const { field, omitted, rest, keptCount } of lists) {
    let list: readonly unknown[] = now[field] ?? [];
    while (list.length > keptCount) {
      list = list.slice(...rest);
      now = { ...now, [field]: list, [omitted]: (now[omitted] ?? 0) + 1 };
      yield now;
    }
  }
  return now;
}

/** Without what only explains an entry that fails, a target, the push or the hand-over. */
function dropHelp(report: Report): Report {
  const { hint: _, ...fields } = report;
  return {
    ...report,
    ...JSON.parse(JSON.stringify(fields, (name, value) => (HELP.includes(name) ? undefined : value))),
  };
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
