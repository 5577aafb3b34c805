// `npm run demo`: one LocustTest pod's end, from start to exit code, in about 16 s. The watcher is the real one, in a process
// of its own; Locust, the exporter and Prometheus are stand-ins in this process. With --real all four are real
// (demo-real.ts). It exits 1 if the outcome is not what it must be.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { type Exporter, openExporter } from './stand-in/exporter.ts';
import { type Locust, type LocustEvent, openLocust } from './stand-in/locust.ts';
import { openPrometheus, type Prometheus, type ScrapeResult } from './stand-in/prometheus.ts';
import { openTimeline, readLogEntry, type Timeline } from './stand-in/timeline.ts';

const USAGE = 'Usage: npm run demo [-- --real]\n';

// Of the stand-in Locust, in ms: a short run whose every phase can be seen.
const LOCUST_TIMES = {
  startMs: 500,
  webDelayMs: 150,
  readyMs: 850,
  spawnMs: 1_000,
  runMs: 6_000,
  autoquitMs: 2_000,
  webCloseMs: 300,
  exitMs: 1_700,
  reportMs: 1_000,
  cacheMs: 500,
};
// Prometheus scrapes 0.2 s before the run stops at 8.5 s, and next 1.8 s after Locust's exit at 12.5 s: the case in which
// numbers are lost.
const SCRAPE_INTERVAL_MS = 6_000;
const SCRAPE_OFFSET_MS = 2_300;
/** The whole takes 16 s or so; what takes longer than this is a failure. */
const LIMIT_MS = 29_000;

const TOTAL = { method: '', name: 'Aggregated' } as const;

async function runDemo(): Promise<boolean> {
  const { NO_COLOR = '' } = process.env;
  const timeline = openTimeline({
    write: (text) => process.stdout.write(text),
    speakers: { Locust: 'green', exporter: 'yellow', Prometheus: 'magenta', lastscrape: 'cyan' },
    hasColor: process.stdout.isTTY === true && NO_COLOR === '',
    width: Math.min(process.stdout.columns ?? 110, 130),
  });
  timeline.heading('lastscrape demo: the last scrape, before the pod completes');
  timeline.text(
    'Real: lastscrape, in a process of its own; its settings are the defaults, but for the ports, which are free ones here.',
  );
  timeline.text(
    'Stand-ins in this process, made from recordings of the real programs: Locust (times shortened), ' +
      `locust_exporter, Prometheus (interval ${SCRAPE_INTERVAL_MS / 1_000} s).`,
  );
  timeline.text('"npm run demo -- --real" does it with the real programs that this machine has.\n');

  const folder = mkdtempSync(join(tmpdir(), 'lastscrape-demo-'));
  try {
    await using stage = await openStage(timeline);
    const termination = join(folder, 'termination-log');
    const watcher = await runWatcher(timeline, stage, termination);
    return reportOutcome(timeline, stage, watcher, readFile(termination));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

type Stage = AsyncDisposable & {
  readonly locust: Locust;
  readonly exporter: Exporter;
  readonly prometheus: Prometheus;
  /** What Prometheus had stored when Locust's process ended: what would be left without a watcher. */
  readonly storedAtExit: number | undefined;
};

async function openStage(timeline: Timeline): Promise<Stage> {
  let storedAtExit: number | undefined;
  const locust = await openLocust({ ...LOCUST_TIMES, onEvent: tellLocust });
  const exporter = await openExporter({
    locustUrl: locust.webUrl,
    onQuit: (method) => timeline.say('exporter', `got ${method} /quitquitquit: exits at once, without an answer`),
  });
  const prometheus = openPrometheus({
    url: `${exporter.url}/metrics`,
    intervalMs: SCRAPE_INTERVAL_MS,
    offsetMs: SCRAPE_OFFSET_MS,
    onScrape: tellScrape,
  });
  timeline.say('exporter', `listens on ${exporter.port}, where Prometheus scrapes it and lastscrape looks`);

  function tellLocust({ kind, requests }: LocustEvent): void {
    const words: Record<LocustEvent['kind'], string> = {
      masterPortOpened: `has started: the master's port ${locust.masterPort} is open`,
      webPortOpened: `web page open on ${locust.webPort}; waits for its worker`,
      spawning: 'starts the users',
      running: 'all users are there: the test runs',
      stopped: `run time over: ${requests} requests made; waits for its autoquit`,
      autoquit: 'autoquit: shuts down',
      webPortClosed: `the web page's port ${locust.webPort} is closed; the exporter's connection lives on`,
      exited: `the process has ended, port ${locust.masterPort} is closed. Final total: ${requests} requests`,
    };
    timeline.say('Locust', words[kind], kind === 'exited' ? 'bold' : undefined);
    if (kind === 'exited') storedAtExit = prometheus.lastSample('locust_requests_num_requests', TOTAL)?.value;
  }

  function tellScrape({ number, failure, tookMs }: ScrapeResult): void {
    if (failure !== undefined) {
      timeline.say('Prometheus', `scrape ${number} failed: ${failure}`);
      return;
    }
    const total = prometheus.lastSample('locust_requests_num_requests', TOTAL)?.value;
    const up = prometheus.lastSample('locust_up')?.value;
    timeline.say(
      'Prometheus',
      `scrape ${number}: stores a total of ${total ?? 'nothing'}, locust_up ${up} (${Math.round(tookMs)} ms)`,
      up === 0 ? 'bold' : undefined,
    );
  }

  return {
    locust,
    exporter,
    prometheus,
    get storedAtExit() {
      return storedAtExit;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([prometheus.close(), exporter.close(), locust.close()]);
    },
  };
}

type Watched = {
  readonly exitCode: number | NodeJS.Signals | null;
  /** The fields of the last log line; `undefined` if that was no report. */
  readonly report: Readonly<Record<string, unknown>> | undefined;
};

/** Runs the watcher to its end, its log lines as entries of the timeline. */
async function runWatcher(timeline: Timeline, stage: Stage, terminationLog: string): Promise<Watched> {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../bin/lastscrape.ts')], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      LASTSCRAPE_METRICS_URL: `http://localhost:${stage.exporter.port}/metrics`,
      LASTSCRAPE_DONE_WHEN: `metric:locust_up,port:${stage.locust.masterPort}`,
      LASTSCRAPE_TERMINATION_LOG: terminationLog,
    },
  });
  timeline.say('lastscrape', `process ${child.pid} started`);
  const limit = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
  let report: Watched['report'];
  createInterface(child.stderr).on('line', (line) => timeline.log('lastscrape', line));
  createInterface(child.stdout).on('line', (line) => {
    const entry = readLogEntry(line);
    report = entry?.msg === 'report' ? entry.fields : undefined;
    if (report === undefined) timeline.log('lastscrape', line);
  });
  const exitCode = await new Promise<Watched['exitCode']>((resolve, reject) => {
    child.on('error', reject);
    // "close" comes after "exit", when all of the output has been read.
    child.on('close', (code, signal) => resolve(signal ?? code));
  });
  clearTimeout(limit);
  timeline.say('lastscrape', `exits with ${exitCode}: the pod's last container has ended, so the Job completes`);
  return { exitCode, report };
}

