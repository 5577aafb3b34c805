import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type AcceptUse,
  listAccepts,
  RICH_ACCEPT,
  readAccept,
  TEXT_ACCEPT,
  takesFormat,
  useAccept,
} from '../../src/decide/accepts.ts';

const MINUTE_MS = 60_000;

function use(...requests: readonly (readonly [accept: string, atMs: number])[]): readonly AcceptUse[] {
  return requests.reduce<readonly AcceptUse[]>((uses, [accept, atMs]) => useAccept(uses, accept, atMs), []);
}

test('readAccept() keeps an Accept byte for byte, and takes text for anything', () => {
  for (const header of [undefined, '', ' ', '*/*', ' */* ']) assert.equal(readAccept(header), TEXT_ACCEPT);
  for (const header of ['*/*;q=0.1', ' text/plain', 'a, */*', 'x'.repeat(8_192)])
    assert.equal(readAccept(header), header);
});

test('listAccepts() is the rich one, and text where that is something else, until a scraper asks', () => {
  assert.deepEqual(listAccepts([], 0, false), [RICH_ACCEPT]);
  assert.deepEqual(listAccepts([], 0, true), [RICH_ACCEPT]);
  assert.deepEqual(listAccepts([], 0, false, 'kept'), [RICH_ACCEPT, TEXT_ACCEPT]);
  assert.deepEqual(listAccepts([], 0, true, 'useless'), [TEXT_ACCEPT]);
  assert.deepEqual(listAccepts(use(['om', 0]), 0, false, 'kept'), ['om']);
  assert.deepEqual(listAccepts(use(['om', 0]), 0, false), ['om']);
  assert.deepEqual(listAccepts(use(['om', 0]), 0, true), ['om', TEXT_ACCEPT]);
  assert.deepEqual(listAccepts(use([TEXT_ACCEPT, 0], ['om', 1]), 1, true), ['om', TEXT_ACCEPT]);
});

test('useAccept() remembers four, the newest', () => {
  const uses = use(...['a', 'b', 'c', 'd', 'e', 'b', 'f'].map((accept, index) => [accept, index] as const));
  assert.deepEqual(listAccepts(uses, 7, false), ['f', 'b', 'e', 'd']);
  let many: readonly AcceptUse[] = [];
  for (let index = 0; index < 1_000; index++) many = useAccept(many, `${index}`, index);
  assert.equal(many.length, 4);
});

test('listAccepts() drops an Accept that was not sent for 5 minutes, or for 2.5 of its own gaps', () => {
  const once = use(['om', 0]);
  assert.deepEqual(listAccepts(once, 5 * MINUTE_MS, false), ['om']);
  assert.deepEqual(listAccepts(once, 5 * MINUTE_MS + 1, false), [RICH_ACCEPT]);
  // An HA pair: their gaps differ.
  const slow = use(['om', 0], ['om', 9 * MINUTE_MS], ['om', 10 * MINUTE_MS]);
  assert.deepEqual(listAccepts(slow, 32.5 * MINUTE_MS, false), ['om']);
  assert.deepEqual(listAccepts(slow, 32.5 * MINUTE_MS + 1, false), [RICH_ACCEPT]);
});

test('takesFormat() goes by the media type and its weight', () => {
  for (const accept of [
    RICH_ACCEPT,
    'a/b, Application/OpenMetrics-Text;version=0.0.1;q=0.01',
    'application/openmetrics-text',
  ])
    assert.equal(takesFormat(accept, 'openMetrics'), true, accept);
  for (const accept of [
    '*/*',
    TEXT_ACCEPT,
    'application/openmetrics-text;q=0',
    'application/openmetrics-text;q=0.00 ;v=1',
  ])
    assert.equal(takesFormat(accept, 'openMetrics'), false, accept);
  assert.deepEqual(
    [takesFormat(RICH_ACCEPT, 'protobuf'), takesFormat('application/openmetrics-text', 'protobuf')],
    [true, false],
  );
});
