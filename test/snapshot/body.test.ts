import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import {
  type Body,
  type BodyEnd,
  BrokenBody,
  filterFamilies,
  makeWrittenBody,
  type OpenBody,
  openBody,
} from '../../src/snapshot/body.ts';
import { collectGarbage } from '../support/memory.ts';
import { readPieces } from '../support/pieces.ts';

const MIB = 1024 * 1024;

const readAll = (body: Body, signal?: AbortSignal) => readPieces(body.read(signal));

/** Lines of random values, as programs show them, of that many bytes. */
function makeExposition(sizeBytes: number): Buffer {
  let text = '';
  for (let row = 0; text.length < sizeBytes; row++) {
    text += `http_requests_total{method="GET",path="/page/${row % 997}",code="200"} ${(row * 2_654_435_761) % 1e9}\n`;
  }
  return Buffer.from(`${text.slice(0, sizeBytes - 1)}\n`);
}

test('openBody() gives a reader the pieces as they come, and the end', async () => {
  const { body, push, end } = openBody();
  const reader = body.read()[Symbol.asyncIterator]();
  for (const text of ['a 1\n', 'b ', '2\n']) {
    const next = reader.next();
    push(Buffer.from(text));
    assert.equal(String(Buffer.from((await next).value)), text);
  }
  const last = reader.next();
  end();
  assert.equal((await last).done, true);
  assert.deepEqual(await body.ended, { kind: 'whole' });
  assert.deepEqual([body.sizeBytes, body.endsWithLineFeed], [8, true]);
});

test('openBody() is read from the first byte by every reader, at any time and pace', async () => {
  const bytes = makeExposition(3 * MIB);
  const { body, push, end } = openBody();
  const readers = [readAll(body)];
  const slow: Uint8Array[] = [];
  const slowReader = body.read()[Symbol.asyncIterator]();
  // Sizes without a common measure with the chunks.
  for (let at = 0, size = 1; at < bytes.length; at += size, size = (size * 7) % 70_001) {
    push(bytes.subarray(at, at + size));
    if (size % 5 === 0) slow.push(Uint8Array.from((await slowReader.next()).value));
    if (size % 11 === 0) readers.push(readAll(body));
  }
  end();
  readers.push(readAll(body));
  await turn();
  readers.push(readAll(body));
  assert.ok(readers.length > 5);
  for (const read of await Promise.all(readers)) assert.ok(read.equals(bytes));
  for (let next = await slowReader.next(); !next.done; next = await slowReader.next())
    slow.push(Uint8Array.from(next.value));
  assert.ok(Buffer.concat(slow).equals(bytes));
  assert.ok((await readAll(body)).equals(bytes));
});

test('openBody() finds families once it is whole', async () => {
  const { body, push, end } = openBody();
  const families = body.families();
  push(Buffer.from('# TYPE a histogram\na_su'));
  push(Buffer.from('m 1\nb 2'));
  end();
  assert.deepEqual(await families, new Set(['a', 'b']));
  assert.equal(await body.families(), await families);
});

test('a body that breaks off is whole for no reader', async () => {
  const { body, push, end, breakOff } = openBody();
  const waiting = readAll(body);
  const begun = body.read()[Symbol.asyncIterator]();
  push(Buffer.from('a 1\n'));
  await begun.next();
  const families = body.families();
  breakOff('reset');
  end();
  push(Buffer.from('b 1\n'));
  for (const read of [waiting, readAll(body), begun.next(), families, body.families()]) {
    await assert.rejects(read, (error) => error instanceof BrokenBody && error.message === 'reset');
  }
  assert.deepEqual(await body.ended, { kind: 'broken', why: 'reset' });
  assert.equal(body.sizeBytes, 4);
});

test('a body that is whole does not break off, and takes no more', async () => {
  const { body, push, end, breakOff } = openBody();
  push(Buffer.from('a 1\n'));
  end();
  breakOff('reset');
  push(Buffer.from('b 1\n'));
  end();
  assert.equal(String(await readAll(body)), 'a 1\n');
  assert.equal((await body.ended).kind, 'whole');
});

test('read() is ended by its signal, while it waits and before it begins', async () => {
  const { body, push } = openBody();
  push(Buffer.from('a 1\n'));
  const controller = new AbortController();
  const read = readAll(body, controller.signal);
  await turn();
  controller.abort('timed out');
  await assert.rejects(read, /^Error: timed out$/);
  await assert.rejects(readAll(body, AbortSignal.abort('gone')), /^Error: gone$/);
});

