import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type AcceptUse,
  listLiving,
  RICH_ACCEPT,
  readAccept,
  TEXT_ACCEPT,
  takesFormat,
  useAccept,
} from '../../src/decide/pages.ts';

const MINUTE_MS = 60_000;

function use(...requests: readonly (readonly [accept: string, atMs: number])[]): readonly AcceptUse[] {
  return requests.reduce<readonly AcceptUse[]>((uses, [accept, atMs]) => useAccept(uses, accept, atMs), []);
}

test('readAccept() keeps an Accept byte for byte, and takes text for anything', () => {
  for (const header of [undefined, '', ' ', '*/*', ' */* ']) assert.equal(readAccept(header), TEXT_ACCEPT);
  for (const header of ['*/*;q=0.1', ' text/plain', 'a, */*', 'x'.repeat(8_192)])
    assert.equal(readAccept(header), header);
});

test('useAccept() remembers four, the newest', () => {
  const uses = use(...['a', 'b', 'c', 'd', 'e', 'b', 'f'].map((accept, index) => [accept, index] as const));
  assert.deepEqual(listLiving(uses, 7), ['f', 'b', 'e', 'd']);
});

test('listLiving() drops an Accept that was not sent for 5 minutes, or for 2.5 of its own gaps', () => {
  const once = use(['om', 0]);
  assert.deepEqual(listLiving(once, 5 * MINUTE_MS), ['om']);
  assert.deepEqual(listLiving(once, 5 * MINUTE_MS + 1), []);
  // An HA pair: their gaps differ.
  const slow = use(['om', 0], ['om', 9 * MINUTE_MS], ['om', 10 * MINUTE_MS]);
  assert.deepEqual(listLiving(slow, 32.5 * MINUTE_MS), ['om']);
  assert.deepEqual(listLiving(slow, 32.5 * MINUTE_MS + 1), []);
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
  const taken = [takesFormat(RICH_ACCEPT, 'protobuf'), takesFormat('application/openmetrics-text', 'protobuf')];
  assert.deepEqual(taken, [true, false]);
});
