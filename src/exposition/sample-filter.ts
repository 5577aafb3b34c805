// Finds the few wanted samples of an exposition, fed in chunks of any size, and only scans the bytes of all
// other lines. Knows only where lines begin and end and which name they start with. Pure; holds one line at
// most.
//
// Lines end at line feed only, and a name is matched at a line's start only: request names may contain CR,
// NUL, U+2028 and text that looks like a sample (fixtures/recordings, 13-odd-names).

import { type Label, readBracedName } from './lexer.ts';
import { type BodyReader, openLineCutter } from './line-cutter.ts';

/** Longer lines are skipped: an odd error text must not cost memory. */
export const LINE_MAX_BYTES = 64 * 1024;

/** A sample line that was read. */
export type FoundSample = { readonly labels: readonly Label[]; readonly value: number };

/** Samples to find. */
export type WantedSample = {
  /** The metric's name, or with `isPrefix` how it begins. */
  readonly name: string;
  readonly isPrefix?: boolean;
  /** Lines without all of these texts, compared byte by byte, are not read. Default: none. */
  readonly contains?: readonly string[];
  /** Called with each such sample, null if unreadable; returns false when it needs no more. */
  readonly onSample?: (sample: FoundSample | null) => boolean;
  /** The same for one without `onSample`, with its lines as they are. */
  readonly onLine?: (line: string) => boolean;
  /** Called for each line of the name that is longer than LINE_MAX_BYTES. */
  readonly onTooLong?: () => void;
};

const LINE_FEED = 0x0a;
const OPENING_BRACE = 0x7b;

/** Everything wanted of one name. */
type Pattern = {
  readonly text: string;
  readonly name: Buffer;
  /** A line feed and the name: the text to search for. */
  readonly start: Buffer;
  /** How it begins. Node finds up to six bytes five times as fast as more. */
  readonly stem: string;
  readonly isPrefix: boolean;
  wanted: readonly { readonly sample: WantedSample; readonly contains: readonly Buffer[] }[];
};

/** Opens a filter for one body; `read` reads a line without its line feed, null if it is not a sample. */
export function openSampleFilter(
  wanted: readonly WantedSample[],
  read: (line: string) => FoundSample | null,
): BodyReader<void, void> {
  const patterns = groupByName(wanted);
  // Most pages have none of them, and each search is a pass over all of a page.
  const stems = Map.groupBy(patterns, ({ stem }) => stem);

  /** Reads a line of the name, at most once; drops those that need no more. */
  function takeLine(line: Buffer, pattern: Pattern): void {
    const asked = pattern.wanted.filter(({ contains }) => includesAll(line, contains));
    if (asked.length === 0) return;
    const text = line.toString();
    const found = asked.some(({ sample }) => sample.onSample !== undefined) ? read(text) : null;
    const enough = asked.filter(({ sample: { onSample, onLine } }) => !(onSample?.(found) ?? onLine?.(text)));
    if (enough.length > 0) pattern.wanted = pattern.wanted.filter((each) => !enough.includes(each));
  }
  /** Searches a block after its first line natively, so that other lines cost no step here. */
  function findWithin(block: Buffer, pattern: Pattern): void {
    const { start, isPrefix } = pattern;
    for (let at = 0; pattern.wanted.length > 0; at += start.length) {
      at = block.indexOf(start, at);
      if (at === -1) return;
      if (isPrefix || !isNameByte(block[at + start.length])) {
        takeLine(block.subarray(at + 1, findLineEnd(block, at + 1)), pattern);
      }
    }
  }
  function findFirst(line: Buffer): void {
    for (const pattern of findNamed(line)) takeLine(line, pattern);
  }
  /** Those whose name the line begins with, or has in its braces. */
  function findNamed(line: Buffer): readonly Pattern[] {
    const at = skipBlanks(line, 0);
    if (line[at] !== OPENING_BRACE) return patterns.filter((each) => hasName(line, at, each));
    const name = readBracedName(line.toString());
    return patterns.filter((each) => name === each.text || (each.isPrefix && name?.startsWith(each.text)));
  }
  /** Goes line by line if one begins with blanks or a brace, which few programs write. */
  function findEach(block: Buffer): void {
    for (let at = 0; at < block.length; ) {
      const end = findLineEnd(block, at);
      findFirst(block.subarray(at, end));
      at = end + 1;
    }
  }

  return openLineCutter({
    lineMaxBytes: LINE_MAX_BYTES,
    onLines(block) {
      if (ODD_STARTS.some((start) => block.includes(start))) findEach(block);
      else {
        findFirst(block.subarray(0, findLineEnd(block, 0)));
        for (const [stem, all] of stems) if (block.includes(stem)) for (const each of all) findWithin(block, each);
      }
      return 0;
    },
    onLongLine(start) {
      for (const { wanted: each } of findNamed(start)) for (const { sample } of each) sample.onTooLong?.();
    },
  });
}

const ODD_STARTS = ['\n ', '\n\t', '\n{'].map((text) => Buffer.from(text));

function groupByName(wanted: readonly WantedSample[]): readonly Pattern[] {
  const patterns = new Map<string, Pattern>();
  for (const sample of wanted) {
    const { name, isPrefix = false, contains = [] } = sample;
    const key = `${isPrefix} ${name}`;
    const each = { sample, contains: contains.map((text) => Buffer.from(text)) };
    const known = patterns.get(key);
    if (known !== undefined) known.wanted = [...known.wanted, each];
    else
      patterns.set(key, {
        text: name,
        name: Buffer.from(name),
        start: Buffer.from(`\n${name}`),
        stem: `\n${name.slice(0, 5)}`,
        isPrefix,
        wanted: [each],
      });
  }
  return [...patterns.values()];
}

function includesAll(line: Buffer, texts: readonly Buffer[]): boolean {
  for (const text of texts) if (!line.includes(text)) return false;
  return true;
}

/** Whether the name stands at `at`. */
function hasName(line: Buffer, at: number, { name, isPrefix }: Pattern): boolean {
  const end = at + name.length;
  if (end > line.length || name.compare(line, at, end) !== 0) return false;
  return isPrefix || !isNameByte(line[end]);
}

function findLineEnd(block: Buffer, from: number): number {
  const end = block.indexOf(LINE_FEED, from);
  return end === -1 ? block.length : end;
}

function skipBlanks(line: Buffer, from: number): number {
  let at = from;
  while (line[at] === 0x20 || line[at] === 0x09) at++;
  return at;
}

/** `[a-zA-Z0-9_:]`: the name goes on. */
function isNameByte(byte: number | undefined): boolean {
  if (byte === undefined || byte >= OPENING_BRACE) return false;
  return byte >= 0x61 || (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x30 && byte <= 0x3a) || byte === 0x5f;
}
