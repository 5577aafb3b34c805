// Reads an exposition family by family, with labels, values and types, and writes it as text. Skips lines
// that are neither samples nor HELP nor TYPE; never throws. Pure; holds at most one part of one family.

import { copyText } from '../base/text.ts';
import { formatGoFloat, formatHead, formatLabel, formatSample } from './exposition-text.ts';
import { type FamilyType, POINT_SUFFIXES } from './families.ts';
import type { Format } from './format.ts';
import { type Label, readLines, readNumber, type SampleLine, unescapeHelp } from './lexer.ts';
import { type BodyReader, openLineCutter } from './line-cutter.ts';

export type Sample = {
  /** As in the line: with `_bucket`, `_sum` or `_count` in a histogram or summary. */
  readonly name: string;
  /** In the order of the line. */
  readonly labels: readonly Label[];
  readonly value: number;
  /** Milliseconds since the epoch; null if the line has none. */
  readonly timestampMs: number | null;
};

/**
 * Consecutive lines of one family, at most FAMILY_PART_COUNT. A family comes in several parts, with the same
 * name, type and help, if it is long or if other lines stand in between; also in the middle of a histogram.
 */
export type Family = {
  /** A counter has the name of its samples: OpenMetrics announces it without `_total`. */
  readonly name: string;
  /** `untyped` if no TYPE line came before the end of the part, or one with an unknown type. */
  readonly type: FamilyType;
  /** Unescaped; empty without one. */
  readonly help: string;
  /** False if a part of the same family came before. */
  readonly isFirst: boolean;
  /** At least one. */
  readonly samples: readonly Sample[];
};

/** The most samples of a part: few enough to be still young to V8 when they are no longer needed. */
export const FAMILY_PART_COUNT = 100;
/** The most names to remember: an exposition of 30 MB may have 200,000, which would take 40 MB. */
const HEAD_MAX_COUNT = 10_000;

type Head = { readonly name: string; type: FamilyType; help: string; isDeclared: boolean; isFirst: boolean };

const TYPES: ReadonlySet<string> = new Set<FamilyType>(['counter', 'gauge', 'histogram', 'summary']);

/** Opens the reader of one body; it returns the parts that have ended. */
export function openFamilyReader(format: Format = 'text'): BodyReader<readonly Family[], readonly Family[]> {
  const heads = new Map<string, Head>();
  let head: Head | null = null;
  let samples: Sample[] = [];
  let parts: Family[] = [];

  function endPart(): void {
    if (head !== null) {
      const { name, type, help, isFirst } = head;
      const [sample] = samples as [Sample];
      parts.push({ name: type === 'counter' ? sample.name : name, type, help, isFirst, samples });
      head.isFirst = false;
    }
    samples = [];
  }
  /** The head of the family of exactly this name. */
  function findOwnHead(text: string): Head {
    const found = heads.get(text);
    if (found?.name === text) return found;
    const name = copyText(text);
    const made: Head = { name, type: 'untyped', help: '', isDeclared: false, isFirst: true };
    // A forgotten name matters only if its family comes back later, which the format forbids.
    if (heads.size >= HEAD_MAX_COUNT) heads.clear();
    heads.set(name, made);
    return made;
  }
  function declareType(name: string, type: string): void {
    const declared = findOwnHead(name);
    declared.isDeclared = true;
    declared.type = TYPES.has(type) ? (type as FamilyType) : 'untyped';
    const isShortened = format === 'openMetrics' && declared.type === 'counter';
    for (const suffix of isShortened ? ['_total'] : (POINT_SUFFIXES[declared.type] ?? [])) {
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
    const timestampMs = timestamp === undefined ? null : readTimestamp(timestamp, format);
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
  const cutter = openLineCutter({
    onLines(lines, isLast) {
      const text = lines.toString();
      return Buffer.byteLength(text.slice(readLines(text, { onSample, onHeader }, format, isLast)));
    },
  });

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

/** Cut to the safe integers, which no receiver takes either: hundreds of digits would be infinity. */
function readTimestamp(text: string, format: Format): number {
  const ms = format === 'openMetrics' ? Math.round(Number(text) * 1000) : Number(text);
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(ms, Number.MAX_SAFE_INTEGER));
}

/** The lines of a part in text 0.0.4, without timestamps. */
export function* listFamilyLines(family: Family, change = (labels: readonly Label[]) => labels): Generator<string> {
  const { name, type, help, isFirst, samples } = family;
  // A second TYPE line of a family is refused (expfmt/text_parse.go of prometheus/common).
  if (isFirst) yield formatHead(name, type, help || null);
  // Of names in quotes a Pushgateway wants --push.enable-utf8-names (not in 1.5.1).
  for (const each of samples)
    yield formatSample(each.name, change(each.labels).map(formatLabel).join(), formatGoFloat(each.value));
}
