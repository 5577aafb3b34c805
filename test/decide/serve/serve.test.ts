// What a scrape gets, row by row of the design's table, and what becomes of what was read.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { initialState } from '../../../src/decide/run/facts.ts';
import { beginCount } from '../../../src/decide/run/scrape-count.ts';
import {
  type AnswerKind,
  beginSource,
  chooseAnswer,
  findVanishedFate,
  findVanishedKeptMs,
  isLastReadDue,
  type MainView,
  type SourceKind,
  type SourceResult,
  type SourceState,
  takeAnswer,
  takeLastCall,
  takeRefusal,
  takeView,
  viewMain,
} from '../../../src/decide/serve/serve.ts';
import type { Phase, Series, State } from '../../../src/decide/state.ts';
import { HOLDING, QUITTING } from '../phases.ts';

const SERIES: Series = {
  sinceMs: 5_000,
  provenCount: 1,
  count: beginCount(0),
  isExporterRestarted: false,
  hasAnswered: true,
};
const NEVER_STARTED: Phase = { ...QUITTING, outcome: 'neverStarted', because: 'startTimeout', mainEndedAtMs: null };

/** Main as the front sees it in a phase. */
const VIEWS: readonly (readonly [string, Phase, Partial<State['facts']>, MainView])[] = [
  [
    'a port that is not open yet is no end',
    { kind: 'waiting', done: SERIES },
    {},
    { main: 'living', wasAlive: false, endedAtMs: null },
  ],
  [
    'it ended before this watch began',
    { kind: 'waiting', done: SERIES },
    { wasAliveBefore: true },
    { main: 'ending', wasAlive: true, endedAtMs: null },
  ],
  [
    'the hold, but for answers in flight',
    { ...HOLDING, mainEndedAtMs: 5_000, scrapedAtMs: 7_000 },
    { aliveSinceMs: 0 },
    { main: 'ended', wasAlive: true, endedAtMs: 5_000, holdOverAtMs: 7_000 },
  ],
  ['quitting', NEVER_STARTED, {}, { main: 'ended', wasAlive: false, endedAtMs: null }],
];

for (const [name, phase, facts, view] of VIEWS) {
  test(`viewMain() ${name}: ${view.main}`, () => {
    const state = initialState(0);
    assert.deepEqual(viewMain({ facts: { ...state.facts, ...facts }, phase }), view);
  });
}

const VIEWS_OF_MAIN = {
  unborn: { main: 'living', wasAlive: false, endedAtMs: null },
  living: { main: 'living', wasAlive: true, endedAtMs: null },
  ending: { main: 'ending', wasAlive: true, endedAtMs: null },
  ended: { main: 'ended', wasAlive: true, endedAtMs: 5_000 },
} as const;
type Main = keyof typeof VIEWS_OF_MAIN;

/** Main, how the read went, what a scrape gets with a snapshot, and without one. */
const ANSWERS: readonly (readonly [Main, SourceResult, AnswerKind, AnswerKind])[] = [
  ['living', 'answered', 'live', 'live'],
  ['living', 'refused', 'snapshot', 'unavailable'],
  ['living', 'failed', 'unavailable', 'unavailable'],
  ['ending', 'answered', 'joined', 'live'],
  ['ending', 'refused', 'snapshot', 'unavailable'],
  ['ending', 'failed', 'unavailable', 'unavailable'],
  ['ending', 'ignored', 'snapshot', 'unavailable'],
  ['ended', 'answered', 'joined', 'live'],
  ['ended', 'refused', 'snapshot', 'unavailable'],
  ['ended', 'failed', 'snapshot', 'unavailable'],
  ['ended', 'ignored', 'snapshot', 'unavailable'],
];

for (const [main, result, withSnapshot, without] of ANSWERS) {
  test(`chooseAnswer() main ${main}, source ${result}: ${withSnapshot}, without a snapshot ${without}`, () => {
    const view = VIEWS_OF_MAIN[main];
    const chosen = [0, null].map((answeredAtMs) => chooseAnswer({ view, answeredAtMs }, result));
    assert.deepEqual(chosen, [withSnapshot, without]);
  });
}

test('what was pushed is served as it is now, whatever main does: it goes only once it was taken', () => {
  const living = takeView(beginSource('pushes'), VIEWS_OF_MAIN.living);
  const ended = takeView(living, VIEWS_OF_MAIN.ended);
  assert.equal(findVanishedFate(living.view, VIEWS_OF_MAIN.ended, 'pushes'), null);
  const answer = { readAtMs: 1, exporter: { kind: 'none' } as const, metrics: [0] };
  const { state, becomes } = takeAnswer(ended, answer);
  assert.deepEqual([becomes, chooseAnswer(state, 'answered')], ['renewed', 'live']);
});

test('chooseAnswer() fails on a result outside its type', () => {
  const state = beginSource('program');
  assert.throws(() => chooseAnswer(state, 'slow' as never), /^Error: Bug: unexpected value "slow"$/);
});

/** Main from now on, a refusal, or an answer: its `up` (null: it cannot be read), what is judged, the counter of scrapes. */
type Step =
  | Main
  | 'refused'
  | { readonly up?: number | null; readonly judged?: number; readonly count?: number; readonly isShort?: boolean };

function play(kind: SourceKind, steps: readonly Step[]): { readonly state: SourceState; readonly becomes: string } {
  let state = beginSource(kind);
  let becomes: string = 'nothing';
  for (const [atMs, step] of steps.entries()) {
    if (step === 'refused') state = takeRefusal(state);
    else if (typeof step === 'string') state = takeView(state, VIEWS_OF_MAIN[step]);
    else {
      const { up, judged, count, isShort = false } = step;
      const taken = takeAnswer(state, {
        readAtMs: atMs,
        isShort,
        metrics: up === undefined ? [] : [up],
        exporter: {
          kind: 'answered',
          scrapes: count === undefined ? null : { finishedCount: count, inFlightCount: 1 },
          totals: { requests: null, failures: null, users: null },
          ...(judged === undefined ? {} : { thresholds: [{ kind: 'value', value: judged }] }),
        },
      });
      ({ state, becomes } = taken);
    }
  }
  return { state, becomes };
}

