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

/** By the media type alone, as Prometheus tells them. */
const FORMATS: ReadonlyMap<string, Format> = new Map([
  ['text/plain', 'text'],
  ['application/openmetrics-text', 'openMetrics'],
  ['application/vnd.google.protobuf', 'protobuf'],
]);

/**
 * The type of a page. Any other is text: programs that leave the type to their framework send text/html
 * (Flask, Express), which Prometheus 2, vmagent and `fallback_scrape_protocol` read as text.
 */
export function readPageType(contentType: string): PageType {
  const [media = ''] = contentType.toLowerCase().split(';');
  const format = FORMATS.get(media.trim());
  // What else a header may hold cannot be passed on.
  return format === undefined || !/^[\t -~]*$/.test(contentType) ? TEXT_PAGE : { format, contentType };
}
