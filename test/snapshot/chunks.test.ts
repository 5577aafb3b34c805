import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type Chunks, countGarbage, openChunks } from '../../src/snapshot/chunks.ts';

const KIB = 1024;
const CHUNK_BYTES = 256 * KIB;
const GARBAGE_MAX_KIB = 2 * KIB;

async function packAll(chunks: Chunks): Promise<Chunks> {
  chunks.seal();
  for (let count = 0; count <= chunks.list().length; count++) await turn();
  return chunks;
}

function openWith(bytes: Uint8Array): Chunks {
  const chunks = openChunks();
  chunks.add(bytes);
  return chunks;
}

test('openChunks() gives every buffer to the next bytes, and each once, however its bytes end', async () => {
  const bytes = Buffer.alloc(3 * CHUNK_BYTES + 1, 'a');
  const known = await packAll(openWith(bytes));
  const ends: Readonly<Record<string, (chunks: Chunks) => unknown>> = {
    seal: packAll,
    clear: (chunks) => chunks.clear(),
    share(chunks) {
      assert.ok(chunks.share(known.list()));
      // What it has now is the other's.
      chunks.clear();
    },
  };
  const listBuffers = (chunks: Chunks) => chunks.list().map((chunk) => chunk.bytes);
  for (const [how, end] of Object.entries(ends)) {
    const chunks = openWith(bytes);
    const before = listBuffers(chunks);
    await end(chunks);
    const next = openWith(bytes);
    const after = listBuffers(next);
    assert.equal(new Set(after).size, 4, how);
    assert.equal(new Set([...before, ...after]).size, 4, how);
    next.clear();
  }
});

test('openChunks() gives a buffer to the next bytes only once no reader has a piece of it', async () => {
  const bytes = Buffer.alloc(2 * CHUNK_BYTES, 'a');
  for (const finish of ['next', 'end'] as const) {
    const chunks = openWith(bytes);
    const reader = chunks.openReader();
    const piece = reader.next() as Uint8Array;
    await packAll(chunks);
    const others = openWith(Buffer.alloc(40 * CHUNK_BYTES, 'b'));
    assert.ok(bytes.subarray(0, CHUNK_BYTES).equals(piece), finish);
    reader[finish]();
    const next = openWith(bytes);
    assert.equal(next.list()[0]?.bytes.buffer, piece.buffer, finish);
    for (const each of [next, others]) each.clear();
    reader.end();
  }
});

test('openChunks() packs while bytes come, all but the last 4 MB', () => {
  const chunks = openChunks();
  for (let count = 0; count < 21; count++) chunks.add(Buffer.alloc(CHUNK_BYTES));
  const packed = chunks.list().flatMap(({ isPacked }, index) => (isPacked ? [index] : []));
  assert.deepEqual(packed, [0, 1, 2, 3]);
  chunks.clear();
});

test('countGarbage() collects 2 MiB of what packing, copying and reading leave', async () => {
  const collect = globalThis.gc;
  let collectedCount = 0;
  globalThis.gc = (async () => {
    collectedCount++;
  }) as NonNullable<typeof globalThis.gc>;
  /** How much garbage `work` counts, in KiB. */
  const measure = async (work: () => unknown): Promise<number> => {
    countGarbage(GARBAGE_MAX_KIB * KIB);
    await turn();
    const before = collectedCount;
    await work();
    let leftKib = 0;
    for (; collectedCount === before; leftKib++) {
      countGarbage(KIB);
      await turn();
    }
    return GARBAGE_MAX_KIB - leftKib;
  };
  try {
    const long = openWith(Buffer.alloc(2 * CHUNK_BYTES, 'a'));
    // Each call of zlib leaves 26 KiB; the packed letters, counted twice, are 1 KiB and a bit.
    assert.equal(Math.floor((await measure(() => packAll(long))) / 2), 28);
    const { next } = long.openReader();
    const readAll = () => {
      while (next() !== null);
    };
    // What was read as well.
    assert.equal(await measure(readAll), 2 * (26 + 256));
    assert.equal(await measure(() => packAll(openWith(Buffer.alloc(100 * KIB)))), 100);
  } finally {
    globalThis.gc = collect;
  }
});
