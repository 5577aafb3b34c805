// The report: how a run went, as one JSON object and one sentence. Pure.
// It says only what was seen; what is unknown is null.

import { cut } from '../base/text.ts';
import { EXIT, findExitCode, judgeRun } from './exit-codes.ts';
import { countScrapesWhileRunning } from './facts.ts';
import { MESSAGES } from './messages.ts';
import {
  assertNever,
  type ExitCodes,
  findLeastWanted,
  type HoldOutcome,
  hasHold,
  type Outcome,
  type Policy,
} from './model.ts';
import { type FrontFacts, findInterval, judgeTurnout, nameScraper } from './scrapers.ts';
import type { DoneEffect, PushReport, State, TargetReport } from './state.ts';
import type { FailedThreshold, Verdict } from './verdict.ts';

/** Kubernetes cuts a message at 4,096 bytes and gives 12 KiB to all containers of a pod; this leaves room for twelve. */
export const REPORT_MAX_BYTES = 1_024;

/** The report as it is logged and written; the order of the keys is the order of reading. */
export type Report = {
  readonly summary: string;
  readonly outcome: Outcome;
  /** From the hold on, by the numbers so far; absent where nothing is judged, and after a second signal. */
  readonly verdict?: Verdict['kind'];
  /** The first entry that fails, in the order of LASTSCRAPE_FAIL_IF. */
  readonly failed?: FailedThreshold;
  /** The others. */
  readonly alsoFailed?: readonly FailedThreshold[];
  /** Those that did not fit. */
  readonly failedOmitted?: number;
  readonly hint?: string;
  readonly problems?: readonly string[];
  /** Problems that did not fit. */
  readonly problemsOmitted?: number;
  readonly scrapesWanted?: number;
  readonly scrapesSeen?: number | null;
  readonly scrapesWhileRunning?: number | null;
  readonly ranSeconds?: number | null;
  readonly heldSeconds?: number | null;
  /** RFC 3339, UTC. */
  readonly mainEndedAt?: string | null;
  /** Exit codes of main containers; absent where none is known, or where it did not fit. */
  readonly mainExitCodes?: ExitCodes;
  /** With a front: who scraped, the newest last; absent where it did not fit. */
  readonly scrapers?: readonly {
    /** Address and User-Agent. */
    readonly scraper: string;
    /** null: it came once. */
    readonly intervalSeconds: number | null;
    /** RFC 3339, UTC. */
    readonly last: string;
  }[];
  /** Scrapers that did not fit. */
  readonly scrapersOmitted?: number;
  /** With LASTSCRAPE_PUSH, once it is over. */
  readonly push?: PushReport;
  /** `pending`: in a report that is sent before it is asked. */
  readonly targets?: readonly (TargetReport | PendingTarget)[];
  /** Targets that did not fit. */
  readonly targetsOmitted?: number;
  readonly final?: {
    readonly requests: number | null;
    readonly failures: number | null;
    /** failures / requests, 0 to 1. */
    readonly failRatio: number | null;
    readonly users: number | null;
  };
  readonly exitCode: number | null;
  readonly version: string;
};

/** A target that is asked after the report. */
export type PendingTarget = { readonly target: string; readonly result: 'pending'; readonly hint?: undefined };

type RunOutcome = HoldOutcome | 'unfinished';

/** When it is written: again and again on the way; for the webhook, before the targets that are left are asked; at the end. */
export type ReportStage = { readonly kind: 'unfinished' } | { readonly kind: 'beforeTargets' } | DoneEffect;

export type ReportInput = {
  readonly state: State;
  readonly policy: Policy;
  /** Host and port of the exporter. */
  readonly exporterAt: string;
  /** The moment that the report speaks of. */
  readonly nowMs: number;
  /** A monotonic moment as RFC 3339, UTC. */
  readonly toTime: (atMs: number) => string;
  readonly stage: ReportStage;
  readonly version: string;
};

