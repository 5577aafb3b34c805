// A request that is filled with points until it is full. Pure.

import { openByteBuffer } from '../../base/byte-buffer.ts';

/** The most points of a request: as many as Prometheus sends at once by default (`max_samples_per_send`). */
const POINT_MAX_COUNT = 2000;
/** The most bytes of a request, unless one point is longer. */
const REQUEST_MAX_BYTES = 1024 * 1024;

export type Batch = {
  /** Whether this point belongs to the next request. */
  readonly isFullFor: (point: string) => boolean;
  readonly add: (point: string) => void;
  /** Writes what stands between points. */
  readonly write: (text: string) => void;
  /** Points since the last `take`. */
  readonly pointCount: number;
  /** The bytes of the request; then the batch is empty. */
  readonly take: () => Buffer;
};

/** Opens an empty batch; with `latin1` each letter of a text is a byte. */
export function openBatch(encoding: 'utf8' | 'latin1'): Batch {
  const buffer = openByteBuffer();
  let pointCount = 0;
  return {
    get pointCount() {
      return pointCount;
    },
    isFullFor(point) {
      const isTooLong = buffer.sizeBytes + point.length > REQUEST_MAX_BYTES;
      return pointCount === POINT_MAX_COUNT || (pointCount > 0 && isTooLong);
    },
    add(point) {
      buffer.write(point, encoding);
      pointCount++;
    },
    write: (text) => buffer.write(text, encoding),
    take() {
      pointCount = 0;
      return buffer.take();
    },
  };
}
