// Pods of real programs side by side, one for each run of a real Locust, so that no read changes another's
// (Locust caches its page for 2 s): what of its final total Prometheus has stored, by how the run ends.

import { setTimeout as delay } from 'node:timers/promises';
import type { Child } from '../support/child.ts';
import { locustfile, openPod, type Pod, readFinalTotal, START_MS } from '../support/pod.ts';
import { describePrograms, findPrograms, listMissing } from '../support/programs.ts';
import { readLast, TOTAL } from '../support/proof.ts';
import { until } from '../support/until.ts';
import { findSubject } from './subject.ts';

/** Who serves the numbers, who watches, and what ends the exporter once Locust has ended. */
export type Way = {
  readonly name: string;
  readonly start: (pod: Pod) => { readonly exposed: Child; readonly watcher: Child | null };
  /** Default: the exporter is quit by who watches. */
  readonly endExporter?: (exporter: Child) => Promise<void> | void;
  /** More arguments of a Locust whose users quit the exporter themselves. */
  readonly quitArgs?: (pod: Pod) => readonly string[];
};

export type Ending = {
  readonly name: string;
  /** Seconds. */
  readonly autoquit: number;
  readonly runSeconds: number;
  /** Default: steady. */
  readonly users?: Parameters<typeof locustfile>[0];
  /** Gets SIGTERM in the middle of the run. */
  readonly signalled?: 'locust' | 'all';
};

export type Case = { readonly way: Way; readonly ending: Ending };

export type Run = Case & {
  /** Locust's own summary. */
  readonly printedCount: number;
  /** The newest total that Prometheus holds; 0 when it has none. */
  readonly storedCount: number;
  /** From Locust's exit to the exit of the last container. */
  readonly heldSeconds: number;
};

export const SCRAPE_SECONDS = 5;

/** From the exit of Locust: the TTL, and the end of all that is in it. */
const END_MS = START_MS + 60_000;
/** With eight starts at a time on two cores, workers came after the end of the run. */
const START_COUNT = 2;
/** A run makes some 150; one with fewer was starved, and says nothing of its way. */
const FEWEST_REQUESTS = 60;
/** Of all runs that gave nothing; then the machine is too busy to measure at all. */
const FAULTS_MAX_SHARE = 0.2;

/** What is needed, with the real exporter where there is one. `missing`: what to install. */
export function findLocustPrograms() {
  const subject = findSubject();
  const programs = { ...findPrograms(), watcher: subject.command };
  const exporter = programs.exporters.at(-1);
  if (exporter === undefined) throw new Error('Bug: no exporter at all');
  const needed = ['locust', 'prometheus'] as const;
  const missing = listMissing(programs, needed);
  const describe = () => describePrograms({ ...programs, exporters: [exporter] }, needed).slice(0, 3);
  return { programs, exporter, missing, subject, describe };
}

/** Plays each case, `podCount` at a time, and again where a pod gave nothing. @throws when too many did */
export async function playRuns(
  found: ReturnType<typeof findLocustPrograms>,
  cases: readonly Case[],
  podCount: number,
): Promise<{ readonly runs: readonly Run[]; readonly faultCount: number }> {
  const waiting = [...cases];
  const runs: Run[] = [];
  let faultCount = 0;
  const gate = openGate(START_COUNT);
  const playOn = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const name = `${next.ending.name}, ${next.way.name}`;
      try {
        const run = await play(found, next, gate);
        runs.push(run);
        tell(`${runs.length} of ${cases.length}: ${name}: ${run.storedCount} of ${run.printedCount}`);
      } catch (error) {
        faultCount += 1;
        tell(`A pod gave nothing: ${name}: ${error instanceof Error ? error.message : String(error)}`);
        if (faultCount > Math.max(podCount, FAULTS_MAX_SHARE * cases.length))
          throw new Error('Cannot measure: the machine is too busy', { cause: error });
        waiting.push(next);
      }
    }
  };
  await Promise.all(Array.from({ length: podCount }, playOn));
  return { runs, faultCount };
}

type Gate = <Result>(run: () => Promise<Result>) => Promise<Result>;

/** Runs functions in the order of the calls, at most `count` at a time; one that fails makes room as well. */
function openGate(count: number): Gate {
  const turns: Promise<unknown>[] = Array.from({ length: count }, () => Promise.resolve());
  return (run) => {
    const turn = (turns.shift() ?? Promise.resolve()).then(run);
    turns.push(turn.catch(() => {}));
    return turn;
  };
}

/** @throws where the run says nothing of its way */
async function play(
  { programs, exporter }: ReturnType<typeof findLocustPrograms>,
  { way, ending }: Case,
  gate: Gate,
): Promise<Run> {
  await using pod = await openPod(programs, exporter);
  const { exposed, watcher, prometheus, master } = await gate(() => startAll(pod, way, ending));
  if (ending.signalled !== undefined) {
    // Anywhere in the 3 s of a worker's report, and in Prometheus's interval.
    await delay(7_000 + SCRAPE_SECONDS * 1000 * Math.random());
    for (const child of new Set(ending.signalled === 'all' ? [master, exposed, watcher ?? exposed] : [master])) {
      child.signal('SIGTERM');
    }
  }
  const masterExit = await master.waitForExit(END_MS);
  await way.endExporter?.(exposed);
  const exits = await Promise.all([exposed, watcher ?? exposed].map((child) => child.waitForExit(END_MS)));
  // A failed scrape after the end: no scrape of before is on its way any more.
  await until('the target down in Prometheus', END_MS, async () =>
    (await readLast(prometheus, 'up')) === 0 ? true : undefined,
  );
  const printedCount = readFinalTotal(master);
  if (printedCount < FEWEST_REQUESTS) throw new Error(`Cannot measure a run of ${printedCount} requests`);
  const storedCount = (await readLast(prometheus, TOTAL)) ?? 0;
  // Why, by what each program said.
  if (watcher === exposed && storedCount !== printedCount) tell(pod.children.map((child) => child.tail()).join('\n'));
  const heldSeconds = Math.max(0, ...exits.map(({ atMs }) => atMs - masterExit.atMs)) / 1000;
  return { way, ending, printedCount, storedCount, heldSeconds };
}

async function startAll(pod: Pod, way: Way, { autoquit, runSeconds, users = 'steady' }: Ending) {
  const { exposed, watcher } = way.start(pod);
  await pod.network.waitForPort(pod.network.ports.exporter);
  const prometheus = await pod.startPrometheus(`${SCRAPE_SECONDS}s`);
  // Prometheus's phase is a hash, equal in all pods; this randomises the run's.
  await delay(Math.random() * SCRAPE_SECONDS * 1000);
  const master = pod.startMaster({
    locustfile: locustfile(users),
    runTime: `${runSeconds}s`,
    extraArgs: ['--autoquit', String(autoquit), ...(way.quitArgs?.(pod) ?? [])],
  });
  pod.startWorker(locustfile(users));
  await master.waitForLine(/All users spawned|Spawning is complete/, START_MS);
  return { exposed, watcher, prometheus, master };
}

function tell(text: string): void {
  process.stderr.write(`${text}\n`);
}
