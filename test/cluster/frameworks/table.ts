// image/figures/frameworks.md: what test/cluster/frameworks.ts has seen, a row for each framework; a new row replaces its old one.

import type { Ending, Framework } from './framework.ts';

export const FIGURE = 'image/figures/frameworks.md';

/** Without lastscrape; by label and hook, held; the same, handed over to the keeper. */
export const VARIANTS = ['none', 'hold', 'keeper'] as const;
export type Variant = (typeof VARIANTS)[number];

/** One task that has ended. */
export type Run = {
  readonly variant: Variant;
  readonly ending: Ending;
  readonly state: string;
  /** From main's last act until the framework said so. */
  readonly seconds: number;
  readonly isStored: boolean;
  readonly goneSeconds?: number;
};

export function fillFigure(page: string, { name, version, states }: Framework, runs: readonly Run[]): string {
  const of = (variant: Variant, ending: Ending) =>
    runs.filter((run) => run.variant === variant && run.ending === ending);
  const stored = VARIANTS.map((variant) => of(variant, 'succeeded').filter(({ isStored }) => isStored).length);
  const right = runs.filter(({ ending, state }) => state === states[ending]).length;
  const base = median(of('none', 'succeeded').map(({ seconds }) => seconds));
  const added = (variant: Variant) => {
    const seconds = of(variant, 'succeeded').map((run) => run.seconds - base);
    return `${median(seconds).toFixed(1)} (${Math.min(...seconds).toFixed(1)}…${Math.max(...seconds).toFixed(1)})`;
  };
  const gone = VARIANTS.map((variant) => of(variant, 'deleted')[0]?.goneSeconds?.toFixed(0) ?? '–');
  const count = of('none', 'succeeded').length;
  const row = [name, version, ...stored.map((each) => `${each}/${count}`), `${right}/${runs.length}`];
  const filled = putRow(page, 1, [...row, added('hold'), added('keeper')]);
  return putRow(filled, 2, [name, base.toFixed(1), ...gone]);
}

/** The runs whose task came to another state, or whose final number is not stored though lastscrape was there. */
export function listWrong({ states }: Framework, runs: readonly Run[]): readonly Run[] {
  return runs.filter(
    ({ variant, ending, state, isStored }) =>
      state !== states[ending] || (ending === 'succeeded' && variant !== 'none' && !isStored),
  );
}

/** Puts a row into a table of the page, in the place of the one that begins alike. */
export function putRow(page: string, table: number, cells: readonly string[]): string {
  const row = `| ${cells.join(' | ')} |`;
  let count = 0;
  return page.replaceAll(/(?:^\|.*\n)+/gm, (text) => {
    count += 1;
    if (count !== table) return text;
    const lines = text.trimEnd().split('\n');
    const index = lines.findIndex((line) => line.startsWith(`| ${cells[0]} |`));
    return `${(index === -1 ? [...lines, row] : lines.with(index, row)).join('\n')}\n`;
  });
}

export function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}
