// What a program pushes: families with their series as text, each with the labels of its group. Reads text
// 0.0.4 and OpenMetrics as Pushgateway reads its text, and writes pages. Pure. (storage/diskmetricstore.go of
// prometheus/pushgateway 1.11; expfmt/text_parse.go and text_create.go of prometheus/common.)

import { copyText, cut, decodeUtf8 } from '../../base/text.ts';
import { formatGoFloat, formatHead, formatLabel, formatSample } from '../../exposition/exposition-text.ts';
import { type FamilyType, POINT_SUFFIXES } from '../../exposition/families.ts';
import type { TextFormat } from '../../exposition/format.ts';
import {
  isTooLarge,
  type Label,
  type LineSink,
  readLines,
  readNumber,
  type SampleLine,
  unescapeHelp,
} from '../../exposition/lexer.ts';
import { openLineCutter } from '../../exposition/line-cutter.ts';
import { READABLE_LINE_MAX_BYTES } from '../../exposition/readable.ts';

/** A family of one push. */
export type PushedFamily = {
  readonly name: string;
  readonly type: FamilyType;
  /** Unescaped; null: no HELP line. */
  readonly help: string | null;
  /** By their labels (`formatSeries`): the value, or all lines of a histogram or summary. */
  readonly series: ReadonlyMap<string, string>;
  /** In letters of the page, about. */
  readonly length: number;
};

/**
 * Of all that is kept, in letters of the page: 71,000 series that are replaced by as many, and scraped
 * meanwhile, fit into 64 MiB; twice as many fill V8's heap of 48 MB.
 */
export const PUSHED_MAX_LENGTH = 6_000_000;

/** A body that was read. `fault`: why it must not be kept; null: it may be. */
export type PushedBody =
  | { readonly kind: 'unreadable'; readonly why: string }
  | {
      readonly kind: 'read';
      readonly families: readonly PushedFamily[];
      readonly fault: string | null;
      /** It has native histograms, of which text has only sum and count. */
      readonly hasNative: boolean;
    };

/** The labels of a group, `job` among them. */
export type Grouping = ReadonlyMap<string, string>;

/** The labels of a series: its own, overridden by those of its group; `instance` always, sorted by name. */
export function formatSeries(labels: readonly Label[], grouping: Grouping): string {
  const all = new Map([['instance', ''], ...labels, ...grouping]);
  const sorted = [...all].sort(([one], [other]) => (one < other ? -1 : 1));
  return sorted.map(formatLabel).join(',');
}

/** A histogram or summary of one label set. */
export type Points = { readonly rows: Map<number, number>; sum: number; count: number };

type Draft = {
  /** As announced; the page has it with `suffix`, as the samples have. */
  readonly name: string;
  type: FamilyType | null;
  suffix: string;
  help: string | null;
  readonly series: Map<string, string | Points>;
};

/** Of a name, a number and what stands between. */
const SERIES_LENGTH = 40;
/** What a family holds besides its series and its help takes as much memory as this many letters. */
export const FAMILY_LENGTH = 200;

