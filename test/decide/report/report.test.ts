import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MESSAGES } from '../../../src/decide/messages.ts';
import type { HoldOutcome, Limits, Policy } from '../../../src/decide/model.ts';
import { EXIT, findExitCode } from '../../../src/decide/quit/exit-codes.ts';
import {
  buildBugReport,
  buildMisconfiguredReport,
  buildReport,
  fitReport,
  REPORT_MAX_BYTES,
} from '../../../src/decide/report/report.ts';
import type { Report, ReportSource, ReportStage } from '../../../src/decide/report/report-fields.ts';
import { initialState } from '../../../src/decide/run/facts.ts';
import { addScrape, type FrontFacts, NO_SCRAPERS, type ServedScrape } from '../../../src/decide/serve/scrapers.ts';
import type { Holding, Phase, Quitting, SendReport, State, TargetReport } from '../../../src/decide/state.ts';
import { UNSEEN } from '../../../src/decide/verdict.ts';
import { DEFAULT_LIMITS, HOLDING, POLICY, QUITTING, RUNNING, scrapeBy } from '../phases.ts';

const LIMITS: Limits = { ...DEFAULT_LIMITS, scrapesWantedCount: 2 };
const STOPPED: TargetReport = { target: 'locust-exporter', result: 'stopped', seconds: 0.04 };

function stateWith(phase: Phase, facts: Partial<State['facts']> = {}): State {
  const state = initialState(0);
  return { facts: { ...state.facts, hasAnswered: true, ...facts }, phase };
}

function ended(outcome: HoldOutcome, mainEndedAtMs: number | null, scrapesSeenCount: number | null): Quitting {
  return { ...QUITTING, outcome, mainEndedAtMs, scrapesSeenCount };
}

/** On the way, with a target that is not asked yet. */
const UNFINISHED = { stage: { kind: 'unfinished' }, targetCount: 1 } as const;

/** The report at the end of a run, or at another stage; of as many targets as have come to their end, or more. */
function reportOn(
  { facts, phase }: State,
  targets: readonly TargetReport[] = [STOPPED],
  { stage, source = EXPORTER, targetCount = targets.length, ...more }: ReportOptions = {},
): Report {
  const state = { facts, phase: phase.kind === 'quitting' ? { ...phase, reports: targets } : phase };
  const policy: Policy = {
    ...POLICY,
    limits: LIMITS,
    targets: Array.from({ length: targetCount }, (_, index) => ({
      name: `target ${index}`,
      request: '',
      needsMs: 0,
      canForce: false,
    })),
    ...more,
  };
  return buildReport({
    state,
    policy,
    source,
    nowMs: 120_000,
    toTime: (atMs) => new Date(Date.UTC(2026, 10, 21) + atMs).toISOString(),
    stage: stage ?? { kind: 'done', exitCode: findExitCode(state, policy, null), by: null },
    version: '0.1.0',
  });
}

const EXPORTER: ReportSource = { kind: 'exporter', at: 'localhost:9646' };

type ReportOptions = Partial<Policy> & {
  readonly stage?: ReportStage;
  readonly source?: ReportSource;
  readonly targetCount?: number;
};

test('buildReport() says of a main that ran for too long how it was held for', () => {
  const { summary, outcome, exitCode } = reportOn(stateWith(ended('timedOut', 100_000, 2)));
  const held = 'Main ran longer than LASTSCRAPE_RUN_TIMEOUT; held for 12.0 s, 2 of 2 wanted scrapes seen';
  assert.deepEqual([summary, outcome, exitCode], [`${held}; locust-exporter stopped`, 'timedOut', 0]);
});

test('buildReport() says that nothing ever answered, and what to set, where no exporter was ever there', () => {
  const { summary, hint } = reportOn(stateWith(ended('exporterGone', 100_000, null), { hasAnswered: false }));
  assert.equal(summary, 'Nothing could be read from localhost:9646 at any time; locust-exporter stopped');
  assert.equal(
    hint,
    'set LASTSCRAPE_METRICS_URL to where the exporter listens, or LASTSCRAPE_SCRAPES=0 if there is none',
  );
  assert.equal(reportOn(stateWith(ended('exporterGone', 100_000, null))).hint, undefined);
  const source = { kind: 'files', at: '/metrics/' } as const;
  const files = reportOn(stateWith(ended('exporterGone', 100_000, null), { hasAnswered: false }), [], { source });
  const said = [files.summary, files.hint];
  assert.deepEqual(said, [
    'Nothing could be read from /metrics/ at any time',
    'set LASTSCRAPE_METRICS_URL to what main writes in a volume of both, or LASTSCRAPE_SCRAPES=0 if there is none',
  ]);
});