const BECOMES: readonly (readonly [what: string, SourceKind, steps: readonly Step[], becomes: string])[] = [
  ['without a metric', 'program', ['living', {}], 'renewed'],
  ['that shows the end, before any observation has', 'program', ['living', { up: 0 }], 'joined'],
  ['of 0 before main began', 'program', ['unborn', { up: 0 }], 'renewed'],
  ['whose metric cannot be read', 'program', ['living', { up: null }], 'renewed'],
  ['of a Locust that answered late or half', 'locust', ['living', { up: null }], 'joined'],
  ['of one that refused while the end is proven', 'program', ['living', {}, 'ending', 'refused', {}], 'ignored'],
  ['that may be cut and lacks families', 'program', ['living', {}, { isShort: true }], 'provisional'],
  ['older than one not kept', 'program', ['ended', { count: 7 }, { count: 9, isShort: true }, { count: 8 }], 'joined'],
];
for (const [what, kind, steps, becomes] of BECOMES) {
  test(`takeAnswer(): an answer ${what} is ${becomes}`, () => {
    assert.equal(play(kind, steps).becomes, becomes);
  });
}

test('a program that refused after the end is gone until main lives again; a file never is', () => {
  const TABLE: readonly (readonly [SourceKind, readonly Step[], boolean])[] = [
    ['program', ['refused'], false],
    ['program', ['living', {}, 'refused'], false],
    ['program', ['living', {}, 'ending', 'refused', 'ended'], false],
    ['program', ['ended', 'refused', 'ended'], true],
    ['program', ['ended', 'refused', 'ending'], false],
    ['program', ['ended', 'refused', 'living'], false],
    ['files', ['ended', 'refused'], false],
  ];
  for (const [kind, steps, isGone] of TABLE) assert.equal(play(kind, steps).state.isGone, isGone, steps.join());
});

test('takeAnswer() takes nothing back by an answer whose read began before another one, of another format, that is kept', () => {
  const take = (state: SourceState, readAtMs: number, finishedCount: number) => {
    const totals = { requests: null, failures: null, users: null };
    const exporter = { kind: 'answered', scrapes: { finishedCount, inFlightCount: 1 }, totals } as const;
    return takeAnswer(state, { readAtMs, metrics: [], exporter });
  };
  const ended = takeView(beginSource('program'), VIEWS_OF_MAIN.ended);
  const older = take(take(ended, 5, 7).state, 2, 6);
  assert.deepEqual([older.becomes, older.state.answeredAtMs], ['joined', 5]);
  assert.equal(take(older.state, 9, 8).becomes, 'joined', 'it was not restarted');
});

test('findVanishedFate(): the end restores what vanished shortly before it, a new life forgets it', () => {
  const TABLE: readonly (readonly [Main, Main, string | null])[] = [
    ['living', 'ending', 'restored'],
    ['living', 'ended', 'restored'],
    ['ending', 'ended', null],
    ['ending', 'living', null],
    ['ended', 'living', 'forgotten'],
    ['living', 'living', null],
  ];
  for (const [before, now, fate] of TABLE) {
    assert.equal(findVanishedFate(VIEWS_OF_MAIN[before], VIEWS_OF_MAIN[now]), fate, `${before}, ${now}`);
  }
});

test('what vanished is kept for 5 s, and for longer than a POLL: only the next look shows the end', () => {
  assert.deepEqual([250, 4_000, 30_000].map(findVanishedKeptMs), [5_000, 5_000, 31_000]);
});

test('takeAnswer() knows another program by its start, which has not called', () => {
  const answer = { readAtMs: 7, exporter: { kind: 'none' }, metrics: [] } as const;
  const first = takeAnswer(beginSource('program'), { ...answer, startSeconds: 100 });
  const called = takeLastCall(first.state, 7);
  const silent = takeAnswer(called, answer);
  const same = takeAnswer(silent.state, { ...answer, startSeconds: 100 });
  const other = takeAnswer(same.state, { ...answer, startSeconds: 101 });
  assert.deepEqual(
    [first, silent, same, other].map(({ isAnother, state }) => [isAnother, state.startSeconds, state.calledAtMs]),
    [
      [false, 100, null],
      [false, 100, 7],
      [false, 100, 7],
      [true, 101, null],
    ],
  );
});

test("isLastReadDue() of pushes, and where the page to push is from before main's end, and another from after it", () => {
  const state = {
    ...beginSource('program'),
    answeredAtMs: 6,
    view: { main: 'ended', wasAlive: true, endedAtMs: 5 },
  } as const;
  const isDue = (readAtMs: number | null, other = {}) => isLastReadDue({ ...state, ...other }, true, readAtMs);
  assert.deepEqual(
    [4, 5, null].map((readAtMs) => isDue(readAtMs)),
    [true, false, false],
  );
  const others = [{ answeredAtMs: 4 }, { answeredAtMs: null }, { view: { ...state.view, endedAtMs: null } }];
  assert.deepEqual(
    others.map((other) => isDue(4, other)),
    [false, false, false],
  );
  assert.equal(isLastReadDue(state, false, 4), false);
  assert.equal(isDue(null, { kind: 'pushes' }), true);
  assert.equal(isDue(4, { kind: 'exporter', answeredAtMs: 4 }), true, 'without a front');
});
