// Puts texts together to bytes in one buffer that is used again and again. Pure.
//
// Not as one long text: what it is joined from lives until the text is whole, by then V8 counts it as old, and frees it late (measured
// with the flags of image/inject.ts, an exposition of 3 MB: 15 MB more).

export type ByteWriter = {
  readonly write: (text: string) => void;
  /** Written since the last `take`. */
  readonly sizeBytes: number;
  /** A copy of what was written; then it is empty. */
  readonly take: () => Buffer;
};

const FIRST_BYTES = 64 * 1024;

/** Opens a writer; with `latin1` each letter of a text is a byte. */
export function openByteWriter(encoding: 'utf8' | 'latin1'): ByteWriter {
  let buffer = Buffer.alloc(FIRST_BYTES);
  let sizeBytes = 0;

  return {
    get sizeBytes() {
      return sizeBytes;
    },
    write(text) {
      const neededBytes = sizeBytes + Buffer.byteLength(text, encoding);
      if (neededBytes > buffer.length) {
        const longer = Buffer.alloc(Math.max(2 * buffer.length, neededBytes));
        buffer.copy(longer, 0, 0, sizeBytes);
        buffer = longer;
      }
      sizeBytes += buffer.write(text, sizeBytes, encoding);
    },
    take() {
      const written = Buffer.from(buffer.subarray(0, sizeBytes));
      sizeBytes = 0;
      return written;
    },
  };
}
