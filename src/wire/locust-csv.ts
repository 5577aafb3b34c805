// Reads what Locust answers to /stats/requests/csv: every row with its percentiles, never cached and never cut. Pure; never throws.
// Source: StatsCSV of stats.py, written by Python's csv module (Locust 2.8 to 2.47).

import type { LocustRow, RowField } from './locust-stats.ts';

/** The columns that have a family. */
const COLUMNS: ReadonlyMap<string, RowField> = new Map([
  ['Request Count', 'num_requests'],
  ['Failure Count', 'num_failures'],
  ['Median Response Time', 'median_response_time'],
  ['Average Response Time', 'avg_response_time'],
  ['Min Response Time', 'min_response_time'],
  ['Max Response Time', 'max_response_time'],
  ['Average Content Size', 'avg_content_length'],
]);

/** Type and name, which may be quoted, and the numbers, which never are. */
const RECORD = /([^,"\r\n]*|"[^"]*(?:""[^"]*)*"),([^,"\r\n]*|"[^"]*(?:""[^"]*)*"),([^"\r\n]*)\r?\n/y;

/**
 * Reads the rows that `isWanted`; null where it is another text. What comes behind a row that cannot be read is left out: such a
 * body was cut.
 */
export function readLocustCsv(
  text: string,
  isWanted: (method: string, name: string) => boolean,
): readonly LocustRow[] | null {
  RECORD.lastIndex = 0;
  const header = RECORD.exec(text);
  if (header === null || header[1] !== 'Type' || header[2] !== 'Name') return null;
  const columns = (header[3] as string).split(',').map((title) => ({
    field: COLUMNS.get(title),
    quantile: readQuantile(title),
  }));
  const rows: LocustRow[] = [];
  for (;;) {
    const record = RECORD.exec(text);
    if (record === null) return rows;
    const [, method, name, numbers] = record as unknown as [string, string, string, string];
    const row = { method: unquote(method), name: unquote(name) };
    if (isWanted(row.method, row.name)) rows.push({ ...row, ...readNumbers(numbers, columns) });
  }
}

type Column = { readonly field: RowField | undefined; readonly quantile: string | null };

function readNumbers(text: string, columns: readonly Column[]): Pick<LocustRow, 'values' | 'percentiles'> {
  const values: Partial<Record<RowField, number>> = {};
  const percentiles = new Map<string, number>();
  for (const [index, cell] of text.split(',').entries()) {
    const { field, quantile } = columns[index] ?? {};
    const value = readNumber(cell);
    // `N/A` without requests.
    if (value === null) continue;
    if (field !== undefined) values[field] = value;
    else if (quantile !== null && quantile !== undefined) percentiles.set(quantile, value);
  }
  return { values, percentiles };
}

/** `99.9%` is the quantile 0.999; null: no percentile. */
function readQuantile(title: string): string | null {
  const [, percent] = /^(\d+(?:\.\d+)?)%$/.exec(title) ?? [];
  return percent === undefined ? null : String(Number(`${percent}e-2`));
}

function readNumber(cell: string): number | null {
  if (/^-?[\d.]+(?:e[+-]?\d+)?$/.test(cell)) return Number(cell);
  return cell === 'nan' ? Number.NaN : null;
}

function unquote(cell: string): string {
  return cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell;
}