test('buildReport() never rounds a ratio above 0 to 0, and makes none of no requests', () => {
  const reportRatio = (requests: number, failures: number) =>
    reportOn(stateWith(ended('released', 1, 0), { totals: { requests, failures, users: null } })).final?.failRatio;
  assert.equal(reportRatio(10_000_000, 1), 1e-7);
  assert.equal(reportRatio(30_000_000, 7), 2e-7);
  assert.deepEqual([reportRatio(3, 1), reportRatio(3, 0)], [0.33333, 0]);
  assert.equal(reportRatio(0, 0), null);
});

test('buildReport() names few targets and counts many', () => {
  const targets: TargetReport[] = [
    STOPPED,
    STOPPED,
    { target: 'a', result: 'alreadyGone', seconds: 0 },
    { target: 'b', result: 'alreadyGone', seconds: 0 },
  ];
  const { summary } = reportOn(stateWith(ended('released', 1, 0)), targets);
  assert.match(summary, /; 2 targets stopped; 2 targets were already gone$/);
  const left = reportOn(stateWith(ended('released', 1, 0)), [], { targetCount: 2 }).summary;
  assert.match(left, /; 2 of 2 targets not asked to the end$/);
});

test('buildReport() counts more than two targets by how they ended', () => {
  const results = ['failed', 'skipped', 'failed', 'alreadyGone', 'stopped'] as const;
  const targets = results.map((result): TargetReport => ({ target: 'x', result, seconds: 0 }));
  assert.match(
    reportOn(stateWith(ended('released', 1, 0)), targets).summary,
    /; 1 target stopped; 1 target was already gone; 2 targets still run; 1 target left alone \(dry run\)$/,
  );
});

test('buildReport() cuts a long name of a target in the summary, and no other', () => {
  const summarize = (target: string) => reportOn(stateWith(ended('released', 1, 0)), [{ ...STOPPED, target }]).summary;
  assert.match(summarize('x'.repeat(60)), /; x{60} stopped$/);
  assert.match(summarize('x'.repeat(61)), /; x{59}… stopped$/);
});

test('EXIT has the codes of sysexits(3), and 128 + SIGINT', () => {
  assert.deepEqual(EXIT, {
    done: 0,
    thresholdFailed: 1,
    usage: 64,
    unreadable: 65,
    targetRuns: 69,
    bug: 70,
    notJudged: 75,
    misconfigured: 78,
    interrupted: 130,
  });
});

test('buildReport() speaks of a run that is not over', () => {
  const waiting = reportOn(initialState(0), [], UNFINISHED);
  assert.deepEqual([waiting.outcome, waiting.summary, waiting.exitCode], ['unfinished', 'Unfinished: waiting', null]);
  const baseline = { finishedCount: 4, inFlightCount: 0 };
  const holding: Holding = { ...HOLDING, count: { ...HOLDING.count, baseline, ownCount: 1, seenCount: 1 } };
  const report = reportOn(stateWith(holding), [], UNFINISHED);
  assert.deepEqual([report.heldSeconds, report.scrapesSeen], [20, 1]);
  const count = { ...holding.count, seenCount: 5 };
  const running = { count, restartedAtMs: 1, beforeRestartCount: 2, wasScrapedBefore: true };
  assert.equal(reportOn(stateWith(holding, { running }), [], UNFINISHED).scrapesWhileRunning, 6);
  const early = stateWith(RUNNING, { running });
  assert.equal(reportOn(early, [], UNFINISHED).scrapesWhileRunning, 7);
  const uncounted = reportOn(stateWith({ ...holding, count: { ...holding.count, baseline: null } }), [], UNFINISHED);
  assert.equal(uncounted.scrapesSeen, null);
});

test('buildReport() says of a run that a second signal ended: terminated', () => {
  assert.equal(reportOn(stateWith(RUNNING)).outcome, 'terminated');
});

test('buildReport() hints at why nothing scraped, where the hold expired without a scrape', () => {
  const warned = ['nobodyScraped'];
  const { running } = initialState(0).facts;
  const facts = { warned, running: { ...running, count: { ...running.count, isNobody: true } } };
  assert.equal(reportOn(stateWith(ended('expired', 22_000, 0), facts)).hint, MESSAGES.nobodyScraped.text);
  const late =
    'no scrape came in LASTSCRAPE_TTL (90 s): is the scrape interval longer, or does a rule drop NotReady pods?';
  assert.equal(reportOn(stateWith(ended('expired', 22_000, 0), { warned })).hint, late, 'one has since');
  assert.equal(reportOn(stateWith(ended('expired', 22_000, 0))).hint, late);
  assert.match(reportOn(stateWith(ended('expired', 22_000, 1), facts)).hint ?? '', /^not all scrapes came /);
  assert.equal(reportOn(stateWith(ended('scraped', 22_000, 2), facts)).hint, undefined);
  const uncounted = ended('expired', 22_000, null);
  assert.match(reportOn(stateWith(uncounted)).hint ?? '', /no promhttp scrape counter/);
  const silent = reportOn(stateWith({ ...uncounted, hasAnswered: false }));
  assert.equal(silent.hint, 'the exporter gave no answer after main ended');
});

