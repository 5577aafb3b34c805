// Programs that push to lastscrape, and end at once: a real Prometheus has each one's last number.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Child } from '../support/child.ts';
import {
  END_MS,
  readReport,
  scrapeConfig,
  terminateAfter,
  waitForDown,
  waitForScrapes,
  withFrontPod,
} from './front-pod.ts';
import { type FrontProgram, frontProgram, gateFront } from './front-programs.ts';

/** Of each client, at the same time, each with a group of its own. */
const EACH_COUNT = 30;
const AT_A_TIME_COUNT = 10;
/** A job works for one of these at least, and two at most. */
const INTERVAL_MS = 2000;

const file = (name: string) => new URL(`jobs/${name}`, import.meta.url).pathname;
const python = (way: string) => ({
  needs: 'python' as const,
  command: (args: readonly string[]) => [frontProgram('python'), file('push_job.py'), ...args, way],
});
const shell = (client: string, needs: FrontProgram) => ({
  needs,
  command: (args: readonly string[]) => [file('push-job.sh'), client, ...args],
});

type Client = {
  readonly needs?: FrontProgram;
  /** `args`: the Pushgateway's URL, the run, the rows at its end, and how many milliseconds it works. */
  readonly command: (args: readonly string[]) => readonly string[];
};

const CLIENTS: Readonly<Record<string, Client>> = {
  'prometheus_client, push_to_gateway': python('push'),
  'prometheus_client, pushadd_to_gateway': python('pushadd'),
  'prometheus_client, with a password that is ignored': python('auth'),
  'prometheus_client, delete_from_gateway as a last act': python('delete'),
  'client_golang, protobuf': { needs: 'goClient', command: (args) => [frontProgram('goClient'), ...args] },
  'prom-client': { command: (args) => [process.execPath, file('push-job.ts'), ...args] },
  'the Java client': {
    needs: 'javaClient',
    command: (args) => [
      'java',
      '-Xmx24m',
      '-Xshare:auto',
      '-cp',
      `${frontProgram('javaClient')}/*:${frontProgram('javaClient')}`,
      'PushJob',
      ...args,
    ],
  },
  curl: shell('curl', 'curl'),
  'wget of busybox': shell('wget', 'busybox'),
};

const skip = gateFront('test/pods/front-pushes.test.ts', [
  'prometheus',
  ...new Set(Object.values(CLIENTS).flatMap(({ needs }) => needs ?? [])),
]);

/** The newest sample of each run, and the rows that it pushed last. */
type Outcome = { readonly stored: readonly (number | undefined)[]; readonly finals: readonly number[] };
const outcomes = new Map<string, Outcome>();

describe('a job that pushes and ends', { skip }, () => {
  before(
    async () => {
      await withFrontPod(async (pod) => {
        const fronts = [];
        for (const client of Object.keys(CLIENTS)) {
          const pushPort = await pod.network.newPort();
          const front = await pod.startFront({
            source: `pushgateway://127.0.0.1:${pushPort}`,
            port: await pod.network.newPort(),
          });
          fronts.push({ client, pushPort, front, instance: `127.0.0.1:${front.port}` });
        }
        const targets = fronts.map(({ instance }) => instance);
        const prometheus = await pod.startPrometheus({ config: scrapeConfig(`${INTERVAL_MS}ms`, targets) });
        await waitForScrapes(prometheus, targets.length);
        for (const { client, pushPort, front, instance } of fronts) {
          const finals = Array.from({ length: EACH_COUNT }, (_, run) => 1_000_000 + run);
          const jobs: Child[] = [];
          for (const [run, final] of finals.entries()) {
            // A machine that starts all of them at once does nothing else.
            if (run >= AT_A_TIME_COUNT) await jobs[run - AT_A_TIME_COUNT]?.waitForExit(END_MS);
            const ms = Math.round(INTERVAL_MS * (1 + run / EACH_COUNT));
            const args = [`http://127.0.0.1:${pushPort}`, `${run}`, `${final}`, `${ms}`];
            jobs.push(pod.start(`${client} ${run}`, CLIENTS[client]?.command(args) ?? []));
          }
          for (const job of jobs) assert.equal((await job.waitForExit(END_MS)).code, 0, job.tail());
          await terminateAfter(jobs.at(-1) as Child, front.child);
          assert.equal((await readReport(front)).outcome, 'scraped');
          await waitForDown(prometheus, instance);
          const series = await prometheus.readSeries(`job_rows{instance="${instance}"}`);
          const stored = finals.map((_, run) => {
            const [one, ...others] = series.filter(({ labels }) => labels['run'] === `${run}`);
            assert.equal(others.length, 0);
            return one?.samples.at(-1)?.value;
          });
          outcomes.set(client, { stored, finals });
        }
      });
    },
    { timeout: 900_000 },
  );

  for (const client of Object.keys(CLIENTS)) {
    it(`${client}: the last number is stored, ${EACH_COUNT} of ${EACH_COUNT}`, () => {
      const { stored, finals } = outcomes.get(client) as Outcome;
      assert.deepEqual(stored, finals);
    });
  }
});
