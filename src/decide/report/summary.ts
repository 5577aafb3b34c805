// The sentences of the report, for a person: how the run went, and the hint, what to change. Pure.

import { cut } from '../../base/text.ts';
import { MESSAGES } from '../messages.ts';
import { assertNever, hasHold, type Policy, type ThresholdPolicy, toPodGraceSeconds, toSeconds } from '../model.ts';
import { type LastPage, toMissesSeconds } from '../serve/last-page.ts';
import { type FrontFacts, findInterval } from '../serve/scrapers.ts';
import type { SendReport, State } from '../state.ts';
import { type FailedThreshold, findOddLimit, findOfLastSeconds, type Verdict } from '../verdict.ts';
import type { buildFields, Report, ReportInput } from './report-fields.ts';

type Summarized = ReturnType<typeof buildFields>;

/** The sentence: the verdict, the hold, the push, the targets. */
export function summarize(found: Summarized, input: ReportInput): string {
  const hold = summarizeHold(found, input);
  const judged = summarizeVerdict(found.judged, input.policy);
  return [
    ...(judged === null ? [hold] : [judged, `${hold.slice(0, 1).toLowerCase()}${hold.slice(1)}`]),
    ...(input.stage.kind === 'unfinished'
      ? []
      : [...summarizePush(found.pushed), ...summarizeTargets(found.fields.targets, input)]),
  ].join('; ');
}

function summarizeVerdict(verdict: Verdict | null, { thresholds = [] }: Policy): string | null {
  if (verdict === null) return null;
  if (verdict.kind === 'passed')
    return `Passed ${thresholds.length === 1 ? 'the threshold' : `${thresholds.length} thresholds`}`;
  if (verdict.kind === 'notJudged') return `Not judged: cut short by ${verdict.by}`;
  const [first] = verdict.failed as readonly [FailedThreshold, ...FailedThreshold[]];
  const more = verdict.failed.length === 1 ? '' : `, and ${verdict.failed.length - 1} more`;
  return `Failed by ${cut(first.entry, 100)} (${showSeen(first.seen)})${more}`;
}

/** A fraction to nine digits, for a person: `failed` has it as it was. */
function showSeen(seen: FailedThreshold['seen']): FailedThreshold['seen'] {
  return typeof seen === 'string' || Number.isInteger(seen) ? seen : Number(seen.toPrecision(9));
}

