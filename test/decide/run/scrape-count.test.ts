// Tables of observations, one after the other: what is counted after each, and what is remembered of own requests.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExporterObservation } from '../../../src/decide/model.ts';
import {
  advanceCount,
  advanceHistory,
  beginCount,
  type Count,
  EMPTY_HISTORY,
  isQuiet,
  type PollHistory,
} from '../../../src/decide/run/scrape-count.ts';
import { ANSWERED, answer, NOT_ASKED, observe, REFUSED } from '../phases.ts';

/** `counter/gauge` as promhttp shows them, or another way in which the request to the exporter went. */
type Shown = `${number}/${number}` | 'refused' | 'no counters' | 'timed out' | 'HTTP 500' | 'not asked';

function readShown(shown: Shown): ExporterObservation {
  switch (shown) {
    case 'refused':
      return REFUSED;
    case 'no counters':
      return ANSWERED;
    case 'timed out':
      return { kind: 'failed', why: shown, mayCount: true };
    case 'HTTP 500':
      return { kind: 'failed', why: shown, mayCount: false };
    case 'not asked':
      return NOT_ASKED;
    default:
      return answer(...(shown.split('/').map(Number) as [number, number]));
  }
}

const see = (shown: Shown) => observe([], { exporter: readShown(shown), atMs: 10 });

/** What was shown; then scrapes by others, whether there can have been none, own requests that may still be queued. */
type Row = readonly [shown: Shown, seenCount: number, isNobody: boolean, givenUpCount: number];

const TABLES: Readonly<Record<string, readonly Row[]>> = {
  'counts a scrape in flight when it has ended, and knows of it before': [
    ['10/1', 0, true, 0],
    ['11/2', 0, false, 0],
    ['13/1', 1, false, 0],
  ],
  'subtracts a request that was given up, though it may never be counted': [
    ['10/1', 0, true, 0],
    ['timed out', 0, true, 1],
    ['11/1', 0, true, 0],
    ['13/1', 0, false, 0],
    ['15/1', 1, false, 0],
  ],
  'subtracts no request that promhttp does not count': [
    ['10/1', 0, true, 0],
    ['HTTP 500', 0, true, 0],
    ['refused', 0, true, 0],
    ['not asked', 0, true, 0],
    ['12/1', 1, false, 0],
  ],
  'knows that nothing is queued in an exporter that refuses': [
    ['timed out', 0, false, 1],
    ['timed out', 0, false, 2],
    ['refused', 0, false, 0],
    ['10/1', 0, true, 0],
  ],
  'takes a request for ended that the gauge has no place for': [
    ['timed out', 0, false, 1],
    ['timed out', 0, false, 2],
    ['HTTP 500', 0, false, 2],
    ['not asked', 0, false, 2],
    ['no counters', 0, false, 2],
    ['10/2', 0, false, 1],
    ['11/0', 0, false, 0],
  ],
  'never takes back what it saw': [
    ['10/1', 0, true, 0],
    ['14/1', 3, false, 0],
    ['2/1', 3, false, 0],
  ],
};

for (const [name, rows] of Object.entries(TABLES)) {
  test(`advanceCount() ${name}`, () => {
    let count: Count = beginCount(0);
    let history: PollHistory = EMPTY_HISTORY;
    const found = rows.map(([shown]): Row => {
      const observation = see(shown);
      count = advanceCount(count, observation, history);
      history = advanceHistory(history, observation);
      return [shown, count.seenCount, count.isNobody, history.givenUpCount];
    });
    assert.deepEqual(found, rows);
  });
}

test('isQuiet() wants a gauge that shows no request but our own', () => {
  const shown: readonly Shown[] = ['5/0', '5/1', '5/2', 'no counters', 'refused', 'timed out', 'not asked'];
  const quiet = shown.filter((each) => isQuiet(see(each)));
  assert.deepEqual(quiet, ['5/0', '5/1']);
});
