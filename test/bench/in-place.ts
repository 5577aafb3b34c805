// `npm run measure -- --locust`: in how many tests of a real Locust Prometheus holds the final total, by how the test
// ends: lastscrape in the exporter's place, the exporter with lastscrape, the exporter killed with Locust.

import { writeTable } from './budgets.ts';
import {
  type Case,
  type Ending,
  findLocustPrograms,
  playRuns,
  type Run,
  SCRAPE_SECONDS,
  type Way,
} from './locust-runs.ts';

const POD_COUNT = 9;

const WAYS: readonly Way[] = [
  {
    name: 'exporter, killed with Locust',
    start: (pod) => ({ exposed: pod.startExporter(), watcher: null }),
    endExporter: (exporter) => exporter.signal('SIGKILL'),
  },
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
  ...[0, 1, 5].map((autoquit) => ({ name: `\`--autoquit ${autoquit}\``, autoquit, runSeconds: 8 })),
  { name: 'SIGTERM to Locust in mid-run', autoquit: 5, runSeconds: 60, signalled: 'locust' },
  { name: 'SIGTERM to every container in mid-run', autoquit: 5, runSeconds: 60, signalled: 'all' },
];

/** Prints the table. @throws when a program is missing, or the machine is too busy */
export async function measureInPlace(runCount: number): Promise<void> {
  const found = findLocustPrograms();
  if (found.missing.length > 0)
    throw new Error(`Cannot measure: real programs are missing; install ${found.missing.join('; ')}`);
  // The kinds are mixed, so that a busy minute is one for all.
  const kinds = ENDINGS.flatMap((ending) => WAYS.map((way): Case => ({ way, ending })));
  const cases = Array.from({ length: runCount }, () => kinds).flat();
  const { runs, faultCount } = await playRuns(found, cases, POD_COUNT);
  console.log(
    writeTable(
      ['the end', ...WAYS.map(({ name }) => name), 'requests that are missing, in each run that lost'],
      ENDINGS.map((ending) => {
        const lost = WAYS.map((way) => listLost(runs.filter((one) => one.way === way && one.ending === ending)));
        const counts = lost.map(({ length }) => `${runCount - length} of ${runCount}`);
        return [ending.name, ...counts, lost.map((each) => each.join(' ') || 'none').join('; ')];
      }),
    ),
  );
  console.log(
    `\nRuns of which Prometheus holds the final total that Locust printed. It scrapes every ${SCRAPE_SECONDS} s, at random phases; each run is a pod with a Locust of its own, ` +
      `up to ${POD_COUNT} of all kinds side by side; ${found.describe().join(', ')}, ${found.subject.name} of lastscrape. ` +
      `Not in the table, since the busy machine starved them: ${faultCount} pods, which were run again.`,
  );
}

function listLost(runs: readonly Run[]): readonly number[] {
  return runs.map(({ printedCount, storedCount }) => printedCount - storedCount).filter((count) => count !== 0);
}
