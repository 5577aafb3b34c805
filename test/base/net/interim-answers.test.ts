import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rewriteInterimAnswers } from '../../../src/base/net/interim-answers.ts';

const FINAL = 'HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n';

const REWRITTEN: readonly (readonly [text: string, expected: string])[] = [
  [FINAL, FINAL],
  ['HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 Continue\r\n\r\n'],
  [`HTTP/1.1 100 Continue\r\n\r\n${FINAL}`, `HTTP/1.1 103 Continue\r\n\r\n${FINAL}`],
  [`HTTP/1.0 100 a\r\nX: 100\r\nY: \r\r\n\r\n${FINAL}`, `HTTP/1.0 103 a\r\nX: 100\r\nY: \r\r\n\r\n${FINAL}`],
  ['HTTP/1.1 103 a\r\n\r\nHTTP/1.1 100 b\r\n\r\n', 'HTTP/1.1 103 a\r\n\r\nHTTP/1.1 103 b\r\n\r\n'],
  ['HTTP/1.1 101 a\r\n\r\nHTTP/1.1 110 b\r\n\r\n', 'HTTP/1.1 101 a\r\n\r\nHTTP/1.1 110 b\r\n\r\n'],
  [
    '\r\nHTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nqueue_up 100\n',
    '\r\nHTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nqueue_up 100\n',
  ],
  [`\r\nHTTP/1.1 100 a\r\n\r\n\r\n${FINAL}`, `\r\nHTTP/1.1 103 a\r\n\r\n\r\n${FINAL}`],
  ['SSH-2.0-OpenSSH_9.2\r\n', 'SSH-2.0-OpenSSH_9.2\r\n'],
];

for (const [text, expected] of REWRITTEN) {
  test(`rewrite() of ${JSON.stringify(text.slice(0, 40))}, whole, and cut in two anywhere`, () => {
    for (let at = 0; at <= text.length; at++) {
      const pieces = [Buffer.from(text.slice(0, at)), Buffer.from(text.slice(at))];
      const { rewrite } = rewriteInterimAnswers();
      pieces.forEach(rewrite);
      assert.equal(Buffer.concat(pieces).toString(), expected, `cut at ${at}`);
    }
  });
}

test('begin() expects a head, wherever the last answer was left', () => {
  for (let length = 0; length <= FINAL.length; length++) {
    const { begin, rewrite } = rewriteInterimAnswers();
    rewrite(Buffer.from(FINAL.slice(0, length)));
    begin();
    const piece = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n');
    rewrite(piece);
    assert.equal(piece.toString(), 'HTTP/1.1 103 Continue\r\n\r\n', `left at ${length}`);
  }
});
