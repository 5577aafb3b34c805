// Faults that the front once had, put back one at a time, and the first seed that finds each:
//
//      8  the end does not join what vanished just before it
//     96  a scraper that got only 503 counts as dead
//    189  an answer without a length that was cut at a line feed becomes the snapshot
//    249  one that was seen once is waited for until the TTL
//    255  one request that hangs keeps all others waiting
//    426  what an exporter shows that was restarted after the end is kept
//   1089  the grace closes under answers on their way, and the backlog is not taken first
//   1419  after the end a scraper without a time-out waits 15 s for the source
//   2424  no last read where nothing is held
//   3132  an own read always gives way, and a scrape's read ends with its scraper
//  14210  of two reads at a time the older one ends last, and what it has is taken for older than the page before both
//  28091  a standstill counts as the scrapers' silence, or is not seen within a long pause
//  53129  a page that begins does not know what vanished from the one of its type
//  57683  a replica that reconnects after a scrape that failed is taken for the other one
//  61515  after the end a scrape keeps polls away for a whole POLL
// 113571  the pause after a poll is four times what it waited for a scrape, too
// 222343  an exporter whose restart was kept is ignored after main's end, where a standstill hid that main lived
//
// Not simulated: real sockets, many connections, textfiles, Locust, pushes taken in, targets that quit.

import assert from 'node:assert/strict';
import { constants, setPriority } from 'node:os';
import { test } from 'node:test';
import { simulateMany, tellRun } from './simulate.ts';

/** Seven minutes on two processors, beside other tests; `npm run simulate` has a million. */
const RUNS_COUNT = 100_000;
/** A file of tests has 15 minutes; what a busy machine does not do by then, it says. */
const TIMEOUT_MS = 840_000;

// Other tests and a cluster run beside it, and wait for real programs.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL);

test('no run of the front loses a number, goes back, miscounts, holds too long or reports wrongly', async (t) => {
  const { runsCount, failures } = await simulateMany('front', RUNS_COUNT, TIMEOUT_MS);
  t.diagnostic(
    runsCount < RUNS_COUNT ? `ONLY ${runsCount} OF ${RUNS_COUNT} RUNS: no time was left` : `${runsCount} runs`,
  );
  const [first, ...others] = failures;
  const story = first === undefined ? '' : await tellRun('front', first.seed);
  const more = others.map(({ seed, faults }) => `seed ${seed}: ${faults[0]}`);
  assert.equal(first, undefined, [story, ...more, 'npm run simulate -- seed SEED tells one'].join('\n'));
});

test('a run is the same each time', async () => {
  assert.equal(await tellRun('front', 7), await tellRun('front', 7));
});
