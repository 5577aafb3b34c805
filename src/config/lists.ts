// How the whole text of a variable is read, one value or a list of them, with every problem that it has. Pure.

import type { ParseResult } from '../base/parse.ts';
import { splitOtherwise } from './advice.ts';
import { quote } from './entries.ts';

/** The value, or every problem of the text: each completes "Cannot read NAME: ". */
export type ReadResult<Value> = { readonly value: Value } | { readonly problems: readonly string[] };

/** How a variable of one value is read. `hide`: what of a wrong one may be printed, where that is less than usual. */
export function readValue<Value>(
  parse: (text: string) => ParseResult<Value>,
  hide: (text: string) => string = (text) => text,
): (text: string) => ReadResult<Value> {
  return (text) => {
    const parsed = parse(text);
    return 'value' in parsed ? parsed : { problems: [`it is ${quote(hide(text))}; must be ${parsed.problem}`] };
  };
}

/** Of one list; whoever has more sees the pattern. */
const PROBLEMS_MAX_COUNT = 20;

/** Reads a list that is separated by commas; all its problems are found at once. */
export function readList<Value>(
  text: string,
  parse: (entry: string) => ParseResult<Value>,
): ReadResult<readonly Value[]> {
  return readEntries(
    text.split(',').map((each) => each.trim()),
    parse,
  );
}

/** Reads the entries of a list, without blanks around them; all their problems are found at once. */
export function readEntries<Value>(
  entries: readonly string[],
  parse: (entry: string) => ParseResult<Value>,
): ReadResult<readonly Value[]> {
  const values: Value[] = [];
  const problems: string[] = [];
  for (const [index, entry] of entries.entries()) {
    if (entry === '') {
      problems.push(`entry ${index + 1} of ${entries.length} is empty; must be left out, with its comma`);
      continue;
    }
    const pieces = splitOtherwise(entry, (piece) => 'value' in parse(piece));
    const parsed = parse(entry);
    if (pieces !== null) problems.push(`${quote(entry)} must be separated by commas: ${quote(pieces.join(','))}`);
    else if ('value' in parsed) values.push(parsed.value);
    else problems.push(`${quote(entry)} must be ${parsed.problem}`);
  }
  if (problems.length === 0) return { value: values };
  const moreCount = problems.length - PROBLEMS_MAX_COUNT;
  return moreCount <= 0
    ? { problems }
    : {
        problems: [
          ...problems.slice(0, PROBLEMS_MAX_COUNT),
          `${moreCount} more entries are wrong; must be mended as well`,
        ],
      };
}

/** Reads a list, or `none` for an empty one. */
export function readListOrNone<Value>(
  text: string,
  parse: (entry: string) => ParseResult<Value>,
): ReadResult<readonly Value[]> {
  return text === 'none' ? { value: [] } : readList(text, parse);
}
