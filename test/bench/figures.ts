// The figures of the pages, drawn from the tables and outputs in image/figures; nothing is measured here.

import { drawHouse } from '../tools/draw-house.ts';
import { drawDemo } from './lanes.ts';
import { type Block, type Cell, type Drawing, drawBars } from './svg.ts';

/** The texts that the figures are drawn from, as they are in image/figures. */
export type Recorded = {
  /** What `npm run bench` wrote. */
  readonly bench: string;
  /** What it wrote of the front, or `npm run bench -- --front` did. */
  readonly front: string;
  /** The same of the keeper: `npm run bench -- --keeper`. */
  readonly keeper: string;
  readonly main: string;
  /** What `npm run measure -- --front` printed. */
  readonly jobs: string;
  /** What `npm run measure -- --locust` printed. */
  readonly locust: string;
  /** What `npm run demo` printed into a pipe. */
  readonly demo: string;
};

/** Every figure, by the name of its file in image/figures. */
export function drawFigures({ bench, demo, jobs }: Recorded): Readonly<Record<string, Drawing>> {
  return {
    'last-scrape.svg': drawDemo(demo),
    'final-numbers.svg': drawFinalNumbers(readTable(bench, 'Final numbers'), readNote(bench, 'Final numbers')),
    'front-final-numbers.svg': drawJobs(jobs),
    'house.svg': drawHouse(),
    'footprint.svg': drawFootprint(readTable(bench, 'Footprint'), readTable(bench, 'Growth with the exposition')),
  };
}

/** `<!-- front: table 2, 4 columns -->`: the first columns of a recorded table. */
const PART = /(<!-- ([\w-]+): table (\d+), (\d+) columns -->\n)(?:\|.*\n)*/g;

/** A page with the alternative texts of its figures, and the tables that it shows, as they are recorded. */
export function fillPage(
  page: string,
  { bench, front, keeper, main, jobs, locust }: Recorded,
  figures: ReturnType<typeof drawFigures>,
): string {
  let filled = page;
  const recorded: Readonly<Record<string, string>> = { bench, front, keeper, main, jobs, locust };
  filled = filled.replace(PART, (_, head: string, name: string, table: string, columns: string) => {
    const tables = (recorded[name] ?? '').match(/(?:^\|.*\n?)+/gm) ?? [];
    const rows = tables[Number(table) - 1]?.trim().split('\n');
    if (rows === undefined) throw new Error(`Cannot fill a page: image/figures/${name}.md has no table ${table}`);
    const cutRow = (row: string) => row.split('|', Number(columns) + 1).join('|');
    return `${head}${rows.map((row) => `${cutRow(row)}|\n`).join('')}`;
  });
  for (const [name, { alt }] of Object.entries(figures)) {
    filled = filled.replaceAll(
      new RegExp(`!\\[[^\\]]*\\]\\(([./]*image/figures/${name.replace('.', '\\.')})\\)`, 'g'),
      (_, path: string) => `![${alt}](${path})`,
    );
  }
  return filled;
}

/** A table without its head: cells by row and column, and the name of each row in front. */
type Rows = readonly (readonly string[])[];

