// What main pays for being watched, as a table, and the budgets of it.

import { cpus } from 'node:os';
import { type Budget, writeTable } from './budgets.ts';
import { INTERVAL_SECONDS, type MainCost, type Way } from './main-cost.ts';

const IN_PLACE = 'lastscrape in the exporter’s place';

/** A row: the programs of a label, and what stands in its place for Locust. */
type Row = { readonly name: string; readonly label: MainCost; readonly alone: MainCost; readonly hook?: MainCost };

/** The table, with its heading and what it means. */
export function writeMainTable(costs: readonly MainCost[]): string {
  const percent = (share: number | undefined) => (share === undefined ? '–' : (share * 100).toFixed(1));
  const seconds = (share: number | null | undefined) => (share == null ? '–' : (share * 60).toFixed(2));
  return [
    '### What main pays',
    writeTable(
      [
        ...['program', 'scraped alone (% of a core)', 'with the label', 'with the hook'],
        ...['lastscrape (s of CPU a minute)', 'with the hook', 'page (KB)'],
      ],
      listRows(costs).map(({ name, alone, label, hook }) => [
        name,
        percent(alone.mainShare),
        percent(label.mainShare),
        percent(hook?.mainShare),
        seconds(label.ownShare),
        seconds(hook?.ownShare),
        (alone.pageBytes / 1000).toFixed(0),
      ]),
    ),
    `All at the same time on ${process.platform} ${process.arch}, ${cpus().length} cores, each scraped by one Prometheus every ${INTERVAL_SECONDS} s, well and equally often. ` +
      'With the label lastscrape has the variables that the policy gives it (fixtures/injected), and the programs with the hook have theirs. The programs do nothing but show their page; ' +
      'Locust’s master counts some 200 requests a second, and its exporter, the stand-in, is the page’s server and not in its figures. ' +
      'Pages in memory cost nothing to make: of them lastscrape pays the most. On a busy machine lastscrape reads less often.',
  ].join('\n\n');
}

export function listMainBudgets(costs: readonly MainCost[]): readonly Budget[] {
  const rows = listRows(costs);
  const mostExtra = (way: Way) =>
    100 *
    Math.max(
      ...rows.flatMap(({ alone, label, hook }) =>
        [label, hook].flatMap((one) => (one?.way === way ? [one.mainShare - alone.mainShare] : [])),
      ),
    );
  const own = (size: string) => rows.find(({ name }) => name.includes(size))?.label.ownShare ?? Number.NaN;
  const judged = { digits: 2, isJudged: true };
  return [
    { name: 'main with the label − alone, the most (% of a core)', most: 1, measured: mostExtra('label'), ...judged },
    { name: 'main with the hook − alone, the most (% of a core)', most: 0.4, measured: mostExtra('hook'), ...judged },
    {
      // Locust renews its page every 2 s, and may end soon after: it is read as often.
      name: `Locust with ${IN_PLACE} − with the exporter (% of a core)`,
      most: 1.5,
      measured: mostExtra('place'),
      digits: 2,
      isJudged: false,
    },
    ...['50 KB', '3 MB'].map((size) => ({
      name: `CPU seconds a minute of lastscrape with the label, ${size}`,
      most: 0.6,
      measured: own(size) * 60,
      // Half the speed, twice the seconds: the pace of reads keeps it, not the code's.
      digits: 2,
      isJudged: false,
    })),
  ];
}

function listRows(costs: readonly MainCost[]): readonly Row[] {
  const find = (program: string, way: Way) => costs.find((one) => one.program === program && one.way === way);
  return costs
    .filter(({ way }) => way === 'label' || way === 'place')
    .map((label) => {
      const { program, way } = label;
      const [alone, hook] = [find(program, 'alone'), find(program, 'hook')];
      if (alone === undefined) throw new Error(`Bug: ${program} was not scraped alone`);
      return {
        name: way === 'place' ? `${program}, ${IN_PLACE}` : program,
        label,
        alone,
        ...(hook === undefined ? {} : { hook }),
      };
    });
}
