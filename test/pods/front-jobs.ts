// Jobs that end with their numbers, in every way in which those reach Prometheus, in one network. A job's
// counter is the milliseconds that it worked: what is stored says how long before the end it was shown.
import { join } from 'node:path';
import type { Child } from '../support/child.ts';
import { IN_MEMORY } from '../support/programs.ts';
import type { Prometheus } from '../support/prometheus.ts';
import { type ReportFields, readLast } from '../support/proof.ts';
import { until } from '../support/until.ts';
import {
  END_MS,
  type Front,
  type FrontPod,
  readReport,
  START_MS,
  scrapeConfig,
  terminateAfter,
  waitForDown,
  waitForScrapes,
} from './front-pod.ts';
import { type FrontProgram, frontProgram } from './front-programs.ts';

/** What serves the numbers: the job itself, or a Pushgateway in its pod that a shell script pushes to. */
export type JobProgram = 'python' | 'node' | 'shell';

/**
 * How the last number reaches Prometheus: not; without lastscrape by a sleep or a Pushgateway of the
 * cluster; by the front alone; by the front and a line in the job, or the hook; by a push into lastscrape.
 */
export type JobWay =
  | 'nothing'
  | 'sleep'
  | 'clusterGateway'
  | 'front'
  | 'snapshot'
  | 'hook'
  | 'textfile'
  | 'pushgateway'
  | 'pushed';

export type JobCase = { readonly program: JobProgram; readonly way: JobWay };

/** Every way of every program. */
export const JOB_CASES: readonly JobCase[] = [
  { program: 'python', way: 'nothing' },
  { program: 'node', way: 'nothing' },
  { program: 'shell', way: 'nothing' },
  { program: 'python', way: 'front' },
  { program: 'node', way: 'front' },
  { program: 'python', way: 'snapshot' },
  { program: 'node', way: 'snapshot' },
  { program: 'python', way: 'hook' },
  { program: 'python', way: 'textfile' },
  { program: 'shell', way: 'pushgateway' },
  { program: 'shell', way: 'pushed' },
];

/** What people have instead of lastscrape. */
export const OTHER_CASES: readonly JobCase[] = [
  { program: 'python', way: 'sleep' },
  { program: 'shell', way: 'clusterGateway' },
];

/** Of the sleep at the end of a job. */
export const SLEEP_SECONDS = 30;

export const JOB_PROGRAMS: readonly FrontProgram[] = ['prometheus', 'python', 'pushgateway', 'curl'];

/** The counter of every job. */
export const WORKED = 'job_worked_milliseconds_total';

export type JobResult = JobCase & {
  readonly final: number;
  /** What it was when each read of the job's page began, in that order; empty for a shell job. */
  readonly reads: readonly number[];
  /** The newest sample in Prometheus; undefined: none. */
  readonly stored: number | undefined;
  /** Of lastscrape; null without it. */
  readonly report: ReportFields | null;
  /** The group of its numbers is still in a Pushgateway after the job and its pod are gone. */
  readonly isLeftBehind: boolean;
};

/** The pod of a job, without the job itself. */
type Ready = JobCase & {
  readonly instance: string;
  readonly selector: string;
  readonly front: Front | null;
  readonly pushgateway: Child | null;
  readonly begin: (workMs: number) => Child;
};

/**
 * Plays each case `eachCount` times, all at once, before one Prometheus. Jobs work 2.5 to 4 intervals, each
 * another time, so that their ends fall anywhere between two scrapes.
 */
export async function playJobs(
  pod: FrontPod,
  cases: readonly JobCase[],
  eachCount: number,
  intervalMs: number,
): Promise<readonly JobResult[]> {
  const wanted = Array.from({ length: eachCount }, () => cases).flat();
  const gatewayPort = wanted.some(({ way }) => way === 'clusterGateway') ? await pod.network.newPort() : 0;
  if (gatewayPort !== 0) await startPushgateway(pod, gatewayPort);
  const ready = await Promise.all(wanted.map((jobCase) => prepare(pod, jobCase, gatewayPort)));
  const targets = [...new Set(ready.map(({ instance }) => instance))];
  const prometheus = await pod.startPrometheus({ config: scrapeConfig(`${intervalMs}ms`, targets) });
  await waitForScrapes(prometheus, targets.length);
  // One after the other: a dozen that start at once would keep the machine from all else.
  let turn: Promise<unknown> = Promise.resolve();
  const runs = ready.map((jobPod, index) => {
    const workMs = Math.round(intervalMs * (2.5 + (1.5 * index) / ready.length));
    const started = turn.then(async () => {
      const job = jobPod.begin(workMs);
      await job.waitForLine(/^started$/, START_MS);
      return job;
    });
    turn = started;
    return started.then((job) => playEnd(jobPod, job, prometheus));
  });
  return Promise.all(runs);
}