/** Collects the families of one body. */
export function openPushedFamilies(grouping: Grouping) {
  const drafts = new Map<string, Draft>();
  let why: string | null = null;
  let fault: string | null = null;
  let length = 0;
  const count = (letters: number): boolean => {
    length += letters;
    if (length > PUSHED_MAX_LENGTH) why ??= `more than ${PUSHED_MAX_LENGTH} letters of series`;
    return why === null;
  };
  const seriesOf = (labels: readonly Label[]) => {
    if (new Map(labels).size < labels.length) why ??= 'a label twice in one series';
    if (labels.some(([name]) => name === '__name__')) why ??= 'a label "__name__"';
    if (labels.some(([name]) => /^(?:__|$)/.test(name))) fault ??= 'a label name that begins with "__", or is empty';
    return formatSeries(labels, grouping);
  };
  return {
    isRefused: () => why !== null,
    refuse(reason: string): void {
      why ??= reason;
    },
    /** The body can be read, but must not be kept. */
    reject(reason: string): void {
      fault ??= reason;
      count(SERIES_LENGTH);
    },
    find: (name: string) => drafts.get(name),
    add(name: string, type: FamilyType | null = null): Draft {
      const draft: Draft = { name: copyText(name), type, suffix: '', help: null, series: new Map() };
      if (count(FAMILY_LENGTH)) drafts.set(draft.name, draft);
      return draft;
    },
    addValue({ name, series }: Draft, labels: readonly Label[], value: number): void {
      const key = seriesOf(labels);
      if (series.has(key)) fault ??= `${name}{${key}} was collected before with the same name and label values`;
      if (count(key.length + SERIES_LENGTH)) series.set(key, formatGoFloat(value));
    },
    findPoints({ type, series }: Draft, labels: readonly Label[]): Points {
      if (type === 'summary' && (grouping.has('quantile') || labels.some(([label]) => label === 'quantile')))
        fault ??= 'a summary with a label "quantile"';
      const key = seriesOf(labels);
      const points = (series.get(key) as Points | undefined) ?? { rows: new Map(), sum: 0, count: 0 };
      if (count(key.length + SERIES_LENGTH)) series.set(key, points);
      return points;
    },
    /** Of a bound that comes twice Prometheus takes the first. */
    addRow({ rows }: Points, at: number, value: number): void {
      if (!rows.has(at) && count(SERIES_LENGTH)) rows.set(at, value);
    },
    end(hasNative = false): PushedBody {
      if (why !== null) return { kind: 'unreadable', why };
      const families = [...drafts.values()].filter(({ series }) => series.size > 0).map(makeFamily);
      return { kind: 'read', families, fault, hasNative };
    },
  };
}

function makeFamily({ name, suffix, type, help, series }: Draft): PushedFamily {
  const written = name + suffix;
  let length = FAMILY_LENGTH + (help?.length ?? 0);
  // In place: a family may have 50,000 series.
  for (const [key, value] of series) {
    const text = typeof value === 'string' ? value : formatPoints(written, type, key, value);
    series.set(key, text);
    length += key.length + text.length + SERIES_LENGTH;
  }
  return { name: written, type: type as FamilyType, help, series: series as ReadonlyMap<string, string>, length };
}

function formatPoints(name: string, type: FamilyType | null, key: string, { rows, sum, count }: Points): string {
  const isHistogram = type === 'histogram';
  const [row, bound] = isHistogram ? [`${name}_bucket`, 'le'] : [name, 'quantile'];
  if (isHistogram && !rows.has(Number.POSITIVE_INFINITY)) rows.set(Number.POSITIVE_INFINITY, count);
  // Prometheus refuses a page on which a label comes twice, as Pushgateway's does where the group has "le".
  const written = isHistogram && /(?:^|,)le="/.test(key) ? [] : [...rows];
  const format = (to: string, labels: string, value: number) => formatSample(to, labels, formatGoFloat(value));
  const lines = written.map(([at, value]) => format(row, `${key},${bound}="${formatGoFloat(at)}"`, value));
  return `${lines.join('')}${format(`${name}_sum`, key, sum)}${format(`${name}_count`, key, count)}`;
}

const SAME_TYPES = { gauge: ['gauge'], histogram: ['histogram'], summary: ['summary'], untyped: ['untyped'] } as const;
/** How the page writes a type, and the suffix that its samples add to the family's name. */
const TYPES: Readonly<Record<TextFormat, Readonly<Record<string, readonly [FamilyType, string?]>>>> = {
  text: { ...SAME_TYPES, counter: ['counter'], gaugehistogram: ['histogram'] },
  openMetrics: {
    ...SAME_TYPES,
    counter: ['counter', '_total'],
    gaugehistogram: ['histogram'],
    info: ['gauge', '_info'],
    stateset: ['gauge'],
    unknown: ['untyped'],
  },
};

const SUFFIXED = /^(.+)(_(?:bucket|count|info|sum|total))$/s;

type Families = ReturnType<typeof openPushedFamilies>;

