// Finds the few wanted samples of an exposition, fed in chunks of any size: one regular expression skips all
// other lines. Knows only where lines begin and end and which name they start with. Pure; holds one line at
// most.
//
// Lines end at line feed only, and a name is matched at a line's start only: request names may contain CR,
// NUL, U+2028 and text that looks like a sample (fixtures/recordings, 13-odd-names).

import { BLANKS, type Label } from './lexer.ts';
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
  /** Lines without all of these texts are not read. Default: none. */
  readonly contains?: readonly string[];
  /** Called with each such sample, null if unreadable; returns false when it needs no more. */
  readonly onSample?: (sample: FoundSample | null) => boolean;
  /** The same for one without `onSample`, with its lines as they are. */
  readonly onLine?: (line: string) => boolean;
  /** Called for each line of the name that is longer than LINE_MAX_BYTES. */
  readonly onTooLong?: () => void;
};

/** Opens a filter for one body; `read` reads a line without its line feed, null if it is not a sample. */
export function openSampleFilter(
  samples: readonly WantedSample[],
  read: (line: string) => FoundSample | null,
): BodyReader<void, void> {
  let wanted = samples.map((sample) => {
    const pattern = writeStart(sample) + (sample.contains ?? []).map(writeText).join('');
    return { sample, pattern, isOf: new RegExp(`^${pattern}`) };
  });
  /** The lines that begin as one of `wanted`; null: that has changed. */
  let lines: RegExp | null = null;

  /** Reads a line, at most once; drops those that need no more. */
  function takeLine(bytes: string): void {
    const asked = wanted.filter(({ isOf }) => isOf.test(bytes));
    const line = Buffer.from(bytes, 'latin1').toString();
    const found = asked.some(({ sample }) => sample.onSample !== undefined) ? read(line) : null;
    const enough = asked.filter(({ sample: { onSample, onLine } }) => !(onSample?.(found) ?? onLine?.(line)));
    if (enough.length === 0) return;
    wanted = wanted.filter((each) => !enough.includes(each));
    lines = null;
  }

  return openLineCutter({
    lineMaxBytes: LINE_MAX_BYTES,
    onLines(block) {
      if (wanted.length === 0) return;
      lines ??= new RegExp(`(?:^|\\n)(?!\\n|$)((?:${wanted.map(({ pattern }) => pattern).join('|')})[^\\n]*)`, 'g');
      for (const [, line] of block.toString('latin1').matchAll(lines)) takeLine(line as string);
    },
    onLongLine(piece, isFirst) {
      if (!isFirst) return;
      const bytes = piece.toString('latin1');
      for (const { sample } of wanted) if (new RegExp(`^${writeStart(sample)}`).test(bytes)) sample.onTooLong?.();
    },
  });
}

/** A pattern of how its lines begin: the name, or a brace and the name in quotes. */
function writeStart({ name, isPrefix = false }: WantedSample): string {
  const text = escapeBytes(name);
  return `${BLANKS}(?:${text}${isPrefix ? '' : '(?![\\w:])'}|\\{${BLANKS}"${text}${isPrefix ? '' : '"'})`;
}

/** A pattern of what stands somewhere in the rest of the line. */
function writeText(text: string): string {
  return `(?=[^\\n]*${escapeBytes(text)})`;
}

/** For lines in which each letter is a byte. */
function escapeBytes(text: string): string {
  return RegExp.escape(Buffer.from(text).toString('latin1'));
}
