// Cuts a body that comes in pieces of any size into blocks of whole lines, for regular expressions that match
// many lines. Holds only the line that has not ended yet. Pure. Lines end at line feed only.

import { openByteBuffer } from '../base/byte-buffer.ts';

/** Reads one body. */
export type BodyReader<Written, Ended> = {
  /** Takes the next piece of the body, of any size. */
  readonly write: (chunk: Uint8Array) => Written;
  /** The body has ended, as HTTP says: what follows the last line feed is a whole line. */
  readonly end: () => Ended;
};

/** Reads one body, and passes on what is left of it. */
export type BodyFilter = BodyReader<readonly Uint8Array[], readonly Uint8Array[]>;

/** Gets the lines, most of them in the memory of the piece they came in. */
type BlockSink = {
  /**
   * One or more whole lines; only the last one of a body may have no line feed. Returns how many of the last
   * bytes belong to a line that goes on: they come again with what follows. `isLast`: nothing does; return 0.
   */
  readonly onLines: (lines: Buffer, isLast: boolean) => number;
  /** Longer lines, not counting the line feed, are passed over. Default: none is. */
  readonly lineMaxBytes?: number;
  /** The start of a long line, more than `lineMaxBytes`. */
  readonly onLongLine?: (start: Buffer) => void;
};

/** The most bytes of a block, unless a line is longer: keeps the work for one block short. */
const BLOCK_BYTES = 64 * 1024;
const LINE_FEED = 0x0a;
const NOTHING = Buffer.alloc(0);

/** Opens a cutter for one body. */
export function openLineCutter({
  onLines,
  lineMaxBytes = Number.POSITIVE_INFINITY,
  onLongLine,
}: BlockSink): BodyReader<void, void> {
  // The buffer of a long line is not kept for short ones.
  const held = openByteBuffer(BLOCK_BYTES);
  let isInLongLine = false;
  /** What came as whole lines and goes on. */
  let begun: Buffer = NOTHING;

  function passLines(lines: Buffer, isLast = false): void {
    const all = begun.length === 0 ? lines : Buffer.concat([begun, lines]);
    const restBytes = onLines(all, isLast);
    begun = restBytes === 0 ? NOTHING : Buffer.from(all.subarray(all.length - restBytes));
    if (restBytes > lineMaxBytes) passLongLine(NOTHING);
  }
  function passLongLine(start: Buffer): void {
    onLongLine?.(Buffer.concat([begun, start]));
    begun = NOTHING;
  }

  /** Continues the line that has begun. */
  function extendLine(piece: Buffer, isEnded: boolean): void {
    if (!isInLongLine) {
      held.append(piece);
      isInLongLine = held.sizeBytes - Number(isEnded) > lineMaxBytes;
      if (isInLongLine) passLongLine(held.take());
      else if (isEnded) passLines(held.take());
    }
    if (isEnded) isInLongLine = false;
  }

  return {
    write(chunk) {
      for (let at = 0; at < chunk.length; at += BLOCK_BYTES) {
        const piece = Buffer.from(chunk.buffer, chunk.byteOffset + at, Math.min(BLOCK_BYTES, chunk.length - at));
        // The line that has begun becomes a block of its own, so that nothing else is copied.
        const first = held.sizeBytes > 0 || isInLongLine ? piece.indexOf(LINE_FEED) + 1 : 0;
        const end = piece.lastIndexOf(LINE_FEED) + 1;
        if (first > 0) extendLine(piece.subarray(0, first), true);
        if (end > first) passLines(piece.subarray(first, end));
        if (end < piece.length) extendLine(piece.subarray(end), false);
      }
    },
    end() {
      if (held.sizeBytes > 0 || begun.length > 0) passLines(held.take(), true);
    },
  };
}
