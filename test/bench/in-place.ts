// `npm run measure -- --locust`: in how many tests of a real Locust Prometheus holds the final total, by how
// the test ends: lastscrape in the exporter's place, the exporter with lastscrape, the exporter killed with
// Locust.
import { setTimeout as delay } from 'node:timers/promises';
import type { Child } from '../support/child.ts';
import { openPod, type Pod, readFinalTotal, START_MS } from '../support/pod.ts';
import {
  describePrograms,
  type ExporterProgram,
  findPrograms,
  listMissing,
  type Programs,
} from '../support/programs.ts';
import type { Prometheus } from '../support/prometheus.ts';
import { readLast, TOTAL } from '../support/proof.ts';
import { writeTable } from './budgets.ts';
import { openGate } from './gate.ts';
import { findSubject } from './subject.ts';

/** One pod: how it is made of what watches and serves. */
type Way = {
  readonly name: string;
  readonly start: (pod: Pod) => { readonly exposed: Child; readonly watcher: Child | null };
};

type Ending = {
  readonly name: string;
  readonly autoquit: number;
  /** Who gets SIGTERM in the middle of the run. */
  readonly signalled: 'nobody' | 'locust' | 'all';
};

type Case = { readonly way: Way; readonly ending: Ending };
type Result = Case & { readonly printedCount: number; readonly storedCount: number };

const SCRAPE_SECONDS = 5;
const RUN_MS = START_MS + 60_000;
/** From the exit of Locust: the TTL, and the end of all that is in it. */
const END_MS = 120_000;
/** With more starts at a time on two cores, workers came after the end of the run. */
const START_COUNT = 2;
const POD_COUNT = 9;
/** A run makes some 150; one with fewer was starved, and says nothing of its way. */
const FEWEST_REQUESTS = 60;
/** Of all runs that gave nothing; then the machine is too busy to measure at all. */
const FAULTS_MAX_SHARE = 0.2;

const WAYS: readonly Way[] = [
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

/** Prints the table. @throws when a program is missing, or the machine is too busy */
export async function measureInPlace(runCount: number): Promise<void> {
  const { subject, programs, exporter } = findNeeded();
  const versions = describePrograms({ ...programs, exporters: [exporter] }, ['locust', 'prometheus']).slice(0, 3);
  const { results, faults } = await playAll(programs, exporter, runCount);
  console.log(
    writeTable(
      ['the end', ...WAYS.map(({ name }) => name), 'requests that are missing, in each run that lost'],
      ENDINGS.map((ending) => {
        const lost = WAYS.map((way) => listLost(results.filter((one) => one.way === way && one.ending === ending)));
        const counts = lost.map(({ length }) => `${runCount - length} of ${runCount}`);
        return [ending.name, ...counts, lost.map((each) => each.join(' ') || 'none').join('; ')];
      }),
    ),
  );
  console.log(
    `\nRuns of which Prometheus holds the final total that Locust printed. It scrapes every ${SCRAPE_SECONDS} s, at random phases; each run is a pod with a Locust of its own, ` +
      `up to ${POD_COUNT} of all kinds side by side; ${versions.join(', ')}, ${subject.name} of lastscrape. ` +
      `Not in the table, since the busy machine starved them: ${faults.length} pods, which were run again.`,
  );
}

function findNeeded() {
  const subject = findSubject();
  const programs = { ...findPrograms(), watcher: subject.command };
  const missing = listMissing(programs, ['locust', 'prometheus']);
  if (missing.length > 0) throw new Error(`Cannot measure: real programs are missing; install ${missing.join('; ')}`);
  // The real one where there is one: it is last in the list.
  const exporter = programs.exporters.at(-1);
  if (exporter === undefined) throw new Error('Bug: no exporter at all');
  return { subject, programs, exporter };
}

/** Every case so often; the kinds are mixed, so that a busy minute is one for all. */
async function playAll(
  programs: Programs,
  exporter: ExporterProgram,
  runCount: number,
): Promise<{ readonly results: readonly Result[]; readonly faults: readonly string[] }> {
  const cases = ENDINGS.flatMap((ending) => WAYS.map((way): Case => ({ way, ending })));
  const waiting = Array.from({ length: runCount }, () => cases).flat();
  const allCount = waiting.length;
  const results: Result[] = [];
  const faults: string[] = [];
  const gate = openGate(START_COUNT);
  const playOn = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      try {
        const result = await play(programs, exporter, next, gate);
        results.push(result);
        const { printedCount, storedCount } = result;
        tell(`${results.length} of ${allCount}: ${name(next)}: ${storedCount} of ${printedCount}`);
      } catch (error) {
        faults.push(`${name(next)}: ${error instanceof Error ? error.message : String(error)}`);
        tell(`A pod gave nothing: ${faults.at(-1)}`);
        if (faults.length > FAULTS_MAX_SHARE * allCount) throw new Error('Cannot measure: the machine is too busy');
        waiting.push(next);
      }
    }
  };
  await Promise.all(Array.from({ length: POD_COUNT }, playOn));
  return { results, faults };
}

