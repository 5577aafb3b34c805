// Reads Locust's /stats/requests/csv: every row with percentiles, never cached or cut. Pure; never throws.
// Source: StatsCSV of stats.py, written by Python's csv module (Locust 2.8 to 2.47).

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
const RECORD = /([^,"\r\n]*|"[^"]*(?:""[^"]*)*"),([^,"\r\n]*|"[^"]*(?:""[^"]*)*"),([^"\r\n]*)\r?\n/gy;

/** Longer records are rejected; a name has at most 64 KiB. */
const RECORD_MAX_LENGTH = 256 * 1024;
const BLOCK_BYTES = 64 * 1024;

/**
 * Reads the wanted rows, again for each pass over them; null if the text is no CSV of Locust. Ends at an
 * unreadable row, since the body was cut.
 */
export function readLocustCsv(
  bytes: Buffer,
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

function* listRecords(bytes: Buffer): Generator<readonly [method: string, name: string, numbers: string]> {
  let rest = '';
  // Decoded block by block: V8 would free the 2 MB of 10,000 rows late.
  for (let at = 0, end = 0; at < bytes.length; at = end) {
    end = bytes.indexOf('\n', at + BLOCK_BYTES) + 1 || bytes.length;
    const text = rest + bytes.toString('utf8', at, end);
    let readLength = 0;
    for (const [record, method = '', name = '', numbers = ''] of text.matchAll(RECORD)) {
      readLength += record.length;
      yield [unquote(method), unquote(name), numbers];
    }
    // With a line feed in its quotes a record goes on in the next block.
    rest = text.slice(readLength);
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