/** The report of a run, finished or not. */
export function buildReport(input: ReportInput): Report {
  const { state, policy, nowMs, stage } = input;
  const { facts, phase } = state;
  const targets = listTargets(input);
  const push = findPush(input);
  const mainEndedAtMs = phase.kind === 'holding' || phase.kind === 'quitting' ? phase.mainEndedAtMs : null;
  const { seen: scrapesSeen, wanted: scrapesWanted, came: scrapersCame } = countScrapes(input);
  const heldUntilMs = phase.kind === 'quitting' ? phase.sinceMs : nowMs;
  const ranUntilMs = mainEndedAtMs ?? heldUntilMs;
  const ended = phase.kind === 'quitting' ? phase.outcome : 'terminated';
  const outcome: RunOutcome = stage.kind === 'unfinished' ? 'unfinished' : ended;
  // After a second signal nothing is judged.
  const verdict = stage.kind === 'done' && stage.by !== null ? null : judgeRun(state, policy);
  const numbers = {
    outcome,
    ...describeVerdict(verdict),
    scrapesWanted,
    scrapesSeen,
    scrapesWhileRunning: policy.hasFront
      ? facts.front.scrapesCount - (scrapesSeen ?? 0)
      : countScrapesWhileRunning(state),
    // Main can be known to have been alive only after its end was seen.
    ranSeconds: facts.aliveSinceMs === null ? null : toSeconds(Math.max(0, ranUntilMs - facts.aliveSinceMs)),
    heldSeconds: mainEndedAtMs === null ? null : toSeconds(heldUntilMs - mainEndedAtMs),
    mainEndedAt: mainEndedAtMs === null ? null : input.toTime(mainEndedAtMs),
    ...(Object.keys(facts.exitCodes).length === 0 ? {} : { mainExitCodes: facts.exitCodes }),
    ...(facts.front.scrapers.length === 0 ? {} : { scrapers: listScrapers(input) }),
    ...(push === null ? {} : { push }),
    targets,
    final: buildFinal(state),
    exitCode: readExitCode(input),
    version: input.version,
  };
  const hold = summarizeHold({ ...numbers, scrapersCame, mainEndedAtMs }, input);
  const judged = summarizeVerdict(verdict, policy);
  const summary = [
    ...(judged === null ? [hold] : [judged, `${hold.slice(0, 1).toLowerCase()}${hold.slice(1)}`]),
    ...summarizePush(push, input),
    ...summarizeTargets(targets, input),
  ].join('; ');
  const hint = findHint(input, outcome);
  return { summary, ...(hint === null ? {} : { hint }), ...numbers };
}

function readExitCode({ state, policy, stage }: ReportInput): number | null {
  if (stage.kind === 'done') return stage.exitCode;
  return stage.kind === 'unfinished' ? null : findExitCode(state, policy, null);
}

function listTargets({ state: { phase }, policy, stage }: ReportInput): NonNullable<Report['targets']> {
  const reports = phase.kind === 'quitting' ? phase.reports : [];
  if (stage.kind !== 'beforeTargets') return reports;
  const left = policy.targets.slice(reports.length);
  return [...reports, ...left.map(({ name }): PendingTarget => ({ target: name, result: 'pending' }))];
}

/** What became of the push; null: there is none, or nothing is known yet. */
function findPush({ state: { phase }, policy, stage }: ReportInput): PushReport | null {
  if (policy.push === undefined) return null;
  if (phase.kind === 'quitting' && phase.push !== undefined) return phase.push;
  return stage.kind === 'unfinished' ? null : { to: policy.push.to, result: 'failed', why: 'interrupted' };
}

function summarizePush(push: PushReport | null, { stage }: ReportInput): readonly string[] {
  if (push === null || push.result === 'notNeeded' || stage.kind === 'unfinished') return [];
  return [
    push.result === 'accepted' ? `last numbers pushed (${push.to})` : `push of the last numbers failed (${push.to})`,
  ];
}

