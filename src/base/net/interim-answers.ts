// Lets undici read past an unexpected `100 Continue`, which a client may ignore (RFC 9110, section 15.2):
// undici's client (8.12.4, client-h1.js) destroys the connection at it, but skips other interim answers. So
// each 100 becomes 103.

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
  /** Changes a piece of an answer in place. */
  readonly rewrite: (piece: Uint8Array) => void;
};

/** Opens the rewriting for one connection. */
export function rewriteInterimAnswers(): InterimAnswers {
  // Bytes read of this head; null: the final answer has begun, and is left alone.
  let readBytes: number | null = 0;
  let isInterim = false;
  let isHundred = false;
  // How many bytes of END_OF_HEAD came last.
  let endBytes = 0;

  function readByte(byte: number): number {
    const at = readBytes ?? 0;
    // undici skips empty lines before a status line (RFC 9112, section 2.2).
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
