// The report: how a run went, as one JSON object and one sentence. Pure.

import { cut } from '../base/text.ts';
import { EXIT, judgeRun } from './exit-codes.ts';
import { countScrapesWhileRunning } from './facts.ts';
import {
  buildFinal,
  countScrapes,
  describeVerdict,
  findHint,
  findPush,
  listScrapers,
  listTargets,
  type Report,
  type ReportInput,
  type RunOutcome,
  readExitCode,
  toSeconds,
} from './report-fields.ts';
import { summarize } from './summary.ts';

/** The report of a run, finished or not. */
export function buildReport(input: ReportInput): Report {
  const { state, policy, nowMs, stage, toTime } = input;
  const { facts, phase } = state;
  const push = findPush(input);
  const mainEndedAtMs = phase.kind === 'holding' || phase.kind === 'quitting' ? phase.mainEndedAtMs : null;
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
    ranSeconds: ranMs === null ? null : toSeconds(Math.max(0, ranMs)),
    heldSeconds: mainEndedAtMs === null ? null : toSeconds(heldUntilMs - mainEndedAtMs),
    mainEndedAt: mainEndedAtMs === null ? null : toTime(mainEndedAtMs),
    ...(Object.keys(facts.exitCodes).length === 0 ? {} : { mainExitCodes: facts.exitCodes }),
    ...(facts.front.scrapers.length === 0 ? {} : { scrapers: listScrapers(input) }),
    ...(push === null ? {} : { push }),
    targets: listTargets(input),
    final: buildFinal(state),
    exitCode: readExitCode(input),
    version: input.version,
  };
  const summary = summarize({ ...fields, judged: verdict, pushed: push, mainEndedAtMs, cameCount: counts.came }, input);
  const hint = findHint(input, outcome);
  return { summary, ...(hint === null ? {} : { hint }), ...fields };
}

/** The report of a configuration that cannot be used. */
export function buildMisconfiguredReport(problems: readonly string[], version: string): Report {
  const summary = `Misconfigured: ${problems.length === 1 ? 'one problem' : `${problems.length} problems`}; nothing is held or stopped`;
  return { summary, outcome: 'misconfigured', problems, exitCode: EXIT.misconfigured, version };
}

/** The report of a bug of lastscrape itself. */
export function buildBugReport(error: string, version: string): Report {
  return { summary: cut(`Bug in lastscrape: ${error}`, 400), outcome: 'bug', exitCode: EXIT.bug, version };
}