/** Of a longer entry and its label the rest tells nobody more. */
const ENTRY_MAX_LENGTH = 200;

function describeVerdict(verdict: Verdict | null): Pick<Report, 'verdict' | 'failed' | 'alsoFailed'> {
  if (verdict?.kind !== 'failed') return verdict === null ? {} : { verdict: verdict.kind };
  const [failed, ...alsoFailed] = verdict.failed.map((each) => cutFailed(each, ENTRY_MAX_LENGTH));
  return {
    verdict: verdict.kind,
    failed: failed as FailedThreshold,
    ...(alsoFailed.length === 0 ? {} : { alsoFailed }),
  };
}

/** The verdict comes first: whoever sets a threshold asks for nothing else. */
function summarizeVerdict(verdict: Verdict | null, { thresholds = [] }: Policy): string | null {
  if (verdict === null) return null;
  if (verdict.kind === 'passed')
    return `Passed ${thresholds.length === 1 ? 'the threshold' : `${thresholds.length} thresholds`}`;
  const [first] = verdict.failed as readonly [FailedThreshold, ...FailedThreshold[]];
  const more = verdict.failed.length === 1 ? '' : `, and ${verdict.failed.length - 1} more`;
  return `Failed by ${cut(first.entry, 100)} (${showSeen(first.seen)})${more}`;
}

/** A fraction to nine digits, for a person: `failed` has it as it was. */
function showSeen(seen: FailedThreshold['seen']): FailedThreshold['seen'] {
  return typeof seen === 'string' || Number.isInteger(seen) ? seen : Number(seen.toPrecision(9));
}

/** How many scrapes were seen since main ended (null: not counted), how many are waited for, and how many of those came. */
function countScrapes({ state: { facts, phase }, policy, nowMs }: ReportInput): {
  readonly seen: number | null;
  readonly wanted: number;
  readonly came: number | null;
} {
  const { limits, hasFront } = policy;
  const endedAtMs = phase.kind === 'holding' || phase.kind === 'quitting' ? phase.mainEndedAtMs : null;
  if (hasFront && endedAtMs !== null) {
    const untilMs = phase.kind === 'quitting' ? phase.sinceMs : nowMs;
    const turnout = judgeTurnout(facts.front, { endedAtMs, nowMs: untilMs, limits });
    return { seen: turnout.seenCount, wanted: turnout.wantedCount, came: turnout.cameCount };
  }
  const counted = phase.kind === 'holding' && phase.count.baseline !== null ? phase.count.seenCount : null;
  const seen = phase.kind === 'quitting' ? phase.scrapesSeenCount : counted;
  return { seen, wanted: findLeastWanted(limits), came: seen };
}

