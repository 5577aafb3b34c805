// The report: how a run went, as one JSON object and one sentence. Pure.

import { cut } from '../base/text.ts';
import { EXIT, judgeRun } from './exit-codes.ts';
import { countScrapesWhileRunning } from './facts.ts';
import { toSeconds } from './model.ts';
import {
  buildFinal,
  countScrapes,
  cutFailed,
  describeVerdict,
  findHint,
  findMainEnd,
  findPush,
  findVerdictHint,
  listScrapers,
  listTargets,
  type Report,
  type ReportInput,
  type RunOutcome,
  readExitCode,
} from './report-fields.ts';
import type { PushReport } from './state.ts';
import { summarize } from './summary.ts';
import type { FailedThreshold } from './verdict.ts';

export function buildReport(input: ReportInput): Report {
  const { state, policy, nowMs, stage, toTime } = input;
  const { facts, phase } = state;
  const push = findPush(input);
  const mainEndedAtMs = findMainEnd(phase);
  const heldUntilMs = phase.kind === 'quitting' ? phase.sinceMs : nowMs;
  const ranMs = facts.aliveSinceMs === null ? null : (mainEndedAtMs ?? heldUntilMs) - facts.aliveSinceMs;
  const ended = phase.kind === 'quitting' ? phase.outcome : 'terminated';
  const outcome: RunOutcome = stage.kind === 'unfinished' ? 'unfinished' : ended;
  // After a second signal nothing is judged.
  const verdict = stage.kind === 'done' && stage.by !== null ? null : judgeRun(state, policy);
  const counts = countScrapes(input);
  const fields = {
    outcome,
    ...describeVerdict(verdict),
    scrapesWanted: counts.wanted,
    scrapesSeen: counts.seen,
    scrapesWhileRunning: policy.hasFront
      ? facts.front.scrapesCount - (counts.seen ?? 0)
      : countScrapesWhileRunning(state),
    // Main can be known to have been alive only after its end was seen.
    ranSeconds: ranMs === null ? null : toSeconds(Math.max(0, ranMs), 1),
    heldSeconds: mainEndedAtMs === null ? null : toSeconds(heldUntilMs - mainEndedAtMs, 1),
    mainEndedAt: mainEndedAtMs === null ? null : toTime(mainEndedAtMs),
    ...(Object.keys(facts.exitCodes).length === 0 ? {} : { mainExitCodes: facts.exitCodes }),
    ...(facts.front.scrapers.length === 0 ? {} : { scrapers: listScrapers(input) }),
    ...(push === null ? {} : { push }),
    targets: listTargets(input),
    ...buildFinal(state),
    exitCode: readExitCode(input),
    version: input.version,
  };
  const summary = summarize({ ...fields, judged: verdict, pushed: push, mainEndedAtMs, cameCount: counts.came }, input);
  const hint = findHint(input, outcome) ?? (verdict === null ? null : findVerdictHint(policy));
  return { summary, ...(hint === null ? {} : { hint }), ...fields };
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

/** The lists of a report in the order they are shortened: which end goes first, and how many stay. */
const LISTS = [
  { field: 'scrapers', omitted: 'scrapersOmitted', rest: [1], keptCount: 0 },
  { field: 'alsoFailed', omitted: 'failedOmitted', rest: [0, -1], keptCount: 0 },
  { field: 'targets', omitted: 'targetsOmitted', rest: [0, -1], keptCount: 0 },
  { field: 'problems', omitted: 'problemsOmitted', rest: [0, -1], keptCount: 1 },
] as const;
const TEXT_MIN_LENGTH = 16;

/** The report cut to at most `maxBytes` bytes of JSON. */
export function fitReport(report: Report, maxBytes = REPORT_MAX_BYTES): Report {
  let fitted = report;
  for (const smaller of listSmaller(report, maxBytes)) {
    if (Buffer.byteLength(JSON.stringify(fitted)) <= maxBytes) break;
    fitted = smaller;
  }
  return fitted;
}

/** Drops hints, then exit codes, then shortens one list after the other, then cuts texts. */
function* listSmaller(report: Report, maxBytes: number): Generator<Report> {
  let now = dropHints(report);
  yield now;
  const { mainExitCodes: _, ...rest } = now;
  now = rest;
  yield now;
  for (const { field, omitted, rest, keptCount } of LISTS) {
    let list: readonly unknown[] = now[field] ?? [];
    while (list.length > keptCount) {
      list = list.slice(...rest);
      now = { ...now, [field]: list, [omitted]: (now[omitted] ?? 0) + 1 };
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
  const { targets, push, failed, alsoFailed } = report;
  const dropNearest = ({ nearest: _, ...rest }: FailedThreshold) => rest;
  const dropWhy = ({ why: _, ...rest }: PushReport) => rest;
  return {
    ...report,
    ...(failed === undefined ? {} : { failed: dropNearest(failed) }),
    ...(alsoFailed === undefined ? {} : { alsoFailed: alsoFailed.map(dropNearest) }),
    ...(targets === undefined ? {} : { targets: targets.map(({ hint: _hint, ...target }) => target) }),
    ...(push === undefined ? {} : { push: dropWhy(push) }),
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
