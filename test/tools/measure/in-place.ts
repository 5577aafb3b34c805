// Measures lastscrape in the place of Locust's exporter on the real programs (`npm run measure -- --locust`, `--runs=N`): of how many
// tests Prometheus holds the final total, for each way in which a test ends, beside the exporter that is killed when Locust exits and
// the exporter with lastscrape beside it. The three of a run are three pods at the same time. It prints a table and asserts nothing.
import type { Child } from '../../support/child.ts';
import { openPod, type Pod, readFinalTotal, START_MS } from '../../support/pod.ts';
import { describePrograms, type ExporterProgram, findPrograms } from '../../support/programs.ts';
import type { Prometheus } from '../../support/prometheus.ts';
import { readLast, TOTAL } from '../../support/proof.ts';
import { measureInPlaceCost } from './in-place-cost.ts';

/** One pod: how it is made of what watches and serves, and what of it gets a signal when the pod is deleted. */
type Lane = {
  readonly name: string;
  readonly start: (pod: Pod) => { readonly exposed: Child; readonly watcher: Child | null };
};

type Ending = {
  readonly name: string;
  readonly autoquit: number;
  /** Who gets SIGTERM in the middle of the run. */
  readonly signalled: 'nobody' | 'locust' | 'all';
};

const SCRAPE_INTERVAL = '5s';
const RUN_MS = START_MS + 60_000;
/** From the exit of Locust: the TTL, and the end of all that is in it. */
const END_MS = 120_000;

const LANES: readonly Lane[] = [
  { name: 'exporter, killed with Locust', start: (pod) => ({ exposed: pod.startExporter(), watcher: null }) },
  {
    name: 'exporter, lastscrape beside it',
    start: (pod) => ({ exposed: pod.startExporter(), watcher: pod.startWatcher() }),
  },
  {
    name: 'lastscrape in its place',
    start(pod) {
      const watcher = pod.startInPlace();
      return { exposed: watcher, watcher };
    },
  },
];

const ENDINGS: readonly Ending[] = [
  { name: '`--autoquit 0`', autoquit: 0, signalled: 'nobody' },
  { name: '`--autoquit 1`', autoquit: 1, signalled: 'nobody' },
  { name: '`--autoquit 5`', autoquit: 5, signalled: 'nobody' },
  { name: 'SIGTERM to Locust in mid-run', autoquit: 5, signalled: 'locust' },
  { name: 'SIGTERM to every container in mid-run', autoquit: 5, signalled: 'all' },
];

/** Prints the tables; the real exporter is taken where there is one. */
export async function measureInPlace(runCount: number): Promise<void> {
  const programs = findPrograms();
  const exporter = programs.exporters.at(-1);
  if (exporter === undefined) throw new Error('Bug: no exporter at all');
  const described = describePrograms({ ...programs, exporters: [exporter] }, ['locust', 'prometheus']);
  console.log(`Programs: ${described.join(', ')}`);
  console.log(`Prometheus scrapes every ${SCRAPE_INTERVAL}; tests of which it holds the final total, of ${runCount}\n`);
  console.log(`| end | ${LANES.map(({ name }) => name).join(' | ')} | missing requests in each run that lost |`);
  console.log(`|---|${LANES.map(() => '---:|').join('')}---|`);
  for (const ending of ENDINGS) {
    const lost: number[][] = LANES.map(() => []);
    for (let run = 0; run < runCount; run++) {
      const results = await Promise.all(LANES.map((lane) => measureRun(exporter, lane, ending)));
      for (const [index, { stored, printed }] of results.entries()) {
        if (stored !== printed) lost[index]?.push(printed - (stored ?? 0));
      }
    }
    const counts = lost.map(({ length }) => String(runCount - length));
    console.log(
      `| ${ending.name} | ${counts.join(' | ')} | ${lost.map((each) => each.join(' ') || 'none').join('; ')} |`,
    );
  }
  await measureInPlaceCost();
}

async function measureRun(
  exporter: ExporterProgram,
  lane: Lane,
  ending: Ending,
): Promise<{ readonly printed: number; readonly stored: number | undefined }> {
  await using pod = await openPod(findPrograms(), exporter);
  const { exposed, watcher } = lane.start(pod);
  await pod.waitForPort(pod.network.ports.exporter);
  const prometheus = await pod.startPrometheus(SCRAPE_INTERVAL);
  const master = pod.startMaster({
    runTime: ending.signalled === 'nobody' ? '8s' : '60s',
    extraArgs: ['--autoquit', String(ending.autoquit)],
  });
  pod.startWorker();
  if (ending.signalled !== 'nobody') {
    await master.waitForLine(/Sending spawn jobs/, RUN_MS);
    // The users are there after 2 s; then anywhere in the 3 s of a worker's report, and in Prometheus's interval.
    await new Promise((resolve) => setTimeout(resolve, 7_000 + 5_000 * Math.random()));
    for (const child of new Set(ending.signalled === 'all' ? [master, exposed, watcher ?? exposed] : [master])) {
      child.signal('SIGTERM');
    }
  }
  await master.waitForExit(RUN_MS);
  if (watcher === null) exposed.signal('SIGKILL');
  await (watcher ?? exposed).waitForExit(END_MS);
  return { printed: readFinalTotal(master), stored: await readStored(prometheus) };
}

/** A scrape that has just ended is committed within milliseconds. */
async function readStored(prometheus: Prometheus): Promise<number | undefined> {
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  return readLast(prometheus, TOTAL);
}
