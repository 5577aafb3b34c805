import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Answer,
  ASK_PAUSES_MS,
  ASK_TIMEOUT_MS,
  beginQuit,
  DISABLED_MS,
  nextQuitMove,
  PROBE_PAUSES_MS,
  type QuitEvent,
  type QuitMove,
  type QuitState,
  shareQuit,
} from '../../src/decide/quit.ts';

const DROPPED: Answer = { kind: 'dropped' };
const OK: Answer = { kind: 'answered', status: 200, isHtml: false };
const LOST: Answer = { kind: 'failed', why: 'timed out', wasSent: true };
const DISABLED: Answer = { kind: 'disabled', port: 5432 };
const FORBIDDEN: Answer = { kind: 'answered', status: 403, isHtml: false };
const PAGE: Answer = { kind: 'answered', status: 200, isHtml: true };

/** Plays a target until it ends, or for `moves` moves; each event takes 10 ms. */
function play(
  state: QuitState,
  answers: readonly Answer[],
  probe: 'open' | 'refused' | 'unknown',
  startMs = 0,
  isPossible = true,
) {
  let nowMs = startMs;
  let event: QuitEvent = { kind: 'begun' };
  const asked: number[] = [];
  const forced: number[] = [];
  for (let count = 0; count < 10_000; count++) {
    const next: { state: QuitState; move: QuitMove } = nextQuitMove(state, event, nowMs);
    state = next.state;
    if (next.move.kind === 'ended') return { result: next.move.result, nowMs, asked, forced, state };
    if (next.move.kind === 'ask') {
      asked.push(nowMs);
      nowMs += 10;
      event = { kind: 'asked', answer: answers[Math.min(asked.length, answers.length) - 1] as Answer };
    } else if (next.move.kind === 'force') {
      forced.push(nowMs);
      event = { kind: 'forced', isPossible };
    } else {
      nowMs += next.move.afterMs + 10;
      event = { kind: 'probed', probe };
    }
  }
  throw new Error('does not end');
}

test('nextQuitMove() takes a refusal at the first request for already gone', () => {
  assert.equal(play(beginQuit(0, 30_000, null, 1), [{ kind: 'refused' }], 'open').result, 'alreadyGone');
});

test('nextQuitMove() takes a refusal at a later request for stopped', () => {
  assert.equal(play(beginQuit(0, 30_000, null, 1), [DROPPED, { kind: 'refused' }], 'open').result, 'stopped');
});

for (const answer of [DROPPED, OK, LOST]) {
  test(`nextQuitMove() takes a refused port after "${answer.kind}" for stopped, an open one never`, () => {
    assert.equal(play(beginQuit(0, 30_000, null, 1), [answer], 'refused').result, 'stopped');
    assert.equal(play(beginQuit(0, 30_000, null, 1), [answer], 'open').result, 'failed');
    assert.equal(play(beginQuit(0, 30_000, null, 1), [answer], 'unknown').result, 'failed');
  });
}

test('nextQuitMove() asks again with growing pauses until the time-out, and not after it', () => {
  const { asked, nowMs } = play(beginQuit(0, 30_000, null, 1), [OK], 'open');
  const pauses = asked.slice(1).map((atMs, index) => atMs - (asked[index] as number));
  assert.ok(pauses.every((pauseMs, index) => pauseMs >= (ASK_PAUSES_MS[Math.min(index, 3)] as number)));
  assert.ok(asked.length >= 5 && asked.every((atMs) => atMs < 30_000));
  assert.ok(nowMs >= 30_000 && nowMs <= 30_010, 'the last look is at the end of the time');
});

test('nextQuitMove() gives one request no more than its own time-out, and no more than is left', () => {
  const long = nextQuitMove(beginQuit(0, 30_000, null, 1), { kind: 'begun' }, 0);
  assert.deepEqual(long.move, { kind: 'ask', timeoutMs: ASK_TIMEOUT_MS });
  const short = nextQuitMove(beginQuit(0, 1_500, null, 1), { kind: 'begun' }, 0);
  assert.deepEqual(short.move, { kind: 'ask', timeoutMs: 1_500 });
});