const measureSize = (report: Report) => Buffer.byteLength(JSON.stringify(report));

test('fitReport() leaves a report that fits as it is', () => {
  const report = reportOn(stateWith(ended('scraped', 1, 1)));
  assert.equal(fitReport(report), report);
  const hinted = { ...report, hint: 'h' };
  assert.equal(fitReport(hinted, measureSize(hinted)), hinted, 'to the byte');
  assert.ok(!('hint' in fitReport(hinted, measureSize(hinted) - 1)));
});

test('fitReport() drops every target where even one does not fit, and keeps one problem, cut', () => {
  const long = reportOn(stateWith(ended('expired', 1, null)), [{ ...STOPPED, target: 'x'.repeat(2_000) }]);
  const { targets, targetsOmitted } = fitReport(long);
  assert.deepEqual([targets, targetsOmitted], [[], 1]);
  const wordy = fitReport({ ...reportOn(stateWith(ended('expired', 1, null))), summary: 'x'.repeat(5_000) });
  assert.deepEqual([wordy.targets, wordy.targetsOmitted], [[], 1]);
  assert.match(wordy.summary, /^x{100,}…$/);
  const { problems, problemsOmitted } = fitReport(buildMisconfiguredReport(['x'.repeat(2_000), 'y'], '0.1.0'));
  assert.equal(problemsOmitted, 1);
  assert.match(problems?.[0] ?? '', /^x{100,}…$/);
});

test('fitReport() fits where every letter is one that JSON writes as six', () => {
  const odd = '\u0001'.repeat(300);
  const failed = { entry: odd, seen: odd };
  const report: Report = {
    ...reportOn(stateWith(ended('scraped', 1, 1))),
    summary: odd,
    verdict: 'failed',
    failed,
    alsoFailed: Array.from({ length: 49 }, () => failed),
    ranSeconds: 1e9,
    heldSeconds: 1e5,
    mainEndedAt: '2026-11-21T09:30:00.123Z',
    scrapers: Array.from({ length: 16 }, () => ({
      scraper: odd,
      intervalSeconds: 1,
      last: '2026-11-21T09:30:00.123Z',
    })),
    push: { to: 'remote-write', result: 'failed', seconds: 29.9 },
    targets: Array.from({ length: 30 }, () => ({ target: odd, result: 'failed', seconds: 1 })),
    final: { requests: 1e15, failures: 1e15, failRatio: 0.12345, users: 1e9 },
  };
  const fitted = fitReport(report);
  assert.ok(measureSize(fitted) <= REPORT_MAX_BYTES);
  assert.deepEqual([fitted.verdict, fitted.exitCode, fitted.push], ['failed', 0, report.push]);
  assert.notEqual(fitted.failed, undefined);
});

test('fitReport() drops the hints of targets first, then the hint, then whole targets, and counts them', () => {
  const hint = 'x'.repeat(300);
  const few = reportOn(
    stateWith(ended('expired', 1, null)),
    Array.from({ length: 3 }, () => ({ ...STOPPED, hint })),
  );
  const withoutHints = fitReport({ ...few, hint: 'set that' });
  assert.ok(measureSize(few) > REPORT_MAX_BYTES && measureSize(withoutHints) <= REPORT_MAX_BYTES);
  assert.equal(withoutHints.hint, 'set that', 'what to change stays');
  assert.deepEqual(withoutHints.targets, [STOPPED, STOPPED, STOPPED]);
  const many = fitReport(
    reportOn(
      stateWith(ended('expired', 1, null)),
      Array.from({ length: 40 }, () => ({ ...STOPPED, hint })),
    ),
  );
  assert.ok(measureSize(many) <= REPORT_MAX_BYTES);
  assert.ok((many.targets?.length ?? 0) > 3);
  assert.equal(many.hint, undefined);
  assert.equal((many.targets?.length ?? 0) + (many.targetsOmitted ?? 0), 40);
});

test('buildReport() never says that main ran for less than no time', () => {
  const ran = reportOn(stateWith(ended('released', 100_000, 0), { aliveSinceMs: 100_500 })).ranSeconds;
  assert.deepEqual([ran, reportOn(stateWith(ended('released', 0, 0), { aliveSinceMs: 0 })).ranSeconds], [0, 0]);
});

