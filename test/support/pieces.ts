// What comes piece by piece, as one.

/** All of it; each piece is copied, since its owner may use the bytes again. */
export async function readPieces(pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<Buffer> {
  const copies: Uint8Array[] = [];
  for await (const piece of pieces) copies.push(Uint8Array.from(piece));
  return Buffer.concat(copies);
}
