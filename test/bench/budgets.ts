// What was promised and what was measured, as tables of Markdown.

/** One promise and what was measured. `isJudged`: the bench fails when it is exceeded by more than 25 %. */
export type Budget = {
  readonly name: string;
  readonly most: number;
  /** `undefined`: not measurable here. */
  readonly measured: number | undefined;
  readonly digits: number;
  readonly isJudged: boolean;
};

export const RATIO_SLACK = 1.25;

/** A budget that a busy machine moves little. */
export function ratio(name: string, most: number, own: number, other: number): Budget {
  return { name, most, measured: own / other, digits: 2, isJudged: true };
}

export function writeBudgetTable(heading: string, budgets: readonly Budget[]): string {
  return [
    `### ${heading}`,
    writeTable(
      ['budget', 'at most', 'measured', 'met'],
      budgets.map(({ name, most, measured, digits }) => [
        name,
        String(most),
        measured === undefined ? 'not here' : measured.toFixed(digits),
        measured === undefined ? '–' : measured <= most ? 'yes' : '**no**',
      ]),
    ),
  ].join('\n\n');
}

/** A table; numbers stand right, names left. */
export function writeTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), `|${head.map((_, index) => (index === 0 ? '---' : '---:')).join('|')}|`, ...rows.map(line)].join(
    '\n',
  );
}

/** 50 KB, 3 MB. */
export function nameBytes(bytes: number): string {
  return bytes >= 1e6 ? `${bytes / 1e6} MB` : `${bytes / 1e3} KB`;
}
