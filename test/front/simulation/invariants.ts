// What must hold after every run (docs/how-it-decides.md). Each check says in a sentence what is wrong.
//
// 1 nothing is lost that a living scraper could have had    2 no number goes back
// 3 who was counted has taken    4 no hold beyond its limit    5 the report says what happened
// 6 our own reads take their share of main's time at most, and are POLL apart at least

import { findWatchEnd, hasHold } from '../../../src/decide/model.ts';
import { findAnswersEnd, LAST_READ_MS } from '../../../src/decide/run/pace.ts';
import { REST_FACTORS, TEXT_ACCEPT } from '../../../src/decide/serve/budget.ts';
import { READ_TIMEOUT_MS } from '../../../src/decide/serve/reads.ts';
import { ACCEPTS, type Page, showPage } from './page.ts';
import { isBySignal, isOwn, type Scenario } from './scenario.ts';
import type { Scrape, ScraperPlan } from './scraper.ts';
import { type Run, SELECTED } from './simulation.ts';
import { findGeneration, readPage } from './source.ts';
import { START_SECONDS } from './world.ts';

/** Answers on their way may end after a limit, for this long. */
const ANSWERS_MS = 10_000;
/** The last read, and the conditions after it, have a second each; and a pace of 500 ms. */
const LAST_LOOK_MS = 3_000;
/** Between two looks, and a little. */
const PACE_MS = 600;
/** Families that vanished within this time before the end are joined: the rule says 5 s. */
const VANISHED_MS = 4_500;

/** A run, and what follows from what its source and its scrapers know. */
type Facts = {
  readonly run: Run;
  readonly scenario: Scenario;
  readonly endedAtMs: number;
  readonly knownAtMs: number;
  /** What the front had of an Accept when the end became known; null: what happened leaves that open. */
  readonly final: (accept: string | undefined) => Page | null;
  /** Those that it had when main ended, which is before. */
  readonly ended: (accept: string | undefined) => Page;
  /** When the hold had to be over. */
  readonly limitMs: number;
};

/** What is wrong with a run; empty: nothing. */
export function findFaults(run: Run): readonly string[] {
  return run.scenario.isInTurn ? checkTurns(run) : [...checkBudget(run), ...checkEnd(run)];
}

/** 1: every scraper gets what each program had kept as it ended. 2: and nothing of one that starts after the end. */
function checkTurns({ scrapes, scenario: { scrapers, snapshotsMs, source } }: Run): readonly string[] {
  return scrapers.flatMap((plan) => {
    const readsMs = scrapes.map((each) => (each.plan === plan ? findReadMs(each.page) : Number.NaN));
    if (readsMs.some((readMs) => readMs >= Number(source.downs.at(-1)?.toMs)))
      return [`2: ${plan.address} got numbers of what started after the end`];
    return source.downs.flatMap(({ fromMs }, index) =>
      readsMs.some((readMs) => readMs >= Number(snapshotsMs[index]) && readMs < fromMs)
        ? []
        : [`1: ${plan.address} got nothing of what was kept before ${fromMs}`],
    );
  });
}

/** 6: between two own reads, the first of which was whole, main has its rest. Before its end. */
function checkBudget({ reads, scrapes, scenario }: Run): readonly string[] {
  const { shape, source, limits, endMs, signalsMs, snapshotsMs } = scenario;
  // What may be cut is asked for again at once.
  if (!source.hasLength || snapshotsMs.length > 0) return [];
  const factor = shape === 'metricExporter' ? REST_FACTORS.onlyEvidence : REST_FACTORS.usual;
  const isAsked = (atMs: number) =>
    scrapes.some(({ arrivedAtMs, endedAtMs }) => (arrivedAtMs ?? atMs + 1) <= atMs && (endedAtMs ?? atMs) >= atMs);
  const untilMs = Math.min(endMs, ...signalsMs);
  const living = reads.filter(({ beganAtMs }) => beganAtMs < untilMs);
  // A request is repeated at once where its connection was dropped: it is of the scrape that has given up since.
  const isRepeat = ({ beganAtMs }: Run['reads'][number]) =>
    living.some(({ endedAtMs, isWhole, isRefused }) => endedAtMs === beganAtMs && !isWhole && !isRefused);
  const own = living.filter((read) => !isAsked(read.beganAtMs) && !(read.isRefused && isRepeat(read)));
  return own.flatMap((read, index) => {
    const before = own[index - 1];
    if (before?.isWhole !== true || before.endedAtMs === null) return [];
    const endedAtMs = Number(before.endedAtMs);
    const known = living.filter((each) => each.isWhole && Number(each.endedAtMs) <= endedAtMs);
    // Until three reads have shown how long the page takes, 5 s at most.
    const restMs = Math.min(factor * source.tookMs, known.length < 3 ? 5_000 : Number.POSITIVE_INFINITY);
    const fromMs = Math.max(endedAtMs + restMs, before.beganAtMs + limits.pollMs);
    return read.beganAtMs < fromMs ? [`6: read at ${read.beganAtMs}, due at ${fromMs}`] : [];
  });
}