test('nextQuitMove() looks often at first, then every 500 ms', () => {
  let { state } = nextQuitMove(beginQuit(0, 60_000, null, 1), { kind: 'begun' }, 0);
  const pauses: number[] = [];
  let event: QuitEvent = { kind: 'asked', answer: OK };
  for (let count = 0; count < PROBE_PAUSES_MS.length + 2; count++) {
    const next: { state: QuitState; move: QuitMove } = nextQuitMove(state, event, 0);
    state = next.state;
    event = { kind: 'probed', probe: 'open' };
    if (next.move.kind === 'probe') pauses.push(next.move.afterMs);
  }
  assert.deepEqual(pauses, [...PROBE_PAUSES_MS, 500, 500]);
});

test('nextQuitMove() keeps an answer that says something when a later request gets none', () => {
  const { state } = play(
    beginQuit(0, 10_000, null, 1),
    [{ kind: 'answered', status: 403, isHtml: false }, LOST],
    'open',
  );
  assert.deepEqual(state.answer, { kind: 'answered', status: 403, isHtml: false });
  assert.deepEqual(play(beginQuit(0, 10_000, null, 1), [LOST], 'open').state.answer, LOST);
});

test('nextQuitMove() never takes a refused quit port for gone while the service answers', () => {
  const { result, nowMs, asked } = play(beginQuit(0, 60_000, null, 1), [DISABLED], 'open');
  assert.equal(result, 'failed');
  assert.ok(nowMs >= DISABLED_MS && nowMs < DISABLED_MS + 1_000, `it gave up after ${nowMs} ms`);
  assert.ok(asked.length >= 3, 'it may still be starting: asked again');
  assert.equal(play(beginQuit(0, 3_000, null, 1), [DISABLED], 'unknown').nowMs, 3_010, 'never past the time-out');
});

test('nextQuitMove() looks rarely at a service that was not asked', () => {
  const begun = nextQuitMove(beginQuit(0, 30_000, null, 1), { kind: 'begun' }, 0);
  const asked = nextQuitMove(begun.state, { kind: 'asked', answer: DISABLED }, 0);
  assert.deepEqual(asked.move, { kind: 'probe', afterMs: 500 });
});

test('nextQuitMove() gives a target whose quit port is closed the time that it needs to go', () => {
  const { result, nowMs } = play(beginQuit(0, 60_000, null, 1, 30_000), [DISABLED], 'open');
  assert.equal(result, 'failed');
  assert.ok(nowMs >= 30_000 && nowMs < 31_000, `it gave up after ${nowMs} ms`);
});

test('nextQuitMove() takes a service that ends behind a closed quit port for already gone: nothing reached it', () => {
  assert.equal(play(beginQuit(0, 30_000, null, 1), [DISABLED], 'refused').result, 'alreadyGone');
  assert.equal(play(beginQuit(0, 30_000, null, 1), [DISABLED, { kind: 'refused' }], 'open').result, 'alreadyGone');
});

test('nextQuitMove() forgets a closed quit port when the target answers after all', () => {
  const late = play(beginQuit(0, 30_000, null, 1), [DISABLED, OK], 'open');
  assert.deepEqual(late.state.answer, OK);
  assert.ok(late.nowMs >= 30_000, 'it has the whole time-out');
  assert.equal(play(beginQuit(0, 30_000, null, 1), [DISABLED, OK, { kind: 'refused' }], 'open').result, 'stopped');
});

for (const answer of [OK, DROPPED, LOST]) {
  test(`nextQuitMove() takes a quit port that closes after "${answer.kind}" for one that goes`, () => {
    const { result, nowMs, state } = play(beginQuit(0, 30_000, null, 1), [answer, DISABLED], 'open');
    assert.equal(result, 'failed');
    assert.ok(nowMs >= 30_000, 'it has the whole time-out');
    assert.deepEqual(state.answer, answer);
  });
}

test('nextQuitMove() does not ask a target again that took the request, before the time that it needs has passed', () => {
  for (const taken of [OK, DROPPED]) {
    const { asked } = play(beginQuit(0, 60_000, null, 1, 20_000), [taken], 'open');
    assert.ok((asked[1] as number) >= 20_000, `asked again after ${asked[1]} ms`);
    assert.equal(asked.length, 3);
  }
  for (const not of [FORBIDDEN, PAGE, LOST, DISABLED]) {
    const { asked } = play(beginQuit(0, 60_000, null, 1, 20_000), [not], 'open');
    assert.ok((asked[1] as number) < 2_000, `${JSON.stringify(not)}: asked again after ${asked[1]} ms`);
  }
});

