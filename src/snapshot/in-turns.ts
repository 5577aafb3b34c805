// Long work in turns of the event loop: a body that is whole is read without ever waiting, and others would wait for all of it.

/** The same pieces; between two of them everything else has its turn. @throws as `pieces` does. */
export async function* readInTurns(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    yield piece;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
