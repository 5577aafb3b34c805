// `npm run demo -- --front`: the end of a job with its own /metrics in three pods: without lastscrape, with it, and
// with it and Python's hook (or one line of code). lastscrape and the jobs are processes of their own.

import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { openPrometheus, type Prometheus, type ScrapeResult } from './stand-in/prometheus.ts';
import { openTimeline, readLogEntry, readTerminal, SHOWN_FIELDS, type Timeline } from './stand-in/timeline.ts';
import { type Child, startChild } from './support/child.ts';
import { makeFolder } from './support/folder.ts';
import { findFreePort } from './support/listen.ts';
import { findOnPath } from './support/programs.ts';

// The job works for 6 s. Prometheus scrapes 1 s and 5 s after its start, and 3 s after its end.
const SCRAPE_INTERVAL_MS = 4_000;
const SCRAPE_OFFSET_MS = 1_000;
export const FILES_COUNT = 100;
const WORK_SECONDS = 6;
/** What the job prints before it waits to begin. */
export const SERVES = /^serves its own/;
/** The kubelet stops native sidecars about a second after the last regular container (1.36.3). */
export const KUBELET_MS = 1_000;
/** The demos take some 11 to 21 s, more on a busy machine. */
export const LIMIT_MS = 90_000;

const PODS = ['A', 'B', 'C'] as const;
type PodMark = (typeof PODS)[number];
const ALL = 'A+B+C';
const PYTHON = findOnPath('python3');

/** The programs of one pod; `lastscrape` is null where the pod runs without it. */
type Lane = {
  readonly pod: PodMark;
  readonly job: Child;
  readonly lastscrape: Child | null;
  readonly prometheus: Prometheus;
};

/** Runs the demo. Returns the exit code: 0 when each pod ended as it must. */
export async function runFrontDemo(): Promise<number> {
  const timeline = openTimeline({
    write: (text) => process.stdout.write(text),
    speakers: { job: 'green', kubelet: 'yellow', Prometheus: 'magenta', lastscrape: 'cyan', demo: 'dim' },
    pods: [...PODS, ALL],
    shownFields: SHOWN_FIELDS,
    ...readTerminal(process.stdout, process.env['NO_COLOR']),
  });
  timeline.heading('lastscrape demo: the last numbers of a program that is gone');
  timeline.text(`A backup job with its own /metrics copies ${FILES_COUNT} files and exits, in three pods:`);
  timeline.text('  A  without lastscrape: Prometheus scrapes the job');
  timeline.text('  B  with lastscrape: Prometheus scrapes that, and it reads the job for 1 % of its time');
  timeline.text(
    PYTHON === undefined
      ? '  C  the same, and the job calls POST /-/snapshot before it exits'
      : '  C  the same, and its Python has the hook; the job is unchanged',
  );
  timeline.text('\nReal: lastscrape and the jobs, processes of their own.');
  timeline.text(`Stand-ins: the kubelet, and Prometheus (every ${SCRAPE_INTERVAL_MS / 1_000} s).\n`);

  const folder = makeFolder();
  await using started = new AsyncDisposableStack();
  const deadline = AbortSignal.timeout(LIMIT_MS);
  const ports = await Promise.all(Array.from({ length: 5 }, () => findFreePort()));
  const fronts: Readonly<Record<PodMark, number | null>> = { A: null, B: ports[3] ?? 0, C: ports[4] ?? 0 };

  const sidecars = PODS.map((pod, index) => {
    const front = fronts[pod];
    if (front === null) return null;
    const hooks = pod === 'C' && PYTHON !== undefined ? { LASTSCRAPE_HOOKS: folder } : {};
    return started.use(startLastscrape(timeline, pod, { front, source: ports[index] ?? 0, folder }, hooks));
  });
  await Promise.all(sidecars.map((sidecar) => sidecar?.waitForLine(/"main is running"/, LIMIT_MS)));

  const jobs = PODS.map((pod, index) => {
    const snapshotUrl = pod === 'C' ? `http://127.0.0.1:${fronts[pod]}/-/snapshot` : null;
    return started.use(startJob(timeline, pod, { port: ports[index] ?? 0, snapshotUrl, folder }));
  });
  await Promise.all(jobs.map((job) => job.waitForLine(SERVES, LIMIT_MS)));

  const lanes = jobs.map((job, index): Lane => {
    const pod = PODS[index] ?? 'A';
    job.signal('SIGUSR2');
    const prometheus: Prometheus = started.use(
      openPrometheus({
        url: `http://127.0.0.1:${fronts[pod] ?? ports[index]}/metrics`,
        intervalMs: SCRAPE_INTERVAL_MS,
        offsetMs: SCRAPE_OFFSET_MS,
        onScrape: (result) => showScrape(timeline, lane, result),
      }),
    );
    const lane = { pod, job, lastscrape: sidecars[index] ?? null, prometheus };
    return lane;
  });
  timeline.say('job', `starts, and copies ${FILES_COUNT} files in ${WORK_SECONDS} s`, undefined, ALL);
  await Promise.all(lanes.map((lane) => endPod(timeline, lane, deadline)));
  return reportOutcome(timeline, lanes) ? 0 : 1;
}