function name({ way, ending }: Case): string {
  return `${ending.name}, ${way.name}`;
}

/** @throws where the run says nothing of its way */
async function play(
  programs: Programs,
  exporter: ExporterProgram,
  { way, ending }: Case,
  gate: ReturnType<typeof openGate>,
): Promise<Result> {
  await using pod = await openPod(programs, exporter);
  const { exposed, watcher, prometheus, master } = await gate(() => startAll(pod, way, ending));
  if (ending.signalled !== 'nobody') {
    // Anywhere in the 3 s of a worker's report, and in Prometheus's interval.
    await delay(7_000 + SCRAPE_SECONDS * 1000 * Math.random());
    for (const child of new Set(ending.signalled === 'all' ? [master, exposed, watcher ?? exposed] : [master])) {
      child.signal('SIGTERM');
    }
  }
  await master.waitForExit(RUN_MS);
  if (watcher === null) exposed.signal('SIGKILL');
  const printedCount = readFinalTotal(master);
  if (printedCount < FEWEST_REQUESTS) throw new Error(`Cannot measure a run of ${printedCount} requests`);
  // One that does not end has lost nothing by that: what is stored says it.
  await (watcher ?? exposed).waitForExit(END_MS).catch((error: Error) => tell(error.message));
  const storedCount = (await readStored(prometheus)) ?? 0;
  // Why, by what each program said.
  if (watcher === exposed && storedCount !== printedCount) tell(pod.children.map((child) => child.tail()).join('\n'));
  return { way, ending, printedCount, storedCount };
}

async function startAll(pod: Pod, way: Way, { autoquit, signalled }: Ending) {
  const { exposed, watcher } = way.start(pod);
  await pod.waitForPort(pod.network.ports.exporter);
  const prometheus = await pod.startPrometheus(`${SCRAPE_SECONDS}s`);
  // Prometheus's phase is a hash, equal in all pods; this randomises the run's.
  await delay(Math.random() * SCRAPE_SECONDS * 1000);
  const master = pod.startMaster({
    runTime: signalled === 'nobody' ? '8s' : '60s',
    extraArgs: ['--autoquit', String(autoquit)],
  });
  pod.startWorker();
  await master.waitForLine(/All users spawned|Spawning is complete/, START_MS);
  return { exposed, watcher, prometheus, master };
}

/** A scrape that has just ended is committed within milliseconds. */
async function readStored(prometheus: Prometheus): Promise<number | undefined> {
  await delay(1_000);
  return readLast(prometheus, TOTAL);
}

function listLost(results: readonly Result[]): readonly number[] {
  return results
    .filter(({ printedCount, storedCount }) => printedCount !== storedCount)
    .map(({ printedCount, storedCount }) => printedCount - storedCount);
}

function tell(text: string): void {
  process.stderr.write(`${text}\n`);
}
