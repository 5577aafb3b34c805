// The fields of the report. Pure. They hold only what was seen; unknown is null.

import { cut } from '../../base/text.ts';
import { MESSAGES } from '../messages.ts';
import {
  type ExitCodes,
  findLeastWanted,
  type HoldOutcome,
  type Outcome,
  type Policy,
  type ThresholdPolicy,
  toPodGraceSeconds,
  toSeconds,
} from '../model.ts';
import { findExitCode, judgeRun } from '../quit/exit-codes.ts';
import { countScrapesWhileRunning } from '../run/facts.ts';
import { findLastPage, findLastReadMs, type LastPage, toMissesSeconds } from '../serve/last-page.ts';
import { type FrontFacts, findInterval, judgeTurnout, nameScraper } from '../serve/scrapers.ts';
import type { SourceKind } from '../serve/serve.ts';
import type { DoneEffect, HandOverReport, Phase, PushReport, State, TargetReport } from '../state.ts';
import { type FailedThreshold, findOddLimit, findOfLastSeconds, type Verdict } from '../verdict.ts';

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
  readonly handOver?: HandOverReport;
  /** With LASTSCRAPE_PUSH, once it is over. */
  readonly push?: PushReport;
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

/** The outcome of a run, or `unfinished`. */
export type RunOutcome = HoldOutcome | 'unfinished';

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
  const { thresholds = [] } = policy;
  const pushed = findPush(input);
  const mainEndedAtMs = findMainEnd(phase);
  const heldUntilMs = phase.kind === 'quitting' ? phase.sinceMs : nowMs;
  const ranMs = facts.aliveSinceMs === null ? null : (mainEndedAtMs ?? heldUntilMs) - facts.aliveSinceMs;
  const ended = phase.kind === 'quitting' ? phase.outcome : 'terminated';
  const outcome: RunOutcome = stage.kind === 'unfinished' ? 'unfinished' : ended;
  const judged = judgeRun(state, policy, stage.kind === 'done' ? stage.by : null);
  const { seen, wanted, came } = countScrapes(input);
  const lastPage = findReportedPage(input, mainEndedAtMs);
  const exitCode = stage.kind === 'unfinished' ? null : findExitCode(state, policy, null);
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
    ...findHandOver(phase),
    ...(pushed === null ? {} : { push: pushed }),
    targets: listTargets(input),
    ...buildFinal(state),
    exitCode: stage.kind === 'done' ? stage.exitCode : exitCode,
    version: input.version,
  };
  const verdictHint = judged === null ? null : findVerdictHint(thresholds);
  const isDelivered = outcome === 'scraped' || outcome === 'handedOver';
  const hint = findHint(input, outcome) ?? verdictHint ?? (isDelivered ? findLossHint(input, lastPage) : null);
  return { fields, hint, judged, pushed, mainEndedAtMs, lastPage, cameCount: came };
}

/** Main's last page; null: without a front, or before main ended. */
function findReportedPage({ state, policy, source }: ReportInput, endedAtMs: number | null): LastPage | null {
  if (policy.front === null || endedAtMs === null) return null;
  const { front } = state.facts;
  const { calledAtMs = null } = front.seen;
  return findLastPage({ kind: source.kind, calledAtMs }, findLastReadMs(front, endedAtMs), endedAtMs);
}

/** What keeps a program's last changes; null: none can be missing. Locust's numbers stop before it ends. */
function findLossHint({ policy, source }: ReportInput, lastPage: LastPage | null): string | null {
  if (source.kind !== 'program' || lastPage === null || lastPage.missesMs === 0) return null;
  return `changes in main's last ${toMissesSeconds(lastPage)} s may be missing: add lastscrape.dev/hook: python, or end main with POST http://localhost:${policy.front?.port}/-/snapshot`;
}

