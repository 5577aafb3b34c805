// Which final numbers reach Prometheus, for four ways to end the exporter, as a table for bench.ts.

import { setTimeout as delay } from 'node:timers/promises';
import { writeTable } from './budgets.ts';
import { type Ending, type findLocustPrograms, playRuns, type Run, SCRAPE_SECONDS, type Way } from './locust-runs.ts';
import { findMedian } from './median.ts';

/** The kubelet looks for ended containers once a second (PLEG): a native sidecar lives that much longer. */
const KUBELET_SECONDS = 1;

/** A preStop sleep that leaves 5 s of the default terminationGracePeriodSeconds of 30. */
const KEPT_SECONDS = 25;

const ENDING: Ending = { name: '--autoquit 0', autoquit: 0, runSeconds: 6, users: 'quit-at-end' };

const endAfter =
  (seconds: number): NonNullable<Way['endExporter']> =>
  async (exporter) => {
    await delay(seconds * 1000);
    exporter.signal('SIGTERM');
  };
const start: Way['start'] = (pod) => ({ exposed: pod.startExporter(), watcher: null });

const WAYS: readonly Way[] = [
  {
    name: `exporter as a native sidecar, ended ${KUBELET_SECONDS} s after Locust's exit`,
    start,
    endExporter: endAfter(KUBELET_SECONDS),
  },
  {
    name: '`/quitquitquit` from the locustfile, as its last act',
    start,
    quitArgs: ({ network }) => ['--exporter-url', `http://127.0.0.1:${network.ports.exporter}`],
  },
  { name: `exporter kept for ${KEPT_SECONDS} s (preStop sleep)`, start, endExporter: endAfter(KEPT_SECONDS) },
  {
    name: 'lastscrape, no variable set',
    start: (pod) => ({ exposed: pod.startExporter(), watcher: pod.startWatcher({ isBare: true }) }),
  },
];

/** Plays `phaseCount` pods of each way, `podCount` at a time, and writes their table. */
export async function measureFinalNumbers(
  found: ReturnType<typeof findLocustPrograms>,
  { phaseCount, podCount }: { readonly phaseCount: number; readonly podCount: number },
): Promise<string> {
  const cases = Array.from({ length: phaseCount }, () => WAYS.map((way) => ({ way, ending: ENDING }))).flat();
  const { runs, faultCount } = await playRuns(found, cases, podCount);
  return [
    '### Final numbers',
    writeTable(
      [
        'the end of the exporter',
        'Prometheus has the final total',
        'requests lost, mean',
        'worst',
        'pod held, median (s)',
        'longest',
      ],
      WAYS.map((way) => [way.name, ...writeCells(runs.filter((run) => run.way === way))]),
    ),
    `With \`--autoquit 0\`, a run of ${ENDING.runSeconds} s and a scrape interval of ${SCRAPE_SECONDS} s, at random phases, each pod with a Locust of its own; ${found.describe().join(', ')}. ` +
      'With the operator’s default of `--autoquit 60` the numbers can still be scraped for a minute after the run: an interval below that misses only the last `locust_up 0`, whichever way is taken. ' +
      'They are lost with a short autoquit, a longer interval, or a test that is stopped. The share that is lost is that of so short a run; what is lost is the last seconds of any run. ' +
      'Held: from Locust’s exit to that of the last container.' +
      ' lastscrape passes on what Locust showed: workers report every 3 s and its page is cached for 2 s, so that with `--autoquit 0` the last report may never be on it.' +
      (faultCount === 0 ? '' : ` Run again, since the busy machine starved them: ${faultCount} pods.`),
  ].join('\n\n');
}

function writeCells(runs: readonly Run[]): readonly string[] {
  const lost = runs.map((run) => 1 - run.storedCount / run.printedCount);
  const held = runs.map((run) => run.heldSeconds);
  const finalCount = lost.filter((share) => share === 0).length;
  return [
    `${finalCount} of ${runs.length} (${percent(finalCount / runs.length)})`,
    percent(lost.reduce((sum, share) => sum + share, 0) / runs.length),
    percent(Math.max(...lost)),
    findMedian(held).toFixed(1),
    Math.max(...held).toFixed(1),
  ];
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share > 0 && share < 0.0995 ? 1 : 0)} %`;
}
