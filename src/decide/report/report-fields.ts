// The fields of the report. Pure. They hold only what was seen; unknown is null.

import { cut } from '../../base/text.ts';
import { type ExitCodes, findLeastWanted, type Outcome, type Policy, type SourceKind, toSeconds } from '../model.ts';
import { findExitCode, judgeRun } from '../quit/exit-codes.ts';
import { countScrapesWhileRunning } from '../run/facts.ts';
import { findLastPage, findLastReadMs, type LastPage, toMissesSeconds } from '../serve/last-page.ts';
import { findInterval, judgeTurnout, nameScraper } from '../serve/scrapers.ts';
import type { DoneEffect, Phase, SendReport, State, TargetReport } from '../state.ts';
import type { FailedThreshold, Verdict } from '../verdict.ts';

/** The report as it is logged and written; its keys are in the order of reading. */
export type Report = {
  readonly summary: string;
  readonly outcome: Outcome;
  /** From the hold on, by the numbers so far; absent where nothing is asked for. */
  readonly verdict?: Verdict['kind'];
  /** The first entry that fails, in the order of LASTSCRAPE_FAIL_IF. */
  readonly failed?: FailedThreshold;
  readonly alsoFailed?: readonly FailedThreshold[];
  /** How many did not fit; so for the other lists. */
  readonly failedOmitted?: number;
  readonly hint?: string;
  readonly problems?: readonly string[];
  readonly problemsOmitted?: number;
  readonly scrapesWanted?: number;
  readonly scrapesSeen?: number | null;
  readonly scrapesWhileRunning?: number | null;
  readonly ranSeconds?: number | null;
  readonly heldSeconds?: number | null;
  /** RFC 3339, UTC. */
  readonly mainEndedAt?: string | null;
  /** With a front, once main has ended: who took its last page. */
  readonly lastPageBy?: LastPage['by'];
  /** For how long before main's end changes may be missing from that page; 0: none is. */
  readonly mayMissSeconds?: number;
  /** Exit codes of main containers; absent where none is known, or where it did not fit. */
  readonly mainExitCodes?: ExitCodes;
  /** With a front: who scraped, the newest last; absent before the first. */
  readonly scrapers?: readonly {
    /** Address and User-Agent. */
    readonly scraper: string;
    /** null: it asked once. */
    readonly intervalSeconds: number | null;
    /** When it asked for the newest answer that it took, RFC 3339, UTC; null: it took none. */
    readonly last: string | null;
  }[];
  readonly scrapersOmitted?: number;
  /** With LASTSCRAPE_HAND_OVER, once it is over. */
  readonly handOver?: SendReport;
  /** With LASTSCRAPE_PUSH, once it is over. */
  readonly push?: SendReport;
  /** `pending`: asked after this report was sent. */
  readonly targets?: readonly (TargetReport | PendingTarget)[];
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

type PendingTarget = { readonly target: string; readonly result: 'pending'; readonly hint?: undefined };

/** When a report is written: on the way, for the webhook before the last targets are asked, or at the end. */
export type ReportStage = { readonly kind: 'unfinished' } | { readonly kind: 'beforeTargets' } | DoneEffect;

/** What is read: at a host and port, or textfiles: a file, or a folder (`at` ends in a slash). */
export type ReportSource = { readonly kind: SourceKind; readonly at: string };

export type ReportInput = {
  readonly state: State;
  readonly policy: Policy;
  readonly source: ReportSource;
  readonly nowMs: number;
  /** A monotonic moment as RFC 3339, UTC. */
  readonly toTime: (atMs: number) => string;
  readonly stage: ReportStage;
  readonly version: string;
};

/** The fields of the report, and what the sentence needs besides. */
export function buildFields(input: ReportInput) {
  const { state, policy, nowMs, stage, toTime } = input;
  const { facts, phase } = state;
  const pushed = findPush(input);
  const mainEndedAtMs = findMainEnd(phase);
  const heldUntilMs = phase.kind === 'quitting' ? phase.sinceMs : nowMs;
  const ranMs = facts.aliveSinceMs === null ? null : (mainEndedAtMs ?? heldUntilMs) - facts.aliveSinceMs;
  const ended = phase.kind === 'quitting' ? phase.outcome : 'terminated';
  const outcome: Exclude<Outcome, 'misconfigured' | 'bug'> = stage.kind === 'unfinished' ? 'unfinished' : ended;
  const judged = judgeRun(state, policy, stage.kind === 'done' ? stage.by : null);
  const { seen, wanted, came } = countScrapes(input);
  const lastPage = findReportedPage(input, mainEndedAtMs);
  const exitCode = stage.kind === 'unfinished' ? null : findExitCode(state, policy, null);
  const handOver = 'handOver' in phase && phase.handOver;
  const fields = {
    outcome,
    ...describeVerdict(judged),
    scrapesWanted: wanted,
    scrapesSeen: seen,
    scrapesWhileRunning:
      policy.front !== null ? facts.front.scrapesCount - (seen ?? 0) : countScrapesWhileRunning(state),
    // Main can be known to have been alive only after its end was seen.
    ranSeconds: ranMs === null ? null : toSeconds(Math.max(0, ranMs), 1),
    heldSeconds: mainEndedAtMs === null ? null : toSeconds(heldUntilMs - mainEndedAtMs, 1),
    mainEndedAt: mainEndedAtMs === null ? null : toTime(mainEndedAtMs),
    ...(lastPage && { lastPageBy: lastPage.by, mayMissSeconds: toMissesSeconds(lastPage) }),
    ...(Object.keys(facts.exitCodes).length === 0 ? {} : { mainExitCodes: facts.exitCodes }),
    ...(facts.front.scrapers.length === 0 ? {} : { scrapers: listScrapers(input) }),
    ...(handOver && { handOver }),
    ...(pushed === null ? {} : { push: pushed }),
    targets: listTargets(input),
    ...buildFinal(state),
    exitCode: stage.kind === 'done' ? stage.exitCode : exitCode,
    version: input.version,
  };
  return { fields, judged, pushed, mainEndedAtMs, lastPage, cameCount: came };
}

/** Main's last page; null: without a front, or before main ended. */
function findReportedPage({ state, policy, source }: ReportInput, endedAtMs: number | null): LastPage | null {
  if (policy.front === null || endedAtMs === null) return null;
  const { front } = state.facts;
  const { calledAtMs = null } = front.seen;
  return findLastPage({ kind: source.kind, calledAtMs }, findLastReadMs(front, endedAtMs), endedAtMs);
}

/** Targets that are through, in their order; before the last are asked, these too. */
function listTargets({ state: { phase }, policy, stage }: ReportInput): NonNullable<Report['targets']> {
  const reports = phase.kind === 'quitting' ? phase.reports : [];
  if (stage.kind !== 'beforeTargets') return reports;
  const left = policy.targets.slice(reports.length);
  return [...reports, ...left.map(({ name }) => ({ target: name, result: 'pending' as const }))];
}

/** The push; null: not configured, or its result is not known yet. */
function findPush({ state: { phase }, policy, stage }: ReportInput): SendReport | null {
  if (policy.push === undefined) return null;
  if (phase.kind === 'quitting' && phase.push !== undefined) return phase.push;
  return stage.kind === 'unfinished' ? null : { to: policy.push.to, result: 'failed', why: 'interrupted' };
}

const ENTRY_MAX_LENGTH = 200;

/** The fields of a verdict; null: it has none. */
function describeVerdict(verdict: Verdict | null): Pick<Report, 'verdict' | 'failed' | 'alsoFailed'> {
  if (verdict?.kind !== 'failed') return verdict === null ? {} : { verdict: verdict.kind };
  const [failed, ...alsoFailed] = verdict.failed.map((each) => cutFailed(each, ENTRY_MAX_LENGTH));
  return {
    verdict: verdict.kind,
    failed: failed as FailedThreshold,
    ...(alsoFailed.length === 0 ? {} : { alsoFailed }),
  };
}

/** Scrapes since main ended: seen, wanted, and how many of the wanted came; null: not counted. */
function countScrapes({ state: { facts, phase }, policy, nowMs }: ReportInput) {
  const { limits, front } = policy;
  const endedAtMs = findMainEnd(phase);
  if (front !== null && endedAtMs !== null) {
    const untilMs = phase.kind === 'quitting' ? phase.sinceMs : nowMs;
    const turnout = judgeTurnout(facts.front, { endedAtMs, nowMs: untilMs, limits });
    return { seen: turnout.seenCount, wanted: turnout.wantedCount, came: turnout.cameCount };
  }
  const counted = phase.kind === 'holding' && phase.count.baseline !== null ? phase.count.seenCount : null;
  const seen = phase.kind === 'quitting' ? phase.scrapesSeenCount : counted;
  return { seen, wanted: findLeastWanted(limits), came: seen };
}

/** Who scraped through the front, the newest last. */
function listScrapers({ state, toTime }: ReportInput): NonNullable<Report['scrapers']> {
  return state.facts.front.scrapers
    .toSorted((one, other) => one.lastAtMs - other.lastAtMs)
    .map((scraper) => {
      const intervalMs = findInterval(scraper);
      return {
        scraper: nameScraper(scraper),
        intervalSeconds: intervalMs === null ? null : toSeconds(intervalMs, 1),
        last: scraper.takenAtMs === null ? null : toTime(scraper.takenAtMs),
      };
    });
}

/** The last totals of the exporter, if it showed any. */
function buildFinal({ facts }: State): Pick<Report, 'final'> {
  const { requests, failures, users } = facts.totals;
  if (requests === null && failures === null && users === null) return {};
  const ratio = requests === null || failures === null || requests === 0 ? null : failures / requests;
  return { final: { requests, failures, failRatio: ratio === null ? null : roundRatio(ratio), users } };
}

/** When main ended, or was treated as ended; null while that is not known. */
function findMainEnd(phase: Phase): number | null {
  return phase.kind === 'holding' || phase.kind === 'quitting' ? phase.mainEndedAtMs : null;
}

/** Five decimals, as the report's readers compare it; a smaller ratio keeps one digit, since it is not 0. */
function roundRatio(ratio: number): number {
  const rounded = Number(ratio.toFixed(5));
  return rounded === 0 && ratio > 0 ? Number(ratio.toPrecision(1)) : rounded;
}

/** The entry and its value in words, each cut to `length` characters. */
export function cutFailed({ entry, seen, ...rest }: FailedThreshold, length: number): FailedThreshold {
  return { entry: cut(entry, length), seen: typeof seen === 'number' ? seen : cut(seen, length), ...rest };
}
