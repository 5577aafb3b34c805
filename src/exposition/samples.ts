// The samples of an exposition with their labels, values and types, family by family, for those who send them on.
// A line that is neither a sample nor HELP or TYPE is skipped; never throws. Pure; holds one part of one family at most.
//
// Label by label, not letter by letter: the shipped program runs without an optimizing compiler, and regular expressions are native.

import { openLineCutter } from './line-cutter.ts';
import { unescapeValue } from './selector.ts';

export type FamilyType = 'counter' | 'gauge' | 'histogram' | 'summary' | 'untyped';

/** A label, its value without escapes. */
export type Label = readonly [name: string, value: string];

export type Sample = {
  /** As the line has it: with `_bucket`, `_sum` or `_count` where it is one of a histogram or summary. */
  readonly name: string;
  /** In the line's order; of the name that stands in braces as well, none. */
  readonly labels: readonly Label[];
  readonly value: number;
  /** The line's own, in milliseconds since the epoch; null: it has none. */
  readonly timestampMs: number | null;
};

/**
 * Lines of one family that follow each other, at most FAMILY_PART_COUNT of them.
 *
 * A family may come in several parts, each with the same name, type and help: where it is long, where other lines stand in between,
 * and within the lines of one histogram as well.
 */
export type Family = {
  readonly name: string;
  /** `untyped` where no TYPE line came before the part's end, or one with a type that the text format does not have. */
  readonly type: FamilyType;
  /** Without escapes; empty: it has none. */
  readonly help: string;
  /** False where a part of the same family came before. */
  readonly isFirst: boolean;
  /** At least one. */
  readonly samples: readonly Sample[];
};

export type FamilyReader = {
  /** Takes the next piece of the body, of any size, and returns the parts that have ended. */
  readonly write: (chunk: Uint8Array) => readonly Family[];
  /** The body has ended: what is left. */
  readonly end: () => readonly Family[];
};

/** The most samples of a part: few enough that V8 still counts them as young when they are no longer needed. */
export const FAMILY_PART_COUNT = 100;
/** The most names that are remembered: an exposition of 30 MB may have 200,000, which would cost 40 MB. */
const HEAD_MAX_COUNT = 10_000;

type Head = { readonly name: string; type: FamilyType; help: string; isDeclared: boolean; isFirst: boolean };

const TYPES: ReadonlySet<string> = new Set<FamilyType>(['counter', 'gauge', 'histogram', 'summary']);
/** The names of a family's samples beside its own (Prometheus documentation, "Exposition formats"). */
const SUFFIXES: Readonly<Record<FamilyType, readonly string[]>> = {
  counter: [],
  gauge: [],
  histogram: ['_bucket', '_sum', '_count'],
  summary: ['_sum', '_count'],
  untyped: [],
};

// Nothing here may match a text in two ways, lest a long line take for ever. What a line may be is judged in readable.ts.
const NAME = '[a-zA-Z_:][\\w:]*';
const QUOTED = String.raw`"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"`;
const LABELS = `\\{([^"}\\n]*(?:${QUOTED}[^"}\\n]*)*)\\}[ \\t]*`;
const VALUE = '[+-]?[\\w.]+(?:[+-]\\d+)?';
const LINE = new RegExp(
  [
    `[ \\t]*(?:(${NAME})(?:[ \\t]*${LABELS}|[ \\t]+)(${VALUE})(?:[ \\t]+(-?\\d+))?[ \\t]*\\r?\\n`,
    `${LABELS}(${VALUE})(?:[ \\t]+(-?\\d+))?[ \\t]*\\r?\\n`,
    `#[ \\t]+(HELP|TYPE)[ \\t]+(${NAME}|${QUOTED})(?:[ \\t]+([^\\n]*))?\\n`,
    `[^\\n]*\\n)`,
  ].join('|'),
  'y',
);
const LABEL = new RegExp(
  `[ \\t]*(?:(${NAME})|(${QUOTED}))[ \\t]*(?:=[ \\t]*"([^"\\\\\\n]*(?:\\\\[^\\n][^"\\\\\\n]*)*)"[ \\t]*)?(?:,|$)`,
  'y',
);

