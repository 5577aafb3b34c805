import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Answer,
  ASK_TIMEOUT_MS,
  beginTarget,
  nextTargetMove,
  type TargetEvent,
  type TargetMove,
  type TargetState,
} from '../../../src/decide/quit/quit-target.ts';

/** A target that is asked from `nowMs` on. */
function begin(
  nowMs: number,
  quitTimeoutMs: number,
  quitByMs: number | null,
  leftCount: number,
  needsMs = 0,
  canForce = false,
): TargetState {
  return beginTarget({ needsMs, canForce }, { nowMs, quitTimeoutMs, quitByMs, leftCount });
}

const DROPPED: Answer = { kind: 'dropped' };
const SIGNALLED = { kind: 'signalled', signal: 'TERM', pids: [7] } as const;
const OK: Answer = { kind: 'answered', status: 200, isHtml: false };
const LOST: Answer = { kind: 'failed', why: 'timed out', wasSent: true };
const REFUSED: Answer = { kind: 'refused' };
const UNSENT: Answer = { kind: 'failed', why: 'Invalid header value', wasSent: false };
const DISABLED: Answer = { kind: 'disabled', port: 5432 };
const FORBIDDEN: Answer = { kind: 'answered', status: 403, isHtml: false };
const CREATED: Answer = { kind: 'answered', status: 299, isHtml: false };
const MOVED: Answer = { kind: 'answered', status: 300, isHtml: false };
const PAGE: Answer = { kind: 'answered', status: 200, isHtml: true };

/** Plays a target until it ends, or for `moves` moves; each event takes 10 ms. */
function play(
  state: TargetState,
  answers: readonly Answer[],
  probe: 'open' | 'refused' | 'unknown',
  startMs = 0,
  isPossible = true,
) {
  let nowMs = startMs;
  let event: TargetEvent = { kind: 'begun' };
  const asked: number[] = [];
  const forced: number[] = [];
  for (let count = 0; count < 10_000; count++) {
    const next: { state: TargetState; move: TargetMove } = nextTargetMove(state, event, nowMs);
    state = next.state;
    if (next.move.kind === 'ended') return { result: next.move.result, nowMs, asked, forced, state };
    if (next.move.kind === 'ask') {
      asked.push(nowMs);
      nowMs += 10;
      event = { kind: 'asked', answer: answers[Math.min(asked.length, answers.length) - 1] as Answer, hint: '' };
    } else if (next.move.kind === 'force') {
      forced.push(nowMs);
      event = { kind: 'forced', result: isPossible ? SIGNALLED : { kind: 'impossible', why: 'hidden' } };
    } else {
      nowMs = next.move.atMs + 10;
      event = { kind: 'probed', probe };
    }
  }
  throw new Error('does not end');
}

/** What the target answers one after the other, what its port shows then, and what becomes of it. */
const RESULTS: readonly (readonly [answers: readonly Answer[], probe: 'open' | 'refused' | 'unknown', string])[] = [
  [[REFUSED], 'open', 'alreadyGone'],
  [[DROPPED, REFUSED], 'open', 'stopped'],
  ...[DROPPED, OK, LOST].flatMap((answer) => [
    [[answer], 'refused', 'stopped'] as const,
    [[answer], 'open', 'failed'] as const,
    [[answer], 'unknown', 'failed'] as const,
  ]),
  // Nothing reached a service that ends behind a closed quit port.
  [[DISABLED], 'refused', 'alreadyGone'],
  [[DISABLED, REFUSED], 'open', 'alreadyGone'],
  [[DISABLED, OK, REFUSED], 'open', 'stopped'],
  [[UNSENT], 'refused', 'alreadyGone'],
  [[LOST, UNSENT], 'refused', 'stopped'],
];
for (const [answers, probe, result] of RESULTS) {
  test(`nextTargetMove() after ${answers.map(({ kind }) => kind).join()} with its port ${probe}: ${result}`, () => {
    assert.equal(play(begin(0, 30_000, null, 1), answers, probe).result, result);
  });
}

