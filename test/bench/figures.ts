// The figures of the pages, drawn from the tables and outputs in image/figures; nothing is measured here.

import { drawHouse } from '../tools/draw-house.ts';
import { drawDemo } from './lanes.ts';
import type { Drawing } from './svg.ts';

/** The texts that the figures are drawn from, as they are in image/figures. */
export type Recorded = {
  /** What `npm run bench` wrote. */
  readonly bench: string;
  /** What it wrote of the front, or `npm run bench -- --front` did. */
  readonly front: string;
  /** The same of the keeper: `npm run bench -- --keeper`. */
  readonly keeper: string;
  readonly main: string;
  /** What `node test/cluster/frameworks.ts --record` wrote. */
  readonly frameworks: string;
  /** What `npm run measure -- --front` printed. */
  readonly jobs: string;
  /** What `npm run measure -- --locust` printed. */
  readonly locust: string;
  /** What `npm run demo` printed into a pipe. */
  readonly demo: string;
};

/** Every figure, by the name of its file in image/figures. */
export function drawFigures({ demo }: Pick<Recorded, 'demo'>): Readonly<Record<string, Drawing>> {
  return { 'last-scrape.svg': drawDemo(demo), 'house.svg': drawHouse() };
}

/** `<!-- front: table 2, 4 columns -->`: the first columns of a recorded table. */
const PART = /(<!-- ([\w-]+): table (\d+), (\d+) columns -->\n)(?:\|.*\n)*/g;

/** A page with the alternative texts of its figures, and the tables that it shows, as they are recorded. */
export function fillPage(
  page: string,
  { bench, front, frameworks, keeper, main, jobs, locust }: Recorded,
  figures: ReturnType<typeof drawFigures>,
): string {
  let filled = page;
  const recorded: Readonly<Record<string, string>> = { bench, front, frameworks, keeper, main, jobs, locust };
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
