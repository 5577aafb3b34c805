// A body that its source can write at any time: written at the first read, since most polls read none.

import { type Body, openBody } from './body.ts';

export type BodyWriter = {
  /** Those that have a sample. */
  readonly families: ReadonlySet<string>;
  /** Writes it whole, as an exposition without a fault whose last byte is a line feed. */
  readonly write: (push: (piece: Uint8Array) => void) => void;
};

/** A whole body, fixed at its first read. */
export function makeWrittenBody({ families, write }: BodyWriter): Body {
  let written: Body | null = null;
  const writeOnce = (): Body => {
    if (written === null) {
      const { body, push, end } = openBody({ isReadable: true });
      write(push);
      end();
      written = body;
    }
    return written;
  };
  return {
    get sizeBytes() {
      return writeOnce().sizeBytes;
    },
    endsWithLineFeed: true,
    read: (signal) => writeOnce().read(signal),
    ended: WHOLE,
    families: async () => families,
  };
}

const WHOLE = Promise.resolve({ kind: 'whole' } as const);
