// An exposition as families, for as long as somebody asks for the next one: never more of it in memory than one piece.

import { type Family, openFamilyReader } from '../../exposition/samples.ts';

/** Of a longer piece so much is read at a time. */
const PIECE_BYTES = 8 * 1024;

/** The families of a body, in its order; a family may come in several parts. @throws as `pieces` does */
export async function* readFamilies(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Family> {
  const reader = openFamilyReader();
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length; at += PIECE_BYTES) yield* reader.write(piece.subarray(at, at + PIECE_BYTES));
  }
  yield* reader.end();
}