/** A front for a program with its own /metrics, on an end by signal. `env`: more variables. */
export function startLastscrape(
  timeline: Timeline,
  pod: string,
  { front, source, folder }: { readonly front: number; readonly source: number; readonly folder: string },
  env: Readonly<Record<string, string>>,
): Child {
  const own = { LASTSCRAPE_DONE_WHEN: 'sigterm', LASTSCRAPE_FRONT: `127.0.0.1:${front}`, LASTSCRAPE_POLL: '250ms' };
  return startShown(timeline, pod, folder, {
    ...own,
    LASTSCRAPE_METRICS_URL: `http://localhost:${source}/metrics`,
    LASTSCRAPE_TERMINATION_LOG: join(folder, pod),
    ...env,
  });
}

/** Starts lastscrape; its log lines are entries of the timeline, its report is not. */
export function startShown(timeline: Timeline, pod: string, cwd: string, env: Readonly<Record<string, string>>): Child {
  const command = [process.execPath, join(import.meta.dirname, '../bin/lastscrape.ts')];
  const child = startChild({ name: `lastscrape of ${pod}`, command, cwd, env });
  child.onLine(({ text }) => {
    if (readLogEntry(text)?.msg !== 'report') timeline.log('lastscrape', text, pod);
  });
  return child;
}

type JobStart = { readonly port: number; readonly snapshotUrl: string | null; readonly folder: string };

function startJob(timeline: Timeline, pod: PodMark, { port, snapshotUrl, folder }: JobStart): Child {
  const program = (name: string) => [join(import.meta.dirname, 'stand-in', name), String(port)];
  const node = [process.execPath, ...program('job-main.ts'), ...(snapshotUrl === null ? [] : [snapshotUrl])];
  const hook = { PYTHONPATH: join(folder, 'python'), LASTSCRAPE_SNAPSHOT_URL: snapshotUrl ?? '' };
  const child = startChild({
    name: `the job of ${pod}`,
    command: PYTHON === undefined ? node : [PYTHON, ...program('job-main.py')],
    cwd: import.meta.dirname,
    env: snapshotUrl === null ? {} : hook,
  });
  child.onLine(({ text }) => {
    if (!SERVES.test(text)) timeline.say('job', text, undefined, pod);
  });
  return child;
}

function showScrape(timeline: Timeline, lane: Lane, { number, failure }: ScrapeResult): void {
  const { pod, job } = lane;
  if (failure !== undefined) {
    const why = job.exit === undefined ? failure : 'nothing answers any more; the end is lost';
    timeline.say('Prometheus', `scrape ${number}: ${why}`, 'red', pod);
    return;
  }
  const { files, hasSucceeded } = readStored(lane);
  const text = `scrape ${number}: stores ${files} files, success: ${hasSucceeded ? 'yes' : 'no'}`;
  timeline.say('Prometheus', text, job.exit === undefined ? undefined : 'bold', pod);
}