/** What is wrong from main's end on, and with what is known then. */
function checkEnd(run: Run): readonly string[] {
  const { state, scenario, knownAtMs, by } = run;
  const endedAtMs = state.phase.kind === 'waiting' || state.phase.kind === 'running' ? null : state.phase.mainEndedAtMs;
  if (by !== null || knownAtMs === null || endedAtMs === null) return checkUnheld(run);
  const { limits, signalsMs } = scenario;
  const graceMs =
    state.facts.terminatedAtMs === null ? Number.POSITIVE_INFINITY : findWatchEnd(signalsMs[0] ?? 0, limits);
  const ttlMs = endedAtMs + (hasHold(limits) ? limits.ttlMs : 0);
  const facts: Facts = {
    run,
    scenario,
    endedAtMs,
    knownAtMs,
    final: once((accept) => findFinal(run, accept, endedAtMs, knownAtMs)),
    ended: once((accept) => findFinal(run, accept, endedAtMs, endedAtMs) ?? new Map()),
    limitMs: Math.max(Math.min(ttlMs, graceMs), knownAtMs),
  };
  return [
    checkPages,
    checkFreshness,
    checkAnswered,
    checkLiving,
    checkClosing,
    checkLastRead,
    checkCounted,
    checkLimits,
    checkReport,
  ].flatMap((check) => check(facts));
}

/** Finds each value once. */
function once<Key, Value>(find: (key: Key) => Value): (key: Key) => Value {
  const found = new Map<Key, Value>();
  return (key) => {
    if (!found.has(key)) found.set(key, find(key));
    return found.get(key) as Value;
  };
}

/** No end was seen: then nothing was held, nothing was judged, and a report says so. */
function checkUnheld({ report, by, overAtMs, scenario }: Run): readonly string[] {
  if (by !== null) return [];
  const isKnown = report.outcome === 'neverStarted' || report.outcome === 'terminated';
  const isEarly =
    report.outcome === 'terminated' && overAtMs < findWatchEnd(scenario.signalsMs[0] ?? 0, scenario.limits);
  return isKnown && !isEarly ? [] : [`5: ${report.outcome} without an end`];
}