function summarizeHold({ fields, cameCount, mainEndedAtMs, lastPage }: Summarized, input: ReportInput): string {
  const { state, policy, source } = input;
  const { facts, phase } = state;
  const { ttlMs } = policy.limits;
  const { outcome, scrapesSeen, scrapesWanted, heldSeconds } = fields;
  const held = `${(heldSeconds ?? 0).toFixed(1)} s`;
  const isAuto = policy.limits.scrapesWantedCount === 'auto';
  const ofWanted =
    cameCount === null
      ? 'scrapes not counted'
      : `${cameCount} of ${scrapesWanted} ${isAuto ? 'scrapers came' : 'wanted scrapes seen'}`;
  switch (outcome) {
    case 'scraped':
      return `Scraped ${scrapesSeen === 1 ? 'once' : `${scrapesSeen} times`} ${held} after main ended${describeServed(facts.front, mainEndedAtMs, lastPage)}`;
    case 'handedOver':
      return `Handed over to ${phase.kind === 'quitting' ? phase.handOver?.to : ''} ${held} after main ended`;
    case 'exporterGone':
      if (source.kind === 'pushes') return 'Nothing was pushed';
      if (!facts.hasAnswered) return `Nothing could be read from ${source.at} at any time`;
      return `The exporter was gone ${held} after main ended, ${ofWanted}`;
    case 'released':
      return hasHold(policy.limits)
        ? 'Main ended; the exporter is another lastscrape, which holds by itself'
        : 'Main ended; no hold was asked for';
    case 'expired':
      if (scrapesSeen === null) return `Held for ${held} after main ended, scrapes not countable`;
      return `${scrapesSeen === 0 ? 'Not scraped' : 'Not scraped often enough'} within ${ttlMs / 1000} s after main ended${scrapesSeen === 0 ? '' : `, ${ofWanted}`}`;
    case 'terminated':
      return heldSeconds === null
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
function describeServed({ last }: FrontFacts, mainEndedAtMs: number | null, lastPage: LastPage | null): string {
  if (last === null) return '';
  if (lastPage?.by === 'main') return ', with the page that main had kept as it ended';
  if (last.served === 'live') return ', live';
  if (last.served === 'joined') return ', live, with the last values of vanished series';
  const beforeMs = Number(mainEndedAtMs) - last.readAtMs;
  return `, from a page read ${(Math.abs(beforeMs) / 1000).toFixed(1)} s ${beforeMs >= 0 ? 'before' : 'after'} that end`;
}

const RESULT_WORDS = {
  stopped: 'stopped',
  alreadyGone: 'was already gone',
  failed: 'still runs',
  skipped: 'left alone (dry run)',
  pending: 'asked next',
} as const satisfies Record<NonNullable<Report['targets']>[number]['result'], string>;

function summarizeTargets(targets: NonNullable<Report['targets']>, { policy }: ReportInput): string[] {
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

function summarizePush(push: SendReport | null): readonly string[] {
  if (push === null || push.result === 'notNeeded') return [];
  return [
    push.result === 'accepted' ? `last numbers pushed (${push.to})` : `push of the last numbers failed (${push.to})`,
  ];
}

/** The one thing to change; null: nothing, or nothing is known. */
export function findHint(found: Summarized, input: ReportInput): string | null {
  const { state, policy } = input;
  const { facts } = state;
  const { outcome } = found.fields;
  const { terminationGraceMs: graceMs } = policy.limits;
  if (outcome === 'unfinished' && facts.terminatedAtMs !== null && found.mainEndedAtMs !== null)
    return `if this report is the last, the pod's grace is shorter than LASTSCRAPE_TERMINATION_GRACE (${graceMs / 1_000} s): set terminationGracePeriodSeconds to ${toPodGraceSeconds(graceMs)}`;
  return findScrapesHint(found, input) ?? findNumbersHint(found, input);
}

/** With less, main may have had no time for a read; the kubelet's signal comes up to 2 s after its end. */
const SHORT_SECONDS = 5;

/** What may have kept the scrapes away; null: nothing did. */
function findScrapesHint(found: Summarized, { state, policy, source, stage }: ReportInput): string | null {
  const { facts, phase } = state;
  const { outcome, scrapesSeen } = found.fields;
  const { ttlMs } = policy.limits;
  if (outcome === 'exporterGone' && source.kind !== 'pushes' && !facts.hasAnswered) {
    const page = policy.front === null ? 'where the exporter listens' : "main's own page";
    const where = source.kind === 'files' ? 'what main writes in a volume of both' : page;
    const { ranSeconds } = found.fields;
    const isShort = policy.front !== null && source.kind === 'program' && Number(ranSeconds) < SHORT_SECONDS;
    const call = isShort ? `main ran for ${ranSeconds} s, maybe too short to be read: ${adviseCall(policy)}; or ` : '';
    return `${call}set LASTSCRAPE_METRICS_URL to ${where}, or LASTSCRAPE_SCRAPES=0 if there is none`;
  }
  const isGivenUp = stage.kind === 'done' && stage.by !== null;
  if (outcome !== 'expired' && (outcome !== 'terminated' || isGivenUp)) return null;
  const { front, running } = facts;
  const grace = outcome === 'terminated' ? findGraceHint(found, state, policy) : null;
  if (policy.front !== null && front.scrapesCount === 0 && found.mainEndedAtMs !== null) {
    const { unreadWhy = 'run lastscrape --check in the pod', answeredAtMs } = front.seen;
    return front.scrapers.length > 0 && answeredAtMs === null
      ? `scrapers came, but the page of LASTSCRAPE_METRICS_URL could not be read: ${cut(unreadWhy, 200)}`
      : `nothing scraped port ${policy.front.port}: set prometheus.io/port to it, or add a PodMonitor; no rule may drop init containers or NotReady pods${grace === null ? '' : `; or ${grace.change}`}`;
  }
  if (grace !== null) return `${grace.why}: ${grace.change}`;
  const intervalMs = findLongestInterval(front);
  if (intervalMs !== null && intervalMs > ttlMs)
    return `LASTSCRAPE_TTL is ${ttlMs / 1000} s, and the scrapes come every ${toSeconds(intervalMs, 1)} s: set it higher`;
  if (scrapesSeen === null) {
    return phase.kind === 'quitting' && phase.hasAnswered
      ? 'the exporter showed no promhttp scrape counter after main ended'
      : 'the exporter gave no answer after main ended';
  }
  if (scrapesSeen > 0) return 'not all scrapes came that were waited for: LASTSCRAPE_SCRAPES=1 waits for one';
  if (intervalMs !== null)
    return 'scrapes stopped when main ended: a rule that drops NotReady pods? A held pod is NotReady';
  return policy.front === null && running.count.isNobody && !running.wasScrapedBefore
    ? MESSAGES.nobodyScraped.text
    : `no scrape came in LASTSCRAPE_TTL (${ttlMs / 1_000} s): is the scrape interval longer, or does a rule drop NotReady pods?`;
}

/** How much longer than a scraper's interval a hold should be. */
const SPARE_MS = 10_000;

/** Why a signal cut the hold short, and what to set: both graces, by the scrapers' interval if known. */
function findGraceHint({ fields, mainEndedAtMs }: Summarized, { facts }: State, { limits }: Policy) {
  const graceMs = limits.terminationGraceMs;
  const pods = "the pod's terminationGracePeriodSeconds";
  const set = (and: string) => `set LASTSCRAPE_TERMINATION_GRACE (${graceMs / 1_000} s)${and} to`;
  if (mainEndedAtMs === null) {
    const change = `${set('')} more than main takes to stop, and ${pods} 5 s above that`;
    return { why: 'main had not ended by then', change };
  }
  const heldMs = Number(fields.heldSeconds) * 1_000;
  const why = `held for ${fields.heldSeconds} s`;
  const intervalMs = findLongestInterval(facts.front);
  if (intervalMs === null)
    return { why, change: `${set('')} 15 s above the scrape interval, and ${pods} 5 s above that` };
  // Time for the scrape that was missed, or for one more where one must have failed.
  const wantedMs = Math.ceil((graceMs + intervalMs - (intervalMs > heldMs ? heldMs : 0) + SPARE_MS) / 1_000) * 1_000;
  const and = intervalMs + SPARE_MS > limits.ttlMs ? ' and LASTSCRAPE_TTL' : '';
  const change = `${set(and)} ${wantedMs / 1_000}s, and ${pods} to ${toPodGraceSeconds(wantedMs)}`;
  return { why: `${why}, scraped every ${toSeconds(intervalMs, 1)} s`, change };
}

/** The longest interval of a scraper, in milliseconds; null: none came twice. */
function findLongestInterval({ scrapers }: FrontFacts): number | null {
  const found = scrapers.map(findInterval).filter((intervalMs) => intervalMs !== null);
  return found.length === 0 ? null : Math.max(...found);
}

/** What may be missing from the numbers, or is wrong with the entries that judge them; null: nothing. */
function findNumbersHint({ fields, judged, lastPage }: Summarized, input: ReportInput): string | null {
  const { state, policy } = input;
  const { front, warned } = state.facts;
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
  const verdict = judged === null ? null : findVerdictHint(policy.thresholds ?? []);
  const isDelivered = fields.outcome === 'scraped' || fields.outcome === 'handedOver';
  return verdict ?? (isDelivered ? findLossHint(input, lastPage) : null);
}

function adviseCall({ front }: ReportInput['policy']): string {
  return `add lastscrape.dev/hook: python, or end main with POST http://localhost:${front?.port}/-/snapshot`;
}

/** What keeps a program's last changes; null: none can be missing. Locust's numbers stop before it ends. */
function findLossHint({ state, policy, source }: ReportInput, lastPage: LastPage | null): string | null {
  const why = cut(state.facts.front.seen.unreadWhy ?? '', 200);
  if (lastPage === null) return why === '' ? null : `no page of LASTSCRAPE_METRICS_URL could be kept: ${why}`;
  if (lastPage.missesMs === 0 || !['program', 'files'].includes(source.kind)) return null;
  const missing = `changes in main's last ${toMissesSeconds(lastPage)} s may be missing: `;
  if (source.kind === 'files') return why === '' ? null : missing + why;
  const { calledMs } = lastPage;
  if (calledMs !== undefined)
    return `${missing}its last call of /-/snapshot was ${(calledMs / 1000).toFixed(1)} s before it ended`;
  return missing + adviseCall(policy);
}

/** What is wrong with the entries themselves; null: nothing. */
function findVerdictHint(thresholds: readonly ThresholdPolicy[]): string | null {
  if (findOfLastSeconds(thresholds) !== undefined) return MESSAGES.thresholdOfLastSeconds.text;
  const odd = thresholds.find((each) => findOddLimit(each) !== null);
  return odd === undefined ? null : `${cut(odd.text, 100)} says nothing of the run: ${findOddLimit(odd)}`;
}