function drawFootprint(footprint: Rows, growth: Rows): Drawing {
  const cellsOf = (name: string) => {
    const row = footprint.find(([first]) => first === name);
    if (row === undefined) throw new Error(`Cannot draw the footprint: the table has no row "${name}"`);
    return row.slice(1);
  };
  const programs = ['lastscrape', 'empty Node 24 program', 'shell loop with curl'];
  const block = (columns: readonly (readonly [title: string, row: string, unit: string])[]): Block => ({
    columns: columns.map(([title]) => ({ title })),
    rows: programs.map((label, index) => ({
      label,
      isOwn: index === 0,
      cells: columns.map(([, row, unit]) => readCell(cellsOf(row)[index], unit)),
    })),
  });
  const blocks: Block[] = [
    block([
      ['resident memory', 'resident memory (MB)', 'MB'],
      ['anonymous memory', 'anonymous memory (MB)', 'MB'],
      ['start to first poll', 'start to first poll, warm (ms)', 'ms'],
    ]),
    block([
      ['CPU a minute (a poll every 1 s)', 'CPU seconds a minute, a poll every 1 s', 's'],
      ['CPU a minute (every 5 s)', 'CPU seconds a minute, a poll every 5 s', 's'],
      ['smallest memory limit', 'smallest workable memory limit (MiB)', 'MiB'],
    ]),
  ];
  const cpu = growth.flatMap((row) => [Number(row[4]), Number(row[5])]);
  const growthBlock: Block = {
    columns: [
      { title: 'anonymous memory' },
      { title: 'CPU of a poll', longest: Math.max(...cpu) },
      { title: 'CPU of the shell loop’s poll', longest: Math.max(...cpu) },
    ],
    rows: growth.map(([size, , anonymous, , own, shell]) => ({
      label: `lastscrape, ${size}`,
      isOwn: true,
      cells: [readCell(anonymous, 'MB'), readCell(own, 'ms'), { ...readCell(shell, 'ms'), isOther: true }],
    })),
  };
  const all = [...blocks, growthBlock];
  return drawBars({
    title: 'What lastscrape costs',
    blocks: all,
    data: describeBlocks('What lastscrape costs', all),
    note: 'Medians of one run, side by side; the exporter’s page has 50 KB, in the last block the size that is named. The shell loop does the simplest form of the job; its memory is that of a poll, with curl and grep. The first and the last block are two parts of the run: their figures for 50 KB differ a little.',
  });
}

function drawFinalNumbers(rows: Rows, note: string): Drawing {
  const short: Readonly<Record<string, string>> = {
    exporter: 'native sidecar',
    '`/quitquitquit`': 'quit by the locustfile',
    kept: 'preStop sleep',
    lastscrape: 'lastscrape',
  };
  const seconds = (name: string) => / for (\d+ s)/.exec(name)?.[1];
  const nameRow = (name: string) => {
    const kept = seconds(name);
    if (kept !== undefined) return `${short['kept']} ${kept}`;
    const found = Object.entries(short).find(([start]) => name.startsWith(start));
    if (found === undefined) throw new Error(`Cannot draw the final numbers: the row "${name}" has no short name`);
    return found[1];
  };
  const blocks: Block[] = [
    {
      columns: [
        { title: 'runs with the final total', longest: 1 },
        { title: 'requests lost (mean)', longest: 100 },
        { title: 'pod held (median)' },
      ],
      rows: rows.map(([name = '', total = '', lost, , held]) => {
        const [count = NaN, of = NaN] = [...total.matchAll(/\d+/g)].map(Number);
        return {
          label: nameRow(name),
          isOwn: name.startsWith('lastscrape'),
          cells: [
            { value: count / of, text: `${count} of ${of}` },
            { value: Number.parseFloat(lost ?? ''), text: lost ?? '' },
            readCell(held, 's'),
          ],
        };
      }),
    },
  ];
  const setting =
    /^With `--autoquit 0`, (a run of [\d.]+ s) and (a scrape interval of [\d.]+ s), at random phases/.exec(note);
  if (setting === null) throw new Error('Cannot draw the final numbers: the note does not say how they were measured');
  return drawBars({
    title: 'What reaches Prometheus',
    blocks,
    data: describeBlocks('What reaches Prometheus', blocks),
    note: `The case that loses most: real Locust with --autoquit 0, ${setting[1]}, ${setting[2]} at random phases. Locust’s own page may then never show the last report of its workers, so that nobody can scrape it: hence not all of lastscrape’s. With the operator’s default of --autoquit 60 the numbers can be scraped for a minute more, and at this interval no way loses them.`,
  });
}