test('nextTargetMove() asks again with growing pauses until the time-out, and not after it', () => {
  const { asked, nowMs } = play(begin(0, 30_000, null, 1), [OK], 'open');
  const pauses = asked.slice(1).map((atMs, index) => atMs - (asked[index] as number));
  // A probe in between comes up to 500 ms late.
  for (const [index, pauseMs] of [1_000, 2_000, 4_000, 5_000, 5_000].entries()) {
    const foundMs = pauses[index] ?? 0;
    assert.ok(foundMs >= pauseMs && foundMs < pauseMs + 600, `pause ${index}: ${foundMs} ms`);
  }
  assert.ok(asked.length >= 5 && asked.every((atMs) => atMs < 30_000));
  assert.ok(nowMs >= 30_000 && nowMs <= 30_010, 'the last probe is at the end of the time');
});

test('nextTargetMove() gives one request no more than its own time-out, and no more than is left', () => {
  const long = nextTargetMove(begin(0, 30_000, null, 1), { kind: 'begun' }, 0);
  assert.deepEqual(long.move, { kind: 'ask', timeoutMs: ASK_TIMEOUT_MS });
  const short = nextTargetMove(begin(0, 1_500, null, 1), { kind: 'begun' }, 0);
  assert.deepEqual(short.move, { kind: 'ask', timeoutMs: 1_500 });
  const none = nextTargetMove(begin(0, 1_500, null, 1), { kind: 'begun' }, 1_500);
  assert.deepEqual(none.move, { kind: 'ask', timeoutMs: 1 }, 'no time-out at all would be none');
});

test('nextTargetMove() probes often at first, then every 500 ms', () => {
  let { state } = nextTargetMove(begin(0, 60_000, null, 1), { kind: 'begun' }, 0);
  const pauses: number[] = [];
  let event: TargetEvent = { kind: 'asked', answer: OK, hint: '' };
  for (let count = 0; count < 9; count++) {
    const next: { state: TargetState; move: TargetMove } = nextTargetMove(state, event, 0);
    state = next.state;
    event = { kind: 'probed', probe: 'open' };
    if (next.move.kind === 'probe') pauses.push(next.move.atMs);
  }
  assert.deepEqual(pauses, [20, 30, 50, 100, 200, 300, 500, 500, 500]);
});

test('nextTargetMove() keeps an answer that says something when a later request gets none', () => {
  const { state } = play(begin(0, 10_000, null, 1), [{ kind: 'answered', status: 403, isHtml: false }, LOST], 'open');
  assert.deepEqual(state.answer, { kind: 'answered', status: 403, isHtml: false });
  assert.deepEqual(play(begin(0, 10_000, null, 1), [LOST], 'open').state.answer, LOST);
});

test('nextTargetMove() gives a closed quit port up 10 s after it was first seen, whenever that was', () => {
  for (const startMs of [0, 500_000]) {
    const asked = nextTargetMove(
      begin(startMs, 60_000, null, 1),
      { kind: 'asked', answer: DISABLED, hint: '' },
      startMs,
    );
    const again = nextTargetMove(asked.state, { kind: 'asked', answer: DISABLED, hint: '' }, startMs + 2_000);
    const probeAt = (ms: number) => nextTargetMove(again.state, { kind: 'probed', probe: 'open' }, startMs + ms).move;
    assert.notEqual(probeAt(9_999).kind, 'ended');
    assert.deepEqual(probeAt(10_000), { kind: 'ended', result: 'failed', hint: '' });
  }
});

test('nextTargetMove() rarely probes a service that was not asked', () => {
  const begun = nextTargetMove(begin(0, 30_000, null, 1), { kind: 'begun' }, 0);
  const asked = nextTargetMove(begun.state, { kind: 'asked', answer: DISABLED, hint: '' }, 0);
  assert.deepEqual(asked.move, { kind: 'probe', atMs: 500, timeoutMs: 1_000 });
});

test('nextTargetMove() forgets a closed quit port when the target answers after all', () => {
  const late = play(begin(0, 30_000, null, 1), [DISABLED, OK], 'open');
  assert.deepEqual(late.state.answer, OK);
  assert.ok(late.nowMs >= 30_000, 'it has the whole time-out');
});

