// How one entry of DONE_WHEN or QUIT becomes a condition or a target, and how what was written is quoted. Pure.
// A problem is the end of the sentence "must be …".

import type { ParseResult } from '../base/parse.ts';
import { cut, redactEntry } from '../base/text.ts';
import type { Condition, ConditionContext, ConditionKind } from '../observe/condition.ts';
import type { Target, TargetContext, TargetKind } from '../quit/target.ts';
import { findMeantCondition, findMeantTarget } from './advice.ts';

/** Reads an entry of DONE_WHEN by the kind that it names, in the context of that kind. */
export function parseCondition(
  entry: string,
  readKinds: readonly { readonly kind: ConditionKind; readonly context: ConditionContext }[],
): ParseResult<Condition> {
  const colonAt = entry.indexOf(':');
  const hasArgument = colonAt >= 0;
  const name = hasArgument ? entry.slice(0, colonAt) : entry;
  const found = readKinds.find(({ kind }) => kind.name === name && (kind.takesArgument ?? true) === hasArgument);
  if (found === undefined) {
    const kinds = readKinds.map(({ kind }) => kind);
    const meant = findMeantCondition(entry, kinds);
    return { problem: `${or(kinds.map(({ usage }) => `"${usage}"`))}${ask(meant)}` };
  }
  const parsed = found.kind.read(hasArgument ? entry.slice(colonAt + 1).trim() : '', found.context);
  return 'value' in parsed ? parsed : { problem: `${found.kind.usage} with ${parsed.problem}` };
}

/** Reads an entry of QUIT by the first kind that takes it. */
export function parseTarget(entry: string, kinds: readonly TargetKind[], context: TargetContext): ParseResult<Target> {
  if (entry === 'none') return { problem: 'the only entry: "none" stops nothing' };
  for (const kind of kinds) {
    const parsed = kind.read(entry, context);
    if (parsed !== null) return parsed;
  }
  const usages = kinds.flatMap(({ usage, otherNames }) => (otherNames === undefined ? [`"${usage}"`] : []));
  return {
    problem: `${or(['a preset of lastscrape --help', ...usages, '"none"'])}${ask(findMeantTarget(entry, kinds))}`,
  };
}

/** What of a value, or of a name, is printed. */
export const SHOWN_MAX_LENGTH = 100;
/** More than is ever printed: what is behind it is not looked at. */
const READ_MAX_LENGTH = 1_000;

/** The value as it may be printed: without secrets, on one line, not too long. */
export function quote(text: string): string {
  return JSON.stringify(cut(redactEntry(text.slice(0, READ_MAX_LENGTH)), SHOWN_MAX_LENGTH));
}

/** `a`, `a or b`, `a, b or c`. */
export function or(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

function ask(meant: string | null): string {
  return meant === null ? '' : `; did you mean ${quote(meant)}?`;
}
