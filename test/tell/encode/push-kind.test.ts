import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PUSH_KINDS } from '../../../src/tell/encode/kinds.ts';
import { judgeStatus } from '../../../src/tell/encode/push-kind.ts';

test('judgeStatus() has those requests sent again that the receiver may take later', () => {
  for (const status of [200, 202, 204, 299]) assert.equal(judgeStatus(status), 'accepted', String(status));
  for (const status of [408, 429, 500, 502, 503, 504]) assert.equal(judgeStatus(status), 'retry', String(status));
  for (const status of [199, 300, 301, 307, 400, 401, 403, 404, 413])
    assert.equal(judgeStatus(status), 'refused', String(status));
});

test('PUSH_KINDS has each kind once', () => {
  assert.deepEqual(
    PUSH_KINDS.map(({ name }) => name),
    ['pushgateway', 'remote-write', 'otlp'],
  );
});
