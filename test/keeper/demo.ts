// `npm run demo -- --hand-over`: the end of a job in two pods: one is held, one hands over to a keeper. lastscrape, the
// keeper and the jobs are processes of their own.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import {
  FILES_COUNT,
  KUBELET_MS,
  LIMIT_MS,
  readReport,
  SERVES,
  startLastscrape,
  stopLastscrape,
} from '../demo-front.ts';
import { openPrometheus, type Prometheus } from '../stand-in/prometheus.ts';
import { openTimeline, readTerminal, SHOWN_FIELDS, type Timeline } from '../stand-in/timeline.ts';
import { type Child, startChild } from '../support/child.ts';
import { makeFolder } from '../support/folder.ts';
import { findFreePort } from '../support/listen.ts';
import { type Keeper, startKeeper, until } from './keeper.ts';

// The job works for 6 s. Prometheus scrapes 4 s after its start, and 15 s later: 12 s after SIGTERM.
const SCRAPE_INTERVAL_MS = 15_000;
const SCRAPE_OFFSET_MS = 4_000;
const PODS = ['A', 'B'] as const;
const BOTH = 'A+B';
/** Of the graph's bars, and what stands beside them. */
const BAR_COLUMNS = 44;
const BESIDE_COLUMNS = 32;

/** What became of a pod. Times in ms after the jobs began. */
type Played = {
  readonly pod: (typeof PODS)[number];
  readonly files: number;
  readonly endedMs: number;
  readonly goneMs: number;
  readonly storedMs: number;
  readonly exitCode: number | null;
  readonly report: Readonly<Record<string, unknown>>;
};

/** Runs the demo. Returns the exit code: 0 when each pod ended as it must. */
export async function runHandOverDemo(): Promise<number> {
  const terminal = readTerminal(process.stdout, process.env['NO_COLOR']);
  const timeline = openTimeline({
    write: (text) => process.stdout.write(text),
    speakers: { job: 'green', kubelet: 'yellow', Prometheus: 'magenta', lastscrape: 'cyan', keeper: 'bold' },
    pods: [...PODS, BOTH],
    shownFields: SHOWN_FIELDS,
    ...terminal,
  });
  timeline.heading('lastscrape demo: hand over instead of hold');
  timeline.text(`A backup job with its own /metrics copies ${FILES_COUNT} files and exits, in two pods:`);
  timeline.text('  A  the pod is held until Prometheus has scraped it once more');
  timeline.text('  B  the pod hands its last numbers over to a keeper, and Prometheus scrapes that');
  timeline.text('\nReal: lastscrape, the keeper and the jobs, processes of their own.');
  timeline.text(`Stand-ins: the kubelet, and Prometheus (every ${SCRAPE_INTERVAL_MS / 1_000} s).\n`);

  await using started = new AsyncDisposableStack();
  const keeper = started.use(await startKeeper());
  const lanes = await Promise.all(PODS.map((pod) => openLane(timeline, started, pod, keeper)));
  const beganMs = performance.now();
  for (const { job } of lanes) job.signal('SIGUSR2');
  timeline.say('job', `starts, and copies ${FILES_COUNT} files in 6 s`, undefined, BOTH);
  const played = await Promise.all(lanes.map((lane) => playLane(timeline, started, lane, keeper, beganMs)));
  const barColumns = Math.min(BAR_COLUMNS, Math.max(10, (terminal.width || 100) - BESIDE_COLUMNS));
  return reportOutcome(timeline, played, barColumns) ? 0 : 1;
}

type Lane = { readonly pod: Played['pod']; readonly front: number; readonly job: Child; readonly lastscrape: Child };

async function openLane(
  timeline: Timeline,
  started: AsyncDisposableStack,
  pod: Played['pod'],
  keeper: Keeper,
): Promise<Lane> {
  const [source, front, folder] = [await findFreePort(), await findFreePort(), makeFolder()];
  writeFileSync(join(folder, 'labels'), 'app="backup"');
  const env = {
    ...{ POD_NAME: `backup-${pod.toLowerCase()}`, POD_NAMESPACE: 'shop', POD_UID: pod },
    ...(pod === 'B' && {
      LASTSCRAPE_HAND_OVER: new URL(keeper.handOverUrl).origin,
      LASTSCRAPE_HAND_OVER_FOLDER: folder,
    }),
  };
  const lastscrape = started.use(startLastscrape(timeline, pod, { front, source, folder }, env));
  await lastscrape.waitForLine(/"main is running"/, LIMIT_MS);
  const program = join(import.meta.dirname, '../stand-in/job-main.ts');
  const snapshotUrl = `http://127.0.0.1:${front}/-/snapshot`;
  const job = started.use(
    startChild({
      name: `the job of ${pod}`,
      command: [process.execPath, program, `${source}`, snapshotUrl],
      cwd: folder,
      env: {},
    }),
  );
  await job.waitForLine(SERVES, LIMIT_MS);
  return { pod, front, job, lastscrape };
}