/** The newest value of each family that the front had when main's end became known. Default: in text. */
function findFinal(run: Run, accept: string | undefined, endedAtMs: number, knownAtMs: number): Page | null {
  const { source, limits } = run.scenario;
  if (run.wasDeceived) return null;
  // Many programs answer in text whatever they are asked for: then nothing else is read.
  const newest = run.wholes.findLast((each) => each.isText && each.endedAtMs <= knownAtMs);
  const wanted = accept ?? newest?.accept ?? TEXT_ACCEPT;
  const wholes = run.wholes.filter((each) => each.accept === wanted);
  // Who has no page yet at the end, or none any more, is a newcomer, who gets the text unless the answer has all
  // its families: one that is lost for good is more than what the others grew since the last poll (6206). Which
  // of several texts that is, and what had vanished from it, is open.
  const readAtMs = Math.min(wholes.at(-1)?.askedAtMs ?? 0, endedAtMs - 1);
  const came = run.scrapes.filter(({ arrivedAtMs }) => arrivedAtMs !== null && arrivedAtMs <= readAtMs);
  const isAsked = came.some(({ plan }) => (plan.accept ?? TEXT_ACCEPT) === wanted);
  const isNew = Number(wholes[0]?.endedAtMs) >= endedAtMs && wholes.length < run.wholes.length;
  if (isNew || (!isAsked && newest?.accept !== wanted)) return null;
  const before = wholes.filter((each) => each.endedAtMs <= knownAtMs);
  const last = before.at(-1);
  const nearMs = 2_000 + 2 * limits.pollMs + 6 * source.tookMs;
  // Whether an exporter that restarts within the end, or since its last whole answer, is of the run is open (905045).
  const shownMs = before.findLast((each) => each.endedAtMs < endedAtMs)?.endedAtMs ?? 0;
  const isNear = (ms: number) => ms > shownMs - nearMs && ms < knownAtMs + 1;
  if (source.downs.some(({ fromMs, toMs }) => toMs < Number.POSITIVE_INFINITY && (isNear(fromMs) || isNear(toMs))))
    return null;
  // A page that stays unreadable is given up, and the text is served; begun again, it has nothing of before.
  const readableMs = Math.min(last?.askedAtMs ?? 0, endedAtMs - VANISHED_MS);
  const isGivenUp = source.faults.some(
    ({ kind, fromMs, toMs }) => kind === 'endless' && fromMs < knownAtMs && toMs > readableMs,
  );
  if (wanted === ACCEPTS.openMetrics && source.formats !== 'text' && isGivenUp) return null;
  // So is whose numbers count where it was before, and its first answer since shows the end, or the first with
  // a counter: nothing is read of messages but their ends (628269).
  const { upUntilMs } = source;
  const signMs = run.wholes.find(({ askedAtMs }) => upUntilMs !== null && askedAtMs >= upUntilMs)?.endedAtMs;
  const until = run.wholes.filter((each) => each.endedAtMs < Math.min(signMs ?? endedAtMs, endedAtMs));
  const atEnd = [until.at(-1), until.findLast((each) => each.accept !== ACCEPTS.protobuf)];
  if (atEnd.some((each) => each !== undefined && each.generation !== last?.generation)) return null;
  // It restarted while main lived, and other pages know that.
  const known = run.wholes.findLast((each) => each.endedAtMs <= knownAtMs);
  if (last !== undefined && known?.generation !== last.generation) return null;
  const after = wholes.filter((each) => each.endedAtMs > knownAtMs);
  if (after.some((each) => each.generation !== (last ?? each).generation && !each.isKnownAsNew)) return null;
  const fromMs = endedAtMs - VANISHED_MS;
  // What vanished long before may have shown in other pages, and in an answer that may be cut (333917).
  const names = source.hasLength ? [] : [...(last?.page.keys() ?? [])];
  const others = run.wholes.filter((each) => each.endedAtMs > Number(last?.endedAtMs) && each.endedAtMs <= fromMs);
  if (others.some(({ page }) => names.some((name) => !page.has(name)))) return null;
  const final = new Map<string, number>();
  for (const each of before.toSorted((a, b) => a.askedAtMs - b.askedAtMs)) {
    const isJoined = each.askedAtMs > fromMs || each === last;
    if (!isJoined || each.generation !== last?.generation) continue;
    for (const [name, value] of each.page) final.set(name, value);
  }
  return final;
}

/** What of `wanted` a page lacks, or has older; null: nothing. */
function findLost(wanted: Page, page: Page): string | null {
  const lost = [...wanted].filter(([name, value]) => !((page.get(name) ?? -1) >= value));
  return lost.length === 0 ? null : showPage(new Map(lost));
}

function isAfterEnd({ page }: Scrape): boolean {
  return page?.get('lastscrape_main_ended') === 1;
}

