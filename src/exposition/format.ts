// The formats that a scraper may ask for, and how an answer's Content-Type names them. Pure.
// (Prometheus documentation, "Exposition formats" and "Content negotiation"; NewContentType in
// model/textparse of prometheus/prometheus.)

/** Text of versions 0.0.4 and 1.0.0, OpenMetrics of 0.0.1 and 1.0.0, delimited messages of `MetricFamily`. */
export type Format = TextFormat | 'protobuf';
/** Those of lines. */
export type TextFormat = 'text' | 'openMetrics';

/** What a page of OpenMetrics ends with; the line feed may be missing. */
export const END_LINE: Uint8Array = Buffer.from('# EOF\n');

/** What every scraper takes. */
export const TEXT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** What a page is, and how its source names that. */
export type PageType = { readonly format: Format; readonly contentType: string };

/** Of pages that no program typed. */
export const TEXT_PAGE: PageType = { format: 'text', contentType: TEXT_TYPE };

/** Each parameter must have one of these values; '' allows it to be absent. */
type Row = {
  readonly media: string;
  readonly format: Format;
  readonly wanted: Readonly<Record<string, readonly string[]>>;
};

const ROWS: readonly Row[] = [
  { media: 'text/plain', format: 'text', wanted: { version: ['', '0.0.4', '1.0.0'] } },
  { media: 'application/openmetrics-text', format: 'openMetrics', wanted: { version: ['', '0.0.1', '1.0.0'] } },
  {
    media: 'application/vnd.google.protobuf',
    format: 'protobuf',
    wanted: { proto: ['io.prometheus.client.metricfamily'], encoding: ['delimited'] },
  },
];

/** The type of a page; text without a Content-Type. Null: another. */
export function readPageType(contentType: string): PageType | null {
  // What else a header may hold cannot be passed on.
  const format = /^[\t -~]*$/.test(contentType) ? readFormat(contentType) : null;
  return format === null ? null : { format, contentType: contentType.trim() === '' ? TEXT_TYPE : contentType };
}

function readFormat(contentType: string): Format | null {
  const [media = '', ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase());
  if (media === '') return 'text';
  const row = ROWS.find((each) => each.media === media);
  if (row === undefined) return null;
  const values = new Map(parameters.map(readParameter));
  const isWanted = Object.entries(row.wanted).every(([name, texts]) => texts.includes(values.get(name) ?? ''));
  return isWanted ? row.format : null;
}

function readParameter(parameter: string): readonly [name: string, value: string] {
  const [name = '', value = ''] = parameter.split(/=(.*)/s);
  return [name.trim(), value.trim().replace(/^"(.*)"$/, '$1')];
}
