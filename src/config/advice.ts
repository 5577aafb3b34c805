// What a mistyped variable, condition, target or separator may have meant. Pure. Only advises: a value
// is never repaired.

import { findNearest } from '../base/text.ts';
import type { ConditionKind } from '../observe/condition-kind.ts';
import type { TargetKind } from '../quit/target-kind.ts';

const PREFIX = 'LASTSCRAPE_';
/** Least likeness of a mistyped prefix or preset: LASTSCARPE has 0.73 of LASTSCRAPE, LOGSCRAPE 0.67. */
const LONG_SCORE = 0.7;
/** Of a kind of condition, which is shorter: `sigtrem` has 0.63 of `sigterm`, `sigkill` 0.38. */
const SHORT_SCORE = 0.6;

/** The variables that `name` may stand for, maybe none; null: the name is not meant for lastscrape. */
export function suggestVariables(name: string, known: readonly string[]): readonly string[] | null {
  const rests = known.map((each) => each.slice(PREFIX.length));
  const isExact = name.startsWith(PREFIX);
  if (isExact || name.toUpperCase().startsWith(PREFIX)) {
    const near = findNearest(name.slice(PREFIX.length), rests).map((rest) => `${PREFIX}${rest}`);
    return near.length > 0 || isExact ? near : null;
  }
  // Another program's variable must not break a pod: only the prefix may be mistyped.
  if (!/^l/i.test(name)) return null;
  const meant = known.find((_, index) => {
    const rest = fold(rests[index] as string);
    const isRestKnown = fold(name).endsWith(rest);
    return isRestKnown && findNearest(fold(name).slice(0, -rest.length), [fold(PREFIX)], LONG_SCORE).length > 0;
  });
  return meant === undefined ? null : [meant];
}

/**
 * Splits at `;` and new lines, or at blanks too; null without these, or if a piece is not an entry. The
 * whole may be an entry as well, as with `file:/a;port:1`, and is not what was meant.
 */
export function splitOtherwise(text: string, isEntry: (piece: string) => boolean): readonly string[] | null {
  for (const separator of [/[;\n]/, /[;\s]+/]) {
    const pieces = text
      .split(separator)
      .map((piece) => piece.trim())
      .filter((piece) => piece !== '');
    if (pieces.length > 0 && pieces[0] !== text && pieces.every(isEntry)) return pieces;
  }
  return null;
}

/** The entry of DONE_WHEN that was meant; null if nothing is near. */
export function suggestCondition(entry: string, kinds: readonly ConditionKind[]): string | null {
  const [, head = '', separator = '', argument = ''] = /^([A-Za-z_-]{1,40})\s*(?:([:=])\s*(.*))?$/.exec(entry) ?? [];
  const names = kinds.map(({ name }) => name);
  const [near] = findNearest(head, names, SHORT_SCORE);
  for (const { name, takesArgument = true, otherNames = [] } of kinds) {
    const isNear = name === near;
    if (takesArgument && isNear && separator !== '') return `${name}:${argument}`;
    const isOther = argument === '' && otherNames.some((each) => fold(each) === fold(head));
    if (!takesArgument && (isNear || isOther)) return name;
  }
  if (/^(localhost:|127\.[\d.]+:|\[::1\]:)?\d+$/.test(entry)) return `port:${entry}`;
  if (entry.startsWith('/')) return `file:${entry}`;
  return /^[a-z]+_[a-z_]+$/.test(entry) ? `metric:${entry}` : null;
}

/** The entry of QUIT that was meant; null if nothing is near. */
export function suggestTarget(
  entry: string,
  kinds: readonly Pick<TargetKind, 'usage' | 'otherNames'>[],
): string | null {
  const [, name = '', ports = ''] = /^(.{1,100}?)((?::\d+){0,2})$/.exec(entry) ?? [];
  const presets = kinds.flatMap(({ usage, otherNames }) =>
    otherNames === undefined ? [] : [usage, ...otherNames].map((each) => [each, usage] as const),
  );
  const usages = new Map(presets);
  const [near] = findNearest(name, [...usages.keys()], LONG_SCORE);
  if (near !== undefined) return `${usages.get(near)}${ports}`;
  if (/^(no|none|nothing|false|off)$/i.test(entry)) return 'none';
  return /^[\w.-]+:\d+(\/\S*)?$/.test(entry) ? `http://${entry}` : null;
}

/** Lower case, letters and digits only. */
function fold(text: string): string {
  return text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
}