/** 1, 2: what was served and pushed after the end has every number of the end, and none goes back. */
function checkPages({ run, final, endedAtMs, knownAtMs }: Facts): readonly string[] {
  const ofText = final(undefined);
  if (ofText === null) return [];
  const faults: string[] = [];
  const newest = new Map<ScraperPlan, Page>();
  const served = run.scrapes.filter(isAfterEnd);
  for (const { plan, page, sentAtMs } of served) {
    const lost = findLost(final(plan.accept ?? TEXT_ACCEPT) ?? new Map(), page as Page);
    if (lost !== null) faults.push(`1: ${plan.address} was served less than ${lost} at ${sentAtMs}`);
    const before = newest.get(plan);
    const back = findLost(readNumbers(before), page as Page);
    if (back !== null && !mayGoBack(run, before as Page, page as Page))
      faults.push(`2: ${plan.address} had ${back} before ${sentAtMs}`);
    newest.set(plan, page as Page);
  }
  const { pushed, scenario } = run;
  // Pages of several Accepts are up to one POLL older or younger, and have vanished families of their own.
  const isOfSeveral = new Set(scenario.scrapers.map(({ accept }) => accept)).size > 1;
  // One that restarts in the hold, and has no counter, is believed in any format (673542, 69276).
  const isAnew = run.wholes.some(
    ({ endedAtMs, generation, isKnownAsNew }) =>
      !isKnownAsNew && endedAtMs > knownAtMs && generation > findGeneration(scenario.source, knownAtMs),
  );
  if (pushed === null || isOfSeveral || isAnew || scenario.source.formats === 'alternating') return faults;
  const lost = findLost(ofText, pushed);
  if (lost !== null) faults.push(`1: less than ${lost} was pushed`);
  const isOnlyText = run.wholes.every(({ accept }) => accept === TEXT_ACCEPT);
  for (const page of isOnlyText ? newest.values() : []) {
    const back = findLost(readNumbers(page), pushed);
    if (back !== null) faults.push(`2: ${back} was served, and less was pushed`);
  }
  // Judged is what was shown since main was first alive; pushed what vanished shortly before, too.
  const { aliveSinceMs } = run.state.facts;
  // What comes in the moment in which a process that stood still learns of the end is pushed, and not judged.
  const isLate =
    scenario.standstills.length > 0 && run.wholes.some(({ endedAtMs }) => Math.abs(endedAtMs - knownAtMs) < 1);
  const lookedMs = isLate ? knownAtMs - 1 : run.overAtMs;
  const isOfRun = run.wholes.some(
    (each) => each.page.has(SELECTED) && each.endedAtMs > Number(aliveSinceMs) && each.endedAtMs <= lookedMs,
  );
  const known = isLate ? findFinal(run, undefined, endedAtMs, lookedMs) : ofText;
  const wanted = isOfRun ? known?.get(SELECTED) : undefined;
  const reading = run.state.facts.numbers.readings[0];
  const judged = reading?.kind === 'value' ? reading.value : -1;
  // An answer may come between the last look and the end of serving.
  const isNewest = isOnlyText && !isLate && run.wholes.every(({ endedAtMs }) => endedAtMs <= run.overAtMs - 1);
  if (wanted !== undefined && (judged < wanted || (isNewest && judged !== pushed.get(SELECTED)))) {
    faults.push(`2: ${judged} was judged, and ${pushed.get(SELECTED)} pushed, of ${wanted}`);
  }
  return faults;
}

/** Whether a page may have less than the one that the same scraper got before it. */
function mayGoBack({ wholes, knownAtMs, scenario: { source, endMs } }: Run, before: Page, page: Page): boolean {
  const [older, newer] = [before, page].map((each) => wholes.find(({ askedAtMs }) => askedAtMs === findReadMs(each)));
  if (older === undefined || newer === undefined) return false;
  // Restarted between two reads, which nothing showed: none was refused, and promhttp's counter is not looked
  // for in messages (590992), or was 0 before, too (803825). Or while main lived (393154).
  const isAfterMain = newer.isKnownAsNew && findGeneration(source, endMs) < newer.generation;
  if (newer.generation > older.generation && !isAfterMain) return true;
  // The first answer in its own format, asked for before the end, came after it, and after the scraper had asked
  // and was to get text. If nothing newer can be read, that answer is what it gets next (944837).
  const isFirst = wholes.find(({ accept }) => accept === newer.accept) === newer;
  return isFirst && older.isText && newer.askedAtMs < older.askedAtMs && newer.endedAtMs > Number(knownAtMs);
}

/** When the read of a page began that was served. */
function findReadMs(page: Page | null): number {
  return Math.round((Number(page?.get('lastscrape_snapshot_timestamp_seconds')) - START_SECONDS) * 1_000);
}