test('fitReport() drops exit codes before all else', () => {
  const exitCodes = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`${'c'.repeat(60)}-${index}`, 0]));
  const hinted = [{ ...STOPPED, hint: 'x'.repeat(300) }];
  const { mainExitCodes, ...many } = reportOn(stateWith(ended('expired', 1, 0), { exitCodes }), hinted);
  assert.deepEqual(mainExitCodes, exitCodes);
  const fitted = fitReport({ ...many, mainExitCodes });
  assert.ok(measureSize(fitted) <= REPORT_MAX_BYTES);
  assert.deepEqual(fitted, many);
});

test('fitReport() fits any number of problems, any error and any text of many bytes', () => {
  const problems = Array.from({ length: 30 }, (_, index) => `Cannot read LASTSCRAPE_${index}: ${'ü'.repeat(80)}`);
  const misconfigured = fitReport(buildMisconfiguredReport(problems, '0.1.0'));
  assert.ok(measureSize(misconfigured) <= REPORT_MAX_BYTES);
  assert.equal((misconfigured.problems?.length ?? 0) + (misconfigured.problemsOmitted ?? 0), 30);
  const one = fitReport(buildMisconfiguredReport(['ü'.repeat(4_000)], '0.1.0'));
  assert.ok(measureSize(one) <= REPORT_MAX_BYTES && (one.problems?.[0]?.length ?? 0) > 100);
  assert.match(one.summary, /^Misconfigured: one problem/);
  assert.deepEqual([one.outcome, one.exitCode], ['misconfigured', 78]);
  const bug = fitReport(buildBugReport('\u0000'.repeat(4_000), '0.1.0'));
  assert.ok(measureSize(bug) <= REPORT_MAX_BYTES);
  assert.deepEqual([bug.outcome, bug.exitCode], ['bug', 70]);
});

test('buildBugReport() keeps 400 characters', () => {
  assert.equal(buildBugReport('x'.repeat(378), '0.1.0').summary, `Bug in lastscrape: ${'x'.repeat(378)}`);
  assert.equal(buildBugReport('x'.repeat(500), '0.1.0').summary.length, 400);
});

test('buildReport() fails on an outcome that no run can have', () => {
  assert.throws(() => reportOn(stateWith(ended('bug' as never, null, null))), /^Error: Bug: unexpected value "bug"$/);
});

/** What a front remembers of these scrapes, each by an address, begun at that second after the start. */
function frontWith(
  ...scrapes: readonly (readonly [address: string, second: number, rest?: Partial<ServedScrape>])[]
): FrontFacts {
  return scrapes.reduce(
    (front, [address, second, rest]) =>
      addScrape(front, scrapeBy(address, second * 1_000, { agent: 'Prometheus/3.0.0', ...rest })),
    NO_SCRAPERS,
  );
}

const AUTO: Partial<Policy> = { front: { port: 9_469 }, limits: { ...LIMITS, scrapesWantedCount: 'auto' } };

/** The report of a hold with a front, from 100 s on, that ended at 112 s. */
const reportFront = (outcome: HoldOutcome, front: FrontFacts, policy = AUTO, facts: Partial<State['facts']> = {}) =>
  reportOn(stateWith(ended(outcome, 100_000, 0), { front, ...facts }), [], policy);

test('buildReport() says what the last scrape got through a front, and when that was read', () => {
  const summarize = (rest: Partial<ServedScrape>) =>
    reportFront('scraped', frontWith(['a', 80], ['a', 110, rest])).summary;
  assert.equal(summarize({}), 'Scraped once 12.0 s after main ended, live');
  const joined = summarize({ served: 'joined' });
  assert.equal(joined, 'Scraped once 12.0 s after main ended, live, with the last values of vanished series');
  const snapshot = (readAtMs: number) => summarize({ served: 'snapshot', readAtMs });
  assert.equal(snapshot(98_600), 'Scraped once 12.0 s after main ended, from a page read 1.4 s before that end');
  assert.equal(snapshot(100_000), 'Scraped once 12.0 s after main ended, from a page read 0.0 s before that end');
  assert.equal(snapshot(103_000), 'Scraped once 12.0 s after main ended, from a page read 3.0 s after that end');
});