test('read() is not ended by its signal once the body is whole', async () => {
  const { body, push, end } = openBody();
  const [first, second] = [new AbortController(), new AbortController()];
  push(Buffer.from('a 1\n'));
  const [early, late] = [readAll(body, first.signal), readAll(body, second.signal)];
  await turn();
  first.abort('timed out');
  await assert.rejects(early, BrokenBody);
  push(Buffer.from('b 2\n'));
  end();
  second.abort('timed out');
  assert.equal(String(await late), 'a 1\nb 2\n');
  assert.equal(String(await readAll(body, second.signal)), 'a 1\nb 2\n');
});

test('openBody() never has a large body raw: one that comes at once, and one that comes in time', async () => {
  const sizeBytes = 30 * MIB;
  const piece = makeExposition(MIB);
  for (const isAtOnce of [true, false]) {
    collectGarbage();
    const before = process.memoryUsage().arrayBuffers;
    const { body, push, end } = openBody();
    let mostBytes = 0;
    for (let sent = 0; sent < sizeBytes; sent += 64 * 1024) {
      const at = sent % MIB;
      push(Buffer.from(piece.subarray(at, at + 64 * 1024)));
      if (!isAtOnce) await turn();
      if (sent % (5 * MIB) !== 0) continue;
      collectGarbage();
      mostBytes = Math.max(mostBytes, process.memoryUsage().arrayBuffers - before);
    }
    end();
    while (body.sizeBytes < sizeBytes) await turn();
    assert.ok(mostBytes < 12 * MIB, `${mostBytes} bytes while it came, at once: ${isAtOnce}`);
    let length = 0;
    for await (const part of body.read()) {
      assert.ok(part.length <= 256 * 1024);
      length += part.length;
    }
    assert.equal(length, sizeBytes);
  }
});

test('openBody() packs all of a body once it is whole, a last piece of four bytes included, and hands out nothing twice', async () => {
  const piece = makeExposition(MIB);
  const raw = Buffer.concat([piece, piece, Buffer.from('a 1\n')]);
  const large = openBody();
  large.push(raw);
  const early: Uint8Array[] = [];
  const reader = large.body.read()[Symbol.asyncIterator]();
  early.push((await reader.next()).value);
  large.end();
  for (let count = 0; count < 20; count++) await turn();
  // Its buffers are used again by the next body.
  const small = openBody();
  small.push(Buffer.alloc(MIB, 0x23));
  for (let next = await reader.next(); !next.done; next = await reader.next()) early.push(next.value);
  assert.ok(Buffer.concat(early).equals(raw));
  assert.ok((await readAll(large.body)).equals(raw));
});

test('openBody() takes what it is given at once: its owner may use the bytes again', async () => {
  const { body, push, end } = openBody();
  const bytes = Buffer.from('a 1\n');
  push(bytes);
  bytes.fill(0x23);
  end();
  assert.equal(String(await readAll(body)), 'a 1\n');
});

test('openBody() is read on from within a chunk that was packed meanwhile', async () => {
  const bytes = makeExposition(3 * MIB);
  const { body, push, end } = openBody();
  const reader = body.read()[Symbol.asyncIterator]();
  const parts: Uint8Array[] = [];
  push(bytes.subarray(0, 10_000));
  parts.push(Uint8Array.from((await reader.next()).value));
  push(bytes.subarray(10_000));
  for (let count = 0; count < 100; count++) await turn();
  end();
  for (let next = await reader.next(); !next.done; next = await reader.next()) parts.push(Uint8Array.from(next.value));
  assert.ok(Buffer.concat(parts).equals(bytes));
});

test('endUnchecked() ends readers at once, and the body with what was found in it; then it is packed', async () => {
  const { body, chunks, push, endUnchecked } = openBody();
  const read = readAll(body);
  push(Buffer.from('<p>\n'));
  // The reader has it, and waits for more.
  await turn();
  const found = Promise.withResolvers<BodyEnd>();
  const ended = endUnchecked(null, () => found.promise);
  assert.equal(ended, false);
  assert.equal(String(await read), '<p>\n');
  assert.ok(chunks.list()[0]?.raw !== null);
  found.resolve({ kind: 'unreadable', why: 'odd' });
  assert.deepEqual(await body.ended, { kind: 'unreadable', why: 'odd' });
  await turn();
  assert.ok(chunks.list()[0]?.raw === null);
});

