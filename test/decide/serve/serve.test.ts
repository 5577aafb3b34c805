// What a scrape gets, row by row of the design's table, and what becomes of what was read.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SourceKind } from '../../../src/decide/model.ts';
import { initialState, viewMain } from '../../../src/decide/run/facts.ts';
import { beginCount } from '../../../src/decide/run/scrape-count.ts';
import { takeWhole, type WholeAnswer } from '../../../src/decide/serve/kept.ts';
import { beginPages, takeUse } from '../../../src/decide/serve/pages.ts';
import {
  type AnswerKind,
  beginSource,
  chooseAnswer,
  findVanishedFate,
  findVanishedKeptMs,
  isLastReadDue,
  type MainView,
  type SourceResult,
  type SourceState,
  takeAnswer,
  takeRefusal,
  takeView,
} from '../../../src/decide/serve/serve.ts';
import type { Phase, Series, State } from '../../../src/decide/state.ts';
import { HOLDING, QUITTING } from '../phases.ts';

const SERIES: Series = {
  sinceMs: 5_000,
  provenCount: 1,
  count: beginCount(0),
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

test('takeAnswer(): a metric of 0 shows the end of a main that was alive, one that cannot be read that of a Locust alone', () => {
  const TABLE: readonly (readonly [SourceKind, Main, number | null, string])[] = [
    ['program', 'unborn', 0, 'renewed'],
    ['program', 'living', null, 'renewed'],
    ['locust', 'living', null, 'joined'],
  ];
  for (const [kind, main, value, becomes] of TABLE) {
    const begun = beginSource(kind);
    const state = main === 'unborn' ? begun : takeView(begun, VIEWS_OF_MAIN[main]);
    const taken = takeAnswer(state, { readAtMs: 1, exporter: { kind: 'none' }, metrics: [value] });
    assert.equal(taken.becomes, becomes, `${kind}, ${main}`);
  }
});

test('a program that refused after the end is gone until main lives again; a file never is', () => {
  const TABLE: readonly (readonly [SourceKind, readonly (Main | 'refused')[], boolean])[] = [
    ['program', ['refused'], false],
    ['program', ['living', 'refused', 'ending', 'refused', 'ended'], false],
    ['program', ['ended', 'refused', 'ended'], true],
    ['program', ['ended', 'refused', 'ending'], false],
    ['program', ['ended', 'refused', 'living'], false],
    ['files', ['ended', 'refused'], false],
  ];
  for (const [kind, steps, isGone] of TABLE) {
    const take = (state: SourceState, step: Main | 'refused') =>
      step === 'refused' ? takeRefusal(state) : takeView(state, VIEWS_OF_MAIN[step]);
    assert.equal(steps.reduce(take, beginSource(kind)).isGone, isGone, steps.join());
  }
});

test('takeWhole() passes on what is logged of an answer that gets no page', () => {
  const read = (accept: string): WholeAnswer => ({
    accept,
    body: { sizeBytes: 20e6, type: { format: 'text', contentType: accept } },
    readAtMs: 1,
    exporter: { kind: 'none' },
    metrics: [],
    isShort: false,
  });
  const pages = ['a', 'b'].reduce((all, accept) => takeUse(all, accept, 0), beginPages<string>(false, true));
  const means = { nowMs: 1, open: () => '' };
  const first = takeWhole({ source: beginSource('program'), pages, calls: [], unreadWhy: null }, read('a'), means);
  assert.equal(takeWhole(first.known, read('b'), means).log?.id, 'formatLeftOut');
});

test('takeAnswer() takes nothing back by an answer whose read began before another one, of another format, that is kept', () => {
  const take = (state: SourceState, readAtMs: number, finishedCount: number, isShort = false) => {
    const totals = { requests: null, failures: null, users: null };
    const exporter = { kind: 'answered', scrapes: { finishedCount, inFlightCount: 1 }, totals } as const;
    return takeAnswer(state, { readAtMs, metrics: [], exporter, isShort });
  };
  const ended = takeView(beginSource('program'), VIEWS_OF_MAIN.ended);
  const older = take(take(ended, 5, 7).state, 2, 6);
  assert.deepEqual([older.becomes, older.state.answeredAtMs], ['joined', 5]);
  assert.equal(take(older.state, 9, 8).becomes, 'joined', 'it was not restarted');
  const refused = takeRefusal(takeView(take(beginSource('program'), 1, 7).state, VIEWS_OF_MAIN.ending));
  assert.equal(take(refused, 2, 8).becomes, 'ignored', 'it refused while the end was being proven');
  const short = take(older.state, 9, 9, true);
  assert.deepEqual([short.becomes, take(short.state, 9, 8).becomes], ['provisional', 'joined'], 'nor one not kept');
});

test('what vanished is kept for 5 s, and for longer than a POLL: only the next look shows the end', () => {
  assert.deepEqual([250, 4_000, 30_000].map(findVanishedKeptMs), [5_000, 5_000, 31_000]);
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