/** Without our own families, which are of the moment. */
function readNumbers(page: Page = new Map()): Page {
  return new Map([...page].filter(([name]) => name.startsWith('job_') && name.includes('_total')));
}

/** 1: a source that can be read is read, so that what main had shortly before its end is there. */
function checkFreshness({ run, scenario }: Facts): readonly string[] {
  const { source, endMs, limits, standstills, scrapers } = scenario;
  const hangs = source.faults.filter(({ kind }) => kind === 'hangOnce' || kind === 'drop');
  const restMs = (scenario.shape === 'metricExporter' ? REST_FACTORS.onlyEvidence : REST_FACTORS.usual) * source.tookMs;
  const allowedMs = 2 * limits.pollMs + 8 * source.tookMs + 1_500 + 4_000 * hangs.length + restMs;
  const fromMs = endMs - allowedMs;
  // Nothing is read next to a read that hangs unless a scrape waits.
  const isAsked = scrapers.some((each) => each.intervalMs <= 2_000 && each.firstMs < fromMs && each.untilMs > endMs);
  const isEasy =
    fromMs > 0 &&
    source.hasLength &&
    (hangs.length === 0 || isAsked) &&
    source.faults.every((each) => hangs.includes(each) || each.fromMs > endMs || each.toMs < fromMs - 15_000) &&
    source.downs.every((down) => down.fromMs >= endMs || down.toMs < fromMs) &&
    standstills.every((each) => each.fromMs > endMs) &&
    source.families.some((each) => each.fromMs < fromMs && each.toMs > endMs);
  const isFresh = run.wholes.some(
    ({ askedAtMs, endedAtMs }) => askedAtMs >= fromMs && endedAtMs <= endMs + source.tookMs,
  );
  return isEasy && !isFresh ? [`1: nothing was read from ${fromMs} until main ended at ${endMs}`] : [];
}

/** 1: after the end every scraper with time gets what is kept. */
function checkAnswered({ run, scenario, knownAtMs }: Facts): readonly string[] {
  const keptAtMs = run.wholes[0]?.endedAtMs ?? Number.POSITIVE_INFINITY;
  return run.scrapes
    .filter(({ sentAtMs, plan: { timeoutMs } }) => {
      const isAwake = scenario.standstills.every(
        ({ fromMs, ms }) => fromMs > sentAtMs + timeoutMs || fromMs + ms < sentAtMs,
      );
      return sentAtMs > Math.max(knownAtMs, keptAtMs) && timeoutMs >= 1_000 && isAwake;
    })
    .filter(({ isFaulty, end, status }) => !isFaulty && (end === 'timedOut' || (end === 'whole' && status !== 200)))
    .map(({ plan, sentAtMs, end, status }) => `1: ${plan.address} got ${end} ${status} at ${sentAtMs}, after the end`);
}

function hasFinal(facts: Facts, plan: ScraperPlan): boolean {
  return facts.run.scrapes.some((each) => each.plan === plan && hasTaken(facts, each));
}

/** It has the numbers of the end. */
function hasTaken({ scenario, ended }: Facts, { plan, page }: Scrape): boolean {
  if (page === null) return false;
  if (findLost(ended(plan.accept ?? TEXT_ACCEPT), page) === null) return true;
  // Where all is text, what polls asked for as text may be in the page of its Accept, and newer (649267, 959165).
  const newest = ended(undefined);
  return scenario.source.formats === 'text' && newest.size > 0 && findLost(newest, page) === null;
}

