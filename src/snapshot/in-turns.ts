// Long work in turns of the event loop: reading a whole body never waits, and would block everything else.

/** The same pieces, with a turn of the event loop after each. @throws as `pieces` does */
export async function* readInTurns(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    yield piece;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
