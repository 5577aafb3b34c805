// Tables of observations, one after the other: what is counted after each, and what is remembered of own requests.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExporterObservation, Observation } from '../../src/decide/model.ts';
import {
  advanceCount,
  advanceHistory,
  beginCount,
  type Count,
  EMPTY_HISTORY,
  hasRestarted,
  isQuiet,
  type PollHistory,
} from '../../src/decide/scrape-count.ts';

const NO_TOTALS = { requests: null, failures: null, users: null };

/** `counter/gauge` as promhttp shows them, or another way in which the request to the exporter went. */
type Shown = `${number}/${number}` | 'refused' | 'no counters' | 'timed out' | 'HTTP 500' | 'not asked';

function readShown(shown: Shown): ExporterObservation {
  switch (shown) {
    case 'refused':
      return { kind: 'refused' };
    case 'no counters':
      return { kind: 'answered', scrapes: null, totals: NO_TOTALS };
    case 'timed out':
      return { kind: 'failed', why: shown, mayCount: true };
    case 'HTTP 500':
      return { kind: 'failed', why: shown, mayCount: false };
    case 'not asked':
      return { kind: 'none' };
    default: {
      const [finishedCount = 0, inFlightCount = 0] = shown.split('/').map(Number);
      return { kind: 'answered', scrapes: { finishedCount, inFlightCount }, totals: NO_TOTALS };
    }
  }
}

function observe(shown: Shown, startedAtMs = 0): Observation {
  const atMs = startedAtMs + 10;
  return { startedAtMs, readAtMs: atMs, atMs, allowedMs: 25_000, exporter: readShown(shown), conditions: [] };
}

/** What was shown; then scrapes by others, whether there can have been none, own requests that may still be queued. */
type Row = readonly [shown: Shown, seenCount: number, isNobody: boolean, givenUpCount: number];

const TABLES: Readonly<Record<string, readonly Row[]>> = {
  'counts no own request': [
    ['10/1', 0, true, 0],
    ['11/1', 0, true, 0],
    ['12/1', 0, true, 0],
  ],
  'counts what the counter has beyond own requests': [
    ['10/1', 0, true, 0],
    ['12/1', 1, false, 0],
    ['13/1', 1, false, 0],
    ['16/1', 3, false, 0],
  ],
  'counts no scrape that was in flight at the baseline, only the one after it': [
    ['10/2', 0, false, 0],
    ['12/1', 0, false, 0],
    ['14/1', 1, false, 0],
  ],
  'counts a scrape in flight when it has ended, and knows of it before': [
    ['10/1', 0, true, 0],
    ['11/2', 0, false, 0],
    ['13/1', 1, false, 0],
  ],
  'takes an own request that was given up before the baseline for one in flight': [
    ['timed out', 0, false, 1],
    ['10/1', 0, false, 0],
    ['12/1', 0, false, 0],
    ['13/1', 0, false, 0],
    ['15/1', 1, false, 0],
  ],
  'takes the gauge where more is in flight than was given up': [
    ['timed out', 0, false, 1],
    ['10/3', 0, false, 1],
    ['13/1', 0, false, 0],
    ['15/1', 1, false, 0],
  ],
  'subtracts a request that was given up, though it may never be counted': [
    ['10/1', 0, true, 0],
    ['timed out', 0, true, 1],
    ['11/1', 0, true, 0],
    ['13/1', 0, false, 0],
    ['15/1', 1, false, 0],
  ],
  'no longer knows that no one scraped once the counter has what was given up': [
    ['10/1', 0, true, 0],
    ['timed out', 0, true, 1],
    ['12/1', 0, false, 0],
  ],
  'takes no baseline from an answer without counters, and subtracts it later': [
    ['no counters', 0, false, 0],
    ['10/1', 0, true, 0],
    ['no counters', 0, true, 0],
    ['12/1', 0, true, 0],
    ['14/1', 1, false, 0],
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
      const observation = observe(shown);
      count = advanceCount(count, observation, history);
      history = advanceHistory(history, observation);
      return [shown, count.seenCount, count.isNobody, history.givenUpCount];
    });
    assert.deepEqual(found, rows);
  });
}

test('advanceCount() takes no baseline from counters that are older than what is counted', () => {
  const early = advanceCount(beginCount(1_000), observe('10/1', 999), EMPTY_HISTORY);
  assert.deepEqual(early, beginCount(1_000));
  const inTime = advanceCount(early, observe('11/1', 1_000), EMPTY_HISTORY);
  assert.deepEqual(inTime.baseline, { finishedCount: 11, inFlightCount: 0 });
});

test('hasRestarted() takes a counter that fell for a restart, and nothing else', () => {
  const history: PollHistory = { finishedCount: 10, givenUpCount: 0 };
  const shown: readonly Shown[] = ['9/1', '0/1', '10/1', '11/1', 'refused', 'no counters', 'timed out'];
  const restarted = shown.filter((each) => hasRestarted(history, observe(each)));
  assert.deepEqual(restarted, ['9/1', '0/1']);
  assert.equal(hasRestarted(EMPTY_HISTORY, observe('0/1')), false, 'there was none before');
});

test('advanceHistory() forgets at a restart what was given up before, and keeps the counter of a refusing exporter', () => {
  const history: PollHistory = { finishedCount: 10, givenUpCount: 3 };
  assert.deepEqual(advanceHistory(history, observe('2/9')), { finishedCount: 2, givenUpCount: 0 });
  assert.deepEqual(advanceHistory(history, observe('10/9')), { finishedCount: 10, givenUpCount: 3 });
  assert.deepEqual(advanceHistory(history, observe('refused')), { finishedCount: 10, givenUpCount: 0 });
});

test('isQuiet() wants a gauge that shows no request but our own', () => {
  const shown: readonly Shown[] = ['5/0', '5/1', '5/2', 'no counters', 'refused', 'timed out', 'not asked'];
  const quiet = shown.filter((each) => isQuiet(observe(each)));
  assert.deepEqual(quiet, ['5/0', '5/1']);
});
