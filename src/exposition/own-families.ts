// lastscrape's own families in each format, which the front appends to those of the source. Pure.

import { VERSION } from '../base/version.ts';
import { encodeBytes, encodeDouble, encodeUtf8, encodeVarint } from '../base/wire.ts';
import type { Format } from './format.ts';

/** The values of the families; times are seconds since 1970. */
export type OwnValues = {
  /** The source answered the read for this scrape. */
  readonly isSourceUp: boolean;
  readonly isMainEnded: boolean;
  /** null while unknown. */
  readonly mainEndSeconds: number | null;
  /** When the served page was read from the source; null if none was. */
  readonly snapshotSeconds: number | null;
  /** Scrapes handed over whole, to scrapers that count. */
  readonly scrapesCount: number;
};

type Family = {
  readonly name: string;
  readonly type: 'gauge' | 'counter';
  readonly help: string;
  /** null leaves the family out. */
  readonly read: (values: OwnValues) => number | null;
  /** Its one label. Default: none. */
  readonly label?: readonly [name: string, value: string];
};

/** Every family; a new one is a row here, and one in docs/front.md. */
const FAMILIES: readonly Family[] = [
  {
    name: 'lastscrape_source_up',
    type: 'gauge',
    help: 'Whether the source answered the read for this scrape.',
    read: ({ isSourceUp }) => Number(isSourceUp),
  },
  {
    name: 'lastscrape_main_ended',
    type: 'gauge',
    help: 'Whether main has ended.',
    read: ({ isMainEnded }) => Number(isMainEnded),
  },
  {
    name: 'lastscrape_main_end_timestamp_seconds',
    type: 'gauge',
    help: 'When main was first seen to have ended, in seconds since 1970.',
    read: ({ mainEndSeconds }) => mainEndSeconds,
  },
  {
    name: 'lastscrape_snapshot_timestamp_seconds',
    type: 'gauge',
    help: 'When what is served here was read from the source, in seconds since 1970.',
    read: ({ snapshotSeconds }) => snapshotSeconds,
  },
  {
    name: 'lastscrape_scrapes_total',
    type: 'counter',
    help: 'Scrapes through the front that were handed over whole.',
    read: ({ scrapesCount }) => scrapesCount,
  },
  {
    name: 'lastscrape_build_info',
    type: 'gauge',
    help: 'The version of lastscrape; always 1.',
    read: () => 1,
    label: ['version', VERSION],
  },
];

/** How all the names begin: a body without this text has none of them. */
export const OWN_PREFIX = 'lastscrape_';

/** The families in that format, without those that the source has itself. */
export function formatOwnFamilies(
  values: OwnValues,
  sourceFamilies: ReadonlySet<string>,
  format: Format = 'text',
): Buffer {
  const texts = FAMILIES.map((family) => {
    // OpenMetrics names a counter without the suffix of its sample.
    const name = format === 'openMetrics' ? family.name.replace(/_total$/, '') : family.name;
    const value = sourceFamilies.has(name) ? null : family.read(values);
    if (value === null) return '';
    return format === 'protobuf' ? encodeFamily(family, value) : writeFamily(name, family, value);
  });
  return Buffer.from(texts.join(''), format === 'protobuf' ? 'latin1' : 'utf8');
}

function writeFamily(announced: string, { name, type, help, label }: Family, value: number): string {
  const labels = label === undefined ? '' : `{${label[0]}="${label[1]}"}`;
  return `# HELP ${announced} ${help}\n# TYPE ${announced} ${type}\n${name}${labels} ${value}\n`;
}

/** Fields of metrics.proto: the type and the field of the value in `Metric`. */
const MESSAGE_TYPES = { counter: { type: 0, field: 3 }, gauge: { type: 1, field: 2 } } as const;

/** A message of `MetricFamily` behind its length. */
function encodeFamily({ name, type, help, label }: Family, value: number): string {
  const kind = MESSAGE_TYPES[type];
  const labels = label === undefined ? '' : encodeField(1, encodeText(1, label[0]) + encodeText(2, label[1]));
  const metric = labels + encodeField(kind.field, DOUBLE_TAG + encodeDouble(value));
  const typeField = encodeVarint(3 << 3) + encodeVarint(kind.type);
  return encodeBytes(encodeText(1, name) + encodeText(2, help) + typeField + encodeField(4, metric));
}

/** The tag of the first field, a double. */
const DOUBLE_TAG = encodeVarint((1 << 3) | 1);

function encodeText(field: number, text: string): string {
  return encodeField(field, encodeUtf8(text));
}

/** A length-delimited field. */
function encodeField(field: number, bytes: string): string {
  return encodeVarint((field << 3) | 2) + encodeBytes(bytes);
}
