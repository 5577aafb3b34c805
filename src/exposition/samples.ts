// The samples of an exposition with their labels, values and types, family by family, for those who send them on.
// A line that is neither a sample nor HELP or TYPE is skipped; never throws. Pure; holds one part of one family at most.

import { copyText } from '../base/text.ts';
import { type Label, readLines, readNumber, type SampleLine, unescapeHelp } from './lexer.ts';
import { openLineCutter } from './line-cutter.ts';

export type FamilyType = 'counter' | 'gauge' | 'histogram' | 'summary' | 'untyped';

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
  function onSample({ name, labels, value, timestamp }: SampleLine): void {
    const found = heads.get(name) ?? findOwnHead(name);
    if (found !== head || samples.length === FAMILY_PART_COUNT) {
      endPart();
      head = found;
    }
    const timestampMs = timestamp === undefined ? null : readTimestamp(timestamp);
    samples.push({ name, labels, value: readNumber(value), timestampMs });
  }
  function onHeader(kind: 'type' | 'help', name: string, text: string): void {
    if (kind === 'type') declareType(name, text.trimEnd());
    else findOwnHead(name).help = copyText(unescapeHelp(text));
  }
  function takeParts(): readonly Family[] {
    const taken = parts;
    parts = [];
    return taken;
  }
  const cutter = openLineCutter({ onLines: (lines) => readLines(lines.toString(), { onSample, onHeader }) });

  return {
    write(chunk) {
      cutter.write(chunk);
      return takeParts();
    },
    end() {
      cutter.end();
      endPart();
      return takeParts();
    },
  };
}

/** A longer one is the last that a number can tell, which no receiver takes: hundreds of digits would be infinity. */
function readTimestamp(text: string): number {
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number(text), Number.MAX_SAFE_INTEGER));
}
