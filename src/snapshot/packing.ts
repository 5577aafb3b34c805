// Packs and unpacks bytes as they come, for answers and for files. Never keeps them.

import { pipeline } from 'node:stream';
import zlib from 'node:zlib';

/** Since Node 22.15. */
export const HAS_ZSTD = 'createZstdCompress' in zlib;

/** A piece changes once the next is asked for: it must be packed by then. */
const ONE_BY_ONE = { writableHighWaterMark: 1 };

/** Level 1, the cheapest: most expositions shrink to a tenth. */
export function compress(pieces: AsyncIterable<Uint8Array>, encoding: 'zstd' | 'gzip'): AsyncIterable<Uint8Array> {
  const { ZSTD_c_compressionLevel } = zlib.constants;
  const packer =
    encoding === 'gzip'
      ? zlib.createGzip({ level: 1, ...ONE_BY_ONE })
      : zlib.createZstdCompress({ params: { [ZSTD_c_compressionLevel]: 1 }, ...ONE_BY_ONE });
  return pipeline(pieces, packer, () => {});
}

/** What `compress` packed with gzip. @throws where it is not whole */
export function decompress(pieces: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  return pipeline(pieces, zlib.createGunzip({ ...ONE_BY_ONE, chunkSize: 64 * 1024 }), () => {});
}
