// Cuts a body that comes in pieces of any size into blocks of whole lines, so that one regular expression can judge many lines.
// Holds the line that has not ended yet, nothing more. Pure. Lines end at line feed only.

export type LineCutter = {
  /** Takes the next piece of the body, of any size. */
  readonly write: (chunk: Uint8Array) => void;
  /** Returns the line that has not ended, and forgets it; empty: there is none. */
  readonly takePending: () => Buffer;
  /** Of the line that has not ended. */
  readonly pendingBytes: number;
};

/** Of a block, unless one line is longer: so much text at a time is judged without a stack that anybody would notice. */
const BLOCK_BYTES = 64 * 1024;
const LINE_FEED = 0x0a;

/** Opens a cutter for one body; `onLines` is called with one or more whole lines, which are nobody else's to change. */
export function openLineCutter(onLines: (lines: Buffer) => void): LineCutter {
  let held = Buffer.alloc(0);
  let heldBytes = 0;

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
  function takePending(): Buffer {
    const line = Buffer.from(held.subarray(0, heldBytes));
    heldBytes = 0;
    // A buffer that one long line made is not kept for the short ones.
    if (held.length > BLOCK_BYTES) held = Buffer.alloc(0);
    return line;
  }

  return {
    takePending,
    get pendingBytes() {
      return heldBytes;
    },
    write(chunk) {
      for (let at = 0; at < chunk.length; at += BLOCK_BYTES) {
        const length = Math.min(BLOCK_BYTES, chunk.length - at);
        const piece = Buffer.from(chunk.buffer, chunk.byteOffset + at, length);
        // The line that is held is a block of its own: nothing else is copied.
        const first = heldBytes === 0 ? 0 : piece.indexOf(LINE_FEED) + 1;
        const end = piece.lastIndexOf(LINE_FEED) + 1;
        if (first > 0) {
          hold(piece.subarray(0, first));
          onLines(takePending());
        }
        if (end > first) onLines(piece.subarray(first, end));
        if (end < length) hold(piece.subarray(end));
      }
    },
  };
}
