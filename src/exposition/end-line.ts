// The last line of OpenMetrics, kept back while a page passes, so that families can be put before it. Pure;
// holds at most that line.

import { openByteBuffer } from '../base/byte-buffer.ts';
import type { BodyReader } from './line-cutter.ts';

/** What a page of OpenMetrics ends with; the line feed may be missing. */
export const END_LINE: Uint8Array = Buffer.from('# EOF\n');
const LINE_FEED = 0x0a;

/** Takes the line off one body; its end returns what was kept back, and whether that is the line. */
export function openEndLineCutter(): BodyReader<readonly Uint8Array[], { isWhole: boolean; rest: Uint8Array }> {
  const held = openByteBuffer();
  /** The byte before what is held. */
  let before = LINE_FEED;

  return {
    write(chunk) {
      const text = held.sizeBytes === 0 ? chunk : Buffer.concat([held.take(), chunk]);
      const keptBytes = findKept(text, before);
      const passed = text.subarray(0, text.length - keptBytes);
      held.append(text.subarray(passed.length));
      before = passed.at(-1) ?? before;
      return passed.length === 0 ? [] : [passed];
    },
    end() {
      const rest = held.take();
      return { isWhole: rest.length >= END_LINE.length - 1, rest };
    },
  };
}

/** How many of the last bytes may be the line, or its beginning. */
function findKept(text: Uint8Array, before: number): number {
  for (let count = Math.min(END_LINE.length, text.length); count > 0; count--) {
    const from = text.length - count;
    if ((from === 0 ? before : text[from - 1]) === LINE_FEED && isStart(text.subarray(from))) return count;
  }
  return 0;
}

function isStart(bytes: Uint8Array): boolean {
  return bytes.every((byte, index) => byte === END_LINE[index]);
}
