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

/** Opens a filter for one body; `read` reads a line without its line feed, null if it is not a sample. */
export function openSampleFilter(
  wanted: readonly WantedSample[],
  read: (line: string) => FoundSample | null,
): BodyReader<void, void> {
  // Each letter is a byte, as in the lines: only what is read is decoded.
  let asked = wanted.map((sample) => ({ ...sample, contains: (sample.contains ?? []).map(encode) }));
  let starts = findStarts(asked);

  /** Reads a line, at most once, for those whose name it has; drops those that need no more. */
  function takeLine(line: string): void {
    const meant = findNamed(line, asked).filter(({ contains }) => contains.every((text) => line.includes(text)));
    if (meant.length === 0) return;
    const text = decode(line);
    const found = meant.some(({ onSample }) => onSample !== undefined) ? read(text) : null;
    const enough = new Set(meant.filter(({ onSample, onLine }) => !(onSample?.(found) ?? onLine?.(text))));
    if (enough.size === 0) return;
    asked = asked.filter((each) => !enough.has(each));
    starts = findStarts(asked);
  }

  return openLineCutter({
    lineMaxBytes: LINE_MAX_BYTES,
    onLines(block) {
      const text = `\n${block.toString('latin1')}`;
      for (let end = 0; asked.length > 0; ) {
        starts.lastIndex = end;
        const start = starts.exec(text);
        if (start === null) break;
        const lineEnd = text.indexOf('\n', start.index + 1);
        end = lineEnd === -1 ? text.length : lineEnd;
        takeLine(text.slice(start.index + 1, end));
      }
      return 0;
    },
    onLongLine(start) {
      for (const { onTooLong } of findNamed(start.toString('latin1'), asked)) onTooLong?.();
    },
  });
}

/** Finds a line feed and what may be a wanted name: at once, or behind blanks or a brace, as few write it. */
function findStarts(wanted: readonly WantedSample[]): RegExp {
  const names = wanted.map(
    ({ name, isPrefix }) => encode(name).replace(/[^\w ]/g, '\\$&') + (isPrefix ? '' : '(?![\\w:])'),
  );
  return new RegExp(`\\n(?:${['[ \\t{]', ...names].join('|')})`, 'g');
}

/** Those whose name the line begins with, or has in its braces. */
function findNamed<Wanted extends WantedSample>(line: string, wanted: readonly Wanted[]): readonly Wanted[] {
  const start = line.replace(/^[ \t]+/, '');
  const braced = start.startsWith('{') ? readBracedName(decode(start)) : null;
  return wanted.filter(({ name, isPrefix }) => {
    if (braced !== null) return isPrefix ? braced.startsWith(name) : braced === name;
    const own = encode(name);
    return start.startsWith(own) && (isPrefix || !/^[\w:]/.test(start.slice(own.length)));
  });
}

function encode(text: string): string {
  return Buffer.from(text).toString('latin1');
}

function decode(line: string): string {
  return Buffer.from(line, 'latin1').toString();
}
