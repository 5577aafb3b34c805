// Which name somebody meant who wrote another one: by its parts, by its letters, and not at all where nothing is near. Pure.

/** Below this share of letters in common, from 0 to 1, a name is not near: EXPORTER_URL has 0.29 of METRICS_URL. */
const NEAR_SCORE = 0.25;
/** Names that share a part only as well as the best one does, by this much, are named beside it: TIMEOUT is a part of three. */
const SAME_SCORE = 0.1;
/** Letters in common that make two names near although they have no part in common: METRICSURL and METRICS_URL. */
const WHOLE_SCORE = 0.7;

/** The known names that are nearest to a mistyped one, the nearest first, three at most; none where none is near. */
export function findNearestNames(name: string, known: readonly string[]): readonly string[] {
  const scored = known
    .map((each) => ({ name: each, score: Math.max(scoreParts(name, each), scoreWhole(name, each)) }))
    .filter(({ score }) => score >= NEAR_SCORE)
    .sort((one, other) => other.score - one.score);
  const best = scored[0]?.score ?? 0;
  return scored
    .filter(({ score }) => score > best - SAME_SCORE)
    .slice(0, 3)
    .map((each) => each.name);
}

/** Two texts are one name, but for case, `-`, `_` and what else is no letter or digit, and for a letter or two mistyped in a long one. */
export function isNearlySame(one: string, other: string): boolean {
  const [from, to] = [fold(one), fold(other)];
  return countEdits(from, to) <= countAllowedEdits(Math.min(from.length, to.length));
}

/** How many letters must be inserted, left out, replaced, or swapped with the next, to make one text of the other. */
export function countEdits(from: string, to: string): number {
  let before: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let at = 1; at <= from.length; at++) {
    const next = [at];
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[at - 1] === to[column - 1];
      const isSwapped = column > 1 && from[at - 1] === to[column - 2] && from[at - 2] === to[column - 1];
      next.push(
        Math.min(
          (row[column] as number) + 1,
          (next[column - 1] as number) + 1,
          (row[column - 1] as number) + (isSame ? 0 : 1),
          at > 1 && isSwapped ? (before[column - 2] as number) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    before = row;
    row = next;
  }
  return row[to.length] as number;
}

/** In lower case, letters and digits only. */
export function fold(text: string): string {
  return text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
}

/** The share of letters in parts that both names have, or nearly. */
function scoreParts(one: string, other: string): number {
  const [parts, left] = [one, other].map((text) => text.split(/[^A-Za-z0-9]+/).filter((part) => part !== '')) as [
    string[],
    string[],
  ];
  const letterCount = [...parts, ...left].join('').length;
  let commonCount = 0;
  for (const part of parts) {
    const exact = left.findIndex((each) => fold(each) === fold(part));
    const at = exact >= 0 ? exact : left.findIndex((each) => isNearlySame(each, part));
    if (at < 0) continue;
    const [found = ''] = left.splice(at, 1);
    commonCount += (part.length + found.length) * (exact >= 0 ? 1 : 0.9);
  }
  return letterCount === 0 ? 0 : commonCount / letterCount;
}

/** The share of letters that need no edit, where it is high. */
function scoreWhole(one: string, other: string): number {
  const [from, to] = [fold(one), fold(other)];
  const score = 1 - countEdits(from, to) / Math.max(from.length, to.length, 1);
  return score >= WHOLE_SCORE ? score : 0;
}

function countAllowedEdits(letterCount: number): number {
  if (letterCount < 3) return 0;
  return letterCount < 6 ? 1 : 2;
}