async function playEnd(jobPod: Ready, job: Child, prometheus: Prometheus): Promise<JobResult> {
  const { program, way, instance, selector, front, pushgateway } = jobPod;
  // The last native sidecar gets its SIGTERM then, and ends at once.
  const last = front?.child ?? pushgateway;
  if (last !== null) await terminateAfter(job, last);
  const { final, reads } = await readResult(job);
  const report = front === null ? null : await readReport(front);
  if (way === 'clusterGateway') await waitForScrapeOf(prometheus, instance);
  else await waitForDown(prometheus, instance);
  const stored = await readLast(prometheus, selector);
  const isLeftBehind = way === 'clusterGateway' && (await prometheus.query(selector)).length > 0;
  return { program, way, final, reads, stored, report, isLeftBehind };
}

async function prepare(pod: FrontPod, { program, way }: JobCase, gatewayPort: number): Promise<Ready> {
  const { network } = pod;
  const sourcePort = await network.newPort();
  const frontPort = await network.newPort();
  const textfile = join(pod.directory, `job-${sourcePort}.prom`);
  const hasGateway = program === 'shell' && way !== 'clusterGateway' && way !== 'pushed';
  const pushgateway = hasGateway ? await startPushgateway(pod, sourcePort) : null;
  const sources: Partial<Record<JobWay, string>> = {
    textfile: `file://${textfile}`,
    pushed: `pushgateway://127.0.0.1:${sourcePort}`,
  };
  const source = sources[way] ?? `http://127.0.0.1:${sourcePort}/metrics`;
  const hasFront = way !== 'nothing' && way !== 'sleep' && way !== 'clusterGateway';
  const hooks = join(pod.directory, `hooks-${sourcePort}`);
  const own: Record<string, string> = way === 'hook' ? { LASTSCRAPE_HOOKS: hooks } : {};
  const front = hasFront ? await pod.startFront({ source, port: frontPort, env: own }) : null;
  const snapshotUrl = `http://127.0.0.1:${frontPort}/-/snapshot`;
  const env = {
    ...(way === 'textfile' ? { JOB_TEXTFILE: textfile } : { JOB_PORT: `${sourcePort}` }),
    ...(way === 'snapshot' ? { JOB_SNAPSHOT_URL: snapshotUrl } : {}),
    ...(way === 'hook' ? { PYTHONPATH: join(hooks, 'python'), LASTSCRAPE_SNAPSHOT_URL: snapshotUrl } : {}),
    ...(way === 'sleep' ? { JOB_SLEEP_MS: `${SLEEP_SECONDS * 1000}` } : {}),
    JOB_PUSH_URL:
      way === 'clusterGateway'
        ? `http://127.0.0.1:${gatewayPort}/metrics/job/shell-${sourcePort}`
        : `http://127.0.0.1:${sourcePort}/metrics/job/shell`,
  };
  const instance = `127.0.0.1:${way === 'clusterGateway' ? gatewayPort : (front?.port ?? sourcePort)}`;
  return {
    program,
    way,
    instance,
    // What is pushed says its job, which Prometheus renames.
    selector:
      way === 'clusterGateway' ? `${WORKED}{exported_job="shell-${sourcePort}"}` : `${WORKED}{instance="${instance}"}`,
    front,
    pushgateway,
    begin: (workMs) =>
      pod.start(`the ${program} job (${way})`, jobCommand(program), { ...env, JOB_MS: String(workMs) }),
  };
}

async function startPushgateway(pod: FrontPod, port: number): Promise<Child> {
  const child = pod.start(`Pushgateway at ${port}`, [
    frontProgram('pushgateway'),
    `--web.listen-address=127.0.0.1:${port}`,
    IN_MEMORY,
  ]);
  await pod.network.waitForPort(port);
  return child;
}

/** Waits until a scrape that began from now on is stored. */
async function waitForScrapeOf(prometheus: Prometheus, instance: string): Promise<void> {
  const sinceSeconds = Date.now() / 1000;
  await until(`a scrape of ${instance}`, END_MS, async () => {
    const [series] = await prometheus.readSeries(`up{instance="${instance}"}`);
    return series?.samples.some(({ atSeconds }) => atSeconds > sinceSeconds) || undefined;
  });
}

export function jobCommand(program: JobProgram): readonly string[] {
  const file = (name: string) => join(import.meta.dirname, './jobs', name);
  if (program === 'python') return [frontProgram('python'), file('python_job.py')];
  if (program === 'node') return [process.execPath, file('node-job.ts')];
  return [file('shell-job.sh')];
}

/** What a job says in its last line, when it ended well. */
export async function readResult(job: Child): Promise<{ readonly final: number; readonly reads: readonly number[] }> {
  const exit = await job.waitForExit(END_MS);
  if (exit.code !== 0) throw new Error(`Cannot use a job that failed; ${job.tail()}`);
  return JSON.parse(job.lines.findLast(({ stream }) => stream === 'stdout')?.text ?? '');
}
