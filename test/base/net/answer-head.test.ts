// Which heads are taken is asked of Go's client (http-judge.test.ts); here in which pieces.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openHeadReader } from '../../../src/base/net/answer-head.ts';

const BODY = 'queue_up 100\n\nHTTP/1.1 100 Continue\r\n\r\n';
const WRITTEN = 'HTTP/1.1 200 OK\r\ncontent-length: 39\r\nx: a b\r\n\r\n';

const ANSWERS: Readonly<Record<string, string>> = {
  'a usual head': 'HTTP/1.1 200 OK\r\nContent-Length: 39\r\nX: a b\r\n\r\n',
  'bare line feeds, a length twice and a folded line':
    'HTTP/1.1 200\nContent-Length: 39\nX: a\n b\ncontent-length:39\n\n',
  'interim answers before it': `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\nX: y\n\nHTTP/1.1 200 OK\nContent-Length: 39\nX: a b\n\n`,
  'empty lines before and between':
    '\r\n\nHTTP/1.1 100 a\r\n\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 39\r\nX: a b\r\n\r\n',
};

for (const [name, head] of Object.entries(ANSWERS)) {
  test(`take() reads ${name}: whole, cut in two anywhere, and byte by byte`, () => {
    const bytes = Buffer.from(head + BODY);
    const cuts = Array.from({ length: bytes.length + 1 }, (_, at) => [bytes.subarray(0, at), bytes.subarray(at)]);
    const single = Array.from(bytes, (byte) => Buffer.of(byte));
    for (const pieces of [...cuts, single]) {
      const { take } = openHeadReader();
      const taken = pieces.map((piece) => take(piece) ?? Buffer.alloc(0));
      assert.equal(Buffer.concat(taken).toString(), WRITTEN + BODY, `cut at ${pieces[0]?.length}`);
    }
  });
}

test('begin() expects a head, wherever the last answer was left', () => {
  const answer = Buffer.from(WRITTEN + BODY);
  for (let length = 0; length <= answer.length; length++) {
    const { begin, take } = openHeadReader();
    take(answer.subarray(0, length));
    begin();
    assert.equal(take(answer)?.toString(), WRITTEN + BODY, `left at ${length}`);
  }
});

test('take() ends interim answers without end', () => {
  const { take } = openHeadReader();
  const piece = Buffer.from('HTTP/1.1 103 a\r\n\r\n'.repeat(10_000));
  assert.throws(() => {
    for (let count = 0; count < 10; count++) take(piece);
  }, /a head of more than 1048576 bytes/);
});