/** 1: no scraper that lives, and comes in time, is given up. */
function checkLiving(facts: Facts): readonly string[] {
  const { run, scenario, endedAtMs, final, limitMs } = facts;
  if (
    (final(undefined)?.size ?? 0) === 0 ||
    scenario.limits.scrapesWantedCount !== 'auto' ||
    run.report.outcome !== 'scraped'
  )
    return [];
  return scenario.scrapers
    .filter((plan) => plan.untilMs === Number.POSITIVE_INFINITY && !hasFinal(facts, plan))
    .filter((plan) => {
      const sent = run.scrapes.filter((each) => each.plan === plan);
      const arrived = sent.filter(({ arrivedAtMs }) => arrivedAtMs !== null && arrivedAtMs <= endedAtMs);
      const late = sent.filter(({ sentAtMs }) => sentAtMs <= run.closedAtMs).slice(-3);
      const last = late.at(-1)?.sentAtMs ?? 0;
      // One that waits for an answer until its next turn leaves that out.
      const isRegular = last - Number(late[0]?.sentAtMs) <= 2 * plan.intervalMs;
      const twins = scenario.scrapers.filter(({ address }) => address === plan.address);
      const isKnown = twins.every((twin) => twin === plan || wereOpenAtOnce(facts, twin, plan));
      // Those that arrive together after a standstill show no interval (919077).
      const turnsCount = new Set(arrived.map(({ arrivedAtMs }) => arrivedAtMs)).size;
      return isKnown && isRegular && turnsCount >= 3 && last + plan.intervalMs < limitMs - 1_000;
    })
    .map(({ address }) => `1: ${address} lives, and was not waited for`);
}

/** By main's end; else two behind one address are one: each answer is cut, and each connection reset (834528). */
function wereOpenAtOnce({ run, endedAtMs }: Facts, one: ScraperPlan, other: ScraperPlan): boolean {
  const arrived = run.scrapes.filter(({ arrivedAtMs }) => arrivedAtMs !== null && arrivedAtMs <= endedAtMs);
  const ofOther = arrived.filter(({ plan }) => plan === other).map(({ arrivedAtMs }) => Number(arrivedAtMs));
  return ofOther.some((atMs) => {
    const before = arrived.findLast(({ plan, arrivedAtMs }) => plan === one && Number(arrivedAtMs) <= atMs);
    return before !== undefined && (before.end === 'whole' || Number(before.endedAtMs) > atMs);
  });
}

/** 1: nothing is closed under a scrape that waits, for 10 s. */
function checkClosing(facts: Facts): readonly string[] {
  const { run, knownAtMs, limitMs, scenario } = facts;
  const { terminatedAtMs } = run.state.facts;
  const cutAtMs = terminatedAtMs === null ? Number.POSITIVE_INFINITY : findAnswersEnd(terminatedAtMs, scenario.limits);
  const lastMs = Math.min(limitMs + ANSWERS_MS, scenario.limits.terminationGraceMs === 0 ? limitMs : cutAtMs) - 500;
  // Or it was the source that cut its answer off, in the same millisecond (169066).
  const isCut = scenario.source.hasLength && isHanging(scenario, run.closedAtMs, /^cut/);
  return run.scrapes
    .filter(({ end, endedAtMs }) => end === 'closed' && endedAtMs === run.closedAtMs && !isCut)
    .filter(({ isFaulty, plan, arrivedAtMs }) => !isFaulty && arrivedAtMs !== null && !hasFinal(facts, plan))
    .filter(({ sentAtMs }) => {
      const waitedMs = run.closedAtMs - sentAtMs;
      // In the millisecond in which the end is known its own read may have broken off.
      const hadAny = run.report.outcome !== 'exporterGone' && run.closedAtMs > knownAtMs;
      return hadAny && limitMs > knownAtMs && waitedMs > 5 && waitedMs < ANSWERS_MS - 500 && run.closedAtMs < lastMs;
    })
    .map(({ plan, sentAtMs }) => `1: the scrape of ${plan.address} at ${sentAtMs} was reset by the end`);
}

/** 1: an exporter that outlives main, and answers, is read once more. */
function checkLastRead({ run, scenario, final }: Facts): readonly string[] {
  const { source, endMs, shape, standstills } = scenario;
  const isEasy =
    !isOwn(shape) &&
    source.hasLength &&
    source.tookMs <= 200 &&
    source.faults.every(({ toMs }) => toMs < endMs - 15_000) &&
    source.downs.every(({ toMs }) => toMs < endMs - 12_000) &&
    standstills.length === 0;
  if (!isEasy || run.pushed === null || final(undefined) === null) return [];
  const atEnd = new Map(
    [...readPage(source, endMs)].filter(([name]) =>
      source.families.some((each) => each.name === name && each.toMs > 1e9),
    ),
  );
  const lost = findLost(atEnd, run.pushed);
  return lost === null ? [] : [`1: less than ${lost} was pushed, which the exporter still had`];
}