function openLineSink(families: Families, format: TextFormat): LineSink {
  function findFamily(name: string): Draft {
    const own = families.find(name);
    if (own !== undefined) return own;
    const [, base = '', suffix = ''] = SUFFIXED.exec(name) ?? [];
    const parent = families.find(base);
    const isOf = parent?.type && (parent.suffix === suffix || POINT_SUFFIXES[parent.type]?.includes(suffix));
    return isOf ? parent : families.add(name);
  }
  function addPoint(family: Draft, { name, labels }: SampleLine, value: number): void {
    const bound = family.type === 'histogram' ? 'le' : 'quantile';
    const rest = labels.filter(([label]) => label !== bound);
    const points = families.findPoints(family, rest);
    const text = labels.findLast(([label]) => label === bound)?.[1];
    const suffix = name.slice(family.name.length);
    if (suffix === '_sum') points.sum = value;
    else if (suffix === '_count') points.count = value;
    // Pushgateway leaves a sample without a bound out too, and takes the rest of the push.
    else if (text !== undefined && !/^nan$/i.test(text)) {
      const at = readNumber(text);
      if (Number.isNaN(at)) families.refuse(`expected a number as value of the label ${bound} of ${name}`);
      families.addRow(points, at, value);
    }
  }

  return {
    onHeader(kind, name, text) {
      if (text.trim() === '') return;
      const family = findFamily(name);
      if (kind === 'help') {
        if (family.help !== null) families.refuse(`second HELP line for ${name}`);
        family.help = copyText(unescapeHelp(text));
        return;
      }
      if (family.type !== null) return families.refuse(`second TYPE line for ${name}, or TYPE after samples`);
      const named = text.trimEnd().toLowerCase().replace('_', '');
      const written = Object.hasOwn(TYPES[format], named) ? TYPES[format][named] : undefined;
      if (written === undefined) families.refuse(`unknown metric type ${JSON.stringify(text)}`);
      const [type, suffix = ''] = written ?? ['untyped'];
      family.type = type;
      // Some programs announce a counter with the suffix.
      family.suffix = name.endsWith(suffix) ? '' : suffix;
    },
    onSample(sample) {
      const family = findFamily(sample.name);
      family.type ??= 'untyped';
      if (sample.name === family.name) family.suffix = '';
      if (sample.timestamp !== undefined) families.reject('pushed metrics must not have timestamps');
      const value = readNumber(sample.value);
      if (isTooLarge(sample.value)) families.refuse(`expected a number as value of ${sample.name}`);
      if (POINT_SUFFIXES[family.type] === undefined) families.addValue(family, sample.labels, value);
      else addPoint(family, sample, value);
    },
    onOther(line) {
      if (!/^[ \t]*(?:#|\r?\n?$)/.test(line))
        families.refuse(`neither a sample nor a comment: ${JSON.stringify(cut(line.trimEnd(), 60))}`);
    },
  };
}

/** More blanks than a script indents its last line by. */
const END_BYTES = 1_000;
const NO_LINE_FEED = 'the body does not end with a line feed, which curl --data cuts off and --data-binary keeps';

/** Reads a body of text 0.0.4 or OpenMetrics that was pushed to a group. */
export function readPushedText(body: Uint8Array, format: TextFormat, grouping: Grouping): PushedBody {
  const families = openPushedFamilies(grouping);
  const sink = openLineSink(families, format);
  const cutter = openLineCutter({
    lineMaxBytes: READABLE_LINE_MAX_BYTES,
    onLongLine: () => families.refuse(`a line of more than ${READABLE_LINE_MAX_BYTES} bytes`),
    onLines(lines, isLast) {
      const text = lines.toString();
      // Pushgateway reads no letter of a comment or a help.
      if (decodeUtf8(lines) === null && /^[ \t]*[^ \t#].*\ufffd/m.test(text)) families.refuse('a line is not UTF-8');
      if (families.isRefused()) return 0;
      return Buffer.byteLength(text.slice(readLines(text, sink, format, isLast)));
    },
  });
  cutter.write(body);
  cutter.end();
  // Half of a number must not pass for one.
  const end = Buffer.from(body.subarray(-END_BYTES)).toString();
  if (!/(?:^|\n)(?:[ \t]*|# EOF)$/.test(end)) families.refuse(NO_LINE_FEED);
  return families.end();
}

/** Writes families as a page of text 0.0.4, sorted by name; those of the same name become one. */
export function* writePushedFamilies(families: Iterable<PushedFamily>): Generator<string> {
  const byName = [...Map.groupBy(families, ({ name }) => name)].sort(([one], [other]) => (one < other ? -1 : 1));
  for (const [name, parts] of byName) {
    const help = parts.find((each) => each.help !== null)?.help ?? null;
    const type = (parts[0] as PushedFamily).type;
    yield formatHead(name, type, help);
    for (const { series } of parts) {
      for (const [key, text] of series) yield text.endsWith('\n') ? text : formatSample(name, key, text);
    }
  }
}
