// Retry-After in every form that the header has, and what it is not.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readRetryAfter } from '../../../src/base/net/retry-after.ts';

const NOW_MS = Date.UTC(1994, 10, 6, 8, 49, 37);
const DAY_MS = 86_400_000;

const HEADERS: readonly (readonly [header: string | string[], ms: number])[] = [
  ['0', 0],
  ['7', 7_000],
  [' 7 ', 7_000],
  ['9'.repeat(400), DAY_MS],
  [['3', '9'], 3_000],
  ['Sun, 06 Nov 1994 08:50:00 GMT', 23_000],
  ['Sunday, 06-Nov-94 08:50:00 GMT', 23_000],
  ['Sun Nov  6 08:50:00 1994', 23_000],
  ['Sun, 06 Nov 1994 08:00:00 GMT', 0],
  ['Thu, 06 Nov 2094 08:50:00 GMT', DAY_MS],
  ['1.5', 0],
  ['-5', 0],
  ['1e3', 0],
  ['soon', 0],
  ['Sunday', 0],
  ['', 0],
  [[], 0],
];
for (const [header, ms] of HEADERS) {
  test(`readRetryAfter() reads ${JSON.stringify(header).slice(0, 40)} as ${ms} ms`, () => {
    assert.equal(readRetryAfter({ 'retry-after': header }, NOW_MS), ms);
  });
}

test('readRetryAfter() reads no header as 0', () => assert.equal(readRetryAfter({}, NOW_MS), 0));

test("readRetryAfter() goes by the server's own clock where it tells it", () => {
  const headers = { 'retry-after': 'Sun, 06 Nov 1994 08:50:00 GMT' };
  const later = NOW_MS + DAY_MS;
  assert.equal(readRetryAfter({ ...headers, date: 'Sun, 06 Nov 1994 08:49:50 GMT' }, later), 10_000);
  assert.equal(readRetryAfter({ ...headers, date: 'today' }, NOW_MS), 23_000);
});
