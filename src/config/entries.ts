// How the text of a variable is read, one value or a list, and how problems quote it. Pure. Finds every
// problem at once; a problem completes the sentence "must be …".

import type { Parse, ParseResult } from '../base/parse.ts';
import { cut, formatJson, joinNames, joinQuoted, redactEntry } from '../base/text.ts';
import type { Condition, ConditionContext, ConditionKind } from '../observe/condition-kind.ts';
import type { Target, TargetContext, TargetKind } from '../quit/target-kind.ts';
import { splitOtherwise, suggestCondition, suggestTarget } from './advice.ts';

/** What is wrong (`what is; what to do`), and with which variable: one that a run can do without. */
export type Problem = { readonly name: string; readonly problem: string };

/** The value, or every problem of the text: each completes "Cannot read NAME: ". */
export type ReadResult<Value> = { readonly value: Value } | { readonly problems: readonly string[] };
type Read<Value> = (text: string) => ReadResult<Value>;

/** Makes the reader of a variable with one value. `hide` prints a wrong one; default: as `quote` does. */
export function readValue<Value>(parse: Parse<Value>, hide = (text: string) => text): Read<Value> {
  return (text) => {
    const parsed = parse(text);
    return 'value' in parsed ? parsed : { problems: [`it is ${quote(hide(text))}; must be ${parsed.problem}`] };
  };
}

/** Makes the reader of a variable with one value or `none`, which is null. */
export function readValueOrNone<Value>(parse: Parse<Value>, hide?: (text: string) => string): Read<Value | null> {
  const read = readValue(parse, hide);
  return (text) => (text === 'none' ? { value: null } : read(text));
}

/** Reads a list separated by commas. `hide` prints a wrong entry, before `quote` does. */
export function readList<Value>(
  text: string,
  parse: Parse<Value>,
  hide?: (entry: string) => string,
): ReadResult<readonly Value[]> {
  const entries = text.split(',').map((each) => each.trim());
  return readEntries(entries, parse, hide);
}

/** Reads the entries of a list, already trimmed. */
export function readEntries<Value>(
  entries: readonly string[],
  parse: Parse<Value>,
  hide = (entry: string) => entry,
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
    else problems.push(`${quote(hide(entry))} must be ${parsed.problem}`);
  }
  return problems.length === 0 ? { value: values } : { problems };
}

/** Reads a list; `none` is the empty one. */
export function readListOrNone<Value>(
  text: string,
  parse: Parse<Value>,
  hide?: (entry: string) => string,
): ReadResult<readonly Value[]> {
  return text === 'none' ? { value: [] } : readList(text, parse, hide);
}

/** Reads an entry of DONE_WHEN as the kind it names. */
export function parseCondition(
  entry: string,
  kinds: readonly ConditionKind[],
  context: ConditionContext,
): ParseResult<Condition> {
  const colonAt = entry.indexOf(':');
  const hasArgument = colonAt >= 0;
  const name = hasArgument ? entry.slice(0, colonAt) : entry;
  const found = kinds.find((kind) => kind.name === name && (kind.takesArgument ?? true) === hasArgument);
  if (found === undefined) {
    const usages = joinQuoted(kinds.map(({ usage }) => usage));
    return { problem: `${usages}${didYouMean(suggestCondition(entry, kinds))}` };
  }
  const parsed = found.read(hasArgument ? entry.slice(colonAt + 1).trim() : '', context);
  return 'value' in parsed ? parsed : { problem: `${found.usage} with ${parsed.problem}` };
}

/** Reads an entry of QUIT as the first kind that takes it. */
export function parseTarget(entry: string, kinds: readonly TargetKind[], context: TargetContext): ParseResult<Target> {
  if (entry === 'none') return { problem: 'the only entry: "none" stops nothing' };
  for (const kind of kinds) {
    const parsed = kind.read(entry, context);
    if (parsed !== null) return parsed;
  }
  const usages = kinds.flatMap(({ usage, otherNames }) => (otherNames === undefined ? [`"${usage}"`] : []));
  return {
    problem: `${joinNames(['a preset of lastscrape --help', ...usages, '"none"'], 'or')}${didYouMean(suggestTarget(entry, kinds))}`,
  };
}

/** Longest value or name in a message. */
export const SHOWN_MAX_LENGTH = 100;
/** More than is ever printed: the rest is not looked at. */
const READ_MAX_LENGTH = 1_000;

/** Quotes a value for a message: without secrets, on one line, cut. */
export function quote(text: string): string {
  return formatJson(cut(redactEntry(text.slice(0, READ_MAX_LENGTH)), SHOWN_MAX_LENGTH));
}

function didYouMean(meant: string | null): string {
  return meant === null ? '' : `; did you mean ${quote(meant)}?`;
}
