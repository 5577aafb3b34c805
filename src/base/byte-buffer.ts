// Bytes and texts put together in one buffer that is used again and again. Pure.
//
// Not as one long text: what it is joined from lives until the text is whole, by then V8 counts it as old,
// and frees it late (measured with the flags of image/inject.ts, an exposition of 3 MB: 15 MB more).

/** Opens an empty one; a buffer of more than `keptMaxBytes` is not kept for the next bytes. */
export function openByteBuffer(keptMaxBytes: number = Number.POSITIVE_INFINITY) {
  let buffer = Buffer.alloc(0);
  let sizeBytes = 0;

  // Doubled, so that many small pieces are not copied for each.
  function makeRoom(moreBytes: number): void {
    if (sizeBytes + moreBytes <= buffer.length) return;
    const longer = Buffer.alloc(Math.max(2 * buffer.length, sizeBytes + moreBytes));
    buffer.copy(longer, 0, 0, sizeBytes);
    buffer = longer;
  }

  return {
    /** Since it was empty. */
    get sizeBytes() {
      return sizeBytes;
    },
    append(bytes: Uint8Array): void {
      makeRoom(bytes.length);
      buffer.set(bytes, sizeBytes);
      sizeBytes += bytes.length;
    },
    /** With `latin1` each letter is a byte. */
    write(text: string, encoding: 'utf8' | 'latin1' = 'utf8'): void {
      makeRoom(Buffer.byteLength(text, encoding));
      sizeBytes += buffer.write(text, sizeBytes, encoding);
    },
    /** What is in it; overwritten by what comes once it was emptied. */
    view: () => buffer.subarray(0, sizeBytes),
    clear(): void {
      sizeBytes = 0;
    },
    /** A copy of what is in it; then it is empty. */
    take(): Buffer {
      const taken = Buffer.from(buffer.subarray(0, sizeBytes));
      sizeBytes = 0;
      if (buffer.length > keptMaxBytes) buffer = Buffer.alloc(0);
      return taken;
    },
  };
}
