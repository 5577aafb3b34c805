// Measures the hand-over on the real programs, ten runs one after the other (`npm run measure`): how long
// after the last scrape the watcher is gone, and whether Prometheus holds what Locust printed. It prints a
// table and asserts nothing; it fails only when a run itself does. Goals: median below 1 s, 10 of 10. With
// `-- --front` the tables of final-numbers.ts instead; with `-- --locust` those of in-place.ts, of 20 runs or
// `--runs=N`; with `-- --locust-csv` only the last of these; with `-- --locust-cost` those of
// in-place-cost.ts; with `-- --operator` those of operator.ts, on a cluster.
import { openPod, type Pod, readFinalTotal, START_MS } from '../support/pod.ts';
import { describePrograms, type ExporterProgram, findPrograms, listMissing, type Needed } from '../support/programs.ts';
import type { Prometheus } from '../support/prometheus.ts';
import { type ReportFields, readLast, TOTAL } from '../support/proof.ts';
import { until } from '../support/until.ts';
import { measureFinalNumbers } from './final-numbers-table.ts';
import { measureInPlace, measureInPlaceCsv } from './in-place.ts';
import { measureInPlaceCost } from './in-place-cost.ts';
import { findMedian } from './median.ts';
import { measureOperators } from './operator.ts';

type Measured = {
  readonly lastStep: 'settle' | 'scrape';
  /** From the end of that step to the exit of the watcher. */
  readonly handOverSeconds: number;
  readonly heldSeconds: number;
  readonly printed: number;
  readonly stored: number | undefined;
};

const RUN_COUNT = 10;
const SCRAPE_INTERVAL = '5s';
/** LASTSCRAPE_SETTLE has this default. */
const SETTLE_SECONDS = 3;
/**
 * The count begins with the look that saw the end, which takes some milliseconds, and Prometheus rounds by 2
 * ms.
 */
const LOOK_SECONDS = 0.1;
const RUN_MS = START_MS + 60_000;
const NEEDED: readonly Needed[] = ['locust', 'prometheus'];

const programs = findPrograms();

if (process.argv.includes('--front')) await measureFinalNumbers();
else if (process.argv.includes('--locust-cost')) await measureInPlaceCost();
else if (process.argv.includes('--locust-csv')) await measureInPlaceCsv();
else if (process.argv.includes('--locust')) await measureInPlace(readRunCount());
else if (process.argv.includes('--operator')) await measureOperators();
else await measureHandOver();

/** `--runs=N`; 20 without. */
function readRunCount(): number {
  const [, count = '20'] =
    /^--runs=([1-9]\d*)$/.exec(process.argv.find((each) => each.startsWith('--runs=')) ?? '') ?? [];
  return Number(count);
}

async function measureHandOver(): Promise<void> {
  const missing = listMissing(programs, NEEDED);
  if (missing.length > 0) {
    throw new Error(`Cannot measure the hand-over: real programs are missing; install ${missing.join('; ')}`);
  }
  // The real exporter where there is one: it is last in the list.
  const exporter = programs.exporters.at(-1);
  if (exporter === undefined) throw new Error('Bug: no exporter at all');
  await measure(exporter);
}

async function measure(exporter: ExporterProgram): Promise<void> {
  console.log(`Programs: ${describePrograms({ ...programs, exporters: [exporter] }, NEEDED).join(', ')}`);
  console.log(`Prometheus scrapes every ${SCRAPE_INTERVAL}; Locust quits 5 s after its run; all else is default\n`);
  console.log('| run | last step | to exit (s) | held (s) | Locust printed | Prometheus holds |');
  console.log('|---:|---|---:|---:|---:|---:|');
  const all: Measured[] = [];
  for (let run = 1; run <= RUN_COUNT; run += 1) {
    await using pod = await openPod(programs, exporter);
    const one = await measureRun(pod);
    all.push(one);
    const stored = one.stored === one.printed ? String(one.stored) : `**${one.stored ?? 'nothing'}**`;
    console.log(
      `| ${run} | ${one.lastStep} | ${one.handOverSeconds.toFixed(2)} | ${one.heldSeconds.toFixed(1)} | ${one.printed} | ${stored} |`,
    );
  }
  const equalCount = all.filter((one) => one.stored === one.printed).length;
  const seconds = all.map((one) => one.handOverSeconds).sort((left, right) => left - right);
  console.log(
    `\nTo exit: median ${findMedian(seconds).toFixed(2)} s, longest ${(seconds.at(-1) ?? 0).toFixed(2)} s (goal: median below 1 s)`,
  );
  console.log(`Prometheus holds Locust's final total: ${equalCount} of ${RUN_COUNT} (goal: all)`);
}

async function measureRun(pod: Pod): Promise<Measured> {
  pod.startExporter();
  const prometheus = await pod.startPrometheus(SCRAPE_INTERVAL);
  const watcher = pod.startWatcher();
  const master = pod.startMaster({ runTime: '5s' });
  pod.startWorker();
  await master.waitForExit(RUN_MS);
  const exit = await watcher.waitForExit(RUN_MS);
  const report: ReportFields = JSON.parse(watcher.lines.findLast((line) => line.stream === 'stdout')?.text ?? '{}');
  if (report.outcome !== 'scraped' || report.mainEndedAt === null) {
    throw new Error(`Cannot measure a run that did not end by a scrape; ${watcher.tail()}`);
  }
  const endedAtSeconds = Date.parse(report.mainEndedAt) / 1000;
  const scrapedAtSeconds = await readScrapeEnd(prometheus, endedAtSeconds);
  const settledAtSeconds = endedAtSeconds + SETTLE_SECONDS;
  const readyAtSeconds = Math.max(scrapedAtSeconds, settledAtSeconds);
  return {
    lastStep: scrapedAtSeconds > settledAtSeconds ? 'scrape' : 'settle',
    handOverSeconds: exit.atMs / 1000 - readyAtSeconds,
    heldSeconds: report.heldSeconds ?? 0,
    printed: readFinalTotal(master),
    stored: await readLast(prometheus, TOTAL),
  };
}

/**
 * When the first scrape that began after the end of main was over, in Prometheus's own words (epoch seconds).
 */
function readScrapeEnd(prometheus: Prometheus, endedAtSeconds: number): Promise<number> {
  return until('a scrape after the end of main', RUN_MS, async () => {
    const [series] = await prometheus.readSeries('scrape_duration_seconds{job="pod"}');
    const first = series?.samples.find((sample) => sample.atSeconds >= endedAtSeconds - LOOK_SECONDS);
    return first === undefined ? undefined : first.atSeconds + first.value;
  });
}
