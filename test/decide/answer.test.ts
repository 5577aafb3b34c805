// What a scrape gets, row by row of the design's table, and what becomes of what was read.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type AnswerKind,
  chooseAnswer,
  chooseSnapshot,
  type MainView,
  type SourceResult,
  viewMain,
} from '../../src/decide/answer.ts';
import { beginCount } from '../../src/decide/scrape-count.ts';
import { initialState, type Phase, type Series, type State } from '../../src/decide/state.ts';

const SERIES: Series = {
  sinceMs: 5_000,
  provenCount: 1,
  count: beginCount(0),
  isExporterRestarted: false,
  hasAnswered: true,
};
const RUNNING: Phase = { kind: 'running', done: null, others: null, goneSinceMs: null };
const HOLDING: Phase = {
  kind: 'holding',
  mainEndedAtMs: 5_000,
  because: 'settled',
  count: beginCount(0),
  isExporterRestarted: false,
  hasAnswered: true,
  goneSinceMs: null,
  scrapedAtMs: null,
};
const QUITTING: Phase = {
  kind: 'quitting',
  sinceMs: 9_000,
  outcome: 'neverStarted',
  because: 'startTimeout',
  mainEndedAtMs: null,
  scrapesSeenCount: null,
  hasAnswered: false,
  reports: [],
  target: null,
};

/** Main as the front sees it in a phase. */
const VIEWS: readonly (readonly [string, Phase, Partial<State['facts']>, MainView])[] = [
  ['nothing was seen', { kind: 'waiting', done: null }, {}, { main: 'living', wasAlive: false, endedAtMs: null }],
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
    'it was alive before this watch began, and its end is not seen yet',
    { kind: 'waiting', done: null },
    { wasAliveBefore: true },
    { main: 'living', wasAlive: true, endedAtMs: null },
  ],
  ['it runs', RUNNING, { aliveSinceMs: 0 }, { main: 'living', wasAlive: true, endedAtMs: null }],
  [
    'its end was seen once',
    { ...RUNNING, done: SERIES },
    { aliveSinceMs: 0 },
    { main: 'ending', wasAlive: true, endedAtMs: null },
  ],
  [
    'its end was seen, but for a metric that cannot be read',
    { ...RUNNING, others: SERIES },
    { aliveSinceMs: 0 },
    { main: 'ending', wasAlive: true, endedAtMs: null },
  ],
  ['the hold', HOLDING, { aliveSinceMs: 0 }, { main: 'ended', wasAlive: true, endedAtMs: 5_000 }],
  ['quitting', QUITTING, {}, { main: 'ended', wasAlive: false, endedAtMs: null }],
];

for (const [name, phase, facts, view] of VIEWS) {
  test(`viewMain() ${name}: ${view.main}`, () => {
    const state = initialState(0);
    assert.deepEqual(viewMain({ facts: { ...state.facts, ...facts }, phase }), view);
  });
}

/** Main, the source, what is got with a snapshot, and without one. */
const ANSWERS: readonly (readonly [MainView['main'], SourceResult, AnswerKind, AnswerKind])[] = [
  ['living', 'answered', 'live', 'live'],
  ['living', 'refused', 'snapshot', 'unavailable'],
  ['living', 'failed', 'unavailable', 'unavailable'],
  ['ending', 'answered', 'joined', 'live'],
  ['ending', 'refused', 'snapshot', 'unavailable'],
  ['ending', 'failed', 'unavailable', 'unavailable'],
  ['ended', 'answered', 'joined', 'live'],
  ['ended', 'refused', 'snapshot', 'unavailable'],
  ['ended', 'failed', 'snapshot', 'unavailable'],
];

for (const [main, source, withSnapshot, without] of ANSWERS) {
  test(`chooseAnswer() main ${main}, source ${source}: ${withSnapshot}, without a snapshot ${without}`, () => {
    const view: MainView = { main, wasAlive: true, endedAtMs: null };
    assert.deepEqual([chooseAnswer(view, source, true), chooseAnswer(view, source, false)], [withSnapshot, without]);
  });
}

test('chooseAnswer() fails on a source that is none', () => {
  const view: MainView = { main: 'living', wasAlive: true, endedAtMs: null };
  assert.throws(() => chooseAnswer(view, 'slow' as never, true), /^Error: Bug: unexpected value "slow"$/);
});

test('chooseSnapshot() renews it while main lives, and keeps what vanishes from its end on', () => {
  const choose = (main: MainView['main'], wasAlive: boolean, showsEnd: boolean) =>
    chooseSnapshot({ main, wasAlive, endedAtMs: null }, showsEnd);
  assert.equal(choose('living', true, false), 'renewed');
  assert.equal(choose('living', true, true), 'joined', 'it shows the end itself, which no observation has seen yet');
  assert.equal(choose('living', false, true), 'renewed', 'before main began its metric is 0 as well');
  assert.equal(choose('ending', true, false), 'joined');
  assert.equal(choose('ended', true, false), 'joined');
});