/** The pod's end: the job's, the kubelet's signal, lastscrape's; and the scrape that stores its last numbers. */
async function playLane(
  timeline: Timeline,
  started: AsyncDisposableStack,
  { pod, front, job, lastscrape }: Lane,
  keeper: Keeper,
  beganMs: number,
): Promise<Played> {
  const nowMs = () => performance.now() - beganMs;
  const { promise: stored, resolve } = Promise.withResolvers<number>();
  let url = `http://127.0.0.1:${front}/metrics`;
  const prometheus: Prometheus = started.use(
    openPrometheus({
      url: () => url,
      intervalMs: SCRAPE_INTERVAL_MS,
      offsetMs: SCRAPE_OFFSET_MS,
      onScrape({ number, failure }) {
        const files = prometheus.last('backup_files_total') ?? 0;
        const text = `scrape ${number}: ${failure ?? `stores ${files} files`}`;
        timeline.say('Prometheus', text, failure === undefined ? 'bold' : 'red', pod);
        if (number === 2) resolve(nowMs());
      },
    }),
  );
  await job.waitForExit(LIMIT_MS);
  const endedMs = nowMs();
  timeline.say('job', 'has ended, and its /metrics with it', 'bold', pod);
  await stopLastscrape(timeline, pod, lastscrape);
  const goneMs = nowMs();
  if (pod === 'B') {
    const target = await until('the target', LIMIT_MS, async () => (await keeper.listTargets())[0]);
    const { instance, __metrics_path__: path = '' } = target.labels;
    timeline.say('keeper', `lists it as a target, instance ${instance}`, undefined, pod);
    url = `${keeper.serveUrl}${path}`;
  }
  const storedMs = await stored;
  await prometheus.close();
  return {
    ...{ pod, endedMs, goneMs, storedMs, report: readReport({ lastscrape }), exitCode: lastscrape.exit?.code ?? null },
    files: prometheus.last('backup_files_total') ?? 0,
  };
}

function reportOutcome(timeline: Timeline, played: readonly Played[], barColumns: number): boolean {
  const [held, handedOver] = played;
  if (held === undefined || handedOver === undefined) throw new Error('Bug: a pod is missing');
  timeline.heading('The reports: the termination messages, shown by "kubectl describe pod"');
  for (const { pod, report } of played) timeline.text(`  ${pod}  ${report['summary']}`);

  const afterSeconds = ({ goneMs, endedMs }: Played) => (goneMs - endedMs - KUBELET_MS) / 1_000;
  const checks: [isRight: boolean, text: string][] = [
    [played.every(({ files }) => files === FILES_COUNT), 'A, B: nothing is lost'],
    [held.report['outcome'] === 'scraped', 'A: outcome "scraped"'],
    [handedOver.report['outcome'] === 'handedOver', 'B: outcome "handedOver"'],
    [handedOver.goneMs < handedOver.storedMs, 'B: the pod was gone when its last numbers were stored'],
    [played.every(({ exitCode }) => exitCode === 0), 'A, B: exit code 0'],
  ];
  const isRight = timeline.verdict(checks);

  timeline.heading('The two pods');
  const columnMs = Math.max(held.storedMs, handedOver.storedMs) / barColumns;
  for (const lane of played) timeline.text(drawLane(lane, columnMs));
  timeline.text('\n  █ the program works   ░ the pod waits, 1 s for the kubelet   ● its last numbers are stored');
  const waits = played.map((lane) => `${lane.pod} ${afterSeconds(lane).toFixed(1)} s`);
  timeline.text(`  From SIGTERM to the end of the pod: ${waits.join(', ')}`);
  return isRight;
}

/** A pod's time as a line: it works, waits, is gone; and when its last numbers were stored. */
function drawLane({ pod, endedMs, goneMs, storedMs }: Played, columnMs: number): string {
  const column = (ms: number) => Math.round(ms / columnMs);
  const [ended, gone, stored] = [column(endedMs), column(goneMs), column(storedMs)];
  const bar = `${'█'.repeat(ended)}${'░'.repeat(Math.max(0, Math.min(gone, stored) - ended))}`.padEnd(stored);
  return `  ${pod}  ${bar}●  complete after ${(goneMs / 1_000).toFixed(1)} s`;
}