/** The ways of front-jobs.ts, as the figure names them. */
const JOB_WAYS: Readonly<Record<string, { readonly label: string; readonly isOwn: boolean }>> = {
  nothing: { label: 'nothing done', isOwn: false },
  sleep: { label: 'sleep 30', isOwn: false },
  clusterGateway: { label: 'gateway of the cluster', isOwn: false },
  front: { label: 'front', isOwn: true },
  snapshot: { label: 'front, /-/snapshot', isOwn: true },
  hook: { label: 'front, Python hook', isOwn: true },
  textfile: { label: 'front, textfile', isOwn: true },
  pushgateway: { label: 'front, gateway in pod', isOwn: true },
  pushed: { label: 'a push, taken in', isOwn: true },
};

// "| python | front | 2 of 30 | 130, 260 | 5.1, 7.9 |": medians and the most.
function drawJobs(jobs: string): Drawing {
  const rows = jobs.split('\n').flatMap((line) => {
    const [, program = '', way = '', count = '', of = '', behind = '', held = ''] =
      /^\| (\w+) \| (\w+) \| (\d+) of (\d+) \| (?:(\d+), \d+)? ?\| (?:([\d.]+), [\d.]+)? ?\|$/.exec(line) ?? [];
    const named = JOB_WAYS[way];
    if (named === undefined) return [];
    return {
      label: `${program}: ${named.label}`,
      isOwn: named.isOwn,
      cells: [
        { value: Number(count) / Number(of), text: `${count} of ${of}` },
        readCell(behind === '' ? undefined : behind, 'ms'),
        readCell(held === '' ? undefined : held, 's'),
      ],
    };
  });
  const leftBehind = /^The Pushgateway of the cluster shows the groups of (\d+) jobs/m.exec(jobs)?.[1];
  if (rows.length === 0 || leftBehind === undefined) {
    throw new Error('Cannot draw the last numbers of jobs: the output of "npm run measure -- --front" is not there');
  }
  const blocks: Block[] = [
    {
      columns: [
        { title: 'final number stored', longest: 1 },
        { title: 'behind it (median)' },
        { title: 'pod held (median)' },
      ],
      rows,
    },
  ];
  return drawBars({
    title: 'The last number of a job',
    blocks,
    data: describeBlocks('The last number of a job', blocks),
    note: `Jobs with the official client libraries (python, node) and one that pushes (shell), each ending at a random moment between two scrapes of a real Prometheus. Behind it: how much earlier what is stored was shown. The Pushgateway of the cluster still shows the groups of ${leftBehind} jobs that are gone; of lastscrape’s none is left.`,
  });
}

/** The figure in words: each row with each of its values. */
function describeBlocks(title: string, blocks: readonly Block[]): string {
  const rows = blocks.flatMap(({ columns, rows: all }) =>
    all.map(
      ({ label, cells }) =>
        `${label}: ${cells.map((cell, index) => `${columns[index]?.title} ${cell.text === '–' ? 'not measured' : cell.text}`).join(', ')}`,
    ),
  );
  return `${title}. ${rows.join('; ')}.`;
}

function readCell(text: string | undefined, unit: string): Cell {
  const value = Number(text ?? NaN);
  return Number.isNaN(value) ? { value: undefined, text: '–' } : { value, text: `${text} ${unit}` };
}

function readSection(bench: string, heading: string): string {
  const [, section] = new RegExp(`^### ${heading}\n([\\s\\S]*?)(?=^### |$(?![\\s\\S]))`, 'm').exec(bench) ?? [];
  if (section === undefined) throw new Error(`Cannot draw a figure: bench.md has no "${heading}"`);
  return section;
}

function readTable(bench: string, heading: string): Rows {
  const lines = readSection(bench, heading)
    .split('\n')
    .filter((line) => line.startsWith('|'));
  return lines.slice(2).map((line) => line.slice(2, -2).split(' | '));
}

/** The paragraph below a table. */
function readNote(bench: string, heading: string): string {
  return (
    readSection(bench, heading)
      .split('\n')
      .findLast((line) => line !== '' && !line.startsWith('|')) ?? ''
  );
}
