// Reads Locust's /stats/requests/csv: every row with percentiles, never cached or cut. Pure; never throws.
// Source: StatsCSV of stats.py, written by Python's csv module (Locust 2.8 to 2.47).

import { openLineCutter } from '../../exposition/line-cutter.ts';
import type { LocustRow, RowField } from './page.ts';

const COLUMNS: ReadonlyMap<string, RowField> = new Map([
  ['Request Count', 'num_requests'],
  ['Failure Count', 'num_failures'],
  ['Median Response Time', 'median_response_time'],
  ['Average Response Time', 'avg_response_time'],
  ['Min Response Time', 'min_response_time'],
  ['Max Response Time', 'max_response_time'],
  ['Average Content Size', 'avg_content_length'],
]);

/** The page rounds these: no maximum may fall when the CSV is read. */
const ROUNDED: ReadonlySet<string> = new Set<RowField>(['min_response_time', 'max_response_time']);

/** Type and name, quoted or not, and the numbers, never quoted. */
const RECORD = /([^,"\r\n]*|"[^"]*(?:""[^"]*)*"),([^,"\r\n]*|"[^"]*(?:""[^"]*)*"),([^"\r\n]*)\r?\n/y;

/** Longer records are rejected; a name has at most 64 KiB. */
const RECORD_MAX_LENGTH = 256 * 1024;

/**
 * Reads the wanted rows, again for each pass over them; null if the text is no CSV of Locust. Ends at an
 * unreadable row, since the body was cut.
 */
export function readLocustCsv(
  bytes: Uint8Array,
  isWanted: (method: string, name: string) => boolean,
): Iterable<LocustRow> | null {
  const [header] = listRecords(bytes);
  if (header === undefined || header[0] !== 'Type' || header[1] !== 'Name') return null;
  const columns = header[2].split(',').map((title) => COLUMNS.get(title) ?? readQuantile(title));
  return {
    *[Symbol.iterator]() {
      for (const [method, name, numbers] of listRecords(bytes).drop(1)) {
        if (isWanted(method, name)) yield { method, name, numbers: readNumbers(numbers, columns) };
      }
    },
  };
}

function* listRecords(bytes: Uint8Array): Generator<readonly [method: string, name: string, numbers: string]> {
  // Decoded block by block: V8 would free the 2 MB of 10,000 rows late.
  const blocks: Buffer[] = [];
  const cutter = openLineCutter({
    onLines(lines) {
      blocks.push(lines);
      return 0;
    },
  });
  cutter.write(bytes);
  cutter.end();
  let rest = '';
  for (const block of blocks) {
    const text = rest + block.toString();
    let at = 0;
    for (;;) {
      RECORD.lastIndex = at;
      const record = RECORD.exec(text);
      if (record === null) break;
      at = RECORD.lastIndex;
      const [, method, name, numbers] = record as unknown as [string, string, string, string];
      yield [unquote(method), unquote(name), numbers];
    }
    // With a line feed in its quotes a record goes on in the next block.
    rest = text.slice(at);
    if (rest.length > RECORD_MAX_LENGTH) return;
  }
}

function readNumbers(text: string, columns: readonly (string | null)[]): LocustRow['numbers'] {
  const numbers = new Map<string, number>();
  for (const [index, cell] of text.split(',').entries()) {
    const column = columns[index] ?? null;
    const value = readNumber(cell);
    // Half up, as Locust's `proper_round`.
    if (column !== null && value !== null) numbers.set(column, ROUNDED.has(column) ? Math.round(value) : value);
  }
  return numbers;
}

/** `99.9%` is the quantile 0.999; null: not a percentile. */
function readQuantile(title: string): string | null {
  const [, percent] = /^(\d+(?:\.\d+)?)%$/.exec(title) ?? [];
  return percent === undefined ? null : String(Number(`${percent}e-2`));
}

/** null: `N/A`, without requests. */
function readNumber(cell: string): number | null {
  if (/^-?[\d.]+(?:e[+-]?\d+)?$/.test(cell)) return Number(cell);
  return cell === 'nan' ? Number.NaN : null;
}

function unquote(cell: string): string {
  return cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell;
}