/** What is wrong with the entries themselves; null: nothing. */
function findVerdictHint(thresholds: readonly ThresholdPolicy[]): string | null {
  if (findOfLastSeconds(thresholds) !== undefined) return MESSAGES.thresholdOfLastSeconds.text;
  const odd = thresholds.find((each) => findOddLimit(each) !== null);
  return odd === undefined ? null : `${cut(odd.text, 100)} says nothing of the run: ${findOddLimit(odd)}`;
}

/** Targets that are through, in their order; before the last are asked, these too. */
function listTargets({ state: { phase }, policy, stage }: ReportInput): NonNullable<Report['targets']> {
  const reports = phase.kind === 'quitting' ? phase.reports : [];
  if (stage.kind !== 'beforeTargets') return reports;
  const left = policy.targets.slice(reports.length);
  return [...reports, ...left.map(({ name }) => ({ target: name, result: 'pending' as const }))];
}

/** The hand-over, once it is over. */
function findHandOver(phase: Phase): Pick<Report, 'handOver'> {
  const handOver = phase.kind === 'holding' || phase.kind === 'quitting' ? phase.handOver : undefined;
  return handOver === undefined ? {} : { handOver };
}

/** The push; null: not configured, or its result is not known yet. */
function findPush({ state: { phase }, policy, stage }: ReportInput): PushReport | null {
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

/** What may have kept the scrapes away; null where nothing is known. */
function findHint(input: ReportInput, outcome: RunOutcome): string | null {
  const { state, policy, source, stage } = input;
  const { facts, phase } = state;
  const { terminationGraceMs } = policy.limits;
  if (outcome === 'unfinished' && facts.terminatedAtMs !== null && findMainEnd(phase) !== null)
    return `if this report is the last, the pod's grace is shorter than LASTSCRAPE_TERMINATION_GRACE (${terminationGraceMs / 1_000} s): set terminationGracePeriodSeconds to ${toPodGraceSeconds(terminationGraceMs)}`;
  if (outcome === 'exporterGone' && !facts.hasAnswered) {
    const page = policy.front === null ? 'where the exporter listens' : "main's own page";
    const where = source.kind === 'files' ? 'what main writes in a volume of both' : page;
    return `set LASTSCRAPE_METRICS_URL to ${where}, or LASTSCRAPE_SCRAPES=0 if there is none`;
  }
  const { running, front, warned } = facts;
  if (
    policy.front !== null &&
    front.scrapesCount === 0 &&
    findMainEnd(phase) !== null &&
    (outcome === 'expired' || outcome === 'terminated')
  ) {
    const { unreadWhy = 'run lastscrape --check in the pod', answeredAtMs } = front.seen;
    return front.scrapers.length > 0 && answeredAtMs === null
      ? `scrapers came, but the page of LASTSCRAPE_METRICS_URL could not be read: ${cut(unreadWhy, 200)}`
      : `nothing scraped port ${policy.front.port}: set prometheus.io/port to it, or add a PodMonitor; no rule may drop init containers or NotReady pods${outcome === 'terminated' ? `; or ${findGraceHint(input).change}` : ''}`;
  }
  const isGivenUp = stage.kind === 'done' && stage.by !== null;
  if (outcome === 'terminated' && !isGivenUp) {
    const { why, change } = findGraceHint(input);
    return `${why}: ${change}`;
  }
  const slow = outcome === 'expired' ? findSlowScraper(front, policy) : null;
  if (slow !== null) return slow;
  if (outcome === 'expired' && isLeftAtEnd(input)) {
    return 'scrapes stopped when main ended: a rule that drops NotReady pods? A held pod is NotReady';
  }
  const { refusedCount = 0, droppedCount = 0, why = '' } = front.seen.pushes ?? {};
  if (refusedCount > 0)
    return `${refusedCount} ${refusedCount === 1 ? 'push was' : 'pushes were'} refused, the last with ${why}`;
  if (droppedCount > 0)
    return `${droppedCount} pushed families were deleted or replaced, and had no more room before a scrape had them`;
  const { lostCallsCount = 0 } = front.seen;
  if (lostCallsCount > 0)
    return `${lostCallsCount} of the pages that programs asked to keep had no room until a scrape: scrape more often`;
  const lost = warned.find((id) => id === 'nothingPushed' || id === 'hookNotCalled');
  if (lost !== undefined) return MESSAGES[lost].text;
  if (outcome !== 'expired' || phase.kind !== 'quitting') return null;
  const { seen } = countScrapes(input);
  if (seen === null) {
    return phase.hasAnswered
      ? 'the exporter showed no promhttp scrape counter after main ended'
      : 'the exporter gave no answer after main ended';
  }
  if (seen > 0) return 'not all scrapes came that were waited for: LASTSCRAPE_SCRAPES=1 waits for one';
  const isNobody = policy.front === null && running.count.isNobody && !running.wasScrapedBefore;
  return isNobody
    ? MESSAGES.nobodyScraped.text
    : `no scrape came in LASTSCRAPE_TTL (${policy.limits.ttlMs / 1_000} s): is the scrape interval longer, or does a rule drop NotReady pods?`;
}

/** Whether a scraper that came regularly while main ran never came in the hold. */
function isLeftAtEnd(input: ReportInput): boolean {
  const { policy, state } = input;
  return policy.front !== null && findLongestInterval(state.facts.front) !== null && countScrapes(input).seen === 0;
}

/** How much longer than a scraper's interval a hold should be. */
const SPARE_MS = 10_000;

/** Why a signal cut the hold short, and what to set: both graces, by the scrapers' interval if known. */
function findGraceHint({ state: { facts, phase }, policy: { limits }, nowMs }: ReportInput) {
  const { terminationGraceMs: graceMs, ttlMs } = limits;
  const pods = "the pod's terminationGracePeriodSeconds";
  const set = `set LASTSCRAPE_TERMINATION_GRACE (${graceMs / 1_000} s) to`;
  const endedAtMs = findMainEnd(phase);
  if (endedAtMs === null)
    return {
      why: 'main had not ended by then',
      change: `${set} more than main takes to stop, and ${pods} 5 s above that`,
    };
  const heldMs = (phase.kind === 'quitting' ? phase.sinceMs : nowMs) - endedAtMs;
  const held = `held for ${toSeconds(heldMs, 1)} s`;
  const intervalMs = findLongestInterval(facts.front);
  if (intervalMs === null)
    return { why: held, change: `${set} 15 s above the scrape interval, and ${pods} 5 s above that` };
  // Time for the scrape that was missed, or for one more where one must have failed.
  const wantedMs = Math.ceil((graceMs + intervalMs - (intervalMs > heldMs ? heldMs : 0) + SPARE_MS) / 1_000) * 1_000;
  const isTtlToo = intervalMs + SPARE_MS > ttlMs;
  const change = `${isTtlToo ? set.replace(/to$/, 'and LASTSCRAPE_TTL to') : set} ${wantedMs / 1_000}s, and ${pods} to ${toPodGraceSeconds(wantedMs)}`;
  return { why: `${held}, scraped every ${toSeconds(intervalMs, 1)} s`, change };
}

/** Where the longest hold was shorter than a scraper's interval, what to set; null: no scraper is so slow. */
function findSlowScraper(front: FrontFacts, { limits: { ttlMs } }: Policy): string | null {
  const intervalMs = findLongestInterval(front);
  return intervalMs === null || intervalMs <= ttlMs
    ? null
    : `LASTSCRAPE_TTL is ${ttlMs / 1000} s, and the scrapes come every ${toSeconds(intervalMs, 1)} s: set it higher`;
}

/** The longest interval of a scraper, in milliseconds; null: none came twice. */
function findLongestInterval({ scrapers }: FrontFacts): number | null {
  const found = scrapers.map(findInterval).filter((intervalMs) => intervalMs !== null);
  return found.length === 0 ? null : Math.max(...found);
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