test('buildReport() says who took the last page, and what may be missing', () => {
  const report = (kind: ReportSource['kind'], answeredAtMs: number, seen: Partial<FrontFacts['seen']> = {}) => {
    const front = { ...frontWith(['a', 110, { served: 'snapshot', readAtMs: answeredAtMs }]) };
    const facts = { front: { ...front, seen: { answeredAtMs, inFlightCount: 0, ...seen } } };
    const options = { ...AUTO, source: { kind, at: '' } };
    const built = reportOn(stateWith(ended('scraped', 100_000, 1), facts), [], options);
    return [built.lastPageBy, built.mayMissSeconds, built.hint];
  };
  const missing = (seconds: number, why: string) => `changes in main's last ${seconds} s may be missing: ${why}`;
  const add = 'add lastscrape.dev/hook: python, or end main with POST http://localhost:9469/-/snapshot';
  const hint = (seconds: number) => missing(seconds, add);
  const called = (seconds: number) => missing(seconds, 'its last call of /-/snapshot was 10.0 s before it ended');
  assert.deepEqual(report('program', 99_960), ['read', 0.1, hint(0.1)]);
  assert.deepEqual(report('program', 90_000, { calledAtMs: 90_000 }), ['read', 10, called(10)]);
  assert.deepEqual(report('program', 98_000, { calledAtMs: 90_000 }), ['read', 2, called(2)]);
  assert.deepEqual(report('program', 90_000, { calledAtMs: 95_000 }), ['read', 10, hint(10)]);
  assert.deepEqual(report('program', 99_000, { calledAtMs: 95_000 }), ['main', 0, undefined]);
  assert.deepEqual(report('program', 100_001), ['read', 0, undefined]);
  assert.deepEqual(report('pushes', 20_000), ['main', 0, undefined]);
  assert.deepEqual(report('locust', 99_000), ['read', 1, undefined]);
  const unreadWhy = '/shared/a.prom does not end with a line feed';
  assert.deepEqual(report('files', 99_000, { unreadWhy }), ['read', 1, missing(1, unreadWhy)]);
  assert.deepEqual(report('files', 99_000), ['read', 1, undefined], 'it was deleted');
  const unkept = `no page of LASTSCRAPE_METRICS_URL could be kept: ${unreadWhy}`;
  assert.deepEqual(report('program', 99_000, { answeredAtMs: null, unreadWhy }), [undefined, undefined, unkept]);
  // Of two formats, or of series that had vanished, the page of one scraper was older.
  const front = frontWith(
    ['a', 110, { readAtMs: 98_000 }],
    ['b', 111, { readAtMs: 110_000, oldestAtMs: 70_000 }],
    ['b', 112, { readAtMs: 111_000, oldestAtMs: 96_000 }],
    ['c', 112, { readAtMs: 112_000 }],
  );
  const facts = { front: { ...front, seen: { answeredAtMs: 99_000, inFlightCount: 0, calledAtMs: 99_000 } } };
  const options = { ...AUTO, source: { kind: 'program', at: '' } as const };
  assert.equal(reportOn(stateWith(ended('scraped', 100_000, 1), facts), [], options).mayMissSeconds, 4);
});

test('buildReport() speaks of a hold with a front that is not over, and of a run', () => {
  const front = frontWith(['a', 80], ['a', 90], ['a', 101]);
  const held = reportOn(stateWith(HOLDING, { front }), [], { ...AUTO, ...UNFINISHED });
  assert.deepEqual([held.scrapesWanted, held.scrapesSeen, held.scrapesWhileRunning], [1, 1, 2]);
  const ran = reportOn(stateWith(RUNNING, { front }), [], { ...AUTO, ...UNFINISHED });
  assert.deepEqual([ran.scrapesWanted, ran.scrapesSeen, ran.scrapesWhileRunning], [1, null, 3]);
  const unseen = reportOn(stateWith(ended('terminated', null, null), { front }), [], AUTO);
  assert.deepEqual([unseen.scrapesSeen, unseen.scrapesWhileRunning], [null, 3]);
});

test('buildReport() says which port of the front nothing ever scraped, and what to set, or why its page could not be read', () => {
  const policy = AUTO;
  const hint =
    'nothing scraped port 9469: set prometheus.io/port to it, or add a PodMonitor; no rule may drop init containers or NotReady pods';
  for (const outcome of ['expired', 'terminated'] as const) {
    assert.ok(reportFront(outcome, NO_SCRAPERS, policy).hint?.startsWith(hint), outcome);
  }
  const late =
    'no scrape came in LASTSCRAPE_TTL (90 s): is the scrape interval longer, or does a rule drop NotReady pods?';
  assert.equal(reportFront('expired', frontWith(['a', 50]), policy).hint, late);
  const partly = frontWith(['a', 50], ['b', 60], ['a', 105]);
  assert.match(reportFront('expired', partly, policy).hint ?? '', /^not all scrapes came that were waited for: /);
  const unread = { ...frontWith(['a', 50]), scrapesCount: 0 };
  assert.match(reportFront('expired', unread, policy).hint ?? '', /LASTSCRAPE_METRICS_URL could not be read: run /);
  const failed = { ...unread, seen: { ...unread.seen, unreadWhy: 'HTTP 404' } };
  assert.match(reportFront('expired', failed, policy).hint ?? '', / could not be read: HTTP 404$/);
  const untaken = { ...unread, seen: { ...unread.seen, answeredAtMs: 40_000 } };
  assert.equal(reportFront('expired', untaken, policy).hint, hint);
});

