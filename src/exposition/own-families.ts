// lastscrape's own families in each format, and where the front puts them: at the end of the source's page,
// in OpenMetrics before its last line. Pure; holds at most that line.

import { openByteBuffer } from '../base/byte-buffer.ts';
import { VERSION } from '../base/version.ts';
import { encodeBytes, encodeDouble, encodeUtf8, encodeVarint } from '../base/wire.ts';
import { formatHead } from './exposition-text.ts';
import { END_LINE, type Format } from './format.ts';
import type { BodyReader } from './line-cutter.ts';
import { openMessageEnds } from './protobuf-messages.ts';

/** The values of the families; times are seconds since 1970. */
export type OwnValues = {
  /** The source answered the read for this scrape. */
  readonly isSourceUp: boolean;
  readonly isMainEnded: boolean;
  /** null while unknown. */
  readonly mainEndSeconds: number | null;
  /** When the served page was read from the source; null if none was. */
  readonly snapshotSeconds: number | null;
  /** How much of main's last time its last page may lack; null: main has not ended, or nothing was kept. */
  readonly missesSeconds: number | null;
  /** Scrapes handed over whole, to scrapers that count. */
  readonly scrapesCount: number;
  /** Absent: the source takes none. */
  readonly pushes?: { readonly takenCount: number; readonly refusedCount: number; readonly droppedCount: number };
  /** Calls for a snapshot that were answered with 200; absent: no hook makes them. */
  readonly hookCallsCount?: number;
};

/** `read`: null leaves the family out. */
type Family = readonly [help: string, read: (values: OwnValues) => number | null, version?: string];

/** By name, a counter ends with `_total`; a new one is a row here, and one in docs/front.md. */
const FAMILIES: Readonly<Record<string, Family>> = {
  lastscrape_source_up: [
    'Whether the source answered the read for this scrape.',
    (values) => Number(values.isSourceUp),
  ],
  lastscrape_main_ended: ['Whether main has ended.', ({ isMainEnded }) => Number(isMainEnded)],
  lastscrape_main_end_timestamp_seconds: [
    'When main was first seen to have ended, in seconds since 1970.',
    ({ mainEndSeconds }) => mainEndSeconds,
  ],
  lastscrape_snapshot_timestamp_seconds: [
    'When what is served here was read from the source, in seconds since 1970.',
    ({ snapshotSeconds }) => snapshotSeconds,
  ],
  lastscrape_may_miss_seconds: [
    "For how long before main's end changes may be missing from its last page; 0: none is.",
    ({ missesSeconds }) => missesSeconds,
  ],
  lastscrape_scrapes_total: ['Scrapes through the front that were handed over whole.', (values) => values.scrapesCount],
  lastscrape_pushes_total: ['Pushes that were answered with 200.', ({ pushes }) => pushes?.takenCount ?? null],
  lastscrape_pushes_refused_total: ['Pushes that got an error.', ({ pushes }) => pushes?.refusedCount ?? null],
  lastscrape_pushed_families_dropped_total: [
    'Pushed families that were deleted or replaced, and dropped before every scraper had them.',
    ({ pushes }) => pushes?.droppedCount ?? null,
  ],
  lastscrape_hook_calls_total: ['Calls of the hook that got 200.', ({ hookCallsCount }) => hookCallsCount ?? null],
  lastscrape_build_info: ['The version of lastscrape; always 1.', () => 1, VERSION],
};

/** How all the names begin: a body without this text has none of them. */
export const OWN_PREFIX = 'lastscrape_';

/** Our families in that format, without those that the source has itself. @param families of the source */
export function formatOwnFamilies(values: OwnValues, families: ReadonlySet<string>, format: Format = 'text'): Buffer {
  const texts = Object.entries(FAMILIES).map(([name, [help, read, version]]) => {
    const isCounter = name.endsWith('_total');
    // OpenMetrics names a counter without the suffix of its sample.
    const announced = format === 'openMetrics' ? name.replace(/_total$/, '') : name;
    const value = families.has(announced) ? null : read(values);
    if (value === null) return '';
    if (format === 'protobuf') return encodeFamily(name, help, isCounter, value, version);
    const labels = version === undefined ? '' : `{version="${version}"}`;
    const type = isCounter ? 'counter' : 'gauge';
    return `${formatHead(announced, type, help)}${name}${labels} ${value}\n`;
  });
  return Buffer.from(texts.join(''), format === 'protobuf' ? 'latin1' : 'utf8');
}

/** A message of `MetricFamily` behind its length; fields and types are those of metrics.proto. */
function encodeFamily(name: string, help: string, isCounter: boolean, value: number, version?: string): string {
  const labels = version === undefined ? '' : encodeField(1, encodeText(1, 'version') + encodeText(2, version));
  const double = encodeVarint((1 << 3) | 1) + encodeDouble(value);
  const type = encodeVarint(3 << 3) + encodeVarint(isCounter ? 0 : 1);
  const metric = encodeField(4, labels + encodeField(isCounter ? 3 : 2, double));
  return encodeBytes(encodeText(1, name) + encodeText(2, help) + type + metric);
}

function encodeText(field: number, text: string): string {
  return encodeField(field, encodeUtf8(text));
}

function encodeField(field: number, bytes: string): string {
  return encodeVarint((field << 3) | 2) + encodeBytes(bytes);
}

const LINE_FEED = 0x0a;

/** Passes a page on but for `rest`, the line that ends its format; `isWhole`: families may follow. */
export function openPageEnd(format: Format): BodyReader<readonly Uint8Array[], { isWhole: boolean; rest: Uint8Array }> {
  const held = openByteBuffer();
  const messages = format === 'protobuf' ? openMessageEnds() : null;
  /** The byte before what is held. */
  let before = LINE_FEED;
  let isEmpty = true;

  return {
    write(chunk) {
      messages?.write(chunk);
      isEmpty &&= chunk.length === 0;
      if (format !== 'openMetrics') return [chunk];
      const text = held.sizeBytes === 0 ? chunk : Buffer.concat([held.take(), chunk]);
      const keptBytes = findEndLine(text, before);
      const passed = text.subarray(0, text.length - keptBytes);
      held.append(text.subarray(passed.length));
      before = passed.at(-1) ?? before;
      return passed.length === 0 ? [] : [passed];
    },
    end() {
      // Prometheus takes an empty page of any format; with families it must end as its format says.
      const rest = isEmpty && format === 'openMetrics' ? END_LINE : held.take();
      return { isWhole: messages?.end() ?? (format !== 'openMetrics' || rest.length >= END_LINE.length - 1), rest };
    },
  };
}

/** How many of the last bytes may be the line, or its beginning. */
function findEndLine(text: Uint8Array, before: number): number {
  for (let count = Math.min(END_LINE.length, text.length); count > 0; count--) {
    const from = text.length - count;
    const isStart = text.subarray(from).every((byte, index) => byte === END_LINE[index]);
    if (isStart && (from === 0 ? before : text[from - 1]) === LINE_FEED) return count;
  }
  return 0;
}
