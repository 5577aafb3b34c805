// `npm run demo`: the end of one load test in two pods, without lastscrape and with it, in about 18 s;
// --front: a job with its own /metrics; --hand-over: a keeper instead of the hold. lastscrape is real, the others
// are stand-ins. Exits 1 on another outcome.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { KUBELET_MS, LIMIT_MS, readReport, runFrontDemo, startShown } from './demo-front.ts';
import { type Exporter, openExporter } from './stand-in/exporter.ts';
import { type Locust, type LocustEvent, openLocust } from './stand-in/locust.ts';
import { openPrometheus, type Prometheus, type ScrapeResult } from './stand-in/prometheus.ts';
import { openTimeline, readLogEntry, readTerminal, SHOWN_FIELDS, type Timeline } from './stand-in/timeline.ts';
import { makeFolder } from './support/folder.ts';

const USAGE = 'Usage: npm run demo [-- --front | --hand-over]\n';

// Of the stand-in Locust, in ms: a short run whose every phase can be seen. Its process ends at 11.0 s: from the
// end of the test to that of its web page there is time for a read of ours where a read takes 100 ms.
const LOCUST_TIMES = {
  startMs: 500,
  webDelayMs: 150,
  readyMs: 350,
  spawnMs: 500,
  runMs: 5_000,
  autoquitMs: 3_000,
  webCloseMs: 300,
  exitMs: 1_200,
  reportMs: 1_000,
  cacheMs: 500,
};
// Prometheus scrapes in mid-run, at 3.6 s, and at 16.6 s: 5.6 s after Locust's exit, later than the settle
// time of 3 s. It is the case in which numbers are lost.
const SCRAPE_INTERVAL_MS = 13_000;
const SCRAPE_OFFSET_MS = 3_600;

/** The two pods' marks: without lastscrape, and with it. */
const WITHOUT = 'A';
const WITH = 'B';
const BOTH = 'A+B';

async function runDemo(): Promise<boolean> {
  const timeline = openTimeline({
    write: (text) => process.stdout.write(text),
    speakers: { Locust: 'green', exporter: 'yellow', Prometheus: 'magenta', lastscrape: 'cyan', demo: 'dim' },
    pods: [WITHOUT, WITH, BOTH],
    shownFields: SHOWN_FIELDS,
    ...readTerminal(process.stdout, process.env['NO_COLOR']),
  });
  timeline.heading('lastscrape demo: the last scrape, before the pod completes');
  timeline.text('One load test, in two pods that Prometheus scrapes at the same moments:');
  timeline.text(`  ${WITHOUT}  without lastscrape: the exporter ends when Locust has ended`);
  timeline.text(`  ${WITH}  with lastscrape: the pod is held until one scrape has come`);
  timeline.text('\nReal: lastscrape, a process of its own with the default settings.');
  timeline.text(
    `Stand-ins: Locust (faster than a real one), exporters, Prometheus (every ${SCRAPE_INTERVAL_MS / 1_000} s).`,
  );
  timeline.text('"npm run demo -- --front": a job that serves its own metrics.');
  timeline.text('"npm run demo -- --hand-over": one that is not held.\n');

  const folder = makeFolder();
  await using fixture = await openFixture(timeline);
  const termination = join(folder, 'termination-log');
  const watcher = await runWatcher(timeline, fixture, folder, termination);
  return reportOutcome(timeline, fixture, watcher, readFile(termination));
}

/** What is of one pod: its exporter, and what Prometheus has stored of it. */
type Lane = { readonly exporter: Exporter; readonly prometheus: Prometheus };

type Fixture = AsyncDisposable & {
  readonly locust: Locust;
  readonly without: Lane;
  readonly held: Lane;
};

async function openFixture(timeline: Timeline): Promise<Fixture> {
  const locust = await openLocust({ ...LOCUST_TIMES, onEvent: showLocust });
  const without = await openLane(WITHOUT);
  const held = await openLane(WITH);

  async function openLane(pod: string): Promise<Lane> {
    const exporter = await openExporter({
      locustUrl: locust.webUrl,
      onQuit: (method) => timeline.say('exporter', `got ${method} /quitquitquit, and ends`, undefined, pod),
    });
    const prometheus = openPrometheus({
      url: `${exporter.url}/metrics`,
      intervalMs: SCRAPE_INTERVAL_MS,
      offsetMs: SCRAPE_OFFSET_MS,
      onScrape: (result) => showScrape(pod, exporter, prometheus, result),
    });
    return { exporter, prometheus };
  }

  function showLocust({ kind, requests }: LocustEvent): void {
    const words: Record<LocustEvent['kind'], string> = {
      masterPortOpened: 'has started: its port for workers (5557) is open',
      webPortOpened: 'its web page is open; waits for its worker',
      spawning: 'starts the users',
      running: `all users are there: the test runs for ${LOCUST_TIMES.runMs / 1_000} s`,
      stopped: `the test is over: ${requests} requests; waits for autoquit`,
      autoquit: 'autoquit: shuts down',
      webPortClosed: 'its web page is closed',
      exited: `has ended, its port is closed. In all: ${requests} requests`,
    };
    timeline.say('Locust', words[kind], kind === 'exited' ? 'bold' : undefined, BOTH);
    if (kind === 'exited') void endWithout();
  }

  async function endWithout(): Promise<void> {
    timeline.say('demo', 'lastscrape waits 3 s, in case the port comes back', 'dim', WITH);
    await new Promise((resolve) => setTimeout(resolve, KUBELET_MS));
    await without.exporter.close();
    timeline.say('exporter', 'ended by the kubelet; the Job is complete', 'bold', WITHOUT);
  }

  function showScrape(
    pod: string,
    exporter: Exporter,
    prometheus: Prometheus,
    { number, failure }: ScrapeResult,
  ): void {
    if (failure !== undefined) {
      const why = exporter.isOpen ? failure : 'no target any more; the end is lost';
      timeline.say('Prometheus', `scrape ${number}: ${why}`, 'red', pod);
      return;
    }
    const total = readStored({ exporter, prometheus });
    const up = prometheus.last('locust_up');
    const text = `scrape ${number}: stores ${total ?? 'no'} requests, locust_up ${up}`;
    timeline.say('Prometheus', text, up === 0 ? 'bold' : undefined, pod);
  }

  return {
    locust,
    without,
    held,
    async [Symbol.asyncDispose]() {
      await Promise.all([without, held].flatMap(({ exporter, prometheus }) => [prometheus.close(), exporter.close()]));
      await locust.kill();
    },
  };
}