test('buildReport() says of scrapes that stopped with main which rule may drop the pod, if they came regularly', () => {
  const hintOf = (outcome: 'expired' | 'terminated', ...scrapes: readonly (readonly [string, number])[]) =>
    reportFront(outcome, frontWith(...scrapes), AUTO).hint;
  assert.match(hintOf('expired', ['a', 50], ['a', 60]) ?? '', /^scrapes stopped when main ended: .+ NotReady pods\?/);
  assert.match(hintOf('expired', ['a', 50], ['b', 60]) ?? '', /^no scrape came in /, 'no interval is known');
  assert.match(hintOf('expired', ['a', 50], ['a', 60], ['b', 101]) ?? '', /^not all scrapes came /, 'one came');
  assert.match(hintOf('terminated', ['a', 50], ['a', 60]) ?? '', /^held for /, 'the grace cut it short');
});

test('buildReport() says of every run that a signal cut short which graces to set, by the interval where it is known', () => {
  const grace = { ...LIMITS, terminationGraceMs: 12_000, scrapesWantedCount: 'auto' as const };
  const hintOf = (front: FrontFacts, limits: Limits = grace) =>
    reportFront('terminated', front, { ...AUTO, limits }).hint;
  const pods = "and the pod's terminationGracePeriodSeconds";
  const set = (seconds: number, ttl = '') =>
    `set LASTSCRAPE_TERMINATION_GRACE (12 s) ${ttl}to ${seconds}s, ${pods} to ${seconds + 5}`;
  assert.equal(hintOf(frontWith(['a', 10], ['a', 70])), `held for 12 s, scraped every 60 s: ${set(70)}`);
  // One that should have come: time for one more.
  assert.equal(hintOf(frontWith(['a', 88], ['a', 98])), `held for 12 s, scraped every 10 s: ${set(32)}`);
  const short = { ...grace, ttlMs: 65_000 };
  const both = set(70, 'and LASTSCRAPE_TTL ');
  assert.equal(hintOf(frontWith(['a', 10], ['a', 70]), short), `held for 12 s, scraped every 60 s: ${both}`);
  const unknown = `set LASTSCRAPE_TERMINATION_GRACE (12 s) to 15 s above the scrape interval, ${pods} 5 s above that`;
  assert.equal(hintOf(frontWith(['a', 70])), `held for 12 s: ${unknown}`);
  assert.ok(hintOf(NO_SCRAPERS)?.endsWith(`init containers or NotReady pods; or ${unknown}`));
  const limits = grace;
  const alone = reportOn(stateWith(ended('terminated', 100_000, 0)), [], { limits });
  assert.equal(alone.hint, `held for 12 s: ${unknown}`, 'without a front');
  const { hint, summary } = reportOn(stateWith(ended('terminated', null, null)), [], { limits });
  assert.equal(summary, 'Terminated before main was seen to end');
  assert.equal(
    hint,
    `main had not ended by then: set LASTSCRAPE_TERMINATION_GRACE (12 s) to more than main takes to stop, ${pods} 5 s above that`,
  );
  const stage = { kind: 'done', exitCode: 130, by: 'SIGINT' } as const;
  const given = reportOn(stateWith(ended('terminated', 100_000, 0)), [], { limits, stage });
  assert.equal(given.hint, undefined, 'by a second signal');
});

test('buildReport() says on the way, from a signal on, what a pod lacks that is killed then', () => {
  const hintOf = (phase: Phase, terminatedAtMs: number | null) =>
    reportOn(stateWith(phase, { terminatedAtMs }), [], UNFINISHED).hint;
  const hint =
    "if this report is the last, the pod's grace is shorter than LASTSCRAPE_TERMINATION_GRACE (25 s): set terminationGracePeriodSeconds to 30";
  assert.deepEqual([hintOf(HOLDING, 100_000), hintOf(ended('expired', 1, 0), 100_000)], [hint, hint]);
  assert.deepEqual([hintOf(HOLDING, null), hintOf(RUNNING, 100_000)], [undefined, undefined]);
});

