// What a person sees in Prometheus after the end, with a front and without: instant queries, a range,
// recording rules. The table that this asserts is in docs/, row for row.
import assert from 'node:assert/strict';
import { globSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Prometheus } from '../support/prometheus.ts';
import { assertRuns, readLast } from '../support/proof.ts';
import { until } from '../support/until.ts';
import { jobCommand, readResult, WORKED } from './front-jobs.ts';
import { END_MS, START_MS, terminateAfter, waitForScrapes, withFrontPod } from './front-pod.ts';
import { gateFront } from './front-programs.ts';

const skip = gateFront('test/pods/front-staleness.test.ts', ['prometheus', 'python']);

const PHASES = ['running', 'hold', 'refusing', 'vanished'] as const;
type Phase = (typeof PHASES)[number];

type Row = {
  readonly query: string;
  /** What a person has to know of it, as Markdown. */
  readonly note?: string;
  readonly cells: readonly [string, string, string, string];
};

const FRONT_ROWS: readonly Row[] = [
  { query: WORKED, cells: ['current', 'final', 'nothing', 'nothing'] },
  { query: `last_over_time(${WORKED}[1h])`, cells: ['current', 'final', 'final', 'final'] },
  {
    query: 'job:worked_last',
    note: `, a rule that records \`last_over_time(${WORKED}[1h])\``,
    cells: ['current', 'final', 'final', 'final'],
  },
  { query: 'up', cells: ['1', '1', '0', 'nothing'] },
  { query: 'lastscrape_source_up', cells: ['1', '0', 'nothing', 'nothing'] },
  { query: 'lastscrape_main_ended', cells: ['0', '1', 'nothing', 'nothing'] },
];

// Without a front nothing holds: from the end on its own port refuses.
const DIRECT_ROWS: readonly Row[] = [
  { query: WORKED, cells: ['current', 'nothing', 'nothing', 'nothing'] },
  { query: `last_over_time(${WORKED}[1h])`, cells: ['current', 'last scraped', 'last scraped', 'last scraped'] },
  { query: 'up', cells: ['1', '0', '0', 'nothing'] },
];

const RULES = `groups:
  - name: job
    rules:
      - { record: "job:worked_last", expr: "last_over_time(${WORKED}[1h])" }
`;

/** The number that the job of a target left, and what it is called. */
type Left = { readonly name: 'final' | 'last scraped'; readonly value: number | undefined };

/** A number as a cell has it: as itself where it is a state, and by what it is where it is the job's. */
function describeValue(query: string, found: number | undefined, left: Left | null): string {
  if (found === undefined) return 'nothing';
  if (/^(up|lastscrape_)/.test(query)) return String(found);
  if (left === null) return 'current';
  return found === left.value ? left.name : `an older number (${found})`;
}

function expressionFor(query: string, instance: string): string {
  const selector = `{instance="${instance}"}`;
  return query.endsWith('[1h])') ? query.replace('[1h])', `${selector}[1h])`) : query + selector;
}

async function proveColumn(
  prometheus: Prometheus,
  rows: readonly Row[],
  instance: string,
  phase: Phase,
  left: Left | null,
): Promise<void> {
  for (const { query, cells } of rows) {
    const wanted = cells[PHASES.indexOf(phase)];
    await until(`"${wanted}" for ${query} (${phase})`, START_MS, async () => {
      const [found] = await prometheus.query(expressionFor(query, instance));
      const described = describeValue(query, found, left);
      if (described === wanted) return true;
      throw new Error(`it is ${described}`);
    });
  }
}

describe('what is seen in Prometheus after the end', { skip }, () => {
  it('is what the table says', { timeout: 600_000 }, () =>
    withFrontPod(async (pod) => {
      const [sourcePort, directPort, frontPort] = [
        await pod.network.newPort(),
        await pod.network.newPort(),
        await pod.network.newPort(),
      ];
      // The hold lasts until the test has looked around in it.
      const env = { LASTSCRAPE_SCRAPES: '1000', LASTSCRAPE_TTL: '5m', LASTSCRAPE_TERMINATION_GRACE: '5m' };
      const source = `http://127.0.0.1:${sourcePort}/metrics`;
      const front = await pod.startFront({ source, port: frontPort, env });
      const instances = { front: `127.0.0.1:${frontPort}`, direct: `127.0.0.1:${directPort}` };
      const targetsPath = join(pod.directory, 'targets.json');
      const writeTargets = (targets: readonly string[]) => {
        writeFileSync(`${targetsPath}.part`, JSON.stringify([{ targets }]));
        renameSync(`${targetsPath}.part`, targetsPath);
      };
      writeTargets(Object.values(instances));
      writeFileSync(join(pod.directory, 'rules.yml'), RULES);
      const prometheus = await pod.startPrometheus({
        config: `global: { scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }
rule_files: [${join(pod.directory, 'rules.yml')}]
scrape_configs:
  - { job_name: pod, file_sd_configs: [{ files: [${targetsPath}], refresh_interval: 1s }] }
`,
      });
      await waitForScrapes(prometheus, 2);

      let left: { readonly front: Left; readonly direct: Left } | null = null;
      const prove = async (phase: Phase) => {
        await proveColumn(prometheus, FRONT_ROWS, instances.front, phase, left?.front ?? null);
        await proveColumn(prometheus, DIRECT_ROWS, instances.direct, phase, left?.direct ?? null);
      };
      const start = (port: number, more: Readonly<Record<string, string>> = {}) =>
        pod.start(`the job at ${port}`, jobCommand('python'), { JOB_PORT: `${port}`, JOB_MS: '20000', ...more });
      const direct = start(directPort);
      const job = start(sourcePort, { JOB_SNAPSHOT_URL: `http://127.0.0.1:${frontPort}/-/snapshot` });
      await prove('running');
      assertRuns(job);

      await direct.waitForExit(END_MS);
      await terminateAfter(job, front.child);
      await until(
        'the direct target down',
        START_MS,
        async () => (await prometheus.query(`up{instance="${instances.direct}"}`))[0] === 0 || undefined,
      );
      const lastScraped = await readLast(prometheus, `${WORKED}{instance="${instances.direct}"}`);
      left = {
        front: { name: 'final', value: (await readResult(job)).final },
        direct: { name: 'last scraped', value: lastScraped },
      };
      await prove('hold');
      assertRuns(front.child);

      // The second one: it gives up at once.
      front.child.signal('SIGINT');
      await front.child.waitForExit(END_MS);
      await prove('refusing');
      writeTargets([]);
      await prove('vanished');
    }),
  );

  it('stands in docs/', () => {
    const root = join(import.meta.dirname, '../..');
    const told = globSync('docs/front*.md', { cwd: root }).map((file) => readFileSync(join(root, file), 'utf8'));
    for (const row of FRONT_ROWS) assert.ok(told.join().includes(writeRow(row)), writeRow(row));
  });
});

function writeRow({ query, note = '', cells }: Row): string {
  return `| \`${query}\`${note} | ${cells.join(' | ')} |`;
}
