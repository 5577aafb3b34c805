// Encodes a body as a push would, and reads what comes out of it.

import type { Label } from '../../../src/exposition/lexer.ts';
import { readFamilies } from '../../../src/snapshot/body.ts';
import type { EncodeParts, PushKind } from '../../../src/tell/receivers/receiver.ts';

export type Encoded = {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Of the body, as it was streamed. */
  readonly piecesBytes: readonly number[];
};

export const NOW_MS = 1_700_000_000_000;

/** The requests of a body; each body is made for another time first. */
export async function encode(
  kind: PushKind,
  body: string,
  { url = 'http://127.0.0.1', labels = [] }: { readonly url?: string; readonly labels?: readonly Label[] } = {},
): Promise<readonly Encoded[]> {
  const parts: EncodeParts = {
    families: () => readFamilies(ReadableStream.from([Buffer.from(body)])),
    labels,
    url: new URL(url),
  };
  const encoded: Encoded[] = [];
  for await (const { method, path, headers, body: makeBody } of kind.encode(parts)) {
    // Beyond both ends of what is as long.
    const before = [await readPieces(makeBody(0)), await readPieces(makeBody(Number.MAX_SAFE_INTEGER))];
    const pieces = await readPieces(makeBody(NOW_MS));
    const made = Buffer.concat(pieces);
    if (before.some((each) => Buffer.concat(each).length !== made.length)) throw new Error('Bug: not as long');
    encoded.push({ method, path, headers, body: made, piecesBytes: pieces.map(({ length }) => length) });
  }
  return encoded;
}

async function readPieces(body: AsyncIterable<Uint8Array> | Uint8Array): Promise<readonly Uint8Array[]> {
  if (body instanceof Uint8Array) return [body];
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  return pieces;
}
