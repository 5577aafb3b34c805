// What somebody meant who wrote a value in another way: other units, names that people use, other separators. Pure.
// It advises only: a value is never repaired.

import { countEdits, findNearestNames, fold, isNearlySame } from './nearest-name.ts';

const PREFIX = 'LASTSCRAPE_';

/** Milliseconds of each unit, by the words that people use for it. */
const UNITS: readonly (readonly [RegExp, number])[] = [
  [/^(ms|msecs?|millis|milliseconds?)$/, 1],
  [/^(s|secs?|seconds?|)$/, 1_000],
  [/^(m|mins?|minutes?)$/, 60_000],
  [/^(h|hrs?|hours?)$/, 3_600_000],
  [/^(d|days?)$/, 86_400_000],
  [/^(w|weeks?)$/, 604_800_000],
];

/** The variables that a name of the environment is meant for; null: it is none of lastscrape's, empty: it is, and no name is near. */
export function findMeantVariables(name: string, known: readonly string[]): readonly string[] | null {
  const rests = known.map((each) => each.slice(PREFIX.length));
  const isExact = name.startsWith(PREFIX);
  if (isExact || name.toUpperCase().startsWith(PREFIX)) {
    const near = findNearestNames(name.slice(PREFIX.length), rests).map((rest) => `${PREFIX}${rest}`);
    return near.length > 0 || isExact ? near : null;
  }
  // Somebody else's variable must not break a pod: only the prefix may be mistyped, by a letter, and the rest is known.
  if (!/^l/i.test(name)) return null;
  const parts = name.split(/[^A-Za-z0-9]+/);
  const meant = known.find((each, index) => {
    if (fold(name) === fold(each)) return true;
    const count = (rests[index] as string).split('_').length;
    const isRestKnown = parts.slice(-count).join('_').toUpperCase() === rests[index];
    const prefix = fold(parts.slice(0, -count).join(''));
    return isRestKnown && prefix.startsWith('l') && countEdits(prefix, fold(PREFIX)) <= 1;
  });
  return meant === undefined ? null : [meant];
}

/** The milliseconds of a duration as other programs read it: `90 s`, `1.5m`, `1d`; null: it is none. */
export function findMeantDuration(text: string): number | null {
  const plain = text.toLowerCase().replaceAll(/["'\s]/g, '');
  // No text may match in two ways: a long run of digits took minutes, in which no signal is seen.
  if (plain === '' || !/^(?:\d+(?:\.\d+)?[a-z]+)*(?:\d+(?:\.\d+)?)?$/.test(plain)) return null;
  let sumMs = 0;
  for (const [, count = '', word = ''] of plain.matchAll(/(\d+(?:\.\d+)?)([a-z]*)/g)) {
    const unit = UNITS.find(([words]) => words.test(word));
    if (unit === undefined) return null;
    sumMs += Number(count) * unit[1];
  }
  // 0.1 s times 1000 need not be 100; and what is less than a millisecond is not 0, which often means "without limit".
  return sumMs > 0 && sumMs < 1 ? null : Math.round(sumMs);
}

/** The entries of a text that separates them by `;`, blanks, new lines, `and` or `or`; null where it does not, or where one of them is none. */
export function splitOtherwise(text: string, isEntry: (piece: string) => boolean): readonly string[] | null {
  for (const separator of [/;/, /\n/, /\s+/, /[;\s]+/, /\s(?:and|or|&&|\|\|)\s/i]) {
    const pieces = text
      .split(separator)
      .map((piece) => piece.trim())
      .filter((piece) => piece !== '');
    if (pieces.length > 0 && pieces[0] !== text && pieces.every(isEntry)) return pieces;
  }
  return null;
}

/** A kind of condition, as far as it has names: `otherNames` are what people write for one that takes no argument. */
export type NamedCondition = {
  readonly name: string;
  readonly takesArgument?: boolean;
  readonly otherNames?: readonly string[];
};

/** The entry of DONE_WHEN that somebody meant; null where nothing is near. */
export function findMeantCondition(entry: string, kinds: readonly NamedCondition[]): string | null {
  const [, head = '', separator = '', argument = ''] = /^([A-Za-z_-]{1,40})\s*(?:([:=])\s*(.*))?$/.exec(entry) ?? [];
  for (const { name, takesArgument = true, otherNames = [] } of kinds) {
    const isNear = isNearlySame(name, head);
    if (takesArgument && isNear && separator !== '') return `${name}:${argument}`;
    const isOther = argument === '' && otherNames.some((each) => fold(each) === fold(head));
    if (!takesArgument && (isNear || isOther)) return name;
  }
  if (/^(localhost:|127\.[\d.]+:|\[::1\]:)?\d+$/.test(entry)) return `port:${entry}`;
  if (entry.startsWith('/')) return `file:${entry}`;
  return /^[a-z]+_[a-z_]+$/.test(entry) ? `metric:${entry}` : null;
}

/** A kind of target, as far as it has names: `otherNames` are what people call the program. */
export type NamedTarget = { readonly usage: string; readonly otherNames?: readonly string[] };

/** Nobody means a name that is longer, with its ports. */
const MEANT_MAX_LENGTH = 200;

/** The entry of QUIT that somebody meant; null where nothing is near. */
export function findMeantTarget(entry: string, kinds: readonly NamedTarget[]): string | null {
  if (entry.length > MEANT_MAX_LENGTH) return null;
  const [, name = '', ports = ''] = /^(.*?)((?::\d+)*)$/.exec(entry) ?? [];
  const presets = kinds.flatMap(({ usage, otherNames }) =>
    otherNames === undefined ? [] : [usage, ...otherNames].map((each) => ({ usage, name: each })),
  );
  const preset =
    presets.find((each) => fold(each.name) === fold(name)) ?? presets.find((each) => isNearlySame(each.name, name));
  if (preset !== undefined) return `${preset.usage}${ports}`;
  if (/^(no|none|nothing|false|off)$/i.test(entry)) return 'none';
  const [, program] = /^(?:proc(?:ess)?|p?kill|(?:sig)?term)[: ]\s*([^\s:]+)$/i.exec(entry) ?? [];
  if (program !== undefined) return `signal:${program}`;
  return /^[\w.-]+:\d+(\/\S*)?$/.test(entry) ? `http://${entry}` : null;
}
