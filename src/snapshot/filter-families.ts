// A body without some of its families, piece by piece as it comes.

import { type FilterOptions, openFamilyFilter } from '../exposition/families.ts';

/**
 * The pieces without the HELP, TYPE and sample lines of other families; all other bytes stay as they are.
 *
 * @throws as `pieces` does.
 */
export async function* filterFamilies(
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  isKept: (family: string) => boolean,
  options?: FilterOptions,
): AsyncGenerator<Uint8Array> {
  const filter = openFamilyFilter(isKept, options);
  for await (const piece of pieces) yield* filter.write(piece);
  yield* filter.end();
}
