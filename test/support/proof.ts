// What every scenario of a pod ends with, by the programs' own words: the watcher ended well, the exporter is
// gone, and Prometheus holds the numbers.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import type { Child } from './child.ts';
import type { Pod } from './pod.ts';
import type { Prometheus } from './prometheus.ts';
import { until } from './until.ts';

/** The report as the README promises it, as far as these tests read it. */
export type ReportFields = {
  readonly summary: string;
  readonly outcome: string;
  readonly scrapesWanted: number;
  readonly scrapesSeen: number | null;
  readonly scrapesWhileRunning: number | null;
  readonly heldSeconds: number | null;
  readonly mainEndedAt: string | null;
  readonly targets: readonly { readonly target: string; readonly result: string }[];
  readonly final: { readonly requests: number | null; readonly failures: number | null };
  readonly exitCode: number;
};

type LoggedReport = ReportFields & { readonly time: string; readonly level: string; readonly msg: string };

export const TOTAL = 'locust_requests_num_requests{name="Aggregated",method=""}';

/** Prometheus moves a timestamp by up to 2 ms to compress it better; the report's time is cut to 1 ms. */
const ROUNDING_SECONDS = 0.003;

/** The count begins when the look that saw the end began, which is at most 1 s before mainEndedAt. */
const BASELINE_SECONDS = 1;

/** TTL 90 s and settle, quit and verify: a watcher that needs longer hangs. */
const END_MS = 150_000;

/** Prometheus commits a scrape within milliseconds; a busy machine may need a little more. */
const COMMIT_MS = 60_000;

/** Waits for the watcher's end: exit code 0, the report as its last line and in the termination message. */
export async function proveReport(pod: Pod, watcher: Child, outcome: string): Promise<ReportFields> {
  const exit = await watcher.waitForExit(END_MS);
  const stdout = watcher.lines.filter((line) => line.stream === 'stdout');
  const last: LoggedReport = JSON.parse(stdout.at(-1)?.text ?? '{}');
  const { time: _time, level: _level, msg, ...fields } = last;
  assert.equal(msg, 'report', 'the last line of the log is the report');
  assert.equal(fields.outcome, outcome);
  assert.equal(exit.code, 0, 'the exit code of the watcher');
  assert.equal(fields.exitCode, 0);
  if (existsSync(pod.terminationLog)) {
    const message = readFileSync(pod.terminationLog, 'utf8');
    assert.ok(Buffer.byteLength(message) <= 1024, 'the termination message is at most 1,024 bytes');
    assert.deepEqual(JSON.parse(message), fields, 'the termination message says the same as the report');
  }
  return fields;
}

/** Checks that the exporter ended by its quit endpoint, which exits 0; SIGTERM would give 143. */
export async function proveExporterGone(exporter: Child, report: ReportFields): Promise<void> {
  const exit = await exporter.waitForExit(END_MS);
  assert.deepEqual({ code: exit.code, signal: exit.signal }, { code: 0, signal: null }, 'how the exporter ended');
  const targets = report.targets.map(({ target, result }) => ({ target, result }));
  assert.deepEqual(targets, [{ target: 'locust-exporter', result: 'stopped' }]);
}

/** Checks that Prometheus's newest total is this number, and its last word on Locust "down". */
export async function proveStored(prometheus: Prometheus, total: number): Promise<void> {
  await until(`the total ${total} in Prometheus, and locust_up 0`, COMMIT_MS, async () => {
    const up = await readLast(prometheus, 'locust_up');
    const stored = await readLast(prometheus, TOTAL);
    if (stored === total && up === 0) return true;
    throw new Error(`it holds ${stored}, and locust_up ${up}`);
  });
}

/**
 * Checks that the report claims no more scrapes since the end than this Prometheus, the only one, made. The exporter
 * counts those too that Prometheus gave up.
 */
export async function proveScrapesSeen(prometheus: Prometheus, report: ReportFields): Promise<void> {
  const sinceSeconds = Date.parse(report.mainEndedAt ?? '') / 1000 - BASELINE_SECONDS - ROUNDING_SECONDS;
  const [series] = await prometheus.readSeries('up');
  const [durations] = await prometheus.readSeries('scrape_duration_seconds');
  // By when it was over: one that set out earlier may have reached a busy exporter only then.
  const madeCount = series?.samples.filter(({ atSeconds }) => {
    const seconds = durations?.samples.find((each) => each.atSeconds === atSeconds)?.value ?? 0;
    return atSeconds + seconds >= sinceSeconds;
  }).length;
  assert.ok(
    (report.scrapesSeen ?? 0) <= (madeCount ?? 0),
    `it saw ${report.scrapesSeen} scrapes, Prometheus made ${madeCount}`,
  );
}

/** The same for the scrapes while main ran. */
export async function proveScrapesWhileRunning(prometheus: Prometheus, report: ReportFields): Promise<void> {
  const untilSeconds = Date.parse(report.mainEndedAt ?? '') / 1000 + ROUNDING_SECONDS;
  const [series] = await prometheus.readSeries('up');
  const madeSeconds = series?.samples.map(({ atSeconds }) => atSeconds) ?? [];
  const madeCount = madeSeconds.filter((atSeconds) => atSeconds <= untilSeconds).length;
  // One more that began just after the end came between our look at main and the one at the exporter: the machine's
  // delay. Otherwise a scrape was counted twice.
  assert.ok(
    (report.scrapesWhileRunning ?? 0) <= madeCount,
    `it saw ${report.scrapesWhileRunning} scrapes while main ran, Prometheus began ${madeCount} until ${untilSeconds}: ${madeSeconds}`,
  );
}

/** The newest sample of the one series that a selector matches; `undefined` without any. */
export async function readLast(prometheus: Prometheus, selector: string): Promise<number | undefined> {
  const series = await prometheus.readSeries(selector);
  if (series.length > 1) throw new Error(`Cannot read ${selector}: Prometheus has ${series.length} such series`);
  return series[0]?.samples.at(-1)?.value;
}

/** A child that must still be there, at this moment of the scenario. */
export function assertRuns(child: Child): void {
  assert.equal(child.exit, undefined, `${child.name} must still run; ${child.tail()}`);
}
