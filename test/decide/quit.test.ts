import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Answer,
  ASK_PAUSES_MS,
  ASK_TIMEOUT_MS,
  beginQuit,
  nextQuitMove,
  PROBE_PAUSES_MS,
  type QuitEvent,
  type QuitMove,
  type QuitState,
  shareQuit,
} from '../../src/decide/quit.ts';

const DROPPED: Answer = { kind: 'dropped' };
const OK: Answer = { kind: 'answered', status: 200, isHtml: false };
const LOST: Answer = { kind: 'failed', why: 'timed out' };

/** Plays a target until it ends, or for `moves` moves; each event takes 10 ms. */
function play(state: QuitState, answers: readonly Answer[], probe: 'open' | 'refused' | 'unknown', startMs = 0) {
  let nowMs = startMs;
  let event: QuitEvent = { kind: 'begun' };
  const asked: number[] = [];
  for (let count = 0; count < 10_000; count++) {
    const next: { state: QuitState; move: QuitMove } = nextQuitMove(state, event, nowMs);
    state = next.state;
    if (next.move.kind === 'ended') return { result: next.move.result, nowMs, asked, state };
    if (next.move.kind === 'ask') {
      asked.push(nowMs);
      nowMs += 10;
      event = { kind: 'asked', answer: answers[Math.min(asked.length, answers.length) - 1] as Answer };
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
