// Jobs of 3 s before a Prometheus that scrapes every 5 s and finds a pod late, as in a cluster.
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../support/until.ts';
import { END_MS, type FrontPod, readReport, START_MS, terminateAfter } from './front-pod.ts';
import { type FrontProgram, frontProgram } from './front-programs.ts';

export const SHORT_JOB_PROGRAMS: readonly FrontProgram[] = ['prometheus3', 'goClient'];

/** What the counter of each job is at its end. */
export const ROWS_COUNT = 30;
const ROW_SECONDS = 0.1;
const INTERVAL_SECONDS = 5;

/** What is asked of a counter when its job is gone; the second wants `promql-extended-range-selectors`. */
export const QUESTIONS = [
  'increase(rows_total[5m])',
  'increase(rows_total[5m] anchored)',
  'last_over_time(rows_total[5m])',
];

/** The answer to each question; undefined: none. */
export type Answers = readonly (number | undefined)[];

/** Plays that many jobs with a front, and as many without, their begins spread over one interval. */
export async function playShortJobs(
  pod: FrontPod,
  count: number,
): Promise<{ readonly front: readonly Answers[]; readonly direct: readonly Answers[] }> {
  const path = join(pod.directory, 'targets.json');
  const targets: string[] = [];
  const discover = (...ports: readonly number[]) => {
    targets.push(...ports.map((port) => `127.0.0.1:${port}`));
    writeFileSync(`${path}.part`, JSON.stringify([{ targets }]));
    renameSync(`${path}.part`, path);
  };
  const interval = `${INTERVAL_SECONDS}s`;
  const prometheus = await pod.startPrometheus({
    program: 'prometheus3',
    // JSON is YAML.
    config: JSON.stringify({
      global: { scrape_interval: interval, scrape_timeout: interval },
      scrape_configs: [{ job_name: 'pod', file_sd_configs: [{ files: [path] }] }],
    }),
    args: ['--enable-feature=created-timestamp-zero-ingestion,promql-extended-range-selectors'],
  });
  const startJob = (port: number, snapshotUrl: string) => {
    const script = `for _ in $(seq ${ROWS_COUNT}); do sleep ${ROW_SECONDS}; echo; done | "$0"`;
    const env = { JOB_PORT: `${port}`, JOB_SNAPSHOT_URL: snapshotUrl };
    return pod.start(`the job at ${port}`, ['sh', '-c', script, frontProgram('goClient')], env);
  };
  const ask = async (port: number): Promise<Answers> =>
    Promise.all(
      QUESTIONS.map(async (question) => {
        const [value] = await prometheus.query(question.replace('[', `{instance="127.0.0.1:${port}"}[`));
        return value;
      }),
    );
  const play = async (index: number) => {
    const [source, direct, port] = [
      await pod.network.newPort(),
      await pod.network.newPort(),
      await pod.network.newPort(),
    ];
    const front = await pod.startFront({ source: `http://127.0.0.1:${source}/metrics`, port });
    await delay((1000 * INTERVAL_SECONDS * index) / count);
    discover(direct, port);
    const alone = startJob(direct, '');
    await terminateAfter(startJob(source, `http://127.0.0.1:${port}/-/snapshot`), front.child);
    await Promise.all([readReport(front), alone.waitForExit(END_MS)]);
    await until(`a sample of ${port}`, START_MS, async () => {
      const value = (await ask(port)).at(-1);
      if (value !== undefined) return value;
      // What Prometheus says of its scrapes.
      throw new Error(JSON.stringify(await prometheus.readSeries(`{instance="127.0.0.1:${port}"}`)));
    });
    return { front: await ask(port), direct: await ask(direct) };
  };
  const results = await Promise.all(Array.from({ length: count }, (_, index) => play(index)));
  return { front: results.map(({ front }) => front), direct: results.map(({ direct }) => direct) };
}