test('fitReport() drops scrapers after exit codes, the longest silent first: all but one before hints of targets, that one before the hint', () => {
  const front = frontWith(...Array.from({ length: 12 }, (_, index) => [`10.0.0.${index}`, index] as const));
  const facts = { front, exitCodes: { load: 3 } };
  const state = stateWith(ended('expired', 100_000, 0), facts);
  const targets = [{ ...STOPPED, hint: 'x'.repeat(100) }, STOPPED];
  const long = { ...reportOn(state, targets, AUTO), hint: 'h' };
  const fitted = fitReport(long);
  assert.ok(measureSize(long) > REPORT_MAX_BYTES && measureSize(fitted) <= REPORT_MAX_BYTES);
  assert.ok(!('mainExitCodes' in fitted));
  assert.deepEqual([fitted.hint, fitted.targets], ['h', targets]);
  const keptCount = fitted.scrapers?.length ?? 0;
  assert.ok(keptCount > 0 && keptCount < 12);
  assert.equal(keptCount + (fitted.scrapersOmitted ?? 0), 12);
  assert.equal(fitted.scrapers?.at(-1)?.scraper, '10.0.0.11 Prometheus/3.0.0');
  const one = measureSize(fitted) - 1;
  assert.equal(fitReport(long, one).scrapers?.length, keptCount - 1, 'one byte less costs one more');
  const newest = fitReport(long, 650);
  assert.deepEqual([newest.scrapers?.length, newest.hint, newest.targets], [1, 'h', [STOPPED, STOPPED]]);
  const tight = fitReport(long, 540);
  assert.deepEqual([tight.scrapers, tight.scrapersOmitted, tight.hint, tight.targets?.length], [[], 12, 'h', 2]);
});

const THRESHOLDS: NonNullable<Policy['thresholds']> = [
  { text: 'locust_requests_fail_ratio > 0.01', name: 'locust_requests_fail_ratio', comparison: '>', limit: 0.01 },
  { text: 'b > 5', name: 'b', comparison: '>', limit: 5 },
];

function reportNumbers(values: readonly number[], phase: Phase, more: ReportOptions = {}): Report {
  const readings = values.map((value) => ({ kind: 'value', value }) as const);
  const numbers = { readings, wereNonZero: [], continuity: UNSEEN };
  return reportOn(stateWith(phase, { numbers }), [STOPPED], { thresholds: THRESHOLDS, ...more });
}

test('buildReport() has the verdict first, in every form of it', () => {
  const passed = reportNumbers([0.01, 5], ended('scraped', 100_000, 1));
  assert.equal(passed.summary, 'Passed 2 thresholds; scraped once 12.0 s after main ended; locust-exporter stopped');
  assert.deepEqual([passed.verdict, passed.failed, passed.exitCode], ['passed', undefined, 0]);
  assert.deepEqual(Object.keys(passed).slice(0, 3), ['summary', 'outcome', 'verdict']);
  const one = reportNumbers([0.02, 5], ended('expired', 22_000, 0));
  assert.equal(
    one.summary,
    'Failed by locust_requests_fail_ratio > 0.01 (0.02); not scraped within 90 s after main ended; locust-exporter stopped',
  );
  assert.deepEqual(one.failed, { entry: 'locust_requests_fail_ratio > 0.01', seen: 0.02 });
  assert.deepEqual([one.outcome, one.verdict, one.alsoFailed, one.exitCode], ['expired', 'failed', undefined, 1]);
  const both = reportNumbers([0.02, 6], ended('scraped', 100_000, 1));
  assert.match(both.summary, /^Failed by locust_requests_fail_ratio > 0\.01 \(0\.02\), and 1 more; scraped once /);
  assert.deepEqual(both.alsoFailed, [{ entry: 'b > 5', seen: 6 }]);
  const long = reportNumbers([24 / 242, 5], ended('scraped', 100_000, 1));
  assert.match(long.summary, /^Failed by locust_requests_fail_ratio > 0\.01 \(0\.0991735537\); /);
  assert.equal(long.failed?.seen, 24 / 242);
  const large = reportNumbers([12_345_678_901, 5], ended('scraped', 100_000, 1));
  assert.match(large.summary, /\(12345678901\); /);
  const single = reportNumbers([0], ended('released', 1, 0), { thresholds: THRESHOLDS.slice(0, 1) });
  assert.match(single.summary, /^Passed the threshold; main ended; /);
});

test('buildReport() has a verdict from the hold on, none before, and is not judged after a second signal', () => {
  const held = reportNumbers([0.02, 5], HOLDING, UNFINISHED);
  const fields = [held.outcome, held.verdict, held.failed?.seen, held.exitCode];
  assert.deepEqual(fields, ['unfinished', 'failed', 0.02, null]);
  assert.match(held.summary, /^Failed by locust_requests_fail_ratio > 0\.01 \(0\.02\); unfinished: holding$/);
  const running = reportNumbers([0.02, 5], RUNNING, UNFINISHED);
  assert.deepEqual([running.verdict, running.summary], [undefined, 'Unfinished: running']);
  const stage = { kind: 'done', exitCode: 130, by: 'SIGINT' } as const;
  const given = reportNumbers([0.02, 5], ended('scraped', 100_000, 1), { stage });
  assert.deepEqual([given.verdict, given.failed, given.exitCode], ['notJudged', undefined, 130]);
  assert.match(given.summary, /^Not judged: cut short by a second signal; /);
});

