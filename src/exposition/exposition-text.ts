// Writes the text format 0.0.4 as Go's client library does: its numbers, escapes and headers. Pure.
// Source: client_golang 1.11 and Go's strconv, as the recordings of locust_exporter show them.

import { type Label, NAME } from './lexer.ts';

/** One line of a family. */
export type Sample = {
  /** With their braces (`formatLabels`); empty: none. */
  readonly labels: string;
  readonly value: number;
};

/** One metric family; without samples not even its HELP is written. */
export type Family = {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge';
  readonly samples: Iterable<Sample>;
};

/** The lines of a family, in the order of its samples; empty without one. */
export function* listLines({ name, help, type, samples }: Family): Generator<string> {
  let isFirst = true;
  for (const { labels, value } of samples) {
    if (isFirst) yield formatHead(name, type, help);
    isFirst = false;
    yield `${name}${labels} ${formatGoFloat(value)}\n`;
  }
}

/** The lines before a family's samples; null: no HELP line. */
export function formatHead(name: string, type: string, help: string | null): string {
  const written = formatName(name);
  return `${help === null ? '' : `# HELP ${written} ${escapeHelp(help)}\n`}# TYPE ${written} ${type}\n`;
}

/** Of a text with many lines: large enough to be written at once, small enough to be garbage soon. */
const PIECE_LENGTH = 64 * 1024;

/** Lines as few texts, each longer than `PIECE_LENGTH` by a line at most; the last may be empty. */
export function* joinLines(parts: Iterable<Iterable<string>>): Generator<string> {
  let text = '';
  for (const lines of parts) {
    for (const line of lines) {
      text += line;
      if (text.length <= PIECE_LENGTH) continue;
      yield text;
      text = '';
    }
  }
  yield text;
}

/** Labels in the order given; Go sorts them by name. */
export function formatLabels(labels: readonly Label[]): string {
  return `{${labels.map(formatLabel).join(',')}}`;
}

export function formatLabel([name, value]: Label): string {
  return `${formatName(name)}="${escapeValue(value)}"`;
}

const PLAIN_NAME = new RegExp(`^${NAME}$`);

/** A name as written: one with other letters in quotes, which older programs do not read. */
function formatName(name: string): string {
  return PLAIN_NAME.test(name) ? name : `"${escapeValue(name)}"`;
}

/** A sample; `labels`: as `formatLabel` writes each, commas between. A quoted name stands in the braces. */
export function formatSample(name: string, labels: string, value: string): string {
  const written = formatName(name);
  if (written === name) return `${name}${labels === '' ? '' : `{${labels}}`} ${value}\n`;
  return `{${written}${labels === '' ? '' : `,${labels}`}} ${value}\n`;
}

/** As Go's `strconv.FormatFloat(value, 'g', -1, 64)`: shortest digits, exponents from 1e+06, below 1e-04. */
export function formatGoFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  if (value === Number.NEGATIVE_INFINITY) return '-Inf';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e-4 && size < 1e6) return String(value);
  const [digits = '', exponent = ''] = value.toExponential().split('e');
  const power = Number(exponent);
  return `${digits}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
}

/** A key that sorts as Go does: byte by byte, which differs from UTF-16 beyond U+FFFF. */
export function makeByteKey(text: string): string {
  return Buffer.from(text).toString('latin1');
}

function escapeHelp(text: string): string {
  return /[\\\n]/.test(text) ? text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n') : text;
}

function escapeValue(text: string): string {
  return /[\\\n"]/.test(text) ? escapeHelp(text).replaceAll('"', '\\"') : text;
}
