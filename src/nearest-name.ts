// Which name somebody meant who mistyped it. Pure.

/** The known name that is nearest to a mistyped one. */
export function findNearestName(name: string, known: readonly string[]): string {
  const distances = known.map((each) => ({ name: each, distance: measureDistance(name, each) }));
  return distances.reduce((best, next) => (next.distance < best.distance ? next : best)).name;
}

/** Levenshtein distance, in characters. */
function measureDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, letter] of [...from].entries()) {
    let diagonal = index;
    const next = [index + 1];
    for (let at = 1; at <= to.length; at++) {
      const above = row[at] as number;
      next.push(Math.min(above + 1, (next[at - 1] as number) + 1, diagonal + (letter === to[at - 1] ? 0 : 1)));
      diagonal = above;
    }
    row = next;
  }
  return row[to.length] as number;
}