test('beginQuit() gives each target its share of what is left until the end of all quitting', () => {
  assert.equal(beginQuit(1_000, 30_000, null, 3).endsByMs, 31_000);
  assert.equal(beginQuit(1_000, 30_000, 4_000, 3).endsByMs, 2_000);
  assert.equal(beginQuit(1_000, 500, 4_000, 3).endsByMs, 1_500);
  assert.equal(beginQuit(5_000, 30_000, 4_000, 2).endsByMs, 5_000, 'no time is left');
});

test('shareQuit() never gives a target more time than it had', () => {
  const state = beginQuit(0, 2_000, null, 1);
  assert.equal(shareQuit(state, 1_000, 60_000, 1).endsByMs, 2_000);
  assert.equal(shareQuit(state, 1_000, 1_500, 1).endsByMs, 1_500);
});

test('nextQuitMove() forces at half and at three quarters of the time what did not take the request', () => {
  const answers: readonly (readonly [Answer, readonly number[]])[] = [
    [{ kind: 'failed', why: 'timed out', wasSent: true }, [15, 23]],
    [{ kind: 'answered', status: 404, isHtml: false }, [15, 23]],
    [{ kind: 'answered', status: 200, isHtml: true }, [15, 23]],
    [{ kind: 'signalled', signal: 'TERM', pids: [7] }, [15, 23]],
    // It would be given up by then.
    [{ kind: 'disabled', port: 8080 }, [10, 23]],
    [{ kind: 'answered', status: 200, isHtml: false }, []],
    [{ kind: 'dropped' }, []],
  ];
  for (const [answer, seconds] of answers) {
    const { result, forced, nowMs } = play(beginQuit(0, 30_000, null, 1, 0, true), [answer], 'open');
    assert.equal(result, 'failed');
    assert.ok(nowMs >= 30_000, 'what is forced has its whole time');
    assert.deepEqual(
      forced.map((atMs) => Math.round(atMs / 1_000)),
      seconds,
      JSON.stringify(answer),
    );
  }
  const never = play(beginQuit(0, 30_000, null, 1), [{ kind: 'failed', why: 'timed out', wasSent: true }], 'open');
  assert.deepEqual(never.forced, [], 'a target that cannot be forced');
});

test('nextQuitMove() forces once where that turns out to be impossible', () => {
  const timedOut: Answer = { kind: 'failed', why: 'timed out', wasSent: true };
  assert.equal(play(beginQuit(0, 30_000, null, 1, 0, true), [timedOut], 'open', 0, false).forced.length, 1);
});

test('nextQuitMove() gives a request no more than the time until it forces', () => {
  const { move } = nextQuitMove(beginQuit(0, 6_000, null, 1, 0, true), { kind: 'begun' }, 0);
  assert.deepEqual(move, { kind: 'ask', timeoutMs: 3_000 });
  assert.deepEqual(nextQuitMove(beginQuit(0, 6_000, null, 1), { kind: 'begun' }, 0).move.kind, 'ask');
});

test('nextQuitMove() takes what was forced and is gone for stopped, whatever it had answered', () => {
  const begun = nextQuitMove(beginQuit(0, 10_000, null, 1, 0, true), { kind: 'begun' }, 0).state;
  const asked = nextQuitMove(begun, { kind: 'asked', answer: { kind: 'disabled', port: 80 } }, 10).state;
  const due = nextQuitMove(asked, { kind: 'probed', probe: 'open' }, 5_000);
  assert.deepEqual(due.move, { kind: 'force', count: 0 });
  const forced = nextQuitMove(due.state, { kind: 'forced', isPossible: true }, 5_001);
  assert.deepEqual(forced.move, { kind: 'probe', afterMs: 20 });
  assert.deepEqual(nextQuitMove(forced.state, { kind: 'probed', probe: 'refused' }, 5_021).move, {
    kind: 'ended',
    result: 'stopped',
  });
});