/** The pod's end: the job's, the kubelet's signal, lastscrape's; without it, a scrape that finds nothing. */
async function endPod(
  timeline: Timeline,
  { pod, job, lastscrape, prometheus }: Lane,
  deadline: AbortSignal,
): Promise<void> {
  await job.waitForExit(LIMIT_MS);
  timeline.say('job', 'has ended, and its /metrics with it', 'bold', pod);
  if (lastscrape === null) {
    await delay(KUBELET_MS);
    timeline.say('kubelet', 'the pod is over; the Job is complete', 'bold', pod);
    while (prometheus.last('up') !== 0) await delay(20, undefined, { signal: deadline });
    return;
  }
  await stopLastscrape(timeline, pod, lastscrape);
  await prometheus.close();
}

/** As the kubelet does once main has ended. */
export async function stopLastscrape(timeline: Timeline, pod: string, lastscrape: Child): Promise<void> {
  await delay(KUBELET_MS);
  timeline.say('kubelet', 'sends SIGTERM to the native sidecar', undefined, pod);
  lastscrape.signal('SIGTERM');
  const { code, signal } = await lastscrape.waitForExit(LIMIT_MS);
  timeline.say('lastscrape', `exits with ${signal ?? code}; the Job is complete`, 'bold', pod);
}

function readStored({ prometheus }: Lane): { readonly files: number; readonly hasSucceeded: boolean } {
  return { files: prometheus.last('backup_files_total') ?? 0, hasSucceeded: prometheus.last('backup_success') === 1 };
}

/** The report's fields; none where there is none. */
export function readReport({ lastscrape }: Pick<Lane, 'lastscrape'>): Readonly<Record<string, unknown>> {
  const entry = readLogEntry(lastscrape?.lines.at(-1)?.text ?? '');
  return entry?.msg === 'report' ? entry.fields : {};
}

/** At most, in this time; none where the report says nothing of it. */
function countFiles(seconds: unknown): number {
  return typeof seconds === 'number' ? Math.ceil(((seconds + 0.1) * FILES_COUNT) / WORK_SECONDS) + 1 : 0;
}

function reportOutcome(timeline: Timeline, lanes: readonly Lane[]): boolean {
  const stored = lanes.map(readStored);
  const reports = lanes.map(readReport);
  const [without, front, exact] = stored;
  timeline.heading('The reports: the termination messages, shown by "kubectl describe pod"');
  lanes.forEach(({ pod }, index) => {
    const summary = reports[index]?.['summary'];
    if (summary !== undefined) timeline.text(`  ${pod}  ${summary}`);
  });

  const checks: [isRight: boolean, text: string][] = [
    [
      without !== undefined && without.files < FILES_COUNT && !without.hasSucceeded,
      `A: ${FILES_COUNT - (without?.files ?? 0)} files and the success are lost`,
    ],
    [
      front !== undefined && FILES_COUNT - front.files <= countFiles(reports[1]?.['mayMissSeconds']),
      `B: lost after lastscrape's last read: ${FILES_COUNT - (front?.files ?? 0)} of the files, the success`,
    ],
    [exact?.files === FILES_COUNT && exact.hasSucceeded, 'C: nothing is lost'],
    [reports[1]?.['outcome'] === 'scraped' && reports[2]?.['outcome'] === 'scraped', 'B, C: outcome "scraped"'],
    [lanes.every(({ lastscrape }) => lastscrape === null || lastscrape.exit?.code === 0), 'B, C: exit code 0'],
  ];
  const isRight = timeline.verdict(checks);

  timeline.heading('What Prometheus has in the end');
  const rows = [
    ['', 'A: without', 'B: lastscrape', PYTHON === undefined ? 'C: and one line' : 'C: and the hook'],
    ['files', ...stored.map(({ files }) => `${files} of ${FILES_COUNT}`)],
    ['success', ...stored.map(({ hasSucceeded }) => (hasSucceeded ? 'yes' : 'no'))],
    [
      'pod held after SIGTERM',
      ...reports.map(({ heldSeconds }) => (typeof heldSeconds === 'number' ? `${heldSeconds.toFixed(1)} s` : '–')),
    ],
  ];
  for (const [name = '', ...cells] of rows) {
    timeline.text(`  ${name.padEnd(24)}${cells.map((cell) => cell.padEnd(15)).join('')}`.trimEnd());
  }
  return isRight;
}
