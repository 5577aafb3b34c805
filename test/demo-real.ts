// The demo on real programs: `npm run demo -- --real`. A load test of some seconds, the watcher beside it, and what
// Prometheus holds at the end against what Locust printed. It says which programs are real, and what to install if one
// is missing. It never leaves a program running.
import { setTimeout as delay } from 'node:timers/promises';
import { openTimeline, readLogEntry, readTerminal, SHOWN_FIELDS, type Timeline } from './stand-in/timeline.ts';
import type { Child } from './support/child.ts';
import { openPod, type Pod, readFinalTotal, START_MS } from './support/pod.ts';
import {
  describePrograms,
  type ExporterProgram,
  findPrograms,
  listMissing,
  type Needed,
  readTestVariable,
} from './support/programs.ts';
import type { Prometheus } from './support/prometheus.ts';
import { readLast, TOTAL } from './support/proof.ts';

const NEEDED: readonly Needed[] = ['locust', 'prometheus'];
const SCRAPE_INTERVAL = '3s';
const RUN_MS = START_MS + 60_000;

/** What of Locust's log is part of the demo. */
const LOCUST_STORY = /Starting Locust|All users spawned|limit reached|autoquit time reached|Shutting down/;

/** Runs the demo. Returns the exit code: 0 when Prometheus holds the final total, 1 when not or when a program is missing. */
export async function runRealDemo(): Promise<number> {
  const programs = findPrograms();
  const missing = listMissing(programs, NEEDED);
  if (missing.length > 0) {
    process.stderr.write(
      `Cannot run the demo on real programs: install\n${missing.map((line) => `  ${line}`).join('\n')}\n`,
    );
    return 1;
  }
  // The real exporter where there is one: it is last in the list.
  const exporter = programs.exporters.at(-1);
  if (exporter === undefined) throw new Error('Bug: no exporter at all');
  const timeline = openTimeline({
    write: (text) => process.stdout.write(text),
    speakers: { Locust: 'green', exporter: 'yellow', Prometheus: 'magenta', lastscrape: 'cyan' },
    shownFields: SHOWN_FIELDS,
    ...readTerminal(process.stdout, readTestVariable('NO_COLOR')),
  });
  timeline.heading('lastscrape demo, on real programs');
  timeline.text(`Programs: ${describePrograms({ ...programs, exporters: [exporter] }, NEEDED).join(', ')}.`);
  timeline.text(
    exporter.isReal
      ? 'Nothing is a stand-in but the site under test.'
      : 'The exporter is a stand-in, since no registry has the real one; put locust_exporter on the PATH to use that.',
  );
  await using pod = await openPod(programs, exporter);
  timeline.text(
    pod.network.kind === 'namespace'
      ? 'They run in a network namespace, on their default ports: lastscrape gets no variable at all.\n'
      : 'They run on free ports of this machine, which lastscrape is told.\n',
  );
  return (await showRun(timeline, pod, exporter)) ? 0 : 1;
}

async function showRun(timeline: Timeline, pod: Pod, exporterProgram: ExporterProgram): Promise<boolean> {
  const exporter = pod.startExporter();
  timeline.say('exporter', `starts: ${exporterProgram.name}`);
  const prometheus = await pod.startPrometheus(SCRAPE_INTERVAL);
  timeline.say('Prometheus', `is ready, scrapes every ${SCRAPE_INTERVAL} once it found its target`);
  const watcher = pod.startWatcher({ isBare: true });
  timeline.say('lastscrape', `process ${watcher.pid} started`);
  watcher.onLine(({ text }) => {
    if (readLogEntry(text)?.msg !== 'report') timeline.log('lastscrape', text);
  });
  const master = pod.startMaster({ runTime: '6s' });
  pod.startWorker();
  master.onLine(({ text }) => {
    if (LOCUST_STORY.test(text)) timeline.say('Locust', text.replace(/^.*?\/INFO\/locust\.\w+: /, ''));
  });
  showExit(timeline, 'Locust', master);
  showExit(timeline, 'exporter', exporter);
  showExit(timeline, 'lastscrape', watcher);

  const watching = new AbortController();
  const scrapes = showScrapes(timeline, prometheus, watching.signal);
  try {
    await master.waitForExit(RUN_MS);
    await watcher.waitForExit(RUN_MS);
    await exporter.waitForExit(RUN_MS);
  } finally {
    watching.abort();
    await scrapes;
  }
  return await showVerdict(timeline, { master, exporter, watcher, prometheus });
}

type Ended = {
  readonly master: Child;
  readonly exporter: Child;
  readonly watcher: Child;
  readonly prometheus: Prometheus;
};

async function showVerdict(timeline: Timeline, { master, exporter, watcher, prometheus }: Ended): Promise<boolean> {
  const last = watcher.lines.findLast((line) => line.stream === 'stdout')?.text ?? '';
  const { outcome, ...others } = readLogEntry(last)?.fields ?? {};
  timeline.heading('The report (its summary is what "kubectl describe pod" shows)');
  timeline.fields({ outcome, ...others });
  timeline.heading('The verdict');
  const printed = readFinalTotal(master);
  const stored = await readLast(prometheus, TOTAL);
  const up = await readLast(prometheus, 'locust_up');
  const checks: readonly (readonly [isRight: boolean, text: string])[] = [
    [stored === printed, `Locust printed a total of ${printed}; Prometheus has stored ${stored ?? 'none'}`],
    [up === 0, `Prometheus has stored that Locust ended (locust_up ${up})`],
    [exporter.exit?.code === 0, `the exporter is gone, exit code ${exporter.exit?.code}`],
    [outcome === 'scraped', `lastscrape's outcome is "${outcome}"`],
    [watcher.exit?.code === 0, `lastscrape's exit code is ${watcher.exit?.code}`],
  ];
  for (const [isRight, text] of checks)
    timeline.text(`  ${isRight ? 'ok ' : 'NOT'}  ${text}`, isRight ? 'green' : 'red');
  return checks.every(([isRight]) => isRight);
}

/** One line for each scrape that Prometheus stored; only its API is asked, which no exporter notices. */
async function showScrapes(timeline: Timeline, prometheus: Prometheus, signal: AbortSignal): Promise<void> {
  let toldCount = 0;
  const showNew = async () => {
    const [ups] = await prometheus.readSeries('locust_up');
    const [totals] = await prometheus.readSeries(TOTAL);
    for (const { atSeconds, value } of ups?.samples.slice(toldCount) ?? []) {
      const total = totals?.samples.find((sample) => sample.atSeconds === atSeconds)?.value;
      toldCount += 1;
      timeline.say('Prometheus', `scrape ${toldCount}: stores a total of ${total ?? 'nothing'}, locust_up ${value}`);
    }
  };
  while (!signal.aborted) {
    await showNew();
    await delay(200, undefined, { signal }).catch(() => undefined);
  }
  await showNew();
}

function showExit(timeline: Timeline, speaker: string, child: Child): void {
  void child.exited.then(({ code, signal }) => timeline.say(speaker, `has ended: ${signal ?? `exit code ${code}`}`));
}