/** Opens the reader of one body. */
export function openFamilyReader(): FamilyReader {
  /** By the names of their samples. */
  const heads = new Map<string, Head>();
  let head: Head | null = null;
  let samples: Sample[] = [];
  let parts: Family[] = [];

  function endPart(): void {
    if (head !== null) {
      const { name, type, help, isFirst } = head;
      parts.push({ name, type, help, isFirst, samples });
      head.isFirst = false;
    }
    samples = [];
  }
  /** The head of the family that bears this very name. */
  function findOwnHead(text: string): Head {
    const found = heads.get(text);
    if (found?.name === text) return found;
    const name = copyText(text);
    const made: Head = { name, type: 'untyped', help: '', isDeclared: false, isFirst: true };
    // What is forgotten is missed where a family comes back that had ended, which the format rules out.
    if (heads.size >= HEAD_MAX_COUNT) heads.clear();
    heads.set(name, made);
    return made;
  }
  function declareType(name: string, type: string): void {
    const declared = findOwnHead(name);
    declared.isDeclared = true;
    declared.type = TYPES.has(type) ? (type as FamilyType) : 'untyped';
    for (const suffix of SUFFIXES[declared.type]) {
      const sampleName = `${declared.name}${suffix}`;
      const other = heads.get(sampleName);
      if (other === undefined || other.name !== sampleName || !other.isDeclared) heads.set(sampleName, declared);
    }
  }
  function addSample(name: string, labels: readonly Label[], value: number, timestamp: string | undefined): void {
    const found = heads.get(name) ?? findOwnHead(name);
    if (found !== head || samples.length === FAMILY_PART_COUNT) {
      endPart();
      head = found;
    }
    samples.push({ name, labels, value, timestampMs: timestamp === undefined ? null : readTimestamp(timestamp) });
  }
  function readLine(match: RegExpExecArray): void {
    const [, name, labels, value, timestamp, onlyLabels, itsValue, itsTimestamp, keyword, announced, rest] = match;
    if (value !== undefined) {
      const read = labels === undefined ? NO_LABELS : readLabels(labels);
      if (read !== null) addSample(name as string, read, readNumber(value), timestamp);
    } else if (itsValue !== undefined) {
      const [first, ...others] = readLabels(onlyLabels as string) ?? [];
      if (first !== undefined) addSample(first[0], others, readNumber(itsValue), itsTimestamp);
    } else if (announced !== undefined) {
      const family = unquote(announced);
      const text = (rest ?? '').trimEnd();
      if (keyword === 'TYPE') declareType(family, text);
      else findOwnHead(family).help = copyText(unescapeValue(rest ?? ''));
    }
  }
  function readLines(text: string): void {
    for (let at = 0; at < text.length; at = LINE.lastIndex) {
      LINE.lastIndex = at;
      // Its last alternative takes any line.
      readLine(LINE.exec(text) as RegExpExecArray);
    }
  }
  function takeParts(): readonly Family[] {
    const taken = parts;
    parts = [];
    return taken;
  }
  const cutter = openLineCutter((lines) => readLines(lines.toString()));

  return {
    write(chunk) {
      cutter.write(chunk);
      return takeParts();
    },
    end() {
      readLines(`${cutter.takePending().toString()}\n`);
      endPart();
      return takeParts();
    },
  };
}

const NO_LABELS: readonly Label[] = [];

/**
 * What stands between the braces; null where that is not only labels. A name without a value, which is that of the metric, comes as a
 * label with an empty one.
 */
function readLabels(text: string): readonly Label[] | null {
  const labels: Label[] = [];
  let at = 0;
  LABEL.lastIndex = 0;
  for (let match = LABEL.exec(text); match !== null; match = LABEL.exec(text)) {
    const [, name, quoted, value = ''] = match;
    labels.push([name ?? unquote(quoted as string), unescapeValue(value)]);
    at = LABEL.lastIndex;
    if (at === text.length) return labels;
  }
  return text.slice(at).trim() === '' ? labels : null;
}

/** A longer one is the last that a number can tell, which no receiver takes: hundreds of digits would be infinity. */
function readTimestamp(text: string): number {
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number(text), Number.MAX_SAFE_INTEGER));
}

/** A value, or that of `le` or `quantile`, as Prometheus reads it: infinity in any case, and NaN for all that is no number. */
export function readNumber(text: string): number {
  const number = Number(text);
  if (!Number.isNaN(number)) return number;
  const [, sign] = /^([+-]?)inf/i.exec(text) ?? [];
  return sign === undefined ? Number.NaN : sign === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}

function unquote(name: string): string {
  return name.startsWith('"') ? unescapeValue(name.slice(1, -1)) : name;
}

/** A text of its own: a part of a text keeps the whole of it in memory. */
function copyText(text: string): string {
  return Buffer.from(text).toString();
}
