// Which final numbers reach Prometheus, for four ways to end the exporter: a pod of real programs for each
// way and phase, so that no read changes another's: Locust caches its page for 2 s.

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Child } from '../support/child.ts';
import { openPod, type Pod, readFinalTotal, START_MS } from '../support/pod.ts';
import type { ExporterProgram, Programs } from '../support/programs.ts';
import type { Prometheus } from '../support/prometheus.ts';
import { readLast, TOTAL } from '../support/proof.ts';
import { until } from '../support/until.ts';
import { type Gate, openGate } from './gate.ts';

/** The ways, in the order of the table. */
export const WAYS = ['killed', 'quitAtEnd', 'keptFixed', 'lastscrape'] as const;

export type Way = (typeof WAYS)[number];

export type PodRun = {
  readonly way: Way;
  /** Locust's own summary. */
  readonly printedCount: number;
  /** The newest total that Prometheus holds; 0 when it has none. */
  readonly storedCount: number;
  /** From Locust's exit to the exit of the last container. */
  readonly heldSeconds: number;
};

/** How many phases to run, each with every way. */
export type FinalNumbersPlan = {
  readonly programs: Programs;
  readonly exporter: ExporterProgram;
  readonly phaseCount: number;
  /** How many pods run side by side, at most two of them in their start. */
  readonly podCount: number;
};

export const SCRAPE_SECONDS = 5;
export const RUN_SECONDS = 6;

/** The kubelet looks for ended containers once a second (PLEG): a native sidecar lives that much longer. */
export const KUBELET_SECONDS = 1;

/** A preStop sleep that leaves 5 s of the default terminationGracePeriodSeconds of 30. */
export const KEPT_SECONDS = 25;

/** With eight starts at a time on two cores, workers came after the end of the run. */
const START_COUNT = 2;

/** A run makes some 150; one with fewer was starved, and says nothing of its way. */
const FEWEST_REQUESTS = 100;

const LOCUSTFILE = join(import.meta.dirname, 'quit-at-end.py');
const END_MS = START_MS + 60_000;

/** Runs all pods. Returns the results, and why a pod gave none: the machine was too busy, not its way. */
export async function measureFinalNumbers(
  plan: FinalNumbersPlan,
): Promise<{ readonly runs: readonly PodRun[]; readonly faults: readonly string[] }> {
  const waiting = Array.from({ length: plan.phaseCount }, () => WAYS).flat();
  const runs: PodRun[] = [];
  const faults: string[] = [];
  const gate = openGate(START_COUNT);
  const runPods = async (): Promise<void> => {
    for (let way = waiting.shift(); way !== undefined; way = waiting.shift()) {
      try {
        runs.push(await runPod(plan, way, gate));
      } catch (error) {
        faults.push(`${way}: ${error instanceof Error ? error.message : String(error)}`);
      }
      process.stderr.write(`\rpods: ${runs.length + faults.length} of ${plan.phaseCount * WAYS.length} `);
    }
  };
  await Promise.all(Array.from({ length: plan.podCount }, runPods));
  process.stderr.write('\n');
  return { runs, faults };
}

async function runPod({ programs, exporter: program }: FinalNumbersPlan, way: Way, gate: Gate): Promise<PodRun> {
  await using pod = await openPod(programs, program);
  const { exporter, prometheus, watcher, master } = await gate(() => startPod(pod, way));
  const masterExit = await master.waitForExit(END_MS);
  const endedAtMs = await endContainers(way, exporter, watcher);
  await untilTargetDown(prometheus);
  const printedCount = readFinalTotal(master);
  if (printedCount < FEWEST_REQUESTS) throw new Error(`Cannot measure a run of ${printedCount} requests; busy machine`);
  return {
    way,
    printedCount,
    storedCount: (await readLast(prometheus, TOTAL)) ?? 0,
    heldSeconds: Math.max(0, endedAtMs - masterExit.atMs) / 1000,
  };
}

async function startPod(pod: Pod, way: Way) {
  const exporter = pod.startExporter();
  const prometheus = await pod.startPrometheus(`${SCRAPE_SECONDS}s`);
  const watcher = way === 'lastscrape' ? pod.startWatcher({ isBare: true }) : undefined;
  // Prometheus's phase is a hash, equal in all pods; this randomises the run's.
  await delay(Math.random() * SCRAPE_SECONDS * 1000);
  const master = pod.startMaster({
    locustfile: LOCUSTFILE,
    runTime: `${RUN_SECONDS}s`,
    extraArgs: ['--autoquit', '0', ...(way === 'quitAtEnd' ? ['--exporter-url', exporterUrl(pod)] : [])],
  });
  pod.startWorker(LOCUSTFILE);
  await master.waitForLine(/All users spawned/, START_MS);
  return { exporter, prometheus, watcher, master };
}

/** Returns when the last container had ended (epoch ms). */
async function endContainers(way: Way, exporter: Child, watcher: Child | undefined): Promise<number> {
  const stopAfter = async (seconds: number): Promise<void> => {
    await delay(seconds * 1000);
    exporter.signal('SIGTERM');
  };
  if (way === 'killed') await stopAfter(KUBELET_SECONDS);
  if (way === 'keptFixed') await stopAfter(KEPT_SECONDS);
  const watcherExit = await watcher?.waitForExit(END_MS);
  return Math.max((await exporter.waitForExit(END_MS)).atMs, watcherExit?.atMs ?? 0);
}

/** A failed scrape after the end: no scrape of before is on its way any more. */
async function untilTargetDown(prometheus: Prometheus): Promise<void> {
  await until('the target down in Prometheus', END_MS, async () => {
    return (await readLast(prometheus, 'up')) === 0 ? true : undefined;
  });
}

function exporterUrl({ network }: Pod): string {
  return `http://127.0.0.1:${network.ports.exporter}`;
}
