// `npm run simulate`: a million runs of the front; `npm run simulate -- COUNT` that many; `npm run simulate -- seed SEED`
// one, with its story. `npm run simulate -- keeper …`: the same of the keeper and its pods.

import { availableParallelism } from 'node:os';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { playHandOvers } from '../../keeper/simulation/simulation.ts';
import { findFaults } from './invariants.ts';
import { drawScenario } from './scenario.ts';
import { simulate } from './simulation.ts';

/** What is played: a seed's faults, and its story where it is told. */
const PLAYS = {
  async front(seed: number, isTold: boolean) {
    const scenario = drawScenario(seed);
    const run = await simulate(scenario, isTold);
    return { faults: findFaults(run), story: [JSON.stringify(scenario), ...(run.story ?? [])] };
  },
  keeper: playHandOvers,
};
export type Played = keyof typeof PLAYS;

/** A run that something is wrong with. */
export type Failure = { readonly seed: number; readonly faults: readonly string[] };

/** What came of many runs. */
export type Found = { readonly runsCount: number; readonly failures: readonly Failure[] };

/** `endMs`: since 1970; no run begins later. */
type Share = {
  readonly of: Played;
  readonly first: number;
  readonly step: number;
  readonly count: number;
  readonly endMs: number;
};

/** A process with more failures has shown enough. */
const FAILURES_MAX_COUNT = 20;

/** Runs the seeds from 0 on, shared between as many threads as there are processors, until there is no time left. */
export async function simulateMany(of: Played, count: number, timeoutMs: number): Promise<Found> {
  const step = availableParallelism();
  const endMs = Date.now() + timeoutMs;
  const found = await Promise.all(
    Array.from({ length: step }, (_, first) => runShare({ of, first, step, count, endMs })),
  );
  return {
    runsCount: found.reduce((sum, { runsCount }) => sum + runsCount, 0),
    failures: found.flatMap(({ failures }) => failures).toSorted((a, b) => a.seed - b.seed),
  };
}

/** What happened in a run, and what is wrong with it. */
export async function tellRun(of: Played, seed: number): Promise<string> {
  const { story, faults } = await PLAYS[of](seed, true);
  return [`seed ${seed}:`, ...story, ...faults].join('\n');
}

async function runShare(share: Share): Promise<Found> {
  // Young garbage is most of it.
  const resourceLimits = { maxYoungGenerationSizeMb: 64 };
  const worker = new Worker(new URL(import.meta.url), { workerData: share, resourceLimits });
  return new Promise((resolve, reject) => {
    worker.once('message', resolve).once('error', reject);
  });
}

async function runSeeds({ of, first, step, count, endMs }: Share): Promise<Found> {
  // Bodies that break off are errors, which are not read here.
  Error.stackTraceLimit = 0;
  const failures: Failure[] = [];
  let runsCount = 0;
  for (let seed = first; seed < count && failures.length < FAILURES_MAX_COUNT && Date.now() < endMs; seed += step) {
    const { faults } = await PLAYS[of](seed, false).catch((error) => ({ faults: [String(error)] }));
    if (faults.length > 0) failures.push({ seed, faults });
    runsCount++;
  }
  return { runsCount, failures };
}

if (!isMainThread) parentPort?.postMessage(await runSeeds(workerData as Share));
else if (import.meta.main) {
  const [name, ...others] = process.argv.slice(2);
  const of: Played = name === 'keeper' ? 'keeper' : 'front';
  const [first = of === 'keeper' ? '10000' : '1000000', second] = of === 'keeper' ? others : [name, ...others];
  if (first === 'seed') console.log(await tellRun(of, Number(second)));
  else {
    const { runsCount, failures } = await simulateMany(of, Number(first), Number.POSITIVE_INFINITY);
    for (const { seed, faults } of failures) console.log(`seed ${seed}: ${faults.join('; ')}`);
    console.log(`${failures.length === 0 ? 'nothing' : failures.length} found in ${runsCount} runs`);
    if (failures.length > 0) process.exitCode = 1;
  }
}