test('endUnchecked() takes over the page before it where the bytes are the same, and looks at no other twice', async () => {
  const bytes = makeExposition(5 * MIB);
  let inspectedCount = 0;
  const inspect = async (): Promise<BodyEnd> => {
    inspectedCount++;
    return { kind: 'whole' };
  };
  const send = (page: Buffer, before: OpenBody | null) => {
    const open = openBody();
    for (let at = 0; at < page.length; at += 70_001) open.push(page.subarray(at, at + 70_001));
    return { ...open, isSame: open.endUnchecked(before, inspect) };
  };
  const first = send(bytes, null);
  await first.body.ended;
  const slow = first.body.read()[Symbol.asyncIterator]();
  await slow.next();
  const same = send(bytes, first);
  assert.equal(same.isSame, true);
  assert.equal(same.body.page, first.body.page);
  assert.equal(await same.body.families(), await first.body.families());
  assert.deepEqual(await same.body.ended, { kind: 'whole' });
  assert.ok((await readAll(same.body)).equals(bytes));
  for (const at of [0, 300_000, bytes.length - 3]) {
    const other = Buffer.from(bytes);
    other[at] = 0x31 + (Number(other[at]) % 2);
    const changed = send(other, first);
    assert.equal(changed.isSame, false);
    assert.notEqual(changed.body.page, first.body.page);
    assert.ok((await readAll(changed.body)).equals(other));
  }
  assert.equal(send(bytes.subarray(0, -1), first).isSame, false);
  assert.deepEqual([send(Buffer.concat([bytes, Buffer.from('a 1\n')]), first).isSame, inspectedCount], [false, 6]);
  assert.ok((await readAll(first.body)).equals(bytes));
});

test('openBody() forgets what came of a body that breaks off', async () => {
  collectGarbage();
  const before = process.memoryUsage().arrayBuffers;
  const { body, push, breakOff } = openBody();
  for (let count = 0; count < 20; count++) push(Buffer.from(makeExposition(MIB)));
  breakOff('reset');
  await turn();
  collectGarbage();
  const grownBytes = process.memoryUsage().arrayBuffers - before;
  assert.ok(grownBytes < 5 * MIB, `${grownBytes} bytes, the buffers of the next one included`);
  assert.equal(body.sizeBytes, 20 * MIB);
});

test('openBody() gives the buffers of a body that breaks off to the next one', () => {
  const piece = makeExposition(MIB);
  collectGarbage();
  const before = process.memoryUsage().arrayBuffers;
  for (let round = 0; round < 5; round++) {
    const { push, breakOff } = openBody();
    for (let count = 0; count < 3; count++) push(piece);
    breakOff('reset');
  }
  const grownBytes = process.memoryUsage().arrayBuffers - before;
  assert.ok(grownBytes < 4 * MIB, `${grownBytes} bytes`);
});

const readText = async (pieces: AsyncIterable<Uint8Array>) => String(await readPieces(pieces));

test('filterFamilies() filters what comes, its last line without a line feed included', async () => {
  const { body, push, end } = openBody();
  const filtered = readText(filterFamilies(body.read(), (family) => family === 'b'));
  for (const text of ['# A comment.\n# TYPE a gau', 'ge\na 1\nb', ' 1\na 2\nb 2']) push(Buffer.from(text));
  end();
  assert.equal(await filtered, '# A comment.\nb 1\nb 2');
  const others = filterFamilies([Buffer.from('# A comment.\na 1\n')], () => true, { keepsOther: false });
  assert.equal(await readText(others), 'a 1\n');
});

test('filterFamilies() breaks off as its source does', async () => {
  const { body, push, breakOff } = openBody();
  const filtered = readText(filterFamilies(body.read(), () => true));
  push(Buffer.from('a 1\n'));
  breakOff('reset');
  await assert.rejects(filtered, BrokenBody);
});

test('makeWrittenBody() writes nothing until it is read, and then once: every reader gets the same', async () => {
  let writtenCount = 0;
  let number = 1;
  const piece = Buffer.alloc(16);
  const body = makeWrittenBody(new Set(['a', 'b']), (push) => {
    writtenCount++;
    // A source uses its buffer again.
    for (const name of ['a', 'b']) push(piece.subarray(0, piece.write(`${name} ${number}\n`)));
  });
  assert.deepEqual(await body.ended, { kind: 'whole' });
  assert.deepEqual([...(await body.families())], ['a', 'b']);
  assert.deepEqual([body.endsWithLineFeed, writtenCount], [true, 0]);
  number = 2;
  assert.equal(await readText(body.read()), 'a 2\nb 2\n');
  number = 3;
  assert.equal(await readText(body.read()), 'a 2\nb 2\n');
  assert.deepEqual([body.sizeBytes, writtenCount], [8, 1]);
});

test('makeWrittenBody() knows its size before anybody reads it', () => {
  const body = makeWrittenBody(new Set(['a']), (push) => push(Buffer.from('a 1\n')));
  assert.equal(body.sizeBytes, 4);
});
