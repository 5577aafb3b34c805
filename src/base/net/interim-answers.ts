// Lets undici read past `100 Continue`: its client (8.12.4, client-h1.js) destroys the connection at one that it has not asked for,
// while RFC 9110, section 15.2, lets a client ignore it. Any other interim answer it skips, so 100 is made into 103, byte by byte,
// at the begin of each answer.

const DIGIT_0 = 0x30;
const DIGIT_1 = 0x31;
const DIGIT_3 = 0x33;
/** Before the status: `HTTP/1.1 `. */
const VERSION_BYTES = 9;
const CR = 0x0d;
const LF = 0x0a;
const END_OF_HEAD = '\r\n\r\n';

export type InterimAnswers = {
  /** The next byte is the first of an answer. */
  readonly begin: () => void;
  /** Changes a piece of an answer, in its place. */
  readonly rewrite: (piece: Uint8Array) => void;
};

/** Opens the rewriting for one connection. */
export function rewriteInterimAnswers(): InterimAnswers {
  // Bytes of this head that were read; null: the final answer has begun, and is not looked into.
  let readBytes: number | null = 0;
  let isInterim = false;
  let isHundred = false;
  // How much of the end of the head the last bytes were.
  let endBytes = 0;

  function readByte(byte: number): number {
    const at = readBytes ?? 0;
    // undici overlooks empty lines before a status line (RFC 9112, section 2.2).
    if (at === 0 && (byte === CR || byte === LF)) return byte;
    readBytes = at + 1;
    if (at === VERSION_BYTES) {
      isInterim = byte === DIGIT_1;
      if (!isInterim) readBytes = null;
    }
    if (at === VERSION_BYTES + 1) isHundred = byte === DIGIT_0;
    if (byte === END_OF_HEAD.charCodeAt(endBytes)) endBytes++;
    else endBytes = byte === END_OF_HEAD.charCodeAt(0) ? 1 : 0;
    if (endBytes === END_OF_HEAD.length) {
      readBytes = 0;
      endBytes = 0;
    }
    return at === VERSION_BYTES + 2 && isHundred && byte === DIGIT_0 ? DIGIT_3 : byte;
  }

  return {
    begin() {
      readBytes = 0;
      endBytes = 0;
    },
    rewrite(piece) {
      for (let index = 0; index < piece.length && readBytes !== null; index++) {
        piece[index] = readByte(piece[index] as number);
      }
    },
  };
}
