// What a scrape gets of a body: the source's bytes, and our families after them.

import { formatOwnFamilies, OWN_PREFIX, type OwnValues } from '../exposition/own-families.ts';
import type { Body } from '../snapshot/body.ts';
import { LINE_FEED } from '../snapshot/snapshot.ts';
import type { AnswerBody } from './send-answer.ts';

const OWN_PREFIX_BYTES = Buffer.from(OWN_PREFIX);

/** The body while it grows; our families follow at its end, but for those that the source has. */
export function serveGrowing(body: Body, values: OwnValues): AnswerBody {
  async function* read(): AsyncGenerator<Uint8Array> {
    let hasOwnPrefix = false;
    let tail: Uint8Array = new Uint8Array(0);
    for await (const piece of body.read()) {
      // Hardly any source has our families, and listing all families takes as long as passing them on.
      hasOwnPrefix ||=
        includesOwnPrefix(piece) ||
        includesOwnPrefix(Buffer.concat([tail, piece.subarray(0, OWN_PREFIX_BYTES.length)]));
      tail = Buffer.concat([tail, piece.subarray(-OWN_PREFIX_BYTES.length)]).subarray(-OWN_PREFIX_BYTES.length);
      yield piece;
    }
    if (!body.endsWithLineFeed) yield LINE_FEED;
    yield Buffer.from(formatOwnFamilies(values, hasOwnPrefix ? await body.families() : NONE));
  }
  return { read, sizeBytes: null };
}

const NONE: ReadonlySet<string> = new Set();

/** A body that is whole: the length of the answer is known. */
export async function serveWhole(body: Body, values: OwnValues): Promise<AnswerBody> {
  const own = Buffer.from(formatOwnFamilies(values, await body.families()));
  const end = body.endsWithLineFeed ? own : Buffer.concat([LINE_FEED, own]);
  async function* read(): AsyncGenerator<Uint8Array> {
    yield* body.read();
    yield end;
  }
  return { read, sizeBytes: body.sizeBytes + end.length };
}

function includesOwnPrefix(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(OWN_PREFIX_BYTES);
}
