// Reads an exposition as families, lazily: never more than one piece of it is in memory.

import { type Family, openFamilyReader } from '../../exposition/samples.ts';

/** Longer pieces are read in steps of this size. */
const PIECE_BYTES = 8 * 1024;

/** The families of a body, in its order; a family may come in several parts. @throws as `pieces` does */
export async function* readFamilies(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Family> {
  const reader = openFamilyReader();
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length; at += PIECE_BYTES) yield* reader.write(piece.subarray(at, at + PIECE_BYTES));
  }
  yield* reader.end();
}