function readStored({ prometheus }: Lane): number | undefined {
  return prometheus.last('locust_requests_num_requests{method="",name="Aggregated"}');
}

const HOLD = 'the pod is held: until the next scrape, at most 90 s';

async function runWatcher(timeline: Timeline, { held, locust }: Fixture, folder: string, message: string) {
  await using lastscrape = startShown(timeline, WITH, folder, {
    LASTSCRAPE_METRICS_URL: `http://localhost:${held.exporter.port}/metrics`,
    LASTSCRAPE_DONE_WHEN: `metric:locust_up,port:${locust.masterPort}`,
    LASTSCRAPE_TERMINATION_LOG: message,
  });
  timeline.say('lastscrape', 'starts, and polls once a second; only changes are shown', undefined, WITH);
  lastscrape.onLine(({ text }) => {
    if (readLogEntry(text)?.msg === 'main ended') timeline.say('demo', HOLD, 'dim', WITH);
  });
  const { code, signal } = await lastscrape.waitForExit(LIMIT_MS);
  const exitCode = signal ?? code;
  timeline.say('lastscrape', `exits with ${exitCode}; the Job is complete`, 'bold', WITH);
  return { exitCode, report: readReport({ lastscrape }) };
}

type Watched = Awaited<ReturnType<typeof runWatcher>>;

function reportOutcome(timeline: Timeline, fixture: Fixture, watcher: Watched, message: string | undefined): boolean {
  const { locust, without, held } = fixture;
  const { summary, ...fields } = watcher.report;
  timeline.heading('The report: the termination message, shown by "kubectl describe pod"');
  timeline.text(`  ${summary}\n`);
  timeline.fields(fields);

  const [lost, stored] = [readStored(without), readStored(held)];
  const [lostUp, up] = [without, held].map(({ prometheus }) => prometheus.last('locust_up'));
  const checks: [isRight: boolean, text: string][] = [
    [stored === locust.requests, `Locust's total is ${locust.requests}; Prometheus has stored ${stored}`],
    [up === 0, `Prometheus has stored that Locust ended (locust_up ${up})`],
    [!held.exporter.isOpen, held.exporter.isOpen ? 'the exporter still runs' : 'the exporter is gone'],
    [fields['outcome'] === 'scraped', `lastscrape's outcome is "${fields['outcome']}"`],
    [message !== undefined && isSameReport(message, watcher.report), 'the termination message is the report'],
    [watcher.exitCode === 0, `lastscrape's exit code is ${watcher.exitCode}`],
    [
      lost !== undefined && lost < locust.requests,
      `without lastscrape ${locust.requests - (lost ?? 0)} requests are lost`,
    ],
  ];
  const isRight = timeline.verdict(checks);

  timeline.heading('What Prometheus has in the end');
  const { heldSeconds } = fields;
  const ended = (value: number | undefined) => (value === 0 ? 'yes' : 'no');
  const rows = [
    ['', `${WITHOUT}: without`, `${WITH}: with lastscrape`],
    ['requests', `${lost ?? 'none'} of ${locust.requests}`, `${stored ?? 'none'} of ${locust.requests}`],
    ['that the test has ended', ended(lostUp), ended(up)],
    [
      'pod held after Locust',
      `${(KUBELET_MS / 1_000).toFixed(1)} s`,
      typeof heldSeconds === 'number' ? `${heldSeconds.toFixed(1)} s` : '?',
    ],
  ];
  for (const [name = '', one = '', other = ''] of rows) timeline.text(`  ${name.padEnd(25)}${one.padEnd(14)}${other}`);
  return isRight;
}

function isSameReport(message: string, report: Watched['report']): boolean {
  return JSON.stringify(JSON.parse(message)) === JSON.stringify(report);
}

function readFile(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

const args = process.argv.slice(2);
if (args.length === 0) {
  process.exitCode = (await runDemo()) ? 0 : 1;
} else if (args.length === 1 && args[0] === '--front') {
  process.exitCode = await runFrontDemo();
} else if (args.length === 1 && args[0] === '--hand-over') {
  const { runHandOverDemo } = await import('./keeper/demo.ts');
  process.exitCode = await runHandOverDemo();
} else {
  process.stderr.write(USAGE);
  process.exitCode = 64;
}
