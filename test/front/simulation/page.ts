// The pages of a virtual source in each format, and what a scraper reads of one.

import { encodeBytes, encodeDouble, encodeVarint } from '../../../src/base/wire.ts';
import { type Format, TEXT_TYPE } from '../../../src/exposition/format.ts';

/** The value of each series; each family has one, or two that follow each other. */
export type Page = ReadonlyMap<string, number>;

export const TYPES: Readonly<Record<Format, string>> = {
  text: TEXT_TYPE,
  openMetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
  protobuf: 'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited',
};

/** What a scraper of each format asks for; of text, nothing. */
export const ACCEPTS = {
  openMetrics: 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5',
  protobuf: `${TYPES.protobuf};q=0.6,text/plain;version=0.0.4;q=0.3`,
} as const;

/** The last line of OpenMetrics. */
export const END_LINE = '# EOF\n';

const field = (number: number, bytes: string) => encodeVarint(number * 8 + 2) + encodeBytes(bytes);

/** A family, one letter per byte; of `job_b_total{part="1"}` what follows `job_b_total`. */
export function writeFamily(format: Format, series: string, value: number): string {
  const [name = '', label = '', text = ''] = series.split(/[{="}]+/);
  const type = name.endsWith('_total') ? 'counter' : 'gauge';
  const announced = format === 'openMetrics' ? name.replace(/_total$/, '') : name;
  const head = label === 'part' ? '' : `# TYPE ${announced} ${type}\n`;
  if (format !== 'protobuf') return `${head}${series} ${value}\n`;
  const labels = label === '' ? '' : field(1, field(1, label) + field(2, text));
  const number = field(type === 'counter' ? 3 : 2, encodeVarint(9) + encodeDouble(value));
  return encodeBytes(
    field(1, name) + encodeVarint(24) + encodeVarint(Number(type === 'gauge')) + field(4, labels + number),
  );
}

/** What a page shows; null: it is cut, or unreadable. */
export function readPageBytes(format: Format, bytes: Buffer): Page | null {
  if (format === 'protobuf') return readMessages(bytes);
  const lines = bytes.toString().split('\n');
  if (format === 'openMetrics' && (lines.at(-2) !== '# EOF' || lines.indexOf('# EOF') < lines.length - 2)) return null;
  const samples = lines.filter((line) => line !== '' && !line.startsWith('#')).map((line) => line.split(' '));
  return new Map(samples.map(([series = '', value]) => [series, Number(value)]));
}

function readMessages(bytes: Buffer): Page | null {
  const page = new Map<string, number>();
  for (let at = 0; at < bytes.length; ) {
    const [sizeBytes, from] = readVarint(bytes, at);
    at = from + sizeBytes;
    if (at > bytes.length) return null;
    const family = readFields(bytes.subarray(from, at));
    const metric = readFields(family.get(4) as Buffer);
    const label = readFields(metric.get(1) ?? Buffer.alloc(0));
    const value = readFields(metric.get(3) ?? (metric.get(2) as Buffer)).get(1) as Buffer;
    const labels = label.size === 0 ? '' : `{${label.get(1)}="${label.get(2)}"}`;
    page.set(`${family.get(1)}${labels}`, value.readDoubleLE());
  }
  return page;
}

function readVarint(bytes: Buffer, from: number): [value: number, end: number] {
  let value = 0;
  let at = from;
  for (let factor = 1; ; factor *= 0x80) {
    const byte = bytes[at++] as number;
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) return [value, at];
  }
}

/** The last one of each number. */
function readFields(bytes: Buffer): ReadonlyMap<number, Buffer> {
  const fields = new Map<number, Buffer>();
  for (let at = 0; at < bytes.length; ) {
    const [tag, from] = readVarint(bytes, at);
    const [value, end] = tag % 8 === 1 ? [8, from] : readVarint(bytes, from);
    at = tag % 8 === 0 ? end : end + value;
    fields.set(Math.floor(tag / 8), bytes.subarray(end, at));
  }
  return fields;
}

export function showPage(page: Page): string {
  return [...page].map(([name, value]) => `${name}=${value}`).join(' ');
}