function reportOutcome(timeline: Timeline, stage: Stage, watcher: Watched, message: string | undefined): boolean {
  const { locust, exporter, prometheus, storedAtExit } = stage;
  const { report } = watcher;
  const { outcome } = report ?? {};
  timeline.heading('The report (its summary is what "kubectl describe pod" shows)');
  timeline.fields(report ?? {});
  if (message !== undefined) timeline.text(`\nAs the termination message it has ${Buffer.byteLength(message)} bytes.`);

  timeline.heading('The verdict');
  const stored = prometheus.lastSample('locust_requests_num_requests', TOTAL)?.value;
  const up = prometheus.lastSample('locust_up')?.value;
  const checks: [isRight: boolean, text: string][] = [
    [stored === locust.requests, `Locust's final total is ${locust.requests}; Prometheus has stored ${stored}`],
    [up === 0, `Prometheus has stored that Locust ended (locust_up ${up})`],
    [!exporter.isOpen, exporter.isOpen ? 'the exporter still runs' : 'the exporter is gone'],
    [outcome === 'scraped', `lastscrape's outcome is "${outcome}"`],
    [message !== undefined && isSameReport(message, report), 'the termination message is the report'],
    [watcher.exitCode === 0, `lastscrape's exit code is ${watcher.exitCode}`],
  ];
  for (const [isRight, text] of checks)
    timeline.text(`  ${isRight ? 'ok ' : 'NOT'}  ${text}`, isRight ? 'green' : 'red');
  timeline.text(
    `\nHad the exporter ended together with Locust, the last total in Prometheus would have been ` +
      `${storedAtExit ?? 'nothing'} of ${locust.requests}.`,
  );
  return checks.every(([isRight]) => isRight);
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
} else if (args.length === 1 && args[0] === '--real') {
  const { runRealDemo } = await import('./demo-real.ts');
  process.exitCode = await runRealDemo();
} else {
  process.stderr.write(USAGE);
  process.exitCode = 64;
}