test('buildReport() has an entry of 200 letters whole, in the summary one of 100, and the beginning of a longer one', () => {
  const show = (text: string) => {
    const thresholds = [{ text, name: 'a', comparison: '>' as const, limit: 0 }];
    return reportNumbers([1], ended('scraped', 100_000, 1), { thresholds });
  };
  assert.equal(show('x'.repeat(200)).failed?.entry, 'x'.repeat(200));
  assert.equal(show('x'.repeat(201)).failed?.entry, `${'x'.repeat(199)}…`);
  assert.match(show('x'.repeat(100)).summary, /^Failed by x{100} \(1\); /);
  assert.match(show('x'.repeat(101)).summary, /^Failed by x{99}… \(1\); /);
});

test('fitReport() drops other entries that fail before targets, and counts them', () => {
  const many = Array.from({ length: 20 }, (_, index) => ({
    text: `some_metric_of_the_application_${index} > 0`,
    name: `some_metric_of_the_application_${index}`,
    comparison: '>' as const,
    limit: 0,
  }));
  const report = fitReport(reportOn(stateWith(ended('scraped', 100_000, 1)), [STOPPED], { thresholds: many }));
  assert.ok(measureSize(report) <= REPORT_MAX_BYTES);
  assert.deepEqual(report.targets, [STOPPED]);
  assert.ok((report.alsoFailed?.length ?? 0) > 1);
  assert.equal((report.alsoFailed?.length ?? 0) + (report.failedOmitted ?? 0), 19);
});

const PUSH: Partial<Policy> = { push: { to: 'remote-write', when: 'expired' } };

test('buildReport() has the push once it is over, and in the summary where something was sent', () => {
  const report = (push: SendReport | undefined, isFinished = true) => {
    const phase = { ...ended('expired', 22_000, 0), ...(push === undefined ? {} : { push }) };
    const { push: told, summary } = reportOn(stateWith(phase), [], { ...PUSH, ...(isFinished ? {} : UNFINISHED) });
    return [told, summary];
  };
  const held = 'Not scraped within 90 s after main ended';
  const accepted: SendReport = { to: 'remote-write', result: 'accepted', seconds: 0.2 };
  assert.deepEqual(report(accepted), [accepted, `${held}; last numbers pushed (remote-write)`]);
  const failed: SendReport = { to: 'remote-write', result: 'failed', seconds: 30, why: 'HTTP 400: out of order' };
  assert.deepEqual(report(failed), [failed, `${held}; push of the last numbers failed (remote-write)`]);
  const notNeeded: SendReport = { to: 'remote-write', result: 'notNeeded' };
  assert.deepEqual(report(notNeeded), [notNeeded, held]);
  const interrupted: SendReport = { to: 'remote-write', result: 'failed', why: 'interrupted' };
  assert.deepEqual(report(undefined), [interrupted, `${held}; push of the last numbers failed (remote-write)`]);
  assert.deepEqual(report(undefined, false), [undefined, 'Unfinished: quitting']);
});

test('buildReport() calls targets pending in a report that is sent before they are asked', () => {
  const options = { limits: { ...LIMITS, scrapesWantedCount: 0 }, targetCount: 2 };
  const state = stateWith(ended('released', 100_000, null));
  const sent = reportOn(state, [STOPPED], { ...options, stage: { kind: 'beforeTargets' } });
  assert.deepEqual(sent.targets, [STOPPED, { target: 'target 1', result: 'pending' }]);
  assert.equal(sent.summary, 'Main ended; no hold was asked for; locust-exporter stopped; target 1 asked next');
  assert.equal(sent.exitCode, 0);
  assert.deepEqual(reportOn(state, [STOPPED], options).targets, [STOPPED]);
});

test('buildReport() has a hint of a limit in another unit', () => {
  const thresholds = [{ text: 'r_ratio > 5', name: 'r_ratio', comparison: '>' as const, limit: 5 }];
  const { verdict, hint } = reportNumbers([0.9], ended('released', 1, 0), { thresholds });
  assert.deepEqual(
    [verdict, hint],
    ['passed', 'r_ratio > 5 says nothing of the run: a ratio is between 0 and 1: 5 % is 0.05'],
  );
});