for (const answer of [OK, DROPPED, LOST]) {
  test(`nextTargetMove() takes a quit port that closes after "${answer.kind}" for one that goes`, () => {
    const { result, nowMs, state } = play(begin(0, 30_000, null, 1), [answer, DISABLED], 'open');
    assert.equal(result, 'failed');
    assert.ok(nowMs >= 30_000, 'it has the whole time-out');
    assert.deepEqual(state.answer, answer);
  });
}

test('nextTargetMove() does not ask a target again that took the request, before the time that it needs has passed', () => {
  for (const taken of [OK, CREATED, DROPPED]) {
    const { asked } = play(begin(0, 60_000, null, 1, 20_000), [taken], 'open');
    assert.ok((asked[1] as number) >= 20_000, `asked again after ${asked[1]} ms`);
    assert.equal(asked.length, 3);
  }
  for (const not of [MOVED, FORBIDDEN, PAGE, LOST, DISABLED]) {
    const { asked } = play(begin(0, 60_000, null, 1, 20_000), [not], 'open');
    assert.ok((asked[1] as number) < 2_000, `${JSON.stringify(not)}: asked again after ${asked[1]} ms`);
  }
});

test('nextTargetMove() forces at half and at three quarters of the time what did not take the request', () => {
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
    const { result, forced, nowMs } = play(begin(0, 30_000, null, 1, 0, true), [answer], 'open');
    assert.equal(result, 'failed');
    assert.ok(nowMs >= 30_000, 'what is forced has its whole time');
    const times = forced.map((atMs) => Math.round(atMs / 1_000));
    assert.deepEqual(times, seconds, JSON.stringify(answer));
  }
  const never = play(begin(0, 30_000, null, 1), [{ kind: 'failed', why: 'timed out', wasSent: true }], 'open');
  assert.deepEqual(never.forced, [], 'a target that cannot be forced');
});

test('nextTargetMove() takes what was forced and is gone for stopped, whatever it had answered', () => {
  const begun = nextTargetMove(begin(0, 10_000, null, 1, 0, true), { kind: 'begun' }, 0).state;
  const asked = nextTargetMove(begun, { kind: 'asked', answer: { kind: 'disabled', port: 80 }, hint: '' }, 10).state;
  const due = nextTargetMove(asked, { kind: 'probed', probe: 'open' }, 5_000);
  assert.deepEqual(due.move, { kind: 'force', count: 0, answer: { kind: 'disabled', port: 80 } });
  const forced = nextTargetMove(due.state, { kind: 'forced', result: SIGNALLED }, 5_001);
  assert.deepEqual(forced.move, { kind: 'probe', atMs: 5_021, timeoutMs: 1_000 });
  assert.deepEqual(nextTargetMove(forced.state, { kind: 'probed', probe: 'refused' }, 5_021).move, {
    kind: 'ended',
    result: 'stopped',
    hint: '',
  });
});

test('nextTargetMove() takes what refuses for already gone where it was not forced', () => {
  const begun = begin(0, 30_000, null, 1, 0, true);
  const notForced: TargetEvent = { kind: 'forced', result: { kind: 'impossible', why: 'hidden' } };
  const tried = nextTargetMove(begun, notForced, 10).state;
  const { move } = nextTargetMove(tried, { kind: 'probed', probe: 'refused' }, 20);
  assert.deepEqual(move, { kind: 'ended', result: 'alreadyGone', hint: '' });
});

test('nextTargetMove() says with the hint why a target was not forced', () => {
  const begun = nextTargetMove(begin(0, 10_000, null, 1, 0, true), { kind: 'begun' }, 0).state;
  const asked = nextTargetMove(begun, { kind: 'asked', answer: FORBIDDEN, hint: 'it answered 403' }, 10).state;
  const forced = nextTargetMove(
    asked,
    { kind: 'forced', result: { kind: 'impossible', why: 'not forced: hidden' } },
    5_000,
  );
  const over = nextTargetMove(forced.state, { kind: 'probed', probe: 'open' }, 10_000);
  assert.deepEqual(over.move, { kind: 'ended', result: 'failed', hint: 'it answered 403; not forced: hidden' });
});
