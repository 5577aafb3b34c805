// The sentence of the report: how the run went, for a person. Pure.

import { cut } from '../../base/text.ts';
import { assertNever, hasHold, type Policy } from '../model.ts';
import type { LastPage } from '../serve/last-page.ts';
import type { FrontFacts } from '../serve/scrapers.ts';
import type { PushReport } from '../state.ts';
import type { FailedThreshold, Verdict } from '../verdict.ts';
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

function summarizePush(push: PushReport | null): readonly string[] {
  if (push === null || push.result === 'notNeeded') return [];
  return [
    push.result === 'accepted' ? `last numbers pushed (${push.to})` : `push of the last numbers failed (${push.to})`,
  ];
}
