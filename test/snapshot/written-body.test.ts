// A body that is written when somebody reads it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeWrittenBody } from '../../src/snapshot/written-body.ts';

async function readText(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  let text = '';
  for await (const piece of pieces) text += Buffer.from(piece).toString();
  return text;
}

test('makeWrittenBody() writes nothing until it is read, and then once: every reader gets the same', async () => {
  let writtenCount = 0;
  let number = 1;
  const piece = Buffer.alloc(16);
  const body = makeWrittenBody({
    families: new Set(['a', 'b']),
    write(push) {
      writtenCount++;
      // A source uses its buffer again.
      for (const name of ['a', 'b']) push(piece.subarray(0, piece.write(`${name} ${number}\n`)));
    },
  });
  assert.deepEqual(await body.ended, { kind: 'whole' });
  assert.deepEqual([...(await body.families())], ['a', 'b']);
  assert.equal(body.endsWithLineFeed, true);
  assert.equal(writtenCount, 0);
  number = 2;
  assert.equal(await readText(body.read()), 'a 2\nb 2\n');
  number = 3;
  assert.equal(await readText(body.read()), 'a 2\nb 2\n');
  assert.equal(body.sizeBytes, 8);
  assert.equal(writtenCount, 1);
});

test('makeWrittenBody() knows its size before anybody reads it', () => {
  const body = makeWrittenBody({ families: new Set(['a']), write: (push) => push(Buffer.from('a 1\n')) });
  assert.equal(body.sizeBytes, 4);
});
