// Lists the families of an exposition that have samples, and removes families from one.
// Looks only at the names of lines, readable or not. Pure; holds one line at most.
//
// A family is what `# TYPE name` announces: `name_bucket`, `name_sum` and `name_count` belong to the
// histogram or summary `name` (Prometheus documentation, "Exposition formats"), `name_created` too; in
// OpenMetrics `name_total` to the counter `name`. Any other sample belongs to the family of the same name.

import type { Format, TextFormat } from './format.ts';
import { ANY_LINE, BLANKS, header, isBegun, NAME, NAME_IN_BRACES, QUOTED_LINE, stripQuotes } from './lexer.ts';
import { type BodyFilter, type BodyReader, openLineCutter } from './line-cutter.ts';
import { openMessageFilter, openMessageScan } from './protobuf-messages.ts';
import { READABLE_LINE_MAX_BYTES } from './readable.ts';

export type FilterOptions = {
  /** Whether blank lines, and comments that are neither HELP nor TYPE, are kept. Default: true. */
  readonly keepsOther?: boolean;
  /** Default: `text`. The `# EOF` of OpenMetrics is left out. */
  readonly format?: Format;
};

/** The types of text 0.0.4. */
export type FamilyType = 'counter' | 'gauge' | 'histogram' | 'summary' | 'untyped';

/** What the samples of a histogram or summary have behind its name. */
export const POINT_SUFFIXES: Partial<Record<FamilyType, readonly string[]>> = {
  histogram: ['_bucket', '_sum', '_count'],
  summary: ['_sum', '_count'],
};

const SUFFIX = /_(?:bucket|count|created|gcount|gsum|info|sum|total)$/;
const POINTS = ['_bucket', '_sum', '_count', '_created'];
/** By type; those of OpenMetrics by its specification, "Suffixes". */
const SUFFIXES: Readonly<Record<TextFormat, Readonly<Record<string, readonly string[]>>>> = {
  text: { histogram: POINTS, summary: POINTS },
  openMetrics: {
    counter: ['_total', '_created'],
    gaugehistogram: ['_bucket', '_gsum', '_gcount'],
    histogram: POINTS,
    info: ['_info'],
    summary: POINTS,
  },
};

/** A header, consecutive samples of one name, or any other line and the blank ones after it. */
const RUN = new RegExp(
  [
    header('HELP|UNIT'),
    `${BLANKS}(${NAME})(?![\\w:])${QUOTED_LINE}(?:${BLANKS}\\4(?![\\w:])${QUOTED_LINE})*`,
    `${BLANKS}${NAME_IN_BRACES}${QUOTED_LINE}`,
    // Its quotes are not closed.
    `${BLANKS}(${NAME})(?![\\w:])${ANY_LINE}`,
    `${ANY_LINE}(?:${BLANKS}\\r?\\n)*`,
  ].join('|'),
  'y',
);

/** Lines that follow each other: samples of a family, or its HELP or TYPE; null: comments and blank lines. */
type Part = { readonly isSamples: boolean; readonly family: string | null };

/** Opens the scan of one body; its end returns the names of the families that have a sample. */
export function openFamilyScan(format: Format = 'text'): BodyReader<unknown, ReadonlySet<string>> {
  if (format === 'protobuf') return openMessageScan();
  const families = new Set<string>();
  const walk = openWalk(format, ({ isSamples, family }) => {
    if (isSamples && family !== null) families.add(family);
  });
  return {
    write: walk.write,
    end() {
      walk.end();
      return families;
    },
  };
}

/** Opens the filter of one body: returns it without HELP, TYPE and samples of families that are not kept. */
export function openFamilyFilter(
  isKept: (family: string, isSamples: boolean) => boolean,
  { keepsOther = true, format = 'text' }: FilterOptions = {},
): BodyFilter {
  if (format === 'protobuf') return openMessageFilter((family) => isKept(family, true));
  let kept: { block: Buffer; from: number; to: number }[] = [];
  const walk = openWalk(format, ({ family, isSamples }, block, from, to) => {
    if (family === null ? !keepsOther : !isKept(family, isSamples)) return;
    if (family === null && format === 'openMetrics' && block.subarray(from, to).indexOf('# EOF') === 0) return;
    const last = kept.at(-1);
    if (last?.block === block && last.to === from) last.to = to;
    else kept.push({ block, from, to });
  });
  function take(): readonly Uint8Array[] {
    const pieces = kept.map(({ block, from, to }) => block.subarray(from, to));
    kept = [];
    return pieces;
  }
  return {
    write(chunk) {
      walk.write(chunk);
      return take();
    },
    end() {
      walk.end();
      return take();
    },
  };
}

/** Walks the lines of one body; calls `onPart` with where they are. */
function openWalk(format: TextFormat, onPart: (part: Part, block: Buffer, from: number, to: number) => void) {
  // By family, for those with a TYPE line.
  const types = new Map<string, string>();

  function findFamily(name: string): string {
    if (!SUFFIX.test(name) || types.has(name)) return name;
    const base = name.replace(SUFFIX, '');
    const suffixes = SUFFIXES[format][types.get(base) ?? ''] ?? [];
    return suffixes.includes(name.slice(base.length)) ? base : name;
  }
  function findPart([, isType, announced, type = '', sampled, quoted, open]: RegExpExecArray): Part {
    const name = sampled ?? quoted ?? open;
    if (name !== undefined) return { isSamples: true, family: findFamily(copyName(name)) };
    if (announced === undefined) return { isSamples: false, family: null };
    const family = copyName(announced);
    if (isType !== undefined) types.set(family, copyName(type.trimEnd()));
    return { isSamples: false, family };
  }
  /** Returns how many of the last bytes are the beginning of a line. */
  function walk(block: Buffer, isLast: boolean): number {
    const text = block.toString('latin1');
    for (let at = 0; at < text.length; ) {
      const from = at;
      RUN.lastIndex = from;
      const match = RUN.exec(text) as RegExpExecArray;
      // Read before `onPart`, which may use the same expression.
      at = RUN.lastIndex;
      const isClosed = isLast || (match[2] ?? match[4] ?? match[5]) !== undefined;
      if (!isClosed && isBegun(text, from)) return text.length - from;
      onPart(findPart(match), block, from, at);
    }
    return 0;
  }
  // A longer line is on no page that is kept.
  return openLineCutter({ onLines: walk, lineMaxBytes: READABLE_LINE_MAX_BYTES });
}

/** Decodes UTF-8 into a new string: a slice would keep the whole text in memory. Its escapes stay. */
function copyName(name: string): string {
  return Buffer.from(stripQuotes(name), 'latin1').toString();
}