function listScrapers({ state, toTime }: ReportInput): NonNullable<Report['scrapers']> {
  return state.facts.front.scrapers
    .toSorted((one, other) => one.lastAtMs - other.lastAtMs)
    .map((scraper) => {
      const intervalMs = findInterval(scraper);
      return {
        scraper: nameScraper(scraper),
        intervalSeconds: intervalMs === null ? null : toSeconds(intervalMs),
        last: toTime(scraper.lastAtMs),
      };
    });
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

/**
 * The report cut to at most `maxBytes` bytes of JSON: hints, and why a push failed, go first, then exit codes, then scrapers, the
 * one that was silent for longest first, then entries that fail beside the first, then whole targets or problems, counted.
 */
export function fitReport(report: Report, maxBytes = REPORT_MAX_BYTES): Report {
  let fitted = report;
  const fits = () => byteLength(JSON.stringify(fitted)) <= maxBytes;
  if (!fits()) {
    const { hint: _, ...rest } = fitted;
    fitted = rest;
    if (rest.targets !== undefined) {
      fitted = { ...rest, targets: rest.targets.map(({ hint: _hint, ...target }) => target) };
    }
    if (fitted.push !== undefined) {
      const { why: _why, ...push } = fitted.push;
      fitted = { ...fitted, push };
    }
  }
  if (!fits()) {
    const { mainExitCodes: _, ...rest } = fitted;
    fitted = rest;
  }
  while (!fits() && fitted.scrapers !== undefined && fitted.scrapers.length > 0) {
    const { scrapers, scrapersOmitted = 0 } = fitted;
    fitted = { ...fitted, scrapers: scrapers.slice(1), scrapersOmitted: scrapersOmitted + 1 };
  }
  while (!fits() && fitted.alsoFailed !== undefined && fitted.alsoFailed.length > 0) {
    const { alsoFailed, failedOmitted = 0 } = fitted;
    fitted = { ...fitted, alsoFailed: alsoFailed.slice(0, -1), failedOmitted: failedOmitted + 1 };
  }
  while (!fits() && fitted.targets !== undefined && fitted.targets.length > 0) {
    fitted = { ...fitted, targets: fitted.targets.slice(0, -1), targetsOmitted: (fitted.targetsOmitted ?? 0) + 1 };
  }
  while (!fits() && fitted.problems !== undefined && fitted.problems.length > 1) {
    fitted = { ...fitted, problems: fitted.problems.slice(0, -1), problemsOmitted: (fitted.problemsOmitted ?? 0) + 1 };
  }
  // One problem may quote a long value, a summary a long error, and an entry a long label.
  for (let length = maxBytes; !fits() && length >= 16; length = Math.floor(length / 2)) {
    const { problems, failed } = fitted;
    fitted = {
      ...fitted,
      summary: cut(fitted.summary, length),
      ...(problems === undefined ? {} : { problems: problems.map((problem) => cut(problem, length)) }),
      ...(failed === undefined ? {} : { failed: cutFailed(failed, length) }),
    };
  }
  return fitted;
}

function cutFailed({ entry, seen }: FailedThreshold, length: number): FailedThreshold {
  return { entry: cut(entry, length), seen: typeof seen === 'number' ? seen : cut(seen, length) };
}

/** What may have kept the scrapes away; null where nothing is known. */
function findHint({ state: { facts, phase }, policy }: ReportInput, outcome: RunOutcome): string | null {
  if (outcome === 'exporterGone' && !facts.hasAnswered) {
    return 'set LASTSCRAPE_METRICS_URL to where the exporter listens, or LASTSCRAPE_SCRAPES=0 where there is none';
  }
  if (outcome !== 'expired' || phase.kind !== 'quitting' || (phase.scrapesSeenCount ?? 0) > 0) return null;
  if (phase.scrapesSeenCount === null) {
    return phase.hasAnswered
      ? 'the exporter showed no promhttp scrape counter after main ended'
      : 'the exporter gave no answer after main ended';
  }
  const { running, front, warned } = facts;
  const isNobody = policy.hasFront ? front.scrapesCount === 0 : running.count.isNobody && !running.wasScrapedBefore;
  return warned.includes('nobodyScraped') && isNobody ? MESSAGES.nobodyScraped.text : null;
}

function buildFinal({ facts }: State): NonNullable<Report['final']> {
  const { requests, failures, users } = facts.totals;
  const ratio = requests === null || failures === null || requests === 0 ? null : failures / requests;
  return { requests, failures, failRatio: ratio === null ? null : roundRatio(ratio), users };
}

function summarizeHold(
  report: {
    readonly outcome: RunOutcome;
    readonly scrapesSeen: number | null;
    readonly scrapesWanted: number;
    readonly scrapersCame: number | null;
    readonly mainEndedAtMs: number | null;
    readonly heldSeconds: number | null;
  },
  { state: { facts, phase }, policy, exporterAt }: ReportInput,
): string {
  const { ttlMs } = policy.limits;
  const { outcome, scrapesSeen, scrapesWanted, scrapersCame } = report;
  const held = `${(report.heldSeconds ?? 0).toFixed(1)} s`;
  const isAuto = policy.limits.scrapesWantedCount === 'auto';
  const ofWanted =
    scrapersCame === null
      ? 'scrapes not counted'
      : `${scrapersCame} of ${scrapesWanted} ${isAuto ? 'scrapers came' : 'wanted scrapes seen'}`;
  switch (outcome) {
    case 'scraped':
      return `Scraped ${times(Number(scrapesSeen))} ${held} after main ended${describeServed(facts.front, report.mainEndedAtMs)}`;
    case 'exporterGone':
      if (!facts.hasAnswered) return `Nothing answered on ${exporterAt} at any time`;
      return `The exporter was gone ${held} after main ended, ${ofWanted}`;
    case 'released':
      return hasHold(policy.limits)
        ? 'Main ended; the exporter is another lastscrape, which holds by itself'
        : 'Main ended; no hold was asked for';
    case 'expired':
      if (scrapesSeen === null) return `Held for ${held} after main ended, scrapes not countable`;
      return `${scrapesSeen === 0 ? 'Not scraped' : 'Not scraped often enough'} within ${ttlMs / 1000} s after main ended${scrapesSeen === 0 ? '' : `, ${ofWanted}`}`;
    case 'terminated':
      return report.heldSeconds === null
        ? 'Terminated before main was seen to end'
        : `Terminated ${held} after main ended, ${ofWanted}`;
    case 'neverStarted':
      if (phase.kind === 'quitting' && phase.because === 'neverRan') return 'Main was given up before it ever ran';
      return facts.terminatedAtMs === null ? 'Main was never seen alive' : 'Terminated before main was ever seen alive';
    case 'timedOut':
      return `Main ran longer than LASTSCRAPE_RUN_TIMEOUT; held for ${held}, ${ofWanted}`;
    case 'unfinished':
      return `Unfinished: ${phase.kind}`;
    default:
      return assertNever(outcome);
  }
}

/** What the last scrape got through the front; blank without one. */
function describeServed({ last }: FrontFacts, mainEndedAtMs: number | null): string {
  if (last === null) return '';
  if (last.served === 'live') return ', live';
  if (last.served === 'joined') return ', live, with the last values of vanished series';
  const beforeMs = Number(mainEndedAtMs) - last.readAtMs;
  return `, from a snapshot ${(Math.abs(beforeMs) / 1000).toFixed(1)} s ${beforeMs >= 0 ? 'older' : 'younger'} than that end`;
}

const RESULT_WORDS = {
  stopped: 'stopped',
  alreadyGone: 'was already gone',
  failed: 'still runs',
  skipped: 'left alone (dry run)',
  pending: 'asked next',
} as const satisfies Record<NonNullable<Report['targets']>[number]['result'], string>;

function summarizeTargets(targets: NonNullable<Report['targets']>, { policy, stage }: ReportInput): string[] {
  if (stage.kind === 'unfinished') return [];
  const words =
    targets.length <= 2
      ? targets.map(({ target, result }) => `${cut(target, 60)} ${RESULT_WORDS[result]}`)
      : Object.entries(RESULT_WORDS).flatMap(([result, text]) => {
          const count = targets.filter((target) => target.result === result).length;
          if (count <= 1) return count === 0 ? [] : [`1 target ${text}`];
          return [`${count} targets ${text.replace('was', 'were').replace('runs', 'run')}`];
        });
  const targetCount = policy.targets.length;
  const missingCount = targetCount - targets.length;
  return missingCount === 0 ? words : [...words, `${missingCount} of ${targetCount} targets not asked to the end`];
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

function toSeconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}

/** Five decimals, as the report's readers compare it; a smaller ratio keeps one digit, since it is not 0. */
function roundRatio(ratio: number): number {
  const rounded = Number(ratio.toFixed(5));
  return rounded === 0 && ratio > 0 ? Number(ratio.toPrecision(1)) : rounded;
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).byteLength;
}
