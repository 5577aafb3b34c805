// Cuts a body that comes in pieces of any size into blocks of whole lines, so that one regular expression can judge many lines.
// Holds the line that has not ended yet, nothing more. Pure. Lines end at line feed only.

export type LineCutter = {
  /** Takes the next piece of the body, of any size. */
  readonly write: (chunk: Uint8Array) => void;
  /** The body has ended: what follows the last line feed is a whole line. */
  readonly end: () => void;
};

/** Who gets the lines, some of which share the memory of the piece they came in. */
export type BlockSink = {
  /** One or more whole lines; only the last one of a body may have no line feed. */
  readonly onLines: (lines: Buffer) => void;
  /** The length of a line, without its line feed, beyond which it comes in pieces. Default: no line does. */
  readonly lineMaxBytes?: number;
  /** The next piece of a long line; the first one has more than `lineMaxBytes`, the last one ends with the line feed. */
  readonly onLongLine?: (piece: Buffer, isFirst: boolean) => void;
};

/** The most of a block, unless its line is longer. Keeps the work for a block short. */
const BLOCK_BYTES = 64 * 1024;
const LINE_FEED = 0x0a;

/** Opens a cutter for one body. */
export function openLineCutter({
  onLines,
  lineMaxBytes = Number.POSITIVE_INFINITY,
  onLongLine = onLines,
}: BlockSink): LineCutter {
  let held = Buffer.alloc(0);
  let heldBytes = 0;
  let isInLongLine = false;

  // Doubled, so that a long line that comes byte by byte is not copied for each.
  function hold(piece: Buffer): void {
    if (heldBytes + piece.length > held.length) {
      const longer = Buffer.alloc(Math.max(2 * held.length, heldBytes + piece.length));
      held.copy(longer, 0, 0, heldBytes);
      held = longer;
    }
    piece.copy(held, heldBytes);
    heldBytes += piece.length;
  }
  function takeHeld(): Buffer {
    const line = Buffer.from(held.subarray(0, heldBytes));
    heldBytes = 0;
    // A buffer that one long line made is not kept for the short ones.
    if (held.length > BLOCK_BYTES) held = Buffer.alloc(0);
    return line;
  }
  /** Adds what may be the rest of the line that has begun. */
  function extendLine(piece: Buffer, isEnded: boolean): void {
    if (isInLongLine) {
      onLongLine(piece, false);
    } else {
      hold(piece);
      isInLongLine = heldBytes - Number(isEnded) > lineMaxBytes;
      if (isInLongLine) onLongLine(takeHeld(), true);
      else if (isEnded) onLines(takeHeld());
    }
    if (isEnded) isInLongLine = false;
  }

  return {
    write(chunk) {
      for (let at = 0; at < chunk.length; at += BLOCK_BYTES) {
        const piece = Buffer.from(chunk.buffer, chunk.byteOffset + at, Math.min(BLOCK_BYTES, chunk.length - at));
        // The line that has begun is a block of its own: nothing else is copied.
        const first = heldBytes > 0 || isInLongLine ? piece.indexOf(LINE_FEED) + 1 : 0;
        const end = piece.lastIndexOf(LINE_FEED) + 1;
        if (first > 0) extendLine(piece.subarray(0, first), true);
        if (end > first) onLines(piece.subarray(first, end));
        if (end < piece.length) extendLine(piece.subarray(end), false);
      }
    },
    end() {
      if (heldBytes > 0) onLines(takeHeld());
    },
  };
}