/** 3: as many have taken the numbers of the end as were counted. */
function checkCounted(facts: Facts): readonly string[] {
  const { run, final } = facts;
  if (final(undefined) === null) return [];
  const taken = run.scrapes.filter((each) => hasTaken(facts, each));
  const seen = run.report.scrapesSeen ?? 0;
  return seen > taken.length ? [`3: ${seen} were counted, and ${taken.length} have taken`] : [];
}

/** 4: the hold ends by its limit, or once no scraper is left that may come. */
function checkLimits(facts: Facts): readonly string[] {
  const { run, scenario, limitMs } = facts;
  const stoodMs = scenario.standstills.reduce((sum, { ms }) => sum + ms + LAST_LOOK_MS, 0);
  // A signal gives the last read its time again.
  const readMs = limitMs === facts.knownAtMs ? 2 * LAST_READ_MS : 0;
  const lastMs = limitMs + LAST_LOOK_MS + readMs + stoodMs + findAnswersMs(run, limitMs);
  if (run.closedAtMs > lastMs) return [`4: closed at ${run.closedAtMs}, and the limit was ${limitMs}`];
  const neededMs = findNeeded(facts);
  if (neededMs === null) return [];
  return run.closedAtMs > neededMs + LAST_LOOK_MS + findAnswersMs(run, neededMs) + stoodMs
    ? [`4: closed at ${run.closedAtMs}, and nothing was left to wait for since ${neededMs}`]
    : [];
}

/** How long answers that are on their way then, or begin before they have ended, may be waited for. */
function findAnswersMs({ scrapes, closedAtMs, scenario }: Run, atMs: number): number {
  // One after the other, looks wait up to a POLL each for a metric of a source that hangs (918112) or is
  // slow (802734).
  const lookMs =
    isHanging(scenario, atMs, /^(hang|slow)/) && scenario.shape === 'metricExporter' ? scenario.limits.pollMs : 0;
  const paceMs = PACE_MS + 2 * scenario.source.tookMs + lookMs;
  let endMs = atMs;
  for (const { sentAtMs, endedAtMs } of scrapes) {
    if (sentAtMs <= endMs + (endMs === atMs ? LAST_LOOK_MS : paceMs)) endMs = Math.max(endMs, endedAtMs ?? closedAtMs);
  }
  return Math.min(endMs - atMs, ANSWERS_MS);
}

/** When the last living scraper had taken, or lived no more; null: not known. */
function findNeeded({ run, scenario, endedAtMs, knownAtMs }: Facts): number | null {
  const { limits, scrapers } = scenario;
  const isPlain = new Set(scrapers.map(({ address }) => address)).size === scrapers.length;
  // A look that has begun waits up to a POLL for a metric of a source that hangs, even if all have taken meanwhile (37086).
  const isWaiting = scenario.shape === 'metricExporter' && isHanging(scenario, knownAtMs);
  if (limits.scrapesWantedCount !== 'auto' || !hasHold(limits) || !isPlain || isWaiting) return null;
  const known = scrapers.map((plan) => {
    const sent = run.scrapes.filter((each) => each.plan === plan && each.arrivedAtMs !== null);
    const before = sent
      .filter(({ arrivedAtMs }) => Number(arrivedAtMs) <= endedAtMs)
      .map(({ arrivedAtMs }) => Number(arrivedAtMs));
    const after = sent.filter(({ arrivedAtMs }) => Number(arrivedAtMs) > Math.max(endedAtMs, knownAtMs));
    const took = after.find((each) => isNewest(run, each, endedAtMs));
    return {
      before,
      // One that comes again and again lives.
      lastMs: Number(sent.at(-1)?.arrivedAtMs),
      tookMs: took?.endedAtMs ?? Number.POSITIVE_INFINITY,
      intervalMs: findMedian(before.slice(1).map((at, index) => at - Number(before[index]))),
      // What one is known by that was seen once: the longest interval of the others.
      otherMs:
        sent.length > 1
          ? Math.max(
              plan.intervalMs,
              ...sent.slice(1).map(({ sentAtMs }, index) => sentAtMs - Number(sent[index]?.sentAtMs)),
            )
          : 0,
    };
  });
  const others = Math.max(...known.map(({ otherMs }) => otherMs));
  const firstMs = Math.min(...known.map(({ tookMs }) => tookMs));
  const endsMs = known
    .filter(({ before }) => before.length > 0)
    .map(({ lastMs, tookMs, intervalMs }) => {
      const livesMs = intervalMs ?? others;
      return Math.min(tookMs, livesMs === 0 ? Number.POSITIVE_INFINITY : lastMs + 2.5 * livesMs);
    });
  // The last look waits for every format of a source of which nothing was kept, even if all have taken meanwhile (434618).
  const isUnkept = run.wholes.every((each) => each.endedAtMs > knownAtMs);
  const lookedMs = knownAtMs + (isUnkept && isHanging(scenario, knownAtMs) ? READ_TIMEOUT_MS : 0);
  const neededMs = Math.max(firstMs, lookedMs, ...endsMs);
  return neededMs === Number.POSITIVE_INFINITY ? null : neededMs;
}

/** The source hangs then, or later, or has another such fault. */
function isHanging({ source }: Scenario, atMs: number, kinds = /^hang/): boolean {
  return source.faults.some(({ kind, toMs }) => kinds.test(kind) && toMs > atMs);
}

/** It took a page that was read after the end, or there has been no newer one: its own format may be unreadable. */
function isNewest({ wholes }: Run, { page, arrivedAtMs }: Scrape, endedAtMs: number): boolean {
  return (
    page !== null && (findReadMs(page) > endedAtMs || wholes.every(({ askedAtMs }) => askedAtMs < Number(arrivedAtMs)))
  );
}

function findMedian(values: readonly number[]): number | null {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? null;
}

/** 5: the report says how it ended, when, and how many scraped. */
function checkReport({ run, scenario, endedAtMs, limitMs }: Facts): readonly string[] {
  const { report, wholes, scrapes, overAtMs } = run;
  const { limits, shape, endMs } = scenario;
  const faults: string[] = [];
  const expect = (isSo: boolean, text: string) => isSo || faults.push(`5: ${report.outcome}: ${text}`);
  const wanted = limits.scrapesWantedCount === 'auto' ? 1 : limits.scrapesWantedCount;
  const hasKept = wholes.some((each) => each.endedAtMs < overAtMs);
  expect((report.outcome === 'released') === !hasHold(limits), 'whether a hold was asked for');
  if (report.outcome === 'scraped') expect(Number(report.scrapesSeen) >= wanted, `${report.scrapesSeen} scrapes`);
  // Without a front nothing is left to serve once the exporter is gone.
  if (report.outcome === 'exporterGone' && shape !== 'portAlone') expect(!hasKept, 'the front had a snapshot');
  if (report.outcome === 'expired' || report.outcome === 'terminated') expect(overAtMs >= limitMs, `before ${limitMs}`);
  const isByEnd = endedAtMs >= (isBySignal(shape) ? Number(scenario.signalsMs[0]) : endMs);
  expect(isByEnd, `main ended at ${endMs}, not at ${endedAtMs}`);
  const count = Number(report.scrapesSeen) + Number(report.scrapesWhileRunning);
  // An answer that ends unlike its format is handed over, and no scrape (480301).
  const whole = scrapes.filter(({ end, status, page }) => end === 'whole' && status === 200 && page !== null);
  // Nor is the page of a call that another program has replaced (146395).
  const isReplaced = ({ page, endedAtMs: takenAtMs }: Scrape) => {
    const own = wholes.find(({ askedAtMs }) => askedAtMs === findReadMs(page))?.generation ?? Number.POSITIVE_INFINITY;
    return wholes.some(({ generation, endedAtMs: atMs }) => generation > own && atMs < Number(takenAtMs));
  };
  const early = whole.filter((each) => Number(each.endedAtMs) < overAtMs && !isReplaced(each));
  expect(early.length <= count && count <= whole.length, `${count} scrapes, not ${early.length} to ${whole.length}`);
  expect(new Date(endedAtMs).toISOString() === report.mainEndedAt, `mainEndedAt ${report.mainEndedAt}`);
  expect(JSON.stringify(report).length <= 1_024, 'too long');
  return faults;
}
